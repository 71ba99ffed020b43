//! TensorFlow: `RunMetadata` of the steps of one worker and its parameter servers.
//!
//! `proto` declares the messages, `records` collects the records of a step, `graph` makes one graph of
//! operations and transfers out of the graphs of the devices, `times` combines the two. Corrections by an import
//! are described in `docs/profile.md`. `timeline` reads the JSON that TensorFlow makes of such records.

mod graph;
mod proto;
mod recordings;
mod records;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
mod times;

use crate::files::Content;
use crate::import::{Imported, Options, counted, profile_fault, tally};
use crate::overview::Summary;
use crate::source;
use crate::source::{Excess, Memory, Reading, short_name};
use graph::{Graph, Vertex};
use prost::Message;
use proto::{GraphDef, RunMetadata};
use recordings::{Recording, single};
use records::{JobRecords, Key, Place, RecordedStep};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::profile::{Operation, Profile, Step};

/// Largest share of the other steps' records that a step may lack without being left out (a guess).
const MOST_MISSING: f64 = 0.25;

/// Whether a file that begins like this holds `RunMetadata`: its first field is the records of devices, or the graphs,
/// and devices are named in it.
pub(crate) fn recognises(head: &[u8]) -> bool {
    const DELIMITED: u8 = 2;
    let first_field = head.first().filter(|key| **key & 7 == DELIMITED).map(|key| key >> 3);
    first_field.is_some_and(|field| (1..=3).contains(&field))
        && head.windows(5).any(|bytes| bytes == b"/job:")
}

pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let remedy = "put the steps of one worker into one folder or archive";
    let path = source::only(paths, "TensorFlow's recordings", remedy)?;
    let batch = options.required_batch(&path.display().to_string())?;
    let reading = options.reading(paths);
    Ok(read(path, options.graphs, batch, &reading)?.map(Content::Profile))
}

/// Reads the steps at `steps`: a `RunMetadata` file, a folder of them, or an archive (`.tar`, `.tar.gz`,
/// `.tar.xz`). The graphs come from the `RunMetadata` at `graphs`, or from the first step that has them.
/// `batch` is the number of samples of one step, which a recording does not contain.
pub fn read_run_metadata(
    steps: &Path,
    graphs: Option<&Path>,
    batch: u32,
) -> Result<Imported<Profile>, Fault> {
    read(steps, graphs, batch, &Options::default().reading(&[steps.to_owned()]))
}

fn read(
    steps: &Path,
    graphs: Option<&Path>,
    batch: u32,
    reading: &Reading<'_>,
) -> Result<Imported<Profile>, Fault> {
    let (mut called, mut others) = (Steps::default(), Steps::default());
    if let Some(path) = graphs {
        let Recording { name, bytes } = single(path, reading)?;
        let definitions = decode(&name, &bytes, &reading.memory)?.partition_graphs;
        called.graphs = Some((name.clone(), definitions.clone()));
        others.graphs = Some((name, definitions));
    }
    recordings::each(steps, reading, &mut |Recording { name, bytes }, is_step| {
        // Where some are called after steps, others are not steps.
        let of = if is_step { &mut called } else { &mut others };
        of.take(&name, &bytes, graphs.is_some(), &reading.memory)
    })?;
    let found = if called.any { called } else { others };
    let file =
        steps.file_name().map_or_else(|| "steps".to_owned(), |name| name.to_string_lossy().into_owned());
    profile(found, batch, &file, &steps.display().to_string())
}

#[derive(Default)]
struct Steps {
    any: bool,
    job: JobRecords,
    recorded: Vec<RecordedStep>,
    graphs: Option<(String, Vec<GraphDef>)>,
    /// Recordings without records.
    empty: Vec<String>,
}

/// Bytes of a record, here and in the resulting profile.
const RECORD: usize = 400;

impl Steps {
    fn take(&mut self, name: &str, bytes: &[u8], graphs_given: bool, memory: &Memory) -> Result<(), Fault> {
        self.any = true;
        let metadata = decode(name, bytes, memory)?;
        let stats = metadata.step_stats.as_ref();
        match stats.and_then(|stats| records::collect(short_name(name), stats, &mut self.job)) {
            Some(step) => {
                let names: usize = step.records.keys().map(Key::length).sum();
                memory.hold(step.records.len() * RECORD + 2 * names);
                self.recorded.push(step);
            }
            None => self.empty.push(short_name(name).to_owned()),
        }
        let earlier = self.graphs.as_ref().is_none_or(|(known, _)| name < known.as_str());
        if !graphs_given && earlier && !metadata.partition_graphs.is_empty() {
            // They are decoded already; derived data take as much again.
            memory.hold(usize::try_from(proto::decoded_size(bytes)).unwrap_or(usize::MAX));
            self.graphs = Some((name.to_owned(), metadata.partition_graphs));
        }
        memory.check(name)
    }
}

/// `file` names the profile and its source; `place` is the place in faults about all steps.
fn profile(steps: Steps, batch: u32, file: &str, place: &str) -> Result<Imported<Profile>, Fault> {
    let Steps { job, mut recorded, graphs, mut empty, .. } = steps;
    empty.sort_unstable();
    let mut notes: Vec<String> =
        empty.iter().map(|name| format!("{name} has no records and was left out")).collect();
    job.report(&mut notes);
    recorded.sort_by(|a, b| (a.first, &a.name).cmp(&(b.first, &b.name)));
    let definitions = graphs.as_ref().map_or(&[][..], |(_, definitions)| definitions);
    let graph = Graph::new(definitions, &mut notes);
    let (worker, servers) = processes(&job, &recorded, place, &mut notes)?;
    if graph.is_empty() {
        let remedy = "record one step with output_partition_graphs=True and give its file as the graphs";
        let place = graphs.as_ref().map_or(place, |(name, _)| name);
        return Err(Fault::in_file(place, "it has no partition graphs", remedy));
    }
    let lengths = times::lengths(&recorded, &mut notes);
    let kept = keep_complete(&recorded, &lengths, place, &mut notes)?;
    let mut vertices = operations(&graph, &kept, worker, &servers, place, &mut notes)?;
    let mut filled = times::fill(&vertices, &kept, &mut notes)?;
    sort_by_start(&mut vertices, &mut filled);
    let operations = vertices.into_iter().map(|vertex| finish(vertex, &kept, &job, &mut notes)).collect();

    let name = file.split('.').next().unwrap_or(file);
    let profile = Profile::new(name, format!("TensorFlow RunMetadata, {file}"), batch, operations, filled);
    profile.check().map_err(|error| profile_fault(place, error))?;
    Ok(Imported { content: profile, summary: Summary::default(), notes })
}

fn decode(name: &str, bytes: &[u8], memory: &Memory) -> Result<RunMetadata, Fault> {
    let held = (bytes.len() as u64).saturating_add(proto::decoded_size(bytes));
    if held > memory.left() {
        return Err(Excess::Memory(memory.limit()).fault(name));
    }
    RunMetadata::decode(bytes).map_err(|error| {
        let reason = format!("it is not a whole RunMetadata message ({error})");
        Fault::in_file(name, reason, "check that the file was written completely, or leave it out")
    })
}

/// The worker that is imported, and all servers.
fn processes(
    job: &JobRecords,
    steps: &[RecordedStep],
    place: &str,
    notes: &mut Vec<String>,
) -> Result<(Place, BTreeSet<Place>), Fault> {
    if steps.is_empty() {
        let remedy = "record steps with trace_level=FULL_TRACE";
        return Err(Fault::in_file(place, "no step has records of a worker or a server", remedy));
    }
    let mut all = job.places.clone();
    for key in steps.iter().flat_map(|step| step.records.keys()) {
        if let Key::Tensor(edge) = key {
            all.extend(edge.places().map(|(from, to)| [from, to]).into_iter().flatten());
        }
    }
    let mut workers = job.places.iter().filter(|place| matches!(place, Place::Worker(_)));
    let Some(&worker) = workers.next() else {
        let reason = "no operation of a worker was recorded";
        return Err(Fault::in_file(place, reason, "record steps of a job whose devices are in /job:worker"));
    };
    let others = workers.count();
    if others > 0 {
        notes.push(format!("only {worker} imported; {} ignored", counted(others, "other worker")));
    }
    Ok((worker, all.into_iter().filter(|place| matches!(place, Place::Server(_))).collect()))
}

/// Steps, with their lengths, that contain most operations common to at least half of the steps.
fn keep_complete<'a>(
    steps: &'a [RecordedStep],
    lengths: &[f64],
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'a RecordedStep, f64)>, Fault> {
    let usual = usual(steps.iter(), steps.len());
    let mut kept = Vec::new();
    for (step, &length) in steps.iter().zip(lengths) {
        let missing = usual.iter().filter(|key| !step.records.contains_key(**key)).count();
        if missing as f64 <= MOST_MISSING * usual.len() as f64 {
            kept.push((step, length));
        } else {
            let all = usual.len();
            notes.push(format!("{} lacks {missing} of {all} usual records and was left out", step.name));
        }
    }
    if kept.is_empty() {
        let reason = "the steps differ: none has most of the records that half of them have";
        return Err(Fault::in_file(place, reason, "import steps of one kind at a time"));
    }
    Ok(kept)
}

/// Subjects that at least half of the steps recorded.
fn usual<'a>(steps: impl Iterator<Item = &'a RecordedStep>, count: usize) -> HashSet<&'a Key> {
    records::frequencies(steps)
        .into_iter()
        .filter(|(_, times)| 2 * times >= count)
        .map(|(key, _)| key)
        .collect()
}

/// The operations of the profile; a fault if graph and records do not belong together.
fn operations(
    graph: &Graph,
    kept: &[(&RecordedStep, f64)],
    worker: Place,
    servers: &BTreeSet<Place>,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<Vertex>, Fault> {
    let usual = usual(kept.iter().map(|(step, _)| *step), kept.len());
    let vertices = graph.operations(worker, servers, |key| usual.contains(key));
    let known: HashSet<&Key> = vertices.iter().map(|vertex| &vertex.key).collect();
    let concerns = |key: &Key| match key {
        // The executor's own bookkeeping; it is in no graph.
        Key::Node(_, name) if name == "_SOURCE" || name == "_SINK" => false,
        Key::Node(place, _) => *place == worker || servers.contains(place),
        Key::Tensor(edge) => edge.places().is_some_and(|(from, to)| from == worker || to == worker),
    };
    let (mut matched, mut unmatched, mut rare) = (0_usize, 0_usize, 0_usize);
    for (key, _) in records::frequencies(kept.iter().map(|(step, _)| *step)) {
        if known.contains(key) {
            matched += 1;
        } else if concerns(key) {
            *(if usual.contains(key) { &mut unmatched } else { &mut rare }) += 1;
        }
    }
    if unmatched > matched {
        let reason = format!("{unmatched} of {} recorded names are not in the graphs", matched + unmatched);
        return Err(Fault::in_file(place, reason, "give the graphs that belong to these steps"));
    }
    tally(notes, unmatched, "recorded operation", "ignored: not in the graphs");
    tally(notes, rare, "operation", "ignored: recorded in fewer than half of the steps");
    if !vertices.iter().any(|vertex| vertex.resource.is_transfer()) {
        let reason = "no tensor moves between the worker and a server";
        let remedy = "record a job with variables on /job:ps, and give its graphs with _Send and _Recv nodes";
        return Err(Fault::in_file(place, reason, remedy));
    }
    Ok(vertices)
}

/// Orders operations by their mean start, so that transfers asked for first come first.
fn sort_by_start(vertices: &mut Vec<Vertex>, steps: &mut [Step]) {
    let sum = |index: usize| steps.iter().map(|step| step.start[index]).sum::<f64>();
    let sums: Vec<f64> = (0..vertices.len()).map(sum).collect();
    let mut order: Vec<usize> = (0..vertices.len()).collect();
    order.sort_by(|&a, &b| sums[a].total_cmp(&sums[b]).then(a.cmp(&b)));
    let mut position = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        position[old] = new;
    }
    for vertex in vertices.iter_mut() {
        vertex.after.iter_mut().for_each(|before| *before = position[*before]);
        vertex.after.sort_unstable();
    }
    *vertices = order.iter().map(|&old| vertices[old].clone()).collect();
    for step in steps {
        step.start = order.iter().map(|&old| step.start[old]).collect();
        step.end = order.iter().map(|&old| step.end[old]).collect();
    }
}

/// A vertex as an operation of the profile, with its size.
fn finish(
    vertex: Vertex,
    kept: &[(&RecordedStep, f64)],
    job: &JobRecords,
    notes: &mut Vec<String>,
) -> Operation {
    let mut bytes = 0;
    if vertex.resource.is_transfer() {
        let sizes: BTreeSet<u64> = kept
            .iter()
            .filter_map(|(step, _)| step.records.get(&vertex.key))
            .map(|record| record.bytes)
            .collect();
        if sizes.len() > 1 {
            notes.push(format!("the size of {} differs between steps; the largest was taken", vertex.name));
        }
        bytes = sizes.last().copied().unwrap_or_else(|| {
            let made = vertex.source.as_ref().and_then(|(place, name, slot)| {
                let outputs = job.outputs.get(&(*place, name.clone()))?;
                outputs.iter().find(|(output, _)| output == slot).map(|(_, bytes)| *bytes)
            });
            let how = made.map_or("taken as zero", |_| "taken from the operation that makes it");
            notes.push(format!("{} was never recorded as received; its size was {how}", vertex.name));
            made.unwrap_or(0)
        });
    }
    let after = vertex.after.iter().map(|&before| before as u32).collect();
    Operation { name: vertex.name, resource: vertex.resource, bytes, after, server: vertex.server }
}
