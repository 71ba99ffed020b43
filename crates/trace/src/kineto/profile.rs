//! A profile of one rank without its communication, to be replayed with any number of workers.
//!
//! The worker's operations follow each other without gaps: the forward pass, cut where parameters are first needed, the
//! backward pass, cut where gradients are ready, and the rest of the step. Idle times of the device, except waits for
//! collectives, belong to them. Parameters come down before they are needed and gradients go up when they are ready,
//! for parameter servers; all-reduce uses gradients alone.

use super::rank::{Rank, Step};
use super::records::Time;
use stepcast_core::profile::{Operation, Profile, Resource, Step as ProfileStep};

/// Most steps of a profile: enough to show their variation.
pub(super) const MOST_STEPS: usize = 100;

fn sizes(rank: &Rank, gradients: usize) -> Vec<u64> {
    match &rank.sizes {
        Some(sizes) => sizes.elements.iter().map(|elements| elements.saturating_mul(sizes.element)).collect(),
        None => vec![0; gradients],
    }
}

pub(super) fn profile(rank: &Rank, batch: u32, file: &str) -> Profile {
    let gradients = rank.steps.first().map_or(0, |step| step.gradients.len());
    let layout = Layout::new(rank, gradients);
    let bytes = sizes(rank, gradients);
    let name = file.split('.').next().unwrap_or(file);
    let steps = rank.steps.iter().take(MOST_STEPS).map(|step| layout.step(step)).collect();
    Profile::new(name, format!("PyTorch profiler (Kineto), {file}"), batch, layout.operations(&bytes), steps)
}

/// The structure of every step: which parameters each part of the forward pass is the first to need.
struct Layout {
    /// Gradients whose parameters are needed first by each part.
    parts: Vec<Vec<usize>>,
    gradients: usize,
}

impl Layout {
    fn new(rank: &Rank, gradients: usize) -> Self {
        let mut parts: Vec<(Time, Vec<usize>)> = vec![(Time::MIN, Vec::new())];
        if let Some(step) = rank.steps.first() {
            let mut order: Vec<(Time, usize)> = step
                .gradients
                .iter()
                .enumerate()
                .map(|(index, gradient)| {
                    (gradient.needed.map_or(Time::MIN, |time| step.forward_clock(time)), index)
                })
                .collect();
            order.sort_unstable();
            for (time, index) in order {
                match parts.last_mut() {
                    Some((last, part)) if *last == time || time <= 0 => part.push(index),
                    _ => parts.push((time, vec![index])),
                }
            }
        }
        Self { parts: parts.into_iter().map(|(_, part)| part).collect(), gradients }
    }

    /// Weights, then parts of the forward pass, then parts of the backward pass with their gradients, then the rest.
    fn operations(&self, bytes: &[u64]) -> Vec<Operation> {
        let mut operations = Vec::new();
        let operation =
            |name: String, resource, bytes, after| Operation { name, resource, bytes, after, server: 0 };
        for (index, &bytes) in bytes.iter().enumerate() {
            operations.push(operation(format!("weight {index}"), Resource::Downlink, bytes, Vec::new()));
        }
        let mut last: Option<u32> = None;
        for (number, part) in self.parts.iter().enumerate() {
            let mut after: Vec<u32> = part.iter().map(|&index| index as u32).collect();
            after.extend(last);
            after.sort_unstable();
            last = Some(operations.len() as u32);
            operations.push(operation(format!("forward {number}"), Resource::Worker, 0, after));
        }
        for (index, &bytes) in bytes.iter().enumerate() {
            let backward = operations.len() as u32;
            operations.push(operation(
                format!("backward {index}"),
                Resource::Worker,
                0,
                last.into_iter().collect(),
            ));
            operations.push(operation(format!("gradient {index}"), Resource::Uplink, bytes, vec![backward]));
            last = Some(backward);
        }
        operations.push(operation("update".to_owned(), Resource::Worker, 0, last.into_iter().collect()));
        operations
    }

    fn step(&self, step: &Step) -> ProfileStep {
        let length = step.timeline.length();
        let mut cut =
            Cuts { now: 0, length, start: vec![0.0; self.gradients], end: vec![0.0; self.gradients] };
        let forward = step.forward_end();
        for next in self.parts.iter().skip(1) {
            let needed = next.iter().filter_map(|&index| step.gradients[index].needed);
            let needed = needed.map(|time| step.forward_clock(time)).min().unwrap_or(0);
            cut.work_until(needed.min(forward));
        }
        cut.work_until(forward);
        for gradient in &step.gradients {
            cut.work_until(step.timeline.clock_at_end(gradient.ready));
            cut.send();
        }
        cut.work_until(length);
        ProfileStep { start: cut.start, end: cut.end, length: seconds(length) }
    }
}

/// Starts and ends of operations, one after the other.
struct Cuts {
    now: Time,
    length: Time,
    start: Vec<f64>,
    end: Vec<f64>,
}

impl Cuts {
    fn work_until(&mut self, time: Time) {
        let until = time.clamp(self.now, self.length);
        self.start.push(seconds(self.now));
        self.end.push(seconds(until));
        self.now = until;
    }

    fn send(&mut self) {
        self.start.push(seconds(self.now));
        self.end.push(seconds(self.now));
    }
}

impl Step {
    /// When the forward pass ends, on the step's clock: where the backward pass begins, not after the first gradient.
    pub(super) fn forward_end(&self) -> Time {
        let begin = self.timeline.backward.map(|time| self.timeline.clock_at_start(time));
        let first = self.gradients.first().map(|gradient| self.timeline.clock_at_end(gradient.ready));
        begin.into_iter().chain(first).min().unwrap_or_else(|| self.timeline.length())
    }

    /// When the last gradient is ready, on the step's clock.
    pub(super) fn backward_end(&self) -> Time {
        let last = self.gradients.last().map(|gradient| self.timeline.clock_at_end(gradient.ready));
        last.unwrap_or_else(|| self.forward_end())
    }

    fn forward_clock(&self, time: Time) -> Time {
        self.timeline.clock_at_start(time).min(self.forward_end())
    }
}

pub(super) fn seconds(time: Time) -> f64 {
    time as f64 / 1e9
}
