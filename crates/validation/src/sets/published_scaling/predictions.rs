//! Predictions of all runs, and their errors by family.

use super::data::{self, Place, Run};
use super::scenario::scenario;
use crate::set::told;
use crate::{BoundCheck, CoverageBound, Progress, Reached, ValidationError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::quantity::SamplesPerSec;
use stepcast_study::predict::interval;
use stepcast_study::predict::methods;

/// Bounds of the set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bounds {
    /// Largest mean over families of their mean errors, in percent.
    one_machine: f64,
    several_machines: f64,
    servers: f64,
    /// Share of the measured values that lie in the intervals, of all runs.
    coverage: CoverageBound,
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { one_machine, several_machines, servers, .. } = self;
        write!(f, "mean over families at most {one_machine}, {several_machines} and {servers} %")
    }
}

/// One run and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Predicted {
    id: String,
    family: String,
    place: Place,
    trusted: bool,
    /// Samples per second.
    measured: f64,
    predicted: f64,
    /// Ends of the 90 % interval.
    interval: Option<[f64; 2]>,
}

impl Predicted {
    fn new(run: &Run) -> Result<Self, ValidationError> {
        let scenario = scenario(run)?;
        let method = methods::choose(&scenario)?;
        let prediction = method.predict(&scenario)?;
        let interval = interval::of(&scenario, method, &prediction)?;
        Ok(Self {
            id: run.id.clone(),
            family: run.family.clone(),
            place: run.place(),
            trusted: run.is_trusted(),
            measured: run.throughput,
            predicted: prediction.throughput.get(),
            interval: interval.map(|interval| interval.throughput_samples_per_s.map(SamplesPerSec::get)),
        })
    }

    /// Predicted throughput as a share of the measured one.
    pub(super) fn ratio(&self) -> f64 {
        self.predicted / self.measured
    }

    /// Error of the throughput, as a share of the measured one.
    fn error(&self) -> f64 {
        (self.ratio() - 1.0).abs()
    }

    fn is_inside(&self) -> Option<bool> {
        self.interval.map(|[low, high]| (low..=high).contains(&self.measured))
    }
}

/// The runs of one family, or the mean over several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Summary {
    pub(super) name: String,
    pub(super) place: Place,
    /// Whether network, GPUs or machines had to be assumed.
    pub(super) assumed: bool,
    pub(super) runs: usize,
    /// Mean absolute error in percent.
    pub(super) mean: f64,
    /// Mean of ln(predicted / measured) in percent.
    pub(super) bias: f64,
    /// Share of the runs whose measured value lies in the 90 % interval.
    pub(super) coverage: f64,
    /// Mean half-width of the interval, as a logarithm.
    pub(super) half_width: f64,
}

impl Summary {
    fn of(name: &str, runs: &[&Predicted]) -> Self {
        let count = runs.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Predicted) -> f64| runs.iter().map(|run| of(run)).sum::<f64>() / count;
        let width = |run: &Predicted| run.interval.map_or(0.0, |[low, high]| 0.5 * (high / low).ln());
        Self {
            name: name.to_owned(),
            place: runs.first().map_or(Place::OneMachine, |run| run.place),
            assumed: runs.iter().any(|run| !run.trusted),
            runs: runs.len(),
            mean: 100.0 * mean(&Predicted::error),
            bias: 100.0 * mean(&|run| (run.predicted / run.measured).ln()),
            coverage: mean(&|run| f64::from(run.is_inside() == Some(true))),
            half_width: mean(&width),
        }
    }

    /// The mean over families.
    fn over(name: &str, families: &[&Self]) -> Self {
        let count = families.len().max(1) as f64;
        let mean = |of: fn(&Self) -> f64| families.iter().map(|family| of(family)).sum::<f64>() / count;
        Self {
            name: name.to_owned(),
            place: families.first().map_or(Place::OneMachine, |family| family.place),
            assumed: families.iter().any(|family| family.assumed),
            runs: families.iter().map(|family| family.runs).sum(),
            mean: mean(|family| family.mean),
            bias: mean(|family| family.bias),
            coverage: mean(|family| family.coverage),
            half_width: mean(|family| family.half_width),
        }
    }
}

/// All runs and their errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Predictions {
    pub(super) families: Vec<Summary>,
    /// Means over the families of one place.
    pub(super) places: Vec<Summary>,
    pub(super) bounds: Vec<BoundCheck>,
    pub(super) runs: Vec<Predicted>,
}

impl Predictions {
    /// Runs whose measured value lies in the 90 % interval.
    pub(super) fn inside(&self) -> usize {
        self.runs.iter().filter(|run| run.is_inside() == Some(true)).count()
    }

    /// Whether every bound is kept.
    pub(super) fn holds(&self) -> bool {
        self.bounds.iter().all(|bound| bound.holds)
    }
}

/// Predicts every run.
pub(super) fn predict(bounds: &Bounds, progress: &Progress<'_>) -> Result<Predictions, ValidationError> {
    let all = data::runs()?;
    let done = AtomicUsize::new(0);
    let predicted = |run: &Run| {
        let predicted = Predicted::new(run);
        told(progress, Reached::Points { done: done.fetch_add(1, Ordering::Relaxed) + 1, of: all.len() })?;
        predicted
    };
    let runs: Vec<Predicted> = all.par_iter().map(predicted).collect::<Result<_, _>>()?;
    let mut by_family: BTreeMap<(Place, &str), Vec<&Predicted>> = BTreeMap::new();
    for run in &runs {
        by_family.entry((run.place, &run.family)).or_default().push(run);
    }
    let families: Vec<Summary> = by_family.iter().map(|((_, name), runs)| Summary::of(name, runs)).collect();
    let over = |place: Place| {
        let own: Vec<&Summary> = families.iter().filter(|family| family.place == place).collect();
        Summary::over(place.name(), &own)
    };
    let places: Vec<Summary> = [Place::OneMachine, Place::SeveralMachines, Place::Servers].map(over).into();
    let bounds = checks(bounds, &places, &runs);
    Ok(Predictions { families, places, bounds, runs })
}

fn checks(bounds: &Bounds, places: &[Summary], runs: &[Predicted]) -> Vec<BoundCheck> {
    let most = [bounds.one_machine, bounds.several_machines, bounds.servers];
    let mut checks: Vec<BoundCheck> = places
        .iter()
        .zip(most)
        .map(|(place, most)| BoundCheck {
            what: format!("mean error over families, {}", place.name),
            bound: format!("at most {most} %"),
            found: format!("{:.1} %", place.mean),
            holds: place.mean <= most,
        })
        .collect();
    let inside = runs.iter().filter(|run| run.is_inside() == Some(true)).count();
    let share = inside as f64 / runs.len().max(1) as f64;
    let CoverageBound { least, most } = bounds.coverage;
    checks.push(BoundCheck {
        what: "runs in their 90 % intervals".to_owned(),
        bound: format!("{:.0} to {:.0} %", 100.0 * least, 100.0 * most),
        found: format!("{:.1} %", 100.0 * share),
        holds: (least..=most).contains(&share),
    });
    checks
}
