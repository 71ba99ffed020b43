//! Step times of transformers from shape, device and network by name: decoders and shards measured on one H200, and
//! published runs of several GPUs.

mod h200;
#[cfg(test)]
mod kit_tests;
mod published;

use crate::coverage::Coverage;
use crate::families::{Families, Figure};
use crate::{BoundCheck, Options, Progress, Report, Set, ValidationError, bounds};
use indexmap::IndexMap;
use stepcast_analytic::transformer::Transformer;
use stepcast_core::method::Method as _;
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::interval;

const NAME: &str = "transformer-steps";

const ABOUT: &str = "Step times of transformers from shape, plan and the names of device and network: decoders, shards and mixtures of \
                     experts on one H200, Megatron and FSDP runs on A100, torchtitan on H100, Megatron on B200. Constants of \
                     catalog/priors.toml, [transformer]: those of Hopper, of memory and of the host were fitted to the H200 rows, \
                     those of Ampere to llm-foundry and vTrain, that of Blackwell to SimuMax; nothing was fitted to Korthikanti's \
                     table and to torchtitan. research/transformers has the errors with whole models left out of the fit.";

/// The set.
pub(super) struct TransformerSteps;

impl Set for TransformerSteps {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let families = predict()?;
        let checks = families.checks();
        let holds = checks.iter().all(|check| check.holds);
        let mut report = Report::new(NAME, holds, ABOUT, families.evidence(), &families)?;
        report.verdict = BoundCheck::verdict(&checks);
        report.push(families.table("steps"));
        report.push(families.furthest(3));
        report.push(intervals()?);
        report.push(BoundCheck::table(&checks));
        Ok(report)
    }
}

/// A measured step as a scenario of names.
struct Step {
    family: &'static str,
    name: String,
    scenario: Scenario,
    /// Seconds.
    measured: f64,
}

impl Step {
    fn figure(self) -> Result<Figure, ValidationError> {
        let predicted = Transformer.predict(&self.scenario)?.iteration.get();
        Ok(Figure { family: self.family, name: self.name, predicted, measured: self.measured })
    }

    /// Whether the measured step lies in the 90 % interval; none without an interval.
    fn is_inside(&self) -> Result<Option<bool>, ValidationError> {
        let prediction = Transformer.predict(&self.scenario)?;
        let interval = interval::of(&self.scenario, &Transformer, &prediction)?;
        Ok(interval.map(|interval| {
            let [least, most] = interval.iteration_s.map(|time| time.get());
            (least..=most).contains(&self.measured)
        }))
    }
}

fn steps() -> Result<Vec<Step>, ValidationError> {
    let mut steps = h200::steps()?;
    steps.extend(published::steps()?);
    Ok(steps)
}

fn predict() -> Result<Families, ValidationError> {
    let mut figures = h200::shards()?;
    for step in steps()? {
        figures.push(step.figure()?);
    }
    Ok(Families { figures, bounds: bounds::of(NAME)? })
}

/// Steps within their 90 % intervals, by family.
fn coverage() -> Result<IndexMap<&'static str, Coverage>, ValidationError> {
    let mut families: IndexMap<&'static str, Coverage> = IndexMap::new();
    for step in steps()? {
        if let Some(inside) = step.is_inside()? {
            let own = families.entry(step.family).or_default();
            own.cases += 1;
            own.inside += usize::from(inside);
        }
    }
    Ok(families)
}

fn intervals() -> Result<Table, ValidationError> {
    let columns = [Column::words("steps"), Column::numbers("cases"), Column::numbers("inside")];
    let mut table = Table::new("Within the 90 % interval", columns);
    for (family, own) in coverage()? {
        let share = 100.0 * own.inside as f64 / own.cases.max(1) as f64;
        table.row([family.to_owned(), own.cases.to_string(), format!("{share:.0} %")]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept() {
        let families = predict().unwrap();
        let checks = families.checks();
        assert!(checks.iter().all(|check| check.holds), "{checks:#?}\n{:#?}", families.furthest(8));
    }

    #[test]
    fn intervals_hold_most_steps() {
        let families = coverage().unwrap();
        let [cases, inside] =
            families.values().fold([0, 0], |sum, own| [sum[0] + own.cases, sum[1] + own.inside]);
        assert!(inside * 100 >= cases * 80, "{inside} of {cases}: {families:?}");
    }
}
