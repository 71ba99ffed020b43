//! Real pipeline, tensor-parallel, sharded and hybrid jobs over gloo on CPUs, from profiles of layers and measured
//! collectives. Nothing is fitted to the jobs.

mod data;
mod pipeline;
mod profile;
mod sharded;
mod tensor;

use crate::families::{Families, Unit};
use crate::{CoverageBound, Options, Progress, Report, Set, Source, ValidationError, bounds};
use std::path::Path;

const NAME: &str = "parallel-jobs";

/// Range in which the share of measured steps within their 90 % intervals must lie.
const COVERED: CoverageBound = CoverageBound { least: 0.85, most: 0.97 };

const ABOUT: &str = "Real PyTorch jobs over gloo on CPUs: pipelines of six schedules, tensor parallelism, ZeRO, FSDP2 and two \
                     kinds at once; time of a step from profiles of layers and measured collectives. Pipelines are also \
                     replayed with their own durations. Nothing is fitted to the jobs.";

/// The set.
pub(super) struct ParallelJobs;

impl Set for ParallelJobs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> Source {
        Source::File("parallel-jobs/parallel_gloo.jsonl.gz")
    }

    fn run(&self, options: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let families = predict(options.data_of(self)?)?;
        families.report(NAME, ABOUT, "jobs", Vec::new(), (families.coverage(), COVERED))
    }
}

fn predict(path: &Path) -> Result<Families, ValidationError> {
    let data = data::Data::read(path)?;
    let mut figures = pipeline::figures(&data)?;
    figures.extend(tensor::figures(&data)?);
    figures.extend(sharded::figures(&data)?);
    Ok(Families { figures, unit: Unit::Seconds, bounds: bounds::of(NAME)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/parallel-jobs/parallel_gloo.jsonl.gz")
    }

    #[test]
    fn bounds_are_kept() {
        let families = predict(&file()).unwrap();
        let mut checks = families.checks();
        checks.push(families.coverage().check(COVERED));
        assert!(checks.iter().all(|check| check.holds), "{checks:#?}\n{:#?}", families.furthest(6));
    }

    #[test]
    fn files_of_another_kind_are_refused() {
        let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/bounds.toml");
        assert!(matches!(predict(&other), Err(ValidationError::Fault(_))));
    }
}
