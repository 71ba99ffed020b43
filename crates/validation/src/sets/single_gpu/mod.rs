//! Published steps of one GPU, predicted from the names of device and network alone: by priors, without any
//! measurement of the device.

mod data;
mod tables;

use crate::coverage::Coverage;
use crate::priors::Observation;
use crate::{BoundCheck, Errors, Evidence, Options, Progress, Report, Set, ValidationError, bounds};
use data::Run;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::machine::catalog;
use stepcast_core::model::zoo;
use stepcast_core::prior::Priors;
use stepcast_core::prior::device::{Reach, Settings, Sheet};
use stepcast_core::prior::work::StepWork;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_stats::student_t_95;

const NAME: &str = "single-gpu";

const ABOUT: &str = "Published throughput of one GPU, 15 sources and 34 devices from the K80 to the H200, predicted from the names of \
                     device and network alone, with the constants of catalog/priors.toml. These constants were fitted to \
                     these runs and to others, of networks that the zoo does not have: the errors here are those of a fit. \
                     With the whole source left out of the fit, the zoo's networks are predicted within a factor of 1.26 on \
                     average, and 91 % of them within 1.65 (docs/priors.md; leaving out is done by research/priors/fit.py).";

/// Factor within which a prediction from names alone should be.
const NEAR: f64 = 1.65;

/// The set.
pub(super) struct SingleGpu;

impl Set for SingleGpu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let predictions = predict()?;
        let checks = predictions.checks();
        let holds = checks.iter().all(|check| check.holds);
        let ratios = predictions.rows.iter().map(|row| row.measured / row.predicted);
        let evidence = Evidence::Assumed {
            errors: Errors::of("predicted", ratios),
            coverage: Coverage {
                cases: predictions.rows.len(),
                inside: predictions.inside(),
                ..Coverage::default()
            },
            bound: predictions.bounds.to_string(),
        };
        let mut report = Report::new(NAME, holds, ABOUT, evidence, &predictions)?;
        report.verdict = BoundCheck::verdict(&checks);
        report.sections = tables::sections(&predictions, &checks);
        Ok(report)
    }
}

/// One run and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RunPrediction {
    id: String,
    family: String,
    device: String,
    model: String,
    precision: String,
    batch: u32,
    /// Seconds of a step.
    #[serde(rename = "predicted_s")]
    predicted: f64,
    /// Seconds of a step.
    #[serde(rename = "measured_s")]
    measured: f64,
    /// Half-width of the 90 % interval, as a logarithm.
    half_width: f64,
}

impl RunPrediction {
    /// Logarithm of the factor by which the prediction is off.
    fn error(&self) -> f64 {
        (self.measured / self.predicted).ln()
    }

    fn is_inside(&self) -> bool {
        self.error().abs() <= self.half_width
    }
}

/// How well some runs are predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Factors {
    /// What they have in common.
    of: String,
    runs: usize,
    /// Mean factor by which predictions are off.
    mean: f64,
    /// Share within [`NEAR`].
    near: f64,
    /// Mean factor of predicted to measured times: above 1, steps are predicted too long.
    bias: f64,
    /// Share within the 90 % interval.
    coverage: f64,
    /// Mean half-width of the 90 % interval, as a factor.
    half_width: f64,
}

impl Factors {
    fn of(name: &str, rows: &[&RunPrediction]) -> Self {
        let mean = |figure: &dyn Fn(&RunPrediction) -> f64| {
            rows.iter().map(|row| figure(row)).sum::<f64>() / rows.len().max(1) as f64
        };
        let share = |holds: &dyn Fn(&RunPrediction) -> bool| mean(&|row| f64::from(u8::from(holds(row))));
        Self {
            of: name.to_owned(),
            runs: rows.len(),
            mean: mean(&|row| row.error().abs()).exp(),
            near: share(&|row| row.error().abs() <= NEAR.ln()),
            bias: mean(&|row| -row.error()).exp(),
            coverage: share(&RunPrediction::is_inside),
            half_width: mean(&|row| row.half_width).exp(),
        }
    }
}

/// What must be kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Bounds {
    /// Largest mean factor.
    mean_factor: f64,
    /// Least share within a factor of 1.65.
    near: f64,
    /// Least share within the 90 % interval.
    coverage: f64,
    /// Least share within the 90 % interval of any source.
    coverage_of_source: f64,
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mean factor at most {}, {:.0} % within {NEAR}", self.mean_factor, 100.0 * self.near)
    }
}

/// All predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SingleGpuPredictions {
    rows: Vec<RunPrediction>,
    all: Factors,
    sources: Vec<Factors>,
    precisions: Vec<Factors>,
    devices: Vec<Factors>,
    bounds: Bounds,
}

impl SingleGpuPredictions {
    fn inside(&self) -> usize {
        self.rows.iter().filter(|row| row.is_inside()).count()
    }

    fn checks(&self) -> Vec<BoundCheck> {
        let Bounds { mean_factor, near, coverage, coverage_of_source } = self.bounds;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let least = |what: &str, bound: f64, found: f64| BoundCheck {
            what: what.to_owned(),
            bound: format!("at least {}", percent(bound)),
            found: percent(found),
            holds: found >= bound,
        };
        let worst = self.sources.iter().map(|source| source.coverage).fold(1.0, f64::min);
        vec![
            BoundCheck {
                what: "mean factor".to_owned(),
                bound: format!("at most {mean_factor}"),
                found: format!("{:.3}", self.all.mean),
                holds: self.all.mean <= mean_factor,
            },
            least("within a factor of 1.65", near, self.all.near),
            least("within the 90 % interval", coverage, self.all.coverage),
            least("of the worst source", coverage_of_source, worst),
        ]
    }
}

fn predict() -> Result<SingleGpuPredictions, ValidationError> {
    let bounds = bounds::of(NAME)?;
    let priors = Priors::shipped().map_err(|error| ValidationError::Data(error.to_string()))?;
    let quantile = student_t_95(priors.residual.one_gpu.families.saturating_sub(1) as usize);
    let mut works: BTreeMap<(String, Option<u64>), StepWork> = BTreeMap::new();
    let mut rows = Vec::new();
    for run in data::runs()? {
        let key = (run.model.clone(), run.sequence);
        if !works.contains_key(&key) {
            let model = zoo::build_for(&run.model, run.sequence);
            let model = model.map_err(|error| ValidationError::Data(error.to_string()))?;
            works.insert(key.clone(), StepWork::from_model(&model));
        }
        rows.push(prediction(&run, &works[&key], &priors, quantile)?);
    }
    let grouped = |name: fn(&RunPrediction) -> &str| {
        let mut groups: IndexMap<&str, Vec<&RunPrediction>> = IndexMap::new();
        for row in &rows {
            groups.entry(name(row)).or_default().push(row);
        }
        groups.iter().map(|(name, rows)| Factors::of(name, rows)).collect::<Vec<_>>()
    };
    Ok(SingleGpuPredictions {
        all: Factors::of("all", &rows.iter().collect::<Vec<_>>()),
        sources: grouped(|row| &row.family),
        precisions: grouped(|row| &row.precision),
        devices: grouped(|row| &row.device),
        bounds,
        rows,
    })
}

/// The runs that the priors of one GPU are fitted to and judged by.
pub(crate) fn observations() -> Result<Vec<Observation>, ValidationError> {
    let mut works: BTreeMap<(String, Option<u64>), Arc<StepWork>> = BTreeMap::new();
    let mut observations = Vec::new();
    for run in data::runs()? {
        let key = (run.model.clone(), run.sequence);
        if !works.contains_key(&key) {
            let model = zoo::build_for(&run.model, run.sequence);
            let model = model.map_err(|error| ValidationError::Data(error.to_string()))?;
            works.insert(key.clone(), Arc::new(StepWork::from_model(&model)));
        }
        let work = Arc::clone(&works[&key]);
        let sheet = Sheet::from_device(&catalog::device(&run.device)?, run.precision);
        let settings = settings(&run);
        let measured: Seconds = SamplesPerSec::new(run.throughput).time_for(f64::from(run.batch));
        observations.push(Observation {
            family: run.family.clone(),
            source: run.family.clone(),
            is_fitted: true,
            measured: measured.get().ln(),
            predict: Box::new(move |priors| {
                Ok(Reach::new(&sheet, settings, &priors.one_gpu).step(&work, run.batch).get().ln())
            }),
        });
    }
    Ok(observations)
}

fn settings(run: &Run) -> Settings {
    Settings {
        precision: run.precision,
        optimiser: run.optimiser,
        compiled: run.compiled,
        channels_last: run.channels_last,
    }
}

fn prediction(
    run: &Run,
    work: &StepWork,
    priors: &Priors,
    quantile: f64,
) -> Result<RunPrediction, ValidationError> {
    let device = catalog::device(&run.device)?;
    let settings = settings(run);
    let sheet = Sheet::from_device(&device, run.precision);
    let step = |priors: &Priors| Reach::new(&sheet, settings, &priors.one_gpu).step(work, run.batch);
    let within = priors.one_gpu_spread(step, run.real);
    let spread = within.hypot(priors.one_gpu_extrapolation(run.batch, device.fp32_peak()));
    let measured: Seconds = SamplesPerSec::new(run.throughput).time_for(f64::from(run.batch));
    Ok(RunPrediction {
        id: run.id.clone(),
        family: run.family.clone(),
        device: run.device.clone(),
        model: run.model.clone(),
        precision: run.precision.to_string(),
        batch: run.batch,
        predicted: step(priors).get(),
        measured: measured.get(),
        half_width: quantile * spread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept_on_all_published_runs() {
        let predictions = predict().unwrap();
        assert_eq!(predictions.rows.len(), 564);
        let checks = predictions.checks();
        assert!(checks.iter().all(|check| check.holds), "{checks:#?}\n{:#?}", predictions.sources);
    }

    /// Names alone lead a scenario to the same step.
    #[test]
    fn scenarios_take_the_same_time() {
        use stepcast_core::scenario::{Document, Edit};
        use stepcast_core::speed::Speed;
        let text = "model.zoo = \"resnet50\"\n[[cluster.workers]]\ncount = 1\ndevice = \"rtx-3090\"\n\
                    [strategy]\nbatch = 512\nprecision = \"amp\"\n";
        let document = Document::new("scenario.toml", text.to_owned());
        let overrides: [Edit; 0] = [];
        let scenario = document.scenario(&overrides).unwrap();
        let speed = Speed::of_group(&scenario, 0);
        let layers = scenario.workload.layers.iter();
        let took: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
        let run = data::runs().unwrap().into_iter().find(|run| {
            run.model == "resnet50"
                && run.device == "rtx-3090"
                && run.precision.to_string() == "amp-fp16"
                && run.batch == 512
                && !run.compiled
                && !run.channels_last
                && run.optimiser == stepcast_core::strategy::Optimiser::Sgd
        });
        let work = StepWork::from_model(&zoo::build("resnet50").unwrap());
        let priors = Priors::shipped().unwrap();
        let found = prediction(&run.unwrap(), &work, &priors, 1.0).unwrap();
        assert!((took.get() / found.predicted - 1.0).abs() < 1e-9, "{took} {}", found.predicted);
    }
}
