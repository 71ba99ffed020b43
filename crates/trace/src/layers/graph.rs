//! The per-layer files of PipeDream's profiler (Harlap 2018): a line for each layer with its times in milliseconds and the
//! bytes of its parameters, and a line for each edge between layers.

use super::lines::{Layer, Lines, MOST_BYTES, MOST_LAYERS, MOST_SECONDS};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, Seconds};

/// The separator of the parts of a line.
const DASHES: &str = " -- ";

pub(super) fn recognises(head: &str) -> bool {
    head.lines().next().is_some_and(|line| line.contains(DASHES) && line.contains("forward_compute_time="))
}

pub(super) fn read(mut lines: Lines<'_, '_>) -> Result<Vec<Layer>, Fault> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    while let Some(line) = lines.next()? {
        let parts: Vec<&str> = line.trim().split(DASHES).collect();
        match parts[..] {
            [from, to] => {
                let (Some(&from), Some(&to)) = (index.get(from), index.get(to)) else {
                    let reason = format!("the edge {from} to {to} names a layer that has no line before it");
                    return Err(lines.fault(reason, "give the layers first, then the edges"));
                };
                if edges.len() == 8 * MOST_LAYERS {
                    return Err(lines.fault("there are too many edges", "give each edge once"));
                }
                edges.push((from, to));
            }
            [id, .., figures] => {
                if index.insert(id.to_owned(), layers.len()).is_some() {
                    return Err(lines.fault(format!("{id} comes twice"), "give every layer its own name"));
                }
                let kind = parts[1].split('(').next().unwrap_or_default();
                let figure = |key: &str, scale: f64, most: f64| {
                    let found = figures
                        .split(',')
                        .find_map(|figure| figure.trim().strip_prefix(key)?.strip_prefix('='));
                    let Some(value) = found.and_then(|text| text.trim().parse::<f64>().ok()) else {
                        let remedy = "write forward_compute_time, backward_compute_time and parameter_size";
                        return Err(lines.fault(format!("it has no {key}"), remedy));
                    };
                    lines.plausible(key, value * scale, most)
                };
                let forward = figure("forward_compute_time", 1e-3, MOST_SECONDS)?;
                let backward = figure("backward_compute_time", 1e-3, MOST_SECONDS)?;
                let layer = Layer {
                    name: format!("{id} {kind}"),
                    forward: Some(Seconds::new(forward)),
                    backward: Seconds::new(backward),
                    gradients: Bytes::new(figure("parameter_size", 1.0, MOST_BYTES)?),
                };
                lines.push(&mut layers, layer)?;
            }
            _ => return Err(lines.fault("this is neither a layer nor an edge", "remove the line")),
        }
    }
    order(&layers, &edges)
        .map(|order| order.into_iter().map(|layer| layers[layer].clone()).collect())
        .ok_or_else(|| {
            Fault::in_file(&lines.place, "its layers wait for each other in a circle", "check the edges")
        })
}

/// A topological order of the layers, otherwise as in the file. None if there is a cycle.
fn order(layers: &[Layer], edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut waiting = vec![0_usize; layers.len()];
    let mut followers = vec![Vec::new(); layers.len()];
    for &(from, to) in edges {
        waiting[to] += 1;
        followers[from].push(to);
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..layers.len()).filter(|&layer| waiting[layer] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(layers.len());
    while let Some(Reverse(layer)) = ready.pop() {
        order.push(layer);
        for &follower in &followers[layer] {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                ready.push(Reverse(follower));
            }
        }
    }
    (order.len() == layers.len()).then_some(order)
}
