//! Measured kernels: columns kernel, elements and a time.

use super::fault::{stopped, unprintable};
use super::measured::MeasurementFile;
use super::report::{FitErrorRow, FitReport, source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stepcast_core::fitted::kernel::LinearKernel;
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_fit::artefact::FitErrors;
use stepcast_fit::kernels::{COEFFICIENTS, KernelRun, fit as fit_kernel, quality, to_toml};

#[derive(Default)]
struct Runs {
    fit: Vec<KernelRun>,
    held: Vec<KernelRun>,
}

fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<BTreeMap<String, Runs>, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let (kernel, elements) = (file.column("kernel")?, file.column("elements")?);
    let (times, set) = (file.time_column()?, file.optional_column("set"));
    let mut kernels: BTreeMap<String, Runs> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in file.rows(wanted) {
        let row = row?;
        let run = KernelRun { elements: row.amount(elements)?, time: row.time(times)? };
        let held = row.is_held(set)?;
        if !seen.insert((held, row.text(kernel).to_owned(), run.elements.to_bits())) {
            return Err(row.duplicate(&format!("{} of {} elements", row.text(kernel), run.elements)).into());
        }
        let runs = kernels.entry(row.text(kernel).to_owned()).or_default();
        if held { runs.held.push(run) } else { runs.fit.push(run) }
    }
    Ok(kernels)
}

/// Fits the kernels of `data`; the runs of `test`, if given, are tested with instead of its held rows.
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
    for (name, Runs { fit, held }) in kernels {
        let kernel = fit_kernel(&fit, wanted)
            .map_err(|error| stopped(data, &format!("kernel {name}"), &error, &COEFFICIENTS))?;
        let held = match &mut tests {
            Some(tests) => tests.remove(&name).map(|runs| [runs.fit, runs.held].concat()).unwrap_or_default(),
            None => held,
        };
        measurements += fit.len();
        let Some(on_fit) = quality(&kernel, &fit) else { continue };
        errors.insert(name.clone(), FitErrors { fit: on_fit, held: quality(&kernel, &held) });
        fitted.insert(name, kernel);
    }
    let rows = errors.iter().flat_map(|(name, errors)| FitErrorRow::rows(name, errors)).collect();
    let line = |(name, kernel): (&String, &LinearKernel)| {
        let LinearKernel { per_element, start, .. } = kernel;
        format!("{name}: {} for each element and {}.", per_element.human(), start.human())
    };
    let notes = fitted.iter().map(line).collect();
    let artefact = to_toml(&fitted, &errors, source(data, measurements), date)
        .map_err(|error| unprintable(data, &error))?;
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}
