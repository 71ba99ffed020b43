//! Real pipeline, tensor-parallel, sharded and hybrid jobs over gloo on CPUs, from profiles of layers and measured
//! collectives. Nothing is fitted to the jobs.

mod data;
mod pipeline;
mod profile;
mod sharded;
mod tensor;

use crate::ValidationError;
use crate::judged::{Families, Unit};
use crate::report::Findings;
use crate::set::Run;

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let data = data::Data::read(run.data()?)?;
    let mut figures = pipeline::figures(&data)?;
    figures.extend(tensor::figures(&data)?);
    figures.extend(sharded::figures(&data)?);
    let families = Families { figures, unit: Unit::Seconds };
    Ok(families.findings(&run.bounds()?, families.coverage()))
}

#[cfg(test)]
mod tests {
    use super::data::Data;
    use crate::set::test_reports::folder;

    #[test]
    fn files_of_another_kind_are_refused() {
        assert!(Data::read(&folder().join("coverage.toml")).is_err());
    }
}
