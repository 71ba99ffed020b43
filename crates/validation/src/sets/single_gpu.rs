//! Published steps of one GPU, predicted from the names of device and network alone: by priors, without any
//! measurement of the device.

use super::shipped_priors;
use crate::coverage::Coverage;
use crate::priors::Observation;
use crate::records::{Fields, rows};
use crate::report::Findings;
use crate::set::Run;
use crate::{Errors, Evidence, ValidationError};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::machine::{Device, catalog};
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::prior::Priors;
use stepcast_core::prior::device::{Reach, Settings, Sheet};
use stepcast_core::prior::work::StepWork;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::strategy::Optimiser;
use stepcast_stats::student_t_95;

/// Factor within which a prediction from names alone should be.
const NEAR: f64 = 1.65;

#[derive(Debug, Deserialize)]
struct PublishedStep {
    id: String,
    family: String,
    model: String,
    sequence: Option<u64>,
    device: String,
    precision: Precision,
    batch: u32,
    optimiser: Optimiser,
    compiled: bool,
    channels_last: bool,
    real: bool,
    /// Samples per second.
    throughput: f64,
}

impl PublishedStep {
    fn measured(&self) -> Seconds {
        SamplesPerSec::new(self.throughput).time_for(f64::from(self.batch))
    }

    fn predict(&self, device: &Device, work: &StepWork, priors: &Priors) -> Seconds {
        let &Self { precision, optimiser, compiled, channels_last, .. } = self;
        let settings = Settings { precision, optimiser, compiled, channels_last };
        Reach::new(&Sheet::from_device(device, precision), settings, &priors.one_gpu).step(work, self.batch)
    }
}

/// Every run with its device and the work of its network.
fn steps() -> Result<Vec<(PublishedStep, Device, Arc<StepWork>)>, ValidationError> {
    let mut works: BTreeMap<(String, Option<u64>), Arc<StepWork>> = BTreeMap::new();
    let mut steps = Vec::new();
    for step in rows::<PublishedStep>("single-gpu/runs.csv.gz")? {
        let key = (step.model.clone(), step.sequence);
        if !works.contains_key(&key) {
            let model = zoo::build_for(&step.model, step.sequence);
            let model = model.map_err(|error| ValidationError::Data(error.to_string()))?;
            works.insert(key.clone(), Arc::new(StepWork::from_model(&model)));
        }
        let device = catalog::device(&step.device)?;
        steps.push((step, device, Arc::clone(&works[&key])));
    }
    Ok(steps)
}

/// The runs that the priors of one GPU are fitted to and judged by.
pub(crate) fn observations() -> Result<Vec<Observation>, ValidationError> {
    let observation = |(step, device, work): (PublishedStep, Device, Arc<StepWork>)| Observation {
        family: step.family.clone(),
        source: step.family.clone(),
        is_fitted: true,
        measured: step.measured().get().ln(),
        predict: Box::new(move |priors| Ok(step.predict(&device, &work, priors).get().ln())),
    };
    Ok(steps()?.into_iter().map(observation).collect())
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let priors = shipped_priors()?;
    let quantile = student_t_95(priors.residual.one_gpu.families.saturating_sub(1) as usize);
    let row = |(step, device, work): &(PublishedStep, Device, Arc<StepWork>)| {
        let within = priors.one_gpu_spread(|priors| step.predict(device, work, priors), step.real);
        let spread = within.hypot(priors.one_gpu_extrapolation(step.batch, device.fp32_peak()));
        json!({
            "id": step.id,
            "family": step.family,
            "device": step.device,
            "model": step.model,
            "precision": step.precision.to_string(),
            "batch": step.batch,
            "predicted_s": step.predict(device, work, &priors).get(),
            "measured_s": step.measured().get(),
            // As a logarithm.
            "half_width": quantile * spread,
        })
    };
    let rows: Vec<Value> = steps()?.iter().map(row).collect();
    let all = factors("all", &rows.iter().collect::<Vec<_>>());
    let [sources, precisions, devices] = ["family", "precision", "device"].map(|field| grouped(&rows, field));
    let coverage = Coverage {
        cases: rows.len(),
        inside: rows.iter().filter(|row| is_inside(row)).count(),
        ..Coverage::default()
    };
    let evidence = Evidence::Judged {
        cases: coverage.cases,
        coverage,
        errors: Errors::from_ratios(
            "predicted",
            rows.iter().map(|row| row.number("measured_s") / row.number("predicted_s")),
        ),
        bound: String::new(),
    };
    let figures = json!({
        "_sources": sources.iter().chain([&all]).collect::<Vec<_>>(),
        "_worst_source": sources.iter().map(|source| source.number("coverage")).fold(1.0, f64::min),
        "rows": rows,
        "all": all,
        "sources": sources,
        "precisions": precisions,
        "devices": devices,
        "bounds": run.bounds::<Value>()?,
    });
    Ok(Findings::new(figures, evidence))
}

/// ln(measured / predicted).
fn error(row: &Value) -> f64 {
    (row.number("measured_s") / row.number("predicted_s")).ln()
}

fn is_inside(row: &Value) -> bool {
    error(row).abs() <= row.number("half_width")
}

/// How well runs are predicted that have a field in common.
fn grouped(rows: &[Value], field: &str) -> Vec<Value> {
    let mut groups: IndexMap<&str, Vec<&Value>> = IndexMap::new();
    for row in rows {
        groups.entry(row.text(field)).or_default().push(row);
    }
    groups.iter().map(|(name, rows)| factors(name, rows)).collect()
}

fn factors(name: &str, rows: &[&Value]) -> Value {
    let mean = |figure: &dyn Fn(&Value) -> f64| {
        rows.iter().map(|row| figure(row)).sum::<f64>() / rows.len().max(1) as f64
    };
    let share = |holds: &dyn Fn(&Value) -> bool| mean(&|row| f64::from(u8::from(holds(row))));
    json!({
        "of": name,
        "runs": rows.len(),
        // Mean factor between prediction and measurement.
        "mean": mean(&|row| error(row).abs()).exp(),
        "near": share(&|row| error(row).abs() <= NEAR.ln()),
        // Mean factor of predicted to measured times: above 1, steps are predicted too long.
        "bias": mean(&|row| -error(row)).exp(),
        "coverage": share(&is_inside),
        // Mean half-width of the 90 % interval, as a factor.
        "half_width": mean(&|row| row.number("half_width")).exp(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names alone lead a scenario to the same step.
    #[test]
    fn scenarios_take_the_same_time() {
        use stepcast_core::scenario::{Document, Edit};
        use stepcast_core::speed::Speed;
        let text = "model.zoo = \"resnet50\"\n[[cluster.workers]]\ncount = 1\ndevice = \"rtx-3090\"\n\
                    [strategy]\nbatch = 512\nprecision = \"amp\"\n";
        let overrides: [Edit; 0] = [];
        let scenario = Document::new("scenario.toml", text.to_owned()).scenario(&overrides).unwrap();
        let speed = Speed::of_group(&scenario, 0);
        let layers = scenario.workload.layers.iter();
        let took: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
        let (step, device, work) = steps()
            .unwrap()
            .into_iter()
            .find(|(step, ..)| {
                let settings = (step.compiled, step.channels_last, step.optimiser);
                (step.model.as_str(), step.device.as_str(), step.batch) == ("resnet50", "rtx-3090", 512)
                    && step.precision.to_string() == "amp-fp16"
                    && settings == (false, false, Optimiser::Sgd)
            })
            .unwrap();
        let found = step.predict(&device, &work, &shipped_priors().unwrap());
        assert!((took / found - 1.0).abs() < 1e-9, "{took} {found}");
    }
}
