//! Steps in a list of reductions: a new one begins when a tensor is reduced again.

use super::record::{Recorder, Reduction};
use crate::imported::tally;
use std::collections::HashMap;
use stepcast_core::fault::Fault;

/// Steps beyond these are not used.
const MOST_STEPS: usize = 500;

/// One whole step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// When each gradient was ready and when it had been reduced, in seconds since the last reduction of the step before;
    /// in order of readiness, which never decreases.
    pub(super) gradients: Vec<(f64, f64)>,
    /// Groups of tensors that were transferred together.
    pub(super) messages: usize,
}

impl Step {
    pub(super) fn computing(&self) -> f64 {
        self.gradients.last().map_or(0.0, |(ready, _)| *ready)
    }

    pub(super) fn exposed(&self) -> f64 {
        self.gradients.iter().map(|(_, ended)| *ended).fold(0.0, f64::max) - self.computing()
    }
}

/// All steps, and the tensors that they reduce.
#[derive(Debug)]
pub(super) struct Steps {
    /// Tensors in order of their mean readiness.
    pub(super) tensors: Vec<usize>,
    pub(super) steps: Vec<Step>,
}

/// Steps that follow another and reduce every tensor that half of the steps reduce.
pub(super) fn find(recorder: &Recorder, place: &str, notes: &mut Vec<String>) -> Result<Steps, Fault> {
    let wrong = |reason: &str, remedy: &str| Err(Fault::in_file(place, reason, remedy));
    if recorder.reductions.is_empty() {
        return wrong("no reduction of a tensor was recorded to its end", "record some steps of training");
    }
    let parts = split(&recorder.reductions);
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for reduction in parts.iter().flatten() {
        *counts.entry(reduction.tensor).or_default() += 1;
    }
    let mut tensors: Vec<usize> =
        counts.iter().filter(|(_, count)| 2 * **count >= parts.len()).map(|(tensor, _)| *tensor).collect();
    tensors.sort_unstable();
    let rare = counts.len() - tensors.len();
    tally(notes, rare, "tensors reduced in fewer than half of the steps, which were left out");
    let mut whole: Vec<(f64, HashMap<usize, Reduction>)> = Vec::new();
    let mut broken = 0_usize;
    for pair in parts.windows(2) {
        let since = pair[0].iter().map(|reduction| reduction.ended).fold(f64::NEG_INFINITY, f64::max);
        let found: HashMap<usize, Reduction> =
            pair[1].iter().map(|reduction| (reduction.tensor, *reduction)).collect();
        if tensors.iter().all(|tensor| found.contains_key(tensor)) {
            whole.push((since, found));
        } else {
            broken += 1;
        }
    }
    tally(notes, broken, "steps that lack tensors which most steps reduce and were left out");
    if whole.is_empty() || tensors.is_empty() {
        let remedy = "record at least two whole steps: the forward pass lies between them";
        return wrong("it has no whole step that follows another", remedy);
    }
    if whole.len() > MOST_STEPS {
        notes.push(format!("only the first {MOST_STEPS} of {} steps were imported", whole.len()));
        whole.truncate(MOST_STEPS);
    }
    let readiness =
        |tensor: usize| whole.iter().map(|(since, found)| found[&tensor].ready - since).sum::<f64>();
    let mut order: Vec<(f64, usize)> = tensors.iter().map(|&tensor| (readiness(tensor), tensor)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let tensors: Vec<usize> = order.into_iter().map(|(_, tensor)| tensor).collect();
    let steps = whole.iter().map(|(since, found)| step(*since, found, &tensors)).collect();
    Ok(Steps { tensors, steps })
}

/// In order of readiness, cut where a tensor comes again.
fn split(reductions: &[Reduction]) -> Vec<Vec<Reduction>> {
    let mut sorted = reductions.to_vec();
    sorted.sort_by(|a, b| a.ready.total_cmp(&b.ready).then(a.tensor.cmp(&b.tensor)));
    let mut parts: Vec<Vec<Reduction>> = Vec::new();
    let mut last_seen: HashMap<usize, usize> = HashMap::new();
    for reduction in sorted {
        let current = parts.len();
        if current == 0 || last_seen.get(&reduction.tensor) == Some(&current) {
            parts.push(Vec::new());
        }
        last_seen.insert(reduction.tensor, parts.len());
        if let Some(part) = parts.last_mut() {
            part.push(reduction);
        }
    }
    parts
}

fn step(since: f64, found: &HashMap<usize, Reduction>, tensors: &[usize]) -> Step {
    let mut latest = 0.0_f64;
    let gradients = tensors.iter().map(|tensor| {
        let reduction = &found[tensor];
        latest = latest.max(reduction.ready - since);
        (latest, (reduction.ended - since).max(latest))
    });
    let gradients = gradients.collect();
    let mut wires: Vec<(f64, f64)> = tensors.iter().filter_map(|tensor| found[tensor].wire).collect();
    wires.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut busy_until = f64::NEG_INFINITY;
    let mut messages = 0;
    for (start, end) in wires {
        messages += usize::from(start >= busy_until);
        busy_until = busy_until.max(end);
    }
    Step { gradients, messages }
}
