//! Published throughput of training with parameter servers, predicted from that of one worker: one module for each
//! source, one form for all of them.

mod cakelab;
mod one_worker;
mod tf_k80;
mod tf_saturation;
mod throughput;

pub(super) use cakelab::Cakelab;
pub(super) use tf_k80::TfK80;
pub(super) use tf_saturation::TfSaturation;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_keeps_its_bounds() {
        let sets = [(tf_k80::predict(), 6), (tf_saturation::predict(), 2), (cakelab::predict(), 28)];
        for (predictions, judged) in sets {
            let predictions = predictions.unwrap();
            assert!(predictions.holds(), "{predictions:#?}");
            assert_eq!(predictions.cases().len(), judged, "{predictions:#?}");
            for row in predictions.rows.iter().filter(|row| row.fitted) {
                assert!((row.predicted / row.measured - 1.0).abs() < 0.03, "{row:?}");
            }
        }
    }
}
