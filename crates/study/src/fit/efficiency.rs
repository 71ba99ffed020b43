//! Measured steps to shares of a device's rates: the file of [`steps`], or columns model, batch and a time.

use super::fault::{stopped, unprintable};
use super::measured::{MeasurementFile, MeasurementRow};
use super::report::{FitErrorRow, FitReport, source};
use super::{gemm, steps};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use stepcast_analytic::zeng2023::formulas::{Operations, cpu_rate, gpu_rate};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::efficiency::{EfficiencyModel, Shares};
use stepcast_core::machine::catalog;
use stepcast_core::machine::{Device, DeviceKind};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::model::{Counting, Model, zoo};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Zeng2023;
use stepcast_core::speed::{BYTES_PER_WEIGHT, FLOPS_PER_FORWARD};
use stepcast_fit::artefact::FitErrors;
use stepcast_fit::efficiency::{COEFFICIENTS, StepWork, TwoShares, one_share, to_toml};
use stepcast_fit::{FitError, Quality};

/// Largest share of a peak rate that is plausible: Winograd's convolutions do less work than is counted, but whole
/// networks do not reach more.
const MOST_SHARE: f64 = 1.5;

/// One measured step.
struct Measured {
    model: Arc<Model>,
    precision: Precision,
    batch: u32,
    time: Seconds,
}

/// Steps to fit, and steps to test with.
#[derive(Default)]
struct Steps {
    fit: Vec<Measured>,
    held: Vec<Measured>,
    notes: Vec<String>,
}

/// A step on the device: by two shares, and at the full rate of Zeng 2023.
#[derive(Clone, Copy)]
struct Work {
    two: StepWork,
    zeng2023: Seconds,
}

/// Fits the steps of `data` measured on the device called `name`; those of `test`, if given, are tested with instead of
/// its held rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    name: &str,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let device = catalog::device(name)
        .map_err(|fault| Fault::in_file(format!("--device {name}"), fault.reason, fault.remedy))?;
    let Steps { fit, mut held, mut notes } = read(data, wanted)?;
    if let Some(test) = test {
        let other = read(test, wanted)?;
        held = other.fit.into_iter().chain(other.held).collect();
        notes.extend(other.notes);
    }
    let measured: BTreeSet<Precision> = fit.iter().map(|step| step.precision).collect();
    let (mut precisions, mut errors) = (BTreeMap::new(), BTreeMap::new());
    for precision in measured {
        let of = |steps: &[Measured]| -> Result<Vec<Work>, Fault> {
            let own = steps.iter().filter(|step| step.precision == precision);
            own.map(|step| work(data, name, &device, step)).collect()
        };
        let (fit, held) = (of(&fit)?, of(&held)?);
        let fit_fault = |error: FitError| stopped(data, &format!("{precision} steps"), &error, &COEFFICIENTS);
        let two = |works: &[Work]| works.iter().map(|work| work.two).collect::<Vec<_>>();
        let shares = TwoShares::fit(&two(&fit), wanted).map_err(fit_fault)?;
        let pairs: Vec<(Seconds, Seconds)> =
            fit.iter().map(|work| (work.zeng2023, work.two.measured)).collect();
        let zeng2023 = one_share(&pairs, wanted).map_err(fit_fault)?;
        let by_two = |works: &[Work]| shares.quality(&two(works));
        let by_one = |works: &[Work]| {
            Quality::from_pairs(works.iter().map(|work| (work.zeng2023 / zeng2023, work.two.measured)))
        };
        if let (Some(first), Some(second)) = (by_two(&fit), by_one(&fit)) {
            errors.insert(precision.to_string(), FitErrors { fit: first, held: by_two(&held) });
            let one = FitErrors { fit: second, held: by_one(&held) };
            errors.insert(format!("{precision}, zeng2023"), one);
        }
        let Some(peak) = device.peak(precision) else { continue };
        if shares.compute > MOST_SHARE {
            let (share, name) = (100.0 * shares.compute, &device.name);
            let reason =
                format!("steps in {precision} would reach {share:.0} % of the peak rate of the {name}");
            let remedy = "say in a column `precision` in which number format each step was measured, and name its device";
            return Err(Fault::in_file(data.display().to_string(), reason, remedy).into());
        }
        notes.push(format!(
            "{precision}: {:.1} % of {} and {:.1} % of the memory's {}; {:.1} % of the rate of Zeng 2023.",
            100.0 * shares.compute,
            peak.human(),
            100.0 * shares.memory,
            device.memory_rate.human(),
            100.0 * zeng2023,
        ));
        let TwoShares { compute, memory } = shares;
        precisions
            .insert(precision, Shares { peak, compute, memory_rate: device.memory_rate, memory, zeng2023 });
    }
    let model = EfficiencyModel { device: device.name, precision: precisions };
    let rows = errors.iter().flat_map(|(what, errors)| FitErrorRow::rows(what, errors)).collect();
    let artefact =
        to_toml(&model, &errors, source(data, fit.len()), date).map_err(|error| unprintable(data, &error))?;
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}

/// The time of a step at the full rates; its data are assumed to be on the device.
fn work(data: &Path, name: &str, device: &Device, step: &Measured) -> Result<Work, Fault> {
    let peak = device.peak(step.precision).ok_or_else(|| {
        let reason = format!("steps in {} were measured, and {name} has no rate for it", step.precision);
        Fault::in_file(data.display().to_string(), reason, "name the device they were measured on")
    })?;
    let (forward, batch) = (step.model.forward(Counting::default()), f64::from(step.batch));
    let options = Zeng2023::default();
    let operations = Operations::new(forward, step.model.weights(), options.flops_per_weight);
    let rate = match device.kind {
        DeviceKind::Cpu => cpu_rate(device.clock, options.simd),
        DeviceKind::Gpu => gpu_rate(device.clock, device.units, options.fc),
    };
    let two = StepWork {
        fixed: Seconds::ZERO,
        compute: forward * (FLOPS_PER_FORWARD * batch) / peak,
        memory: Bytes::new(step.model.updated(batch) * BYTES_PER_WEIGHT) / device.memory_rate,
        measured: step.time,
    };
    Ok(Work { two, zeng2023: operations.iteration(step.batch) / rate })
}

/// Lines of JSON begin with a brace, a line of titles does not.
fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Steps, Stopped> {
    let bytes = stepcast_trace::unpacked_while(path, wanted)?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return table(path, wanted);
    }
    let steps::MeasuredSteps { steps, notes } = steps::read(path, wanted)?;
    let measured = |step: stepcast_fit::steps::MeasuredStep| Measured {
        model: step.model,
        precision: step.precision,
        batch: step.batch,
        time: step.iteration,
    };
    Ok(Steps { fit: steps.into_iter().map(measured).collect(), held: Vec::new(), notes })
}

fn table(path: &Path, wanted: &CancelCheck<'_>) -> Result<Steps, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let (model, batch) = (file.column("model")?, file.column("batch")?);
    let (times, set) = (file.time_column()?, file.optional_column("set"));
    let dtype = file.optional_column("dtype").or_else(|| file.optional_column("precision"));
    let mut steps = Steps::default();
    let mut seen = BTreeSet::new();
    for row in file.rows(wanted) {
        let row = row?;
        let precision = dtype.map(|dtype| gemm::precision(row, dtype)).transpose()?.unwrap_or_default();
        let network = network(row, model)?;
        let step = Measured { model: network, precision, batch: row.count(batch)?, time: row.time(times)? };
        let held = row.is_held(set)?;
        if !seen.insert((held, step.model.name.clone(), step.precision, step.batch)) {
            return Err(row.duplicate(&format!("{} with batch {}", step.model.name, step.batch)).into());
        }
        if held { steps.held.push(step) } else { steps.fit.push(step) }
    }
    Ok(steps)
}

fn network(row: MeasurementRow<'_>, column: usize) -> Result<Arc<Model>, Fault> {
    let model = zoo::build(row.text(column)).map(Arc::new);
    model.map_err(|error| row.fault(column, "is not a model of the zoo", &error.remedy))
}
