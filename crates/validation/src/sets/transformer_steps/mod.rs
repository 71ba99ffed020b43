//! Step times of transformers from shape, device and network by name: decoders and shards measured on one H200, and
//! published runs of several GPUs. Every figure is predicted by constants that were refitted without its model.

mod cases;
#[cfg(test)]
mod kit_tests;

use super::shipped_priors;
use crate::ValidationError;
use crate::coverage::Coverage;
use crate::families::{Families, Figure, Unit};
use crate::priors::{Observation, TRANSFORMER};
use crate::report::Findings;
use crate::set::{Run, check_cancelled};
use cases::{StepCase, all_cases};
use indexmap::IndexMap;
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_analytic::transformer::Transformer;
use stepcast_core::method::Method as _;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::interval;

/// The figures that the constants are fitted to and judged by.
pub(crate) fn observations() -> Result<Vec<Observation>, ValidationError> {
    Ok(all_cases()?.into_iter().map(StepCase::observation).collect())
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let mut cases = all_cases()?;
    let shipped = shipped_priors()?;
    let steps: Vec<Option<Scenario>> = cases.iter_mut().map(|case| case.step.take()).collect();
    let half_widths: Vec<Option<f64>> = steps
        .par_iter()
        .map(|step| {
            check_cancelled(run.observer)?;
            step.as_ref().map_or(Ok(None), half_width)
        })
        .collect::<Result<_, _>>()?;
    let named: Vec<(&'static str, String, f64)> =
        cases.iter().map(|case| (case.family, case.name.clone(), case.measured)).collect();
    let observations: Vec<Observation> = cases.into_iter().map(StepCase::observation).collect();
    let fitted: Vec<f64> =
        observations.par_iter().map(|run| (run.predict)(&shipped)).collect::<Result<_, _>>()?;
    let left_out = TRANSFORMER.without_each_source(&observations, run.observer)?;
    let families =
        |predicted: &[f64]| {
            let figure = |((family, name, measured), predicted): (&(&'static str, String, f64), &f64)| {
                Figure { family, name: name.clone(), predicted: predicted.exp(), measured: *measured }
            };
            Families { figures: named.iter().zip(predicted).map(figure).collect(), unit: Unit::Seconds }
        };
    // Steps within 90 % intervals around what the refit without their model predicts, and half-widths, by family.
    let mut inside: IndexMap<&'static str, (Coverage, Vec<f64>)> = IndexMap::new();
    for (index, half_width) in
        half_widths.iter().enumerate().filter_map(|(index, width)| Some((index, (*width)?)))
    {
        let (own, widths) = inside.entry(named[index].0).or_default();
        own.cases += 1;
        own.inside += usize::from((named[index].2.ln() - left_out[index]).abs() <= half_width);
        widths.push(half_width);
    }
    let coverage = inside.values().fold(Coverage::default(), |sum, (own, _)| sum.and(*own));
    let intervals = inside.iter().map(|(family, (own, widths))| {
        let mean = widths.iter().sum::<f64>() / widths.len().max(1) as f64;
        json!({ "family": family, "cases": own.cases, "inside": own.share(), "half_width": mean })
    });
    let mut findings = families(&left_out).findings(&run.bounds()?, coverage);
    findings.figures["_shipped"] = json!(families(&fitted).error_rows());
    findings.figures["_intervals"] = Value::Array(intervals.collect());
    Ok(findings)
}

/// Half-width of the 90 % interval of a step, as a logarithm.
fn half_width(scenario: &Scenario) -> Result<Option<f64>, ValidationError> {
    let prediction = Transformer.predict(scenario)?;
    let interval = interval::of(scenario, &Transformer, &prediction)?;
    Ok(interval.map(|interval| {
        let [least, most] = interval.iteration_s.map(|time| time.get());
        0.5 * (most / least).ln()
    }))
}

#[cfg(test)]
mod tests {
    use crate::set::test_reports::report;

    /// Errors with the model left out of the fit, and the coverage of intervals, within their bounds.
    #[test]
    fn bounds_are_kept() {
        assert!(report("transformer-steps").holds, "{:#?}", report("transformer-steps").sections);
    }
}
