//! Real PyTorch DDP jobs over gloo on CPUs: from the profile of one worker and a micro-benchmark of all-reduces to the
//! time of a step.
//!
//! Two parameters are fitted to jobs, once for the testbed: the time that a byte takes of a rank's only core, and how much
//! slower a loaded host computes. Every job is judged with parameters fitted on jobs of other models.

mod data;
mod predictions;
mod prepared;
mod tables;
mod testbed;

use crate::{Evidence, Measured, Options, Progress, Report, Set, Source, ValidationError};

const NAME: &str = "ddp-gloo";

const ABOUT: &str = "Real PyTorch DDP jobs over gloo on CPUs, predicted from the profile of one worker and a \
                     micro-benchmark of all-reduces; time of a step. Two figures are fitted to jobs of other models than \
                     the one that is predicted.";

/// The set.
pub(super) struct DdpGloo;

impl Set for DdpGloo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> Source {
        Source::File("ddp-gloo/ddp_gloo.jsonl")
    }

    fn run(&self, options: &Options<'_>, progress: &Progress<'_>) -> Result<Report, ValidationError> {
        let predictions = predictions::predict(options.data_of(self)?, progress)?;
        let evidence = Evidence::Measured(Measured {
            cases: predictions.cases(),
            other_cases: Vec::new(),
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
    use crate::ValidationError;
    use crate::set::unwatched;
    use crate::test_reports::{figures, report};

    #[test]
    fn real_jobs_are_predicted_within_the_bounds() {
        assert!(report(super::NAME).holds, "{:#?}", report(super::NAME));
        let found = figures(super::NAME);
        assert_eq!(found["rows"].as_array().unwrap().len(), 36);
        // The two fitted parameters at least halve the error.
        let mean = |method: usize| found["errors"][method]["mean"].as_f64().unwrap();
        assert!(mean(0) < 0.5 * mean(2), "{:#?}", found["errors"]);
    }

    #[test]
    fn broken_files_are_refused_with_their_line() {
        let folder = std::env::temp_dir().join(format!("stepcast-ddp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = |text: &str| {
            let path = folder.join("jobs.jsonl");
            std::fs::write(&path, text).unwrap();
            match predict(&path, &unwatched).unwrap_err() {
                ValidationError::Fault(fault) => format!("{}: {}", fault.origin(), fault.reason),
                other => unreachable!("{other}"),
            }
        };
        assert!(refused("").contains("no measured job"));
        assert!(refused("{").contains(":1"));
        let place = "\"N\": 2, \"rate\": \"1gbit\", \"cores_per_rank\": 1";
        assert!(refused(&format!("{{\"kind\": \"x\", {place}}}")).contains("no kind of row"));
        assert!(
            refused("{\"kind\": \"ddp\", \"N\": 0, \"rate\": \"1gbit\", \"cores_per_rank\": 1}")
                .contains("ranks")
        );
        assert!(
            refused("{\"kind\": \"ddp\", \"N\": 2, \"rate\": \"fast\", \"cores_per_rank\": 1}")
                .contains("rate")
        );
        let profile = |gradients: &str| {
            format!(
                "{{\"kind\": \"profile\", {place}, \"model\": \"m\", \"fwd\": [1], \"bwd\": [1], \"opt\": [1], \"grads\": {gradients}}}"
            )
        };
        let unsorted = "[{\"bytes\": 4, \"ready\": 2}, {\"bytes\": 4, \"ready\": 1}]";
        assert!(refused(&profile(unsorted)).contains("before the one that precedes it"));
        assert!(refused(&profile("[]")).contains("no gradient has a time"));
        assert!(
            refused(&format!("{{\"kind\": \"allreduce\", {place}, \"bytes\": 4, \"times\": [-1]}}"))
                .contains("positive")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
