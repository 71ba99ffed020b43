//! Measured kernels: columns kernel, elements and a time.

use super::measured::Table;
use super::{Fault, Fitted, Row, source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stepcast_core::fitted::kernel::LinearKernel;
use stepcast_fit::artefact::Errors;
use stepcast_fit::kernels::{COEFFICIENTS, KernelRun, fit as fit_kernel, quality, to_toml};

#[derive(Default)]
struct Runs {
    fit: Vec<KernelRun>,
    held: Vec<KernelRun>,
}

fn read(path: &Path) -> Result<BTreeMap<String, Runs>, Fault> {
    let table = Table::read(path)?;
    let (kernel, elements) = (table.column("kernel")?, table.column("elements")?);
    let (times, set) = (table.times()?, table.optional("set"));
    let mut kernels: BTreeMap<String, Runs> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for line in table.lines() {
        let run = KernelRun { elements: line.amount(elements)?, time: line.time(times)? };
        let held = line.is_held(set)?;
        if !seen.insert((held, line.text(kernel).to_owned(), run.elements.to_bits())) {
            return Err(line.again(&format!("{} of {} elements", line.text(kernel), run.elements)));
        }
        let runs = kernels.entry(line.text(kernel).to_owned()).or_default();
        if held { runs.held.push(run) } else { runs.fit.push(run) }
    }
    Ok(kernels)
}

/// Fits the kernels of `data`; the runs of `test`, if given, are tested with instead of its held rows.
pub fn run(data: &Path, test: Option<&Path>, date: String) -> Result<Fitted, Fault> {
    let kernels = read(data)?;
    let mut tests = test.map(read).transpose()?;
    let (mut fitted, mut errors) = (BTreeMap::new(), BTreeMap::new());
    let mut measurements = 0;
    for (name, Runs { fit, held }) in kernels {
        let kernel = fit_kernel(&fit)
            .map_err(|error| super::undetermined(data, &format!("kernel {name}"), &error, &COEFFICIENTS))?;
        let held = match &mut tests {
            Some(tests) => tests.remove(&name).map(|runs| [runs.fit, runs.held].concat()).unwrap_or_default(),
            None => held,
        };
        measurements += fit.len();
        let Some(on_fit) = quality(&kernel, &fit) else { continue };
        errors.insert(name.clone(), Errors { fit: on_fit, held: quality(&kernel, &held) });
        fitted.insert(name, kernel);
    }
    let rows = errors.iter().flat_map(|(name, errors)| Row::of(name, errors)).collect();
    let line = |(name, kernel): (&String, &LinearKernel)| {
        let LinearKernel { per_element, start, .. } = kernel;
        format!("{name}: {} for each element and {}.", per_element.human(), start.human())
    };
    let notes = fitted.iter().map(line).collect();
    let artefact = to_toml(&fitted, &errors, source(data, measurements), date)
        .map_err(|error| super::unprintable(data, &error))?;
    Ok(Fitted { rows, left_out: Vec::new(), notes, artefact })
}
