//! Step times of transformers from shape, device and network by name: decoders and shards measured on one H200, and
//! published runs of several GPUs. Every figure is predicted by constants that were refitted without its model.

mod h200;
#[cfg(test)]
mod kit_tests;
mod offloaded;
mod published;

use crate::coverage::Coverage;
use crate::families::{Families, Figure, Unit};
use crate::priors::{LogStep, Observation, TRANSFORMER};
use crate::set::look;
use crate::{CoverageBound, Options, Progress, Report, Set, ValidationError, bounds};
use indexmap::IndexMap;
use rayon::prelude::*;
use std::sync::Arc;
use stepcast_analytic::transformer::Transformer;
use stepcast_core::method::Method as _;
use stepcast_core::prior::Priors;
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::interval;

const NAME: &str = "transformer-steps";

/// Range in which the share of measured steps within their 90 % intervals must lie.
const COVERED: CoverageBound = CoverageBound { least: 0.85, most: 0.97 };

const ABOUT: &str = "Step times of transformers from shape, plan and the names of device and network: decoders, shards and mixtures of \
                     experts on one H200, Megatron and FSDP runs on A100, torchtitan on H100, Megatron on B200. Constants of \
                     catalog/priors.toml, [transformer], were fitted to the H200 rows, vTrain, llm-foundry and SimuMax; nothing was \
                     fitted to steps with offloading, Korthikanti's table and torchtitan. Each figure is predicted by constants refitted without its \
                     model (H200, llm-foundry, vTrain) or without its number of tensor-parallel ranks (SimuMax).";

/// The set.
pub(super) struct TransformerSteps;

impl Set for TransformerSteps {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, progress: &Progress<'_>) -> Result<Report, ValidationError> {
        let found = Found::new(progress)?;
        let families = found.families(&found.left_out)?;
        let fitted = found.families(&found.fitted)?;
        let more = vec![
            fitted.table("The same by the shipped constants, fitted to these rows", "steps"),
            found.intervals(),
        ];
        families.report(NAME, ABOUT, "steps", more, (found.all(), COVERED))
    }
}

/// A measured figure and its prediction.
struct Case {
    family: &'static str,
    name: String,
    /// What is left out together with it: all figures of its model.
    model: String,
    is_fitted: bool,
    /// Seconds.
    measured: f64,
    predict: LogStep,
    /// Its scenario, if it is a whole step.
    step: Option<Scenario>,
}

impl Case {
    /// A whole step.
    fn step(family: &'static str, name: String, model: String, scenario: Scenario, measured: f64) -> Self {
        let own = scenario.clone();
        let predict = move |priors: &Priors| {
            let moved = Scenario { priors: Arc::new(priors.clone()), ..own.clone() };
            Ok(Transformer.predict(&moved)?.iteration.get().ln())
        };
        Self {
            family,
            name,
            model,
            is_fitted: true,
            measured,
            predict: Box::new(predict),
            step: Some(scenario),
        }
    }

    fn observation(self) -> Observation {
        Observation {
            family: self.family.to_owned(),
            source: self.model,
            is_fitted: self.is_fitted,
            measured: self.measured.ln(),
            predict: self.predict,
        }
    }
}

fn cases() -> Result<Vec<Case>, ValidationError> {
    let mut cases = h200::cases()?;
    cases.extend(offloaded::cases()?);
    cases.extend(published::cases()?);
    Ok(cases)
}

/// The figures that the constants are fitted to and judged by.
pub(crate) fn observations() -> Result<Vec<Observation>, ValidationError> {
    Ok(cases()?.into_iter().map(Case::observation).collect())
}

/// All figures, predicted.
struct Found {
    /// Family and name.
    cases: Vec<(&'static str, String)>,
    /// Seconds.
    measured: Vec<f64>,
    /// Logarithms by the shipped constants.
    fitted: Vec<f64>,
    /// Logarithms by constants that were refitted without the figure's model.
    left_out: Vec<f64>,
    /// Half-widths of the 90 % intervals of whole steps.
    half_widths: Vec<Option<f64>>,
}

impl Found {
    fn new(progress: &Progress<'_>) -> Result<Self, ValidationError> {
        let mut cases = cases()?;
        let shipped = Priors::shipped().map_err(|error| ValidationError::Data(error.to_string()))?;
        let steps: Vec<Option<Scenario>> = cases.iter_mut().map(|case| case.step.take()).collect();
        let half_widths = steps
            .par_iter()
            .map(|step| {
                look(progress)?;
                half_width(step.as_ref())
            })
            .collect::<Result<_, _>>()?;
        let names = cases.iter().map(|case| (case.family, case.name.clone())).collect();
        let measured = cases.iter().map(|case| case.measured).collect();
        let observations: Vec<Observation> = cases.into_iter().map(Case::observation).collect();
        let fitted = observations.par_iter().map(|run| (run.predict)(&shipped)).collect::<Result<_, _>>()?;
        let left_out = TRANSFORMER.without_each_source(&observations, progress)?;
        Ok(Self { cases: names, measured, fitted, left_out, half_widths })
    }

    fn families(&self, predicted: &[f64]) -> Result<Families, ValidationError> {
        let figure = |index: usize| Figure {
            family: self.cases[index].0,
            name: self.cases[index].1.clone(),
            predicted: predicted[index].exp(),
            measured: self.measured[index],
        };
        let figures = (0..self.cases.len()).map(figure).collect();
        Ok(Families { figures, unit: Unit::Seconds, bounds: bounds::of(NAME)? })
    }

    /// Steps within 90 % intervals around what the refit without their model predicts, by family.
    fn coverage(&self) -> IndexMap<&'static str, Coverage> {
        let mut families: IndexMap<&'static str, Coverage> = IndexMap::new();
        for (index, half_width) in self.half_widths.iter().enumerate() {
            let Some(half_width) = half_width else { continue };
            let own = families.entry(self.cases[index].0).or_default();
            own.cases += 1;
            own.inside +=
                usize::from((self.measured[index].ln() - self.left_out[index]).abs() <= *half_width);
        }
        families
    }

    fn all(&self) -> Coverage {
        self.coverage().values().fold(Coverage::default(), |sum, own| sum.and(*own))
    }

    fn intervals(&self) -> Table {
        let columns = [
            Column::words("steps"),
            Column::numbers("cases"),
            Column::numbers("inside"),
            Column::numbers("half-width"),
        ];
        let mut table =
            Table::new("Within 90 % intervals around the prediction without their model", columns);
        for (family, own) in self.coverage() {
            let widths = self.half_widths.iter().zip(&self.cases).filter(|(_, case)| case.0 == family);
            let widths: Vec<f64> = widths.filter_map(|(width, _)| *width).collect();
            let mean = widths.iter().sum::<f64>() / widths.len().max(1) as f64;
            let share = 100.0 * own.share().unwrap_or(0.0);
            table.row([
                family.to_owned(),
                own.cases.to_string(),
                format!("{share:.0} %"),
                format!("{:.0} %", 100.0 * mean),
            ]);
        }
        table
    }
}

/// Half-width of the 90 % interval of a step, as a logarithm.
fn half_width(step: Option<&Scenario>) -> Result<Option<f64>, ValidationError> {
    let Some(scenario) = step else { return Ok(None) };
    let prediction = Transformer.predict(scenario)?;
    let interval = interval::of(scenario, &Transformer, &prediction)?;
    Ok(interval.map(|interval| {
        let [least, most] = interval.iteration_s.map(|time| time.get());
        0.5 * (most / least).ln()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::unwatched;

    /// Errors with the model left out of the fit, and the coverage of intervals, within their bounds.
    #[test]
    fn bounds_are_kept() {
        let found = Found::new(&unwatched).unwrap();
        let families = found.families(&found.left_out).unwrap();
        let mut checks = families.checks();
        checks.push(found.all().check(COVERED));
        assert!(checks.iter().all(|check| check.holds), "{checks:#?}\n{:#?}", families.furthest(8));
    }
}
