//! Kernels whose time is linear in the elements they touch: t = α·elements + β (Oyama 2016, eq. 5), from columns kernel,
//! elements and a time.

use crate::linear::linear_kernel;
use crate::measurements::{MeasurementFile, Split};
use crate::report::{FitErrorRow, FitErrors, FitReport, artefact, stopped};
use crate::{FitError, Quality};
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fitted::LinearKernel;
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::quantity::Seconds;

/// Names of the coefficients, in the order of the columns of a fit.
const COEFFICIENTS: [&str; 2] = ["per-element", "start"];

/// One measured run of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRun {
    pub elements: f64,
    pub time: Seconds,
}

/// Fits the coefficients to relative errors, with cancellation.
pub fn fit(runs: &[KernelRun], wanted: &CancelCheck<'_>) -> Result<LinearKernel, FitError> {
    let rows: Vec<_> = runs.iter().map(|run| (vec![run.elements, 1.0], run.time.get())).collect();
    linear_kernel(&rows, &vec![1.0; runs.len()], wanted)
}

fn quality(kernel: &LinearKernel, runs: &[KernelRun]) -> Option<Quality> {
    Quality::from_pairs(runs.iter().map(|run| (kernel.time(run.elements).0, run.time)))
}

fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<BTreeMap<String, Split<KernelRun>>, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let (kernel, elements) = (file.column("kernel")?, file.column("elements")?);
    let times = file.time_column()?;
    let all = file.split(wanted, |row| {
        let run = KernelRun { elements: row.amount(elements)?, time: row.time(times)? };
        let name = row.text(kernel).to_owned();
        Ok((format!("{name} of {} elements", run.elements), (name, run)))
    })?;
    let mut kernels: BTreeMap<String, Split<KernelRun>> = BTreeMap::new();
    for (name, run) in all.fit {
        kernels.entry(name).or_default().fit.push(run);
    }
    for (name, run) in all.held {
        kernels.entry(name).or_default().held.push(run);
    }
    Ok(kernels)
}

/// Fits the kernels of `data`; `test`, if given, replaces its held-out rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let kernels = read(data, wanted)?;
    let mut tests = test.map(|test| read(test, wanted)).transpose()?;
    let (mut fitted, mut errors) = (BTreeMap::new(), BTreeMap::new());
    let mut measurements = 0;
    for (name, runs) in kernels {
        let other = tests.as_mut().map(|tests| tests.remove(&name).unwrap_or_default());
        let Split { fit: runs, held } = runs.tested_with(other);
        let kernel = fit(&runs, wanted)
            .map_err(|error| stopped(data, &format!("kernel {name}"), &error, &COEFFICIENTS))?;
        measurements += runs.len();
        let Some(on_fit) = quality(&kernel, &runs) else { continue };
        errors.insert(name.clone(), FitErrors { fit: on_fit, held: quality(&kernel, &held) });
        fitted.insert(name, kernel);
    }
    let rows = errors.iter().flat_map(|(name, errors)| FitErrorRow::rows(name, errors)).collect();
    let line = |(name, kernel): (&String, &LinearKernel)| {
        let LinearKernel { per_element, start, .. } = kernel;
        format!("{name}: {} for each element and {}.", per_element.human(), start.human())
    };
    let notes = fitted.iter().map(line).collect();
    let artefact = artefact(ArtefactKind::Kernels, data, measurements, &date, &errors, &fitted)?;
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}
