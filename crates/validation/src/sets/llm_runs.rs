//! Published runs of transformers on machines and by software that nothing was fitted to when the run was predicted: its
//! source, the generation of its device, or its framework is left out of the constants.

use super::replay::{ReplayedRun, alternatives, replay};
use super::transformer_steps::{StepCase, all_cases, half_width};
use crate::coverage::Coverage;
use crate::judged::{Families, Judged, Unit, coverage};
use crate::priors::{LeftOut, Observation, TRANSFORMER};
use crate::report::Findings;
use crate::set::{Run, check_cancelled};
use crate::{Observer, ValidationError};
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_analytic::transformer::Transformer;
use stepcast_core::machine::Generation;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::scenario::Scenario;
use stepcast_study::advise::UncertainFigure;

/// Quantile of a normal distribution that ends its 90 % interval.
const NORMAL_95: f64 = 1.645;

/// All runs, as scenarios of names.
pub(super) fn cases() -> Result<Vec<StepCase>, ValidationError> {
    StepCase::of_set("llm-runs")
}

/// Generation of the device of a case; shards are those of an H200.
fn generation(case: &StepCase) -> String {
    let device = case.step.as_ref().map(|step| step.cluster.groups[0].device.generation);
    format!("{:?}", device.flatten().unwrap_or(Generation::Hopper))
}

/// The columns of a run, and what groups need of its scenario.
fn labelled(case: &StepCase, refused: bool) -> Value {
    let shape = case.step.as_ref().and_then(|step| step.source.transformer());
    let mut row = case.row.clone();
    row["_generation"] = json!(generation(case));
    row["_experts"] = json!(shape.is_some_and(|shape| shape.experts.is_some()));
    row["_refused"] = json!(refused);
    row
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let own = cases()?;
    let judged: Vec<(Judged, Value)> = own
        .par_iter()
        .map(|case| {
            check_cancelled(run.observer)?;
            let half_width = case.step.as_ref().map_or(Ok(None), half_width)?.unwrap_or(0.0);
            let refused = case.step.as_ref().map_or(Ok(false), does_not_fit)?;
            Ok((case.unpredicted(Some(half_width)), labelled(case, refused)))
        })
        .collect::<Result<_, ValidationError>>()?;
    let all: Vec<StepCase> = own.into_iter().chain(all_cases()?).collect();
    let alternatives: Vec<Vec<Alternative>> = alternatives(all.iter().map(model))
        .par_iter()
        .map(|runs| {
            let alternative = |&place: &usize| Alternative::new(place, &all[place], run.observer).transpose();
            runs.iter().filter_map(alternative).collect()
        })
        .collect::<Result<_, ValidationError>>()?;
    let of = |what: fn(&StepCase) -> String| all.iter().map(what).collect::<Vec<String>>();
    let groups = [of(|case| case.publisher.clone()), of(generation), of(|case| case.framework.clone())];
    let observations: Vec<Observation> = all.into_iter().map(StepCase::observation).collect();
    let groups = groups.each_ref().map(|own| own.iter().map(String::as_str).collect::<Vec<_>>());
    let refits =
        TRANSFORMER.without_each(&observations, groups.each_ref().map(Vec::as_slice), run.observer)?;
    let replayed = |Alternative { run, figure, price }| {
        let (predicted, measured) = (refits[0][run].predicted, observations[run].measured);
        ReplayedRun { figure, price, predicted, measured }
    };
    let models = alternatives.into_iter().map(|runs| runs.into_iter().map(replayed).collect());
    let replayed = replay(&models.collect::<Vec<_>>());
    let judge = |refit: &Vec<LeftOut>| -> Vec<Judged> {
        let figure = |((figure, _), left_out): (&(Judged, Value), &LeftOut)| Judged {
            half_width: figure.half_width.map(|own| own.hypot(NORMAL_95 * left_out.fit_error)),
            ..figure.predicted(left_out.predicted.exp())
        };
        judged.iter().zip(refit).map(figure).collect()
    };
    let rows = |refit: &Vec<LeftOut>| -> Value {
        judge(refit).iter().zip(&judged).map(|(figure, (_, columns))| figure.row(columns.clone())).collect()
    };
    let families = Families { figures: judge(&refits[0]), unit: Unit::Seconds };
    let within = Coverage { by_group: judged.len(), ..coverage(&families.rows()) };
    let mut findings = families.findings(&run.bounds()?, within);
    let [source, generation, framework] = refits.each_ref().map(rows);
    findings.figures["_without"] =
        json!({ "source": source, "generation": generation, "framework": framework });
    let regret = |place: usize| replayed[place]["mean"].as_f64().unwrap_or(f64::NAN);
    findings.figures["_advised"] = json!(regret(0) / regret(1).min(regret(2)));
    findings.figures["_replay"] = Value::Array(replayed);
    Ok(findings)
}

/// Whether a run that ran is said not to fit into its devices.
fn does_not_fit(scenario: &Scenario) -> Result<bool, ValidationError> {
    let prediction = Transformer.predict(scenario)?;
    let memory = prediction.transformer.as_ref().map(|split| split.memory.verdict);
    Ok(memory == Some(Verdict::DoesNotFit))
}

/// The model of a run of several devices.
fn model(case: &StepCase) -> Option<String> {
    let scenario = case.step.as_ref().filter(|step| step.cluster.workers() > 1)?;
    Some(format!("{}, {} parameters", case.model, scenario.workload.parameters))
}

/// A run that is held against others of its model.
struct Alternative {
    run: usize,
    figure: UncertainFigure,
    /// In proportion to the peak rate of its devices.
    price: f64,
}

impl Alternative {
    fn new(run: usize, case: &StepCase, observer: &Observer<'_>) -> Result<Option<Self>, ValidationError> {
        check_cancelled(observer)?;
        let Some(scenario) = &case.step else { return Ok(None) };
        let prediction = Transformer.predict(scenario)?;
        let Some(split) = &prediction.transformer else { return Ok(None) };
        let price = 1.0 / (split.mfu * prediction.iteration.get());
        Ok(Some(Self { run, figure: UncertainFigure::step(scenario, &Transformer)?, price }))
    }
}

#[cfg(test)]
mod tests {
    //! One measured run of a source against the others of it: llm-foundry's table of H100 runs.

    use crate::records::Fields;
    use std::sync::Arc;
    use stepcast_core::quantity::Seconds;
    use stepcast_core::scenario::{Edit, Scenario};
    use stepcast_study::predict::calibrate::{MeasuredRun, calibrate};
    use stepcast_study::predict::methods;
    use stepcast_study::{MethodChoice, Request};

    struct FoundryRun {
        request: Request,
        measured: f64,
        /// Layers, tokens of a sequence, GPUs.
        what: [u64; 3],
    }

    fn runs(edits: &[Edit]) -> Vec<FoundryRun> {
        let recipe = &crate::find("llm-runs").unwrap().definition().unwrap().recipe[0];
        let mut rows = recipe.cases("llm-runs").unwrap();
        rows.retain(|row| row.text("family") == "llm-foundry, H100");
        assert_eq!(rows.len(), 18);
        let run = |row| FoundryRun {
            request: Request::from_reader("row", recipe.text(row).unwrap().as_bytes(), edits.to_vec())
                .unwrap(),
            measured: recipe.seconds(row).unwrap().unwrap(),
            what: ["layers", "sequence", "gpus"].map(|key| row.count(key)),
        };
        rows.iter().map(run).collect()
    }

    /// The mean error of the forecasts of `runs` by the priors of `by`, or by those shipped.
    fn error<'a>(runs: impl Iterator<Item = &'a FoundryRun>, by: Option<&Scenario>) -> f64 {
        let errors: Vec<f64> = runs
            .map(|run| {
                let mut scenario = run.request.scenario().unwrap().as_ref().clone();
                if let Some(by) = by {
                    scenario.priors = Arc::clone(&by.priors);
                }
                let step = methods::choose(&scenario).unwrap().predict(&scenario).unwrap().iteration.get();
                (step / run.measured - 1.0).abs()
            })
            .collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    }

    /// Errors of the forecasts of all other runs, before and after the one of one machine and the shorter model is measured.
    fn before_and_after(runs: &[FoundryRun], is_sibling: impl Fn(&FoundryRun) -> bool) -> [f64; 2] {
        let given = runs.iter().find(|run| run.what == [32, 2048, 8]).unwrap();
        let siblings = || runs.iter().filter(|run| !std::ptr::eq(*run, given) && is_sibling(run));
        let measured = [MeasuredRun::from_step(Seconds::new(given.measured))];
        let calibration = calibrate(&given.request, MethodChoice::Auto, &measured).unwrap();
        let by =
            Scenario { priors: calibration.priors, ..given.request.scenario().unwrap().as_ref().clone() };
        assert!(error(std::iter::once(given), Some(&by)) < 0.02);
        [error(siblings(), None), error(siblings(), Some(&by))]
    }

    /// Forecasts of siblings are about as close as single runs are to each other, whether kernels are stated or not, and stay
    /// so once the run that is cheapest to measure is known; if kernels are not stated, those of its length.
    #[test]
    fn one_run_of_a_source_leaves_its_siblings_close() {
        let [before, after] = before_and_after(&runs(&[]), |_| true);
        assert!(before < 0.06 && after < 0.06, "{before} {after}");
        let unstated = Edit::set("strategy.plan.attention", "flash");
        let [before, after] = before_and_after(&runs(&[unstated]), |run| run.what[1] == 2048);
        assert!(before < 0.05 && after < 0.05, "{before} {after}");
    }
}
