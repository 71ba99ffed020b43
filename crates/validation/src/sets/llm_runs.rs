//! Published runs of transformers on machines and by software that nothing was fitted to when the run was predicted: its
//! source, the generation of its device, or its framework is left out of the constants.

use super::replay::{ReplayedRun, alternatives, replay};
use super::shipped_priors;
use super::transformer_steps::{StepCase, all_cases, half_width, published_name, published_scenario};
use crate::coverage::Coverage;
use crate::families::{Families, Figure, Unit};
use crate::priors::{LeftOut, Observation, TRANSFORMER};
use crate::records::{self, Fields};
use crate::report::Findings;
use crate::set::{Run, check_cancelled};
use crate::{Errors, Observer, ValidationError};
use indexmap::IndexMap;
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_analytic::transformer::Transformer;
use stepcast_core::machine::Generation;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::scenario::Scenario;
use stepcast_stats::quantile;
use stepcast_study::advise::UncertainFigure;

/// Families with fewer runs have no share of intervals that is bounded.
const LEAST: usize = 4;

/// Quantile of a normal distribution that ends its 90 % interval.
const NORMAL_95: f64 = 1.645;

/// What a run is counted by.
#[derive(Clone)]
struct Labels {
    framework: String,
    device: String,
    format: String,
    /// Generation of the device, experts or dense, number format.
    category: String,
}

/// A run and what was predicted of it, as logarithms.
#[derive(Clone)]
struct Judged {
    labels: Labels,
    family: String,
    measured: f64,
    predicted: f64,
    half_width: f64,
}

impl Judged {
    fn is_inside(&self) -> bool {
        (self.measured - self.predicted).abs() <= self.half_width
    }

    /// The 90 % interval score of the logarithm: the width, and twenty times what lies outside (Gneiting and Raftery 2007).
    fn score(&self) -> f64 {
        let outside = ((self.measured - self.predicted).abs() - self.half_width).max(0.0);
        2.0 * self.half_width + 20.0 * outside
    }
}

/// All runs, as scenarios of names.
pub(super) fn cases() -> Result<Vec<StepCase>, ValidationError> {
    Ok(labelled()?.into_iter().map(|(_, case)| case).collect())
}

fn labelled() -> Result<Vec<(Labels, StepCase)>, ValidationError> {
    let case = |row: Value| {
        let family = row.text("family");
        let source = family.split(&[',', ' '][..]).next().unwrap_or_default();
        let scenario = published_scenario(&row)?;
        let with_experts = scenario.source.transformer().is_some_and(|own| own.experts.is_some());
        let step =
            StepCase::step(family, published_name(&row), source.to_owned(), scenario, row.number("seconds"));
        let device = row.text("device").split('|').next().unwrap_or_default();
        let bits = if matches!(row.text("format"), "bf16" | "fp16") { "16 bits" } else { "8 and 4 bits" };
        let kind = if with_experts { "experts" } else { "dense" };
        let labels = Labels {
            category: format!("{} {kind}, {bits}", generation(&step)),
            framework: row.text("framework").to_owned(),
            device: device.to_owned(),
            format: row.text("format").to_owned(),
        };
        Ok((labels, step))
    };
    records::cases("llm-runs/runs.csv.gz")?.into_iter().map(case).collect()
}

/// Generation of the device of a case; shards are those of an H200.
fn generation(case: &StepCase) -> String {
    let device = case.step.as_ref().map(|step| step.cluster.groups[0].device.generation);
    format!("{:?}", device.flatten().unwrap_or(Generation::Hopper))
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let (labels, own): (Vec<Labels>, Vec<StepCase>) = labelled()?.into_iter().unzip();
    let half_widths: Vec<f64> = own
        .par_iter()
        .map(|case| {
            check_cancelled(run.observer)?;
            Ok(case.step.as_ref().map_or(Ok(None), half_width)?.unwrap_or(0.0))
        })
        .collect::<Result<_, ValidationError>>()?;
    let refused: Vec<bool> = own
        .par_iter()
        .map(|case| case.step.as_ref().map_or(Ok(false), does_not_fit))
        .collect::<Result<_, ValidationError>>()?;
    let named: Vec<(String, f64)> = own.iter().map(|case| (case.name.clone(), case.measured)).collect();
    let count = own.len();
    let all: Vec<StepCase> = own.into_iter().chain(all_cases()?).collect();
    let generations: Vec<String> = all.iter().map(generation).collect();
    let alternatives: Vec<Vec<Alternative>> = alternatives(all.iter().map(model))
        .par_iter()
        .map(|runs| {
            let alternative = |&place: &usize| Alternative::new(place, &all[place], run.observer).transpose();
            runs.iter().filter_map(alternative).collect()
        })
        .collect::<Result<_, ValidationError>>()?;
    let observations: Vec<Observation> = all.into_iter().map(StepCase::observation).collect();
    // Families begin with their source; those of other sets are of one framework each.
    let first = |family: &'_ str| family.split(&[',', ' '][..]).next().unwrap_or_default().to_owned();
    let sources: Vec<String> = observations.iter().map(|run| first(&run.family)).collect();
    let framework = |(index, source): (usize, &String)| {
        labels.get(index).map_or_else(|| source.clone(), |own: &Labels| own.framework.clone())
    };
    let frameworks: Vec<String> = sources.iter().enumerate().map(framework).collect();
    let groups = [&sources, &generations, &frameworks].map(|own| own.iter().map(String::as_str).collect());
    let [sources, generations, frameworks]: [Vec<LeftOut>; 3] =
        TRANSFORMER.without_each(&observations, groups.each_ref().map(Vec::as_slice), run.observer)?;
    let replayed = |Alternative { run, figure, price }| {
        let (predicted, measured) = (sources[run].predicted, observations[run].measured);
        ReplayedRun { figure, price, predicted, measured }
    };
    let models = alternatives.into_iter().map(|runs| runs.into_iter().map(replayed).collect());
    let replayed = replay(&models.collect::<Vec<_>>());
    let shipped = shipped_priors()?;
    let fitted: Vec<f64> =
        observations[..count].par_iter().map(|run| (run.predict)(&shipped)).collect::<Result<_, _>>()?;
    let judge = |left_out: &[LeftOut]| -> Vec<Judged> {
        let judged = |(index, (labels, half_width)): (usize, (&Labels, &f64))| Judged {
            labels: labels.clone(),
            family: observations[index].family.clone(),
            measured: observations[index].measured,
            predicted: left_out[index].predicted,
            half_width: half_width.hypot(NORMAL_95 * left_out[index].fit_error),
        };
        labels.iter().zip(&half_widths).enumerate().map(judged).collect()
    };
    let judged = judge(&sources);
    let figure = |(index, (name, measured)): (usize, &(String, f64))| Figure {
        family: judged[index].family.clone(),
        name: name.clone(),
        predicted: judged[index].predicted.exp(),
        measured: *measured,
    };
    let families = Families { figures: named.iter().enumerate().map(figure).collect(), unit: Unit::Seconds };
    let inside = judged.iter().filter(|run| run.is_inside()).count();
    let coverage = Coverage { cases: judged.len(), inside, by_group: judged.len(), ..Coverage::default() };
    let mut findings = families.findings(&run.bounds()?, coverage);
    let by_family = tables(&judged, |run| &run.family);
    let worst = by_family
        .iter()
        .filter(|row| row["cases"].as_u64() >= Some(LEAST as u64))
        .filter_map(|row| row["inside"].as_f64())
        .fold(1.0, f64::min);
    findings.figures["_worst_family"] = json!(worst);
    findings.figures["_refused"] = json!(refused.iter().filter(|own| **own).count() as f64 / count as f64);
    findings.figures["_families"] = Value::Array(by_family);
    let regret = |place: usize| replayed[place]["mean"].as_f64().unwrap_or(f64::NAN);
    findings.figures["_advised"] = json!(regret(0) / regret(1).min(regret(2)));
    findings.figures["_replay"] = Value::Array(replayed);
    findings.figures["_left_out"] = Value::Array(
        [("source", &judged), ("generation", &judge(&generations)), ("framework", &judge(&frameworks))]
            .into_iter()
            .flat_map(|(what, runs)| {
                tables(runs, |run| &run.labels.category).into_iter().map(move |row| (what, row))
            })
            .map(|(what, mut row)| {
                row["without"] = json!(what);
                row
            })
            .collect(),
    );
    findings.figures["_devices"] = Value::Array(tables(&judged, |run| &run.labels.device));
    findings.figures["_frameworks"] = Value::Array(tables(&judged, |run| &run.labels.framework));
    findings.figures["_formats"] = Value::Array(tables(&judged, |run| &run.labels.format));
    let off = |(run, fitted): (&Judged, &f64)| (fitted - run.measured).exp();
    findings.figures["_shipped"] =
        json!(Errors::from_ratios("shipped constants", judged.iter().zip(&fitted).map(off)));
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
    // Shape, layers and sequence begin the name.
    let shape: Vec<&str> = case.name.split(", ").take(2).collect();
    Some(format!("{}, {} parameters", shape.join(", "), scenario.workload.parameters))
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

/// Errors and intervals of the runs by what `of` says, and of all together.
fn tables<'a>(judged: &'a [Judged], of: impl Fn(&'a Judged) -> &'a String) -> Vec<Value> {
    let mut groups: IndexMap<&str, Vec<&Judged>> = IndexMap::new();
    for run in judged {
        groups.entry(of(run)).or_default().push(run);
    }
    groups.sort_unstable_keys();
    groups.insert("all", judged.iter().collect());
    let row = |(name, own): (&str, Vec<&Judged>)| {
        let count = own.len() as f64;
        let errors = Errors::from_ratios("", own.iter().map(|run| (run.predicted - run.measured).exp()));
        let mut widths: Vec<f64> = own.iter().map(|run| run.half_width).collect();
        json!({
            "name": name,
            "cases": own.len(),
            "mean": errors.mean,
            "bias": errors.bias,
            "inside": own.iter().filter(|run| run.is_inside()).count() as f64 / count,
            "half_width": quantile(&mut widths, 0.5),
            "score": own.iter().map(|run| run.score()).sum::<f64>() / count,
        })
    };
    groups.into_iter().map(row).collect()
}
