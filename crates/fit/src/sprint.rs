//! SPRINT's threads (Oyama 2016, Tables 3 and 4) from timings of their components: columns component, a time, and the quantities that it
//! depends on. The components of a whole run also have its iteration times, columns gpu and update.

use crate::linear::linear_kernel;
use crate::measurements::{MeasurementFile, MeasurementRow, Split};
use crate::report::{FitErrorRow, FitErrors, FitReport, artefact, stopped};
use crate::{FitError, Quality};
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_analytic::oyama2016::{Threads, buffers_waited_for};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::LinearKernel;
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::quantity::Seconds;
use stepcast_core::suggest;

/// Names of the coefficients, in the order of the columns of a fit.
const COEFFICIENTS: [&str; 2] = ["per-element", "start"];

/// Quantity with which the time of a component grows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Growth {
    Samples,
    Parameters,
    /// Parameters of a node's share.
    Slice,
    /// Parameters, if there are new weights.
    NewWeights,
    /// Parameters of all buffers that have new gradients.
    NewGradients,
    /// Parameters, for each doubling of the nodes and once, and the wait for the slowest node.
    Doublings,
}

/// Components by their keys, in the order of Algorithms 1 and 2.
const COMPONENTS: [(&str, Growth); 12] = [
    ("fetch-weights", Growth::NewWeights),
    ("load-image", Growth::Samples),
    ("deform-image", Growth::Samples),
    ("compute-gradient", Growth::Samples),
    ("compute-update", Growth::Parameters),
    ("update-gradient", Growth::Parameters),
    ("sum-gradient", Growth::NewGradients),
    ("update-old-weights", Growth::Slice),
    ("add-momentum", Growth::Slice),
    ("all-reduce", Growth::Doublings),
    ("update-momentum", Growth::Slice),
    ("update-weights", Growth::Parameters),
];

/// One timed component.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ComponentTiming {
    component: usize,
    parameters: f64,
    batch: f64,
    nodes: u32,
    gpus: u32,
    /// T_GPU and T_Update of its run; without them a component is timed doing its whole work.
    iterations: Option<[Seconds; 2]>,
    time: Seconds,
}

impl ComponentTiming {
    /// Probabilities that weights and that a buffer are new.
    fn new_shares(&self) -> [f64; 2] {
        self.iterations.map_or([1.0; 2], |[gpu, update]| [(gpu / update).min(1.0), (update / gpu).min(1.0)])
    }

    /// Amounts that the coefficients multiply.
    fn amounts(&self) -> Vec<f64> {
        let [new_weights, new_gradients] = self.new_shares();
        let (parameters, nodes) = (self.parameters, f64::from(self.nodes));
        match COMPONENTS[self.component].1 {
            Growth::Samples => vec![self.batch, 1.0],
            Growth::Parameters => vec![parameters],
            Growth::Slice => vec![parameters / nodes],
            Growth::NewWeights => vec![parameters * new_weights],
            Growth::NewGradients => vec![parameters * f64::from(self.gpus) * new_gradients],
            Growth::Doublings => vec![parameters * nodes.log2(), parameters],
        }
    }

    /// T_Barrier, which an all-reduce includes, with this time to sum a parameter of a buffer (eq. 8).
    fn barrier(&self, sum: Seconds) -> Seconds {
        match COMPONENTS[self.component].1 {
            Growth::Doublings => {
                let waited = buffers_waited_for(self.gpus, self.new_shares()[1], self.nodes);
                sum * (self.parameters * waited)
            }
            _ => Seconds::ZERO,
        }
    }

    fn predicted(&self, line: &LinearKernel, sum: Seconds) -> Seconds {
        let amounts = self.amounts();
        line.per_element * amounts[0]
            + line.start * amounts.get(1).copied().unwrap_or(0.0)
            + self.barrier(sum)
    }
}

/// Fits one component to relative errors.
fn fit(
    timings: &[ComponentTiming],
    sum: Seconds,
    wanted: &CancelCheck<'_>,
) -> Result<LinearKernel, FitError> {
    let rows: Vec<_> = timings.iter().map(|timing| (timing.amounts(), timing.time.get())).collect();
    let own = |timing: &ComponentTiming| (timing.time - timing.barrier(sum)) / timing.time;
    linear_kernel(&rows, &timings.iter().map(own).collect::<Vec<f64>>(), wanted)
}

fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Split<ComponentTiming>, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let (component, times) = (file.column("component")?, file.time_column()?);
    let iterations = file.named_times("gpu")?.zip(file.named_times("update")?);
    file.split(wanted, |row: MeasurementRow<'_>| {
        let key = row.text(component);
        let place = COMPONENTS.iter().position(|(name, _)| *name == key).ok_or_else(|| {
            let names = COMPONENTS.iter().map(|(name, _)| *name);
            let list = names.clone().collect::<Vec<_>>().join(", ");
            row.fault(
                component,
                "is no component of SPRINT",
                suggest::remedy(key, names, format!("use one of {list}")),
            )
        })?;
        let growth = COMPONENTS[place].1;
        // A column that this component does not depend on may be left out or empty.
        let count = |title: &str, needed: bool| match file.optional_column(title) {
            Some(column) if needed || !row.text(column).is_empty() => row.count(column),
            None if needed => file.column(title).map(|_| 1),
            _ => Ok(1),
        };
        let timing = ComponentTiming {
            component: place,
            parameters: f64::from(count("parameters", growth != Growth::Samples)?),
            batch: f64::from(count("batch", growth == Growth::Samples)?),
            nodes: count("nodes", matches!(growth, Growth::Slice | Growth::Doublings))?,
            gpus: count("gpus", growth == Growth::NewGradients)?,
            iterations: iterations
                .map(|(gpu, update)| Ok::<_, Fault>([row.time(gpu)?, row.time(update)?]))
                .transpose()?,
            time: row.time(times)?,
        };
        let ComponentTiming { parameters, batch, nodes, gpus, .. } = timing;
        let name =
            format!("{key} of {parameters} parameters, batch {batch}, on {nodes} nodes of {gpus} GPUs");
        Ok((name, timing))
    })
}

fn quality(line: &LinearKernel, sum: Seconds, timings: &[ComponentTiming]) -> Option<Quality> {
    Quality::from_pairs(timings.iter().map(|timing| (timing.predicted(line, sum), timing.time)))
}

/// Errors of T_GPU and T_Update (Table 8), if every component was fitted, on all runs that have them.
fn whole_threads(lines: &BTreeMap<&str, LinearKernel>, timings: &[ComponentTiming]) -> Option<[Quality; 2]> {
    if lines.len() < COMPONENTS.len() {
        return None;
    }
    let runs = timings.iter().filter(|timing| COMPONENTS[timing.component].0 == "compute-gradient");
    let pairs = runs.filter_map(|run| Some((threads(lines, run).steady()?, run.iterations?)));
    let (gpu, update): (Vec<_>, Vec<_>) =
        pairs.map(|(steady, [gpu, update])| ((steady.gpu, gpu), (steady.update, update))).unzip();
    Quality::from_pairs(gpu).zip(Quality::from_pairs(update)).map(<[_; 2]>::from)
}

fn threads(lines: &BTreeMap<&str, LinearKernel>, run: &ComponentTiming) -> Threads {
    let alone = |key: &str| {
        let component = COMPONENTS.iter().position(|(name, _)| *name == key).unwrap_or(0);
        let whole = ComponentTiming { component, iterations: None, gpus: 1, ..*run };
        whole.predicted(&lines[key], Seconds::ZERO)
    };
    Threads {
        nodes: run.nodes,
        gpus: run.gpus,
        batch: run.batch as u32,
        fetch_weights: alone("fetch-weights"),
        load_images: alone("load-image"),
        deform_images: alone("deform-image"),
        compute: alone("compute-gradient"),
        scale_gradient: alone("compute-update"),
        update_gradient: alone("update-gradient"),
        sum_buffer: alone("sum-gradient"),
        keep_old_weights: alone("update-old-weights"),
        add_momentum: alone("add-momentum"),
        all_reduce: alone("all-reduce"),
        update_momentum: alone("update-momentum"),
        update_weights: alone("update-weights"),
    }
}

/// Fits the components of `data`; `test`, if given, replaces its held-out rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let test = test.map(|test| read(test, wanted)).transpose()?;
    let Split { fit: timings, held } = read(data, wanted)?.tested_with(test);
    let of = |timings: &[ComponentTiming], place: usize| -> Vec<ComponentTiming> {
        timings.iter().filter(|timing| timing.component == place).copied().collect()
    };
    let (mut lines, mut errors, mut rows) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let mut sum = Seconds::ZERO;
    for (place, (key, _)) in COMPONENTS.iter().enumerate() {
        let own = of(&timings, place);
        if own.is_empty() {
            continue;
        }
        let line = fit(&own, sum, wanted).map_err(|error| stopped(data, key, &error, &COEFFICIENTS))?;
        if *key == "sum-gradient" {
            sum = line.per_element;
        }
        if let Some(on_fit) = quality(&line, sum, &own) {
            let of_component = FitErrors { fit: on_fit, held: quality(&line, sum, &of(&held, place)) };
            rows.extend(FitErrorRow::rows(key, &of_component));
            errors.insert(*key, of_component);
        }
        lines.insert(*key, line);
    }
    if let Some(on_fit) = whole_threads(&lines, &timings) {
        let on_held = whole_threads(&lines, &held);
        for (place, name) in ["T_GPU", "T_Update"].into_iter().enumerate() {
            let whole = FitErrors { fit: on_fit[place], held: on_held.map(|both| both[place]) };
            rows.extend(FitErrorRow::rows(name, &whole));
        }
    }
    let missing: Vec<&str> =
        COMPONENTS.iter().map(|(key, _)| *key).filter(|key| !lines.contains_key(key)).collect();
    let mut notes: Vec<String> = lines
        .iter()
        .map(|(key, line)| format!("{key}: {} each and {}.", line.per_element.human(), line.start.human()))
        .collect();
    if !missing.is_empty() {
        notes.push(format!("Not measured, and left to estimates: {}.", missing.join(", ")));
    }
    let artefact = artefact(ArtefactKind::Sprint, data, timings.len(), &date, &errors, &lines)?;
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}
