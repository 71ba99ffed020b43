//! The dependencies of a step: names of inputs joined with names of operations.

use super::super::records::Place;
use super::{Event, Events};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use stepcast_core::profile::Resource;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vertex {
    pub(super) name: String,
    pub(super) resource: Resource,
    pub(super) server: Option<Place>,
    pub(super) bytes: Option<u64>,
    /// Indices of vertices before it.
    pub(super) after: Vec<usize>,
    source: Source,
}

/// Source of a vertex's times.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    Operation(Key),
    /// From the end of one operation to the start of the first that reads it.
    Transfer {
        maker: Key,
        readers: Vec<Key>,
    },
}

type Key = (Place, String);

/// Start and end of operations of one step in seconds since it began; several records of one are joined.
fn recorded(events: &Events) -> HashMap<Key, (f64, f64)> {
    let begin = events.events.iter().map(|event| event.start).fold(f64::INFINITY, f64::min);
    let mut found: HashMap<Key, (f64, f64)> = HashMap::new();
    for event in &events.events {
        let start = (event.start - begin) / 1e6;
        let span = found.entry((event.place, event.name.clone())).or_insert((start, start));
        let busy = (span.1 - span.0) + event.duration / 1e6;
        let earliest = span.0.min(start);
        *span = (earliest, earliest + busy);
    }
    found
}

/// The operations of `worker` and of the servers, and the tensors that move between them, in order of their start. Dependencies
/// on later operations are `dropped`.
pub(super) fn vertices(events: &Events, worker: Place, dropped: &mut usize) -> Vec<Vertex> {
    let spans = recorded(events);
    let is_ours = |place: Place| place == worker || matches!(place, Place::Server(_));
    let ours: Vec<&Event> = events.events.iter().filter(|event| is_ours(event.place)).collect();
    let mut makers: HashMap<&str, BTreeSet<Place>> = HashMap::new();
    for event in &ours {
        makers.entry(&event.name).or_default().insert(event.place);
    }
    let mut reads: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    for event in &ours {
        let before = reads.entry((event.place, event.name.clone())).or_default();
        before.extend(event.inputs.iter().filter_map(|input| maker(input, event.place, &makers)));
    }
    let mut transfers: BTreeMap<(Key, Place), Vec<Key>> = BTreeMap::new();
    for (key, before) in &reads {
        for made in before.iter().filter(|made| made.0 != key.0 && (made.0 == worker || key.0 == worker)) {
            transfers.entry((made.clone(), key.0)).or_default().push(key.clone());
        }
    }
    let mut found: Vec<(f64, Vertex, Vec<Key>)> = Vec::new();
    for (key, before) in &reads {
        let server = Some(key.0).filter(|place| *place != worker);
        let resource = if server.is_some() { Resource::Server } else { Resource::Worker };
        let vertex = Vertex {
            name: key.1.clone(),
            resource,
            server,
            bytes: None,
            after: Vec::new(),
            source: Source::Operation(key.clone()),
        };
        found.push((spans[key].0, vertex, before.iter().cloned().collect()));
    }
    for ((made, to), readers) in transfers {
        let up = made.0 == worker;
        let source = Source::Transfer { maker: made.clone(), readers };
        let vertex = Vertex {
            name: format!("{} to {to}", made.1),
            resource: if up { Resource::Uplink } else { Resource::Downlink },
            server: Some(if up { to } else { made.0 }),
            bytes: events.sizes.get(&made.1).copied(),
            after: Vec::new(),
            source,
        };
        let start = span(&vertex.source, &spans).map_or(0.0, |(start, _)| start);
        found.push((start, vertex, vec![made]));
    }
    // Of events at the same moment, computing comes before transfers.
    found.sort_by(|a, b| {
        a.0.total_cmp(&b.0).then(a.1.resource.is_transfer().cmp(&b.1.resource.is_transfer()))
    });
    join(found, dropped)
}

fn join(found: Vec<(f64, Vertex, Vec<Key>)>, dropped: &mut usize) -> Vec<Vertex> {
    let mut operations: HashMap<Key, usize> = HashMap::new();
    let mut transfers: HashMap<(Key, Place), usize> = HashMap::new();
    for (index, (_, vertex, _)) in found.iter().enumerate() {
        match &vertex.source {
            Source::Operation(key) => drop(operations.insert(key.clone(), index)),
            Source::Transfer { maker, readers } => {
                for reader in readers {
                    transfers.insert((maker.clone(), reader.0), index);
                }
            }
        }
    }
    let waits: Vec<Vec<usize>> = found
        .iter()
        .map(|(_, vertex, before)| {
            let own = |made: &Key| match &vertex.source {
                Source::Operation(key) if key.0 != made.0 => transfers.get(&(made.clone(), key.0)),
                _ => operations.get(made),
            };
            before.iter().filter_map(own).copied().collect()
        })
        .collect();
    found
        .into_iter()
        .zip(waits)
        .enumerate()
        .map(|(index, ((_, vertex, _), waits))| {
            let (mut after, late): (Vec<usize>, Vec<usize>) =
                waits.into_iter().partition(|&before| before < index);
            *dropped += late.len();
            after.sort_unstable();
            after.dedup();
            Vertex { after, ..vertex }
        })
        .collect()
}

/// The operation that an input names: the operation itself, one of its outputs, or a tensor from another process.
fn maker(input: &str, place: Place, makers: &HashMap<&str, BTreeSet<Place>>) -> Option<Key> {
    let whole = input.trim_start_matches('^');
    let name = whole.rsplit_once(':').filter(|(_, slot)| is_number(slot)).map_or(whole, |(name, _)| name);
    if makers.get(name).is_some_and(|places| places.contains(&place)) {
        return Some((place, name.to_owned()));
    }
    let moved = ["/_", "_S"].iter().find_map(|mark| {
        name.rsplit_once(mark).filter(|(_, number)| is_number(number)).map(|(name, _)| name)
    });
    let name = moved.unwrap_or(name);
    let places = makers.get(name)?;
    let other = places.iter().find(|other| **other != place).or(places.first())?;
    Some((*other, name.to_owned()))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn span(source: &Source, spans: &HashMap<Key, (f64, f64)>) -> Option<(f64, f64)> {
    match source {
        Source::Operation(key) => spans.get(key).copied(),
        Source::Transfer { maker, readers } => {
            let (start, made) = *spans.get(maker)?;
            let read = readers.iter().filter_map(|reader| spans.get(reader)).map(|(start, _)| *start);
            let read = read.fold(f64::INFINITY, f64::min);
            let since = made.min(read).max(start);
            Some((since, read.max(since)))
        }
    }
}

/// Start and end of every vertex in a step, computing of the worker cut where it overlaps; none if something is missing.
pub(super) fn times(vertices: &[Vertex], events: &Events) -> Option<Vec<(f64, f64)>> {
    let spans = recorded(events);
    let mut times: Vec<(f64, f64)> =
        vertices.iter().map(|vertex| span(&vertex.source, &spans)).collect::<Option<_>>()?;
    let mut order: Vec<usize> =
        (0..vertices.len()).filter(|&index| vertices[index].resource == Resource::Worker).collect();
    order.sort_by(|&a, &b| times[a].0.total_cmp(&times[b].0));
    let mut covered = 0.0_f64;
    for index in order {
        let (start, end) = times[index];
        let start = start.max(covered);
        times[index] = (start, end.max(start));
        covered = covered.max(end);
    }
    Some(times)
}
