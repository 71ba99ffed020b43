//! The per-layer files of PipeDream's profiler (Harlap 2018): a line for each layer with its times in milliseconds and the
//! bytes of its parameters, and a line for each edge between layers.

use super::{Layer, Lines, MOST_BYTES, MOST_LAYERS, MOST_SECONDS};
use crate::draft::topological_order;
use std::collections::HashMap;
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
    // The layers before each layer.
    let mut before: Vec<Vec<usize>> = Vec::new();
    let mut edges = 0;
    while let Some(line) = lines.next()? {
        let parts: Vec<&str> = line.trim().split(DASHES).collect();
        match parts[..] {
            [from, to] => {
                let (Some(&from), Some(&to)) = (index.get(from), index.get(to)) else {
                    let reason = format!("the edge {from} to {to} names a layer that has no line before it");
                    return Err(lines.fault(reason, "give the layers first, then the edges"));
                };
                if edges == 8 * MOST_LAYERS {
                    return Err(lines.fault("there are too many edges", "give each edge once"));
                }
                edges += 1;
                before[to].push(from);
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
                before.push(Vec::new());
            }
            _ => return Err(lines.fault("this is neither a layer nor an edge", "remove the line")),
        }
    }
    let order = topological_order(layers.len(), |to| before[to].iter().copied());
    if order.len() < layers.len() {
        return Err(Fault::in_file(
            &lines.place,
            "its layers wait for each other in a circle",
            "check the edges",
        ));
    }
    Ok(order.into_iter().map(|layer| layers[layer].clone()).collect())
}
