//! Real asynchronous TensorFlow training with one parameter server: from the one-worker profile of each configuration to
//! the throughput of all measured numbers of workers.
//!
//! A folder holds one folder per configuration (`config.json`, `runmetadata.tar.xz`,
//! `partition_graphs_runmetadata.pb.gz`, `run_W<k>.json.gz`, `overhead_W1.csv.gz`, `h2_W<k>_frames.csv.gz`) and
//! `bandwidth/` with iperf results. The testbed's parameters are measured once from all of it, and none is fitted to a
//! single configuration. Two parameters, and parts of the model's structure, were chosen on the runs with several workers
//! of four configurations (docs/validation.md); [`Options::held_out`] predicts each configuration with the two parameters
//! chosen on the others.

mod capture;
mod cases;
mod data;
mod held_out;
mod iperf;
mod predict;
mod predictions;
mod tables;
mod testbed;

use crate::{Evidence, Measured, Options, Progress, Report, Set, Source, ValidationError};

const NAME: &str = "tf-ps";

const ABOUT: &str = "Real asynchronous TensorFlow training with one parameter server, predicted from the profile of one \
                     worker; samples/s. Two figures of the network model and parts of its structure were chosen on four \
                     such configurations (docs/validation.md); the option `held-out` predicts each by what fits the others.";

/// The set.
pub(super) struct TfPs;

impl Set for TfPs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> Source {
        Source::Folder("tf-ps")
    }

    fn run(&self, options: &Options<'_>, progress: &Progress<'_>) -> Result<Report, ValidationError> {
        let predictions = predictions::predict(options.data_of(self)?, options.held_out, progress)?;
        let evidence = Evidence::Measured(Measured {
            cases: predictions.cases(),
            other_cases: predictions.other_cases(),
            bounds: predictions.bounds,
            bounded_by_group: false,
        });
        let mut report = Report::new(NAME, predictions.holds(), ABOUT, evidence, &predictions)?;
        report.sections = tables::sections(&predictions);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::predictions::predict;
    use crate::set::unwatched;
    use crate::test_reports::{figures, report};
    use std::path::Path;

    #[test]
    fn real_runs_are_predicted_within_the_bounds() {
        assert!(report(super::NAME).holds, "{:#?}", report(super::NAME));
        let found = figures(super::NAME);
        assert_eq!(found["rows"].as_array().unwrap().len(), 24);
        let within = |value: &serde_json::Value, least: f64, most: f64| {
            assert!((least..most).contains(&value.as_f64().unwrap()), "{value} of {:#?}", found["testbed"]);
        };
        let testbed = &found["testbed"];
        within(&testbed["spread"][0], 0.2, 0.3);
        within(&testbed["spread"][1], 0.3, 0.5);
        within(&testbed["first_window_b"], 2e5, 4e5);
        within(&testbed["joining"], 0.25, 0.4);
        within(&found["likely_coverage"], 0.8, 1.01);
    }

    #[test]
    fn a_folder_without_configurations_is_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = predict(&folder, false, &unwatched).unwrap_err().to_string();
        assert!(error.contains("no configuration"), "{error}");
    }
}
