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
    use crate::test_reports::{figures, report};

    #[test]
    fn every_set_keeps_its_bounds() {
        for (name, judged) in [("tf-k80", 6), ("tf-saturation", 2), ("cakelab", 28)] {
            let report = report(name);
            assert!(report.holds, "{report:#?}");
            assert_eq!(report.cases().len(), judged, "{report:#?}");
            let figures = figures(name);
            let rows = figures["rows"].as_array().unwrap();
            for row in rows.iter().filter(|row| row["fitted"] == true) {
                let error = row["predicted"].as_f64().unwrap() / row["measured"].as_f64().unwrap() - 1.0;
                assert!(error.abs() < 0.03, "{row:?}");
            }
        }
    }
}
