//! Shares of a device's rates that training reaches, from measured steps: the file of [`steps`], or columns model, batch
//! and a time.
//!
//! Two figures: time = fixed + compute/share + memory/share, with the times that operations and weights take at the full
//! rates. One figure: time = operations/(share·rate). Both by least squares on relative errors. No weight moves faster
//! than memory, so the share of the memory rate is at most 1; fast convolutions lift the share of the peak rate above 1.

use crate::measurements::{MeasurementFile, Split};
use crate::report::{FitErrorRow, FitErrors, FitReport, artefact, stopped};
use crate::{FitError, Quality, nnls_while, steps};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use stepcast_analytic::zeng2023::{Operations, cpu_rate, gpu_rate};
use stepcast_core::compute::ASSUMED_MEMORY_EFFICIENCY;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::fitted::{EfficiencyModel, Shares};
use stepcast_core::machine::{Device, DeviceKind, catalog};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::model::{Counting, Model, zoo};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Zeng2023;
use stepcast_core::speed::{BYTES_PER_WEIGHT, FLOPS_PER_FORWARD};

/// Names of the two figures, in the order of the columns of a fit.
const COEFFICIENTS: [&str; 2] = ["compute", "memory"];

/// Least share of a measured step that is computing, where the work on weights seems to take all of it.
const LEAST_COMPUTING: f64 = 0.05;

/// A measured step, and the times of its parts at the full rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepWork {
    /// Time that does not depend on the shares: copies.
    pub fixed: Seconds,
    /// All operations at the peak rate.
    pub compute: Seconds,
    /// The work on every weight at the memory rate.
    pub memory: Seconds,
    pub measured: Seconds,
}

/// Shares of the peak rate and of the memory rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoShares {
    /// Share of the peak rate.
    pub compute: f64,
    /// Share of the memory rate.
    pub memory: f64,
}

impl TwoShares {
    /// Fits both, until cancelled. Steps that do not distinguish them, such as a single one, give the share of the peak rate;
    /// the share of the memory rate is then assumed.
    pub fn fit(steps: &[StepWork], wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        match Self::fit_both(steps, wanted) {
            Err(FitError::TooFew { .. } | FitError::Collinear { .. }) if !steps.is_empty() => {
                Self::with_memory(steps, ASSUMED_MEMORY_EFFICIENCY, wanted)
            }
            fitted => fitted,
        }
    }

    /// The share of the peak rate that fits best if the share of the memory rate is `memory`.
    fn with_memory(steps: &[StepWork], memory: f64, wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        let left = |step: &StepWork| {
            let rest = step.measured - step.fixed - step.memory / memory;
            (step.compute, rest.max(step.measured * LEAST_COMPUTING))
        };
        Ok(Self { compute: one_share(&steps.iter().map(left).collect::<Vec<_>>(), wanted)?, memory })
    }

    fn fit_both(steps: &[StepWork], wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        let row = |step: &StepWork| vec![step.compute / step.measured, step.memory / step.measured];
        let rows: Vec<Vec<f64>> = steps.iter().map(row).collect();
        // The time of weights beyond the full rate is never negative.
        let target = |step: &StepWork| (step.measured - step.fixed - step.memory) / step.measured;
        let fit = nnls_while(&rows, &steps.iter().map(target).collect::<Vec<f64>>(), wanted)?;
        if fit.coefficients[0] <= 0.0 {
            return Err(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0] });
        }
        Ok(Self { compute: fit.coefficients[0].recip(), memory: (1.0 + fit.coefficients[1]).recip() })
    }

    pub fn time(&self, step: &StepWork) -> Seconds {
        step.fixed + step.compute / self.compute + step.memory / self.memory
    }

    pub fn quality(&self, steps: &[StepWork]) -> Option<Quality> {
        Quality::from_pairs(steps.iter().map(|step| (self.time(step), step.measured)))
    }
}

/// The one share of steps that take pairs of (time at the full rate, measured time).
pub fn one_share(steps: &[(Seconds, Seconds)], wanted: &CancelCheck<'_>) -> Result<f64, FitError> {
    let rows: Vec<Vec<f64>> = steps.iter().map(|(full, measured)| vec![*full / *measured]).collect();
    Ok(nnls_while(&rows, &vec![1.0; rows.len()], wanted)?.coefficients[0].recip())
}

/// Largest share of a peak rate that is plausible: Winograd's convolutions do less work than is counted, but whole
/// networks do not reach more.
const MOST_SHARE: f64 = 1.5;

struct NetworkStep {
    model: Arc<Model>,
    precision: Precision,
    batch: u32,
    time: Seconds,
}

/// A step on the device: by two shares, and at the full rate of Zeng 2023.
#[derive(Clone, Copy)]
struct Work {
    two: StepWork,
    zeng2023: Seconds,
}

/// Fits the steps of `data` measured on the device called `name`; `test`, if given, replaces
/// the held-out rows of `data`.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    name: &str,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let device = catalog::device(name)
        .map_err(|fault| Fault::in_file(format!("device {name}"), fault.reason, fault.remedy))?;
    let mut notes = Vec::new();
    let steps = read(data, &mut notes, wanted)?;
    let test = test.map(|test| read(test, &mut notes, wanted)).transpose()?;
    let Split { fit, held } = steps.tested_with(test);
    let measured: BTreeSet<Precision> = fit.iter().map(|step| step.precision).collect();
    let (mut precisions, mut errors) = (BTreeMap::new(), BTreeMap::new());
    for precision in measured {
        let of = |steps: &[NetworkStep]| -> Result<Vec<Work>, Fault> {
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
    let artefact = artefact(ArtefactKind::Efficiency, data, fit.len(), &date, &errors, &model)?;
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}

/// The time of a step at the full rates; its data are assumed to be on the device.
fn work(data: &Path, name: &str, device: &Device, step: &NetworkStep) -> Result<Work, Fault> {
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
fn read(
    path: &Path,
    notes: &mut Vec<String>,
    wanted: &CancelCheck<'_>,
) -> Result<Split<NetworkStep>, Stopped> {
    let bytes = stepcast_trace::unpacked_while(path, wanted)?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return table(path, wanted);
    }
    let found = steps::read(path, wanted)?;
    notes.extend(found.notes);
    let measured = |step: steps::MeasuredStep| NetworkStep {
        model: step.model,
        precision: step.precision,
        batch: step.batch,
        time: step.iteration,
    };
    Ok(Split { fit: found.steps.into_iter().map(measured).collect(), held: Vec::new() })
}

fn table(path: &Path, wanted: &CancelCheck<'_>) -> Result<Split<NetworkStep>, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let (model, batch, times) = (file.column("model")?, file.column("batch")?, file.time_column()?);
    let dtype = file.optional_column("dtype").or_else(|| file.optional_column("precision"));
    file.split(wanted, |row| {
        let precision = dtype.map(|dtype| row.precision(dtype)).transpose()?.unwrap_or_default();
        let network = zoo::build(row.text(model)).map(Arc::new);
        let network = network.map_err(|error| row.fault(model, "is not a model of the zoo", error.remedy))?;
        let step =
            NetworkStep { model: network, precision, batch: row.count(batch)?, time: row.time(times)? };
        Ok((format!("{} in {precision} with batch {}", step.model.name, step.batch), step))
    })
}
