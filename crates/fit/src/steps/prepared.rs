//! A measured step, made ready: its layers with their features, and the layers' own times.
//!
//! If the device runs behind the host, an interval is the time of its layers; otherwise it includes waiting, and is only an
//! upper bound. The device's lag is tracked from layer to layer.

use super::MeasuredStep;
use std::collections::BTreeMap;
use std::ops::Range;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{Class, Nominal, Phase, Setting, StepOp};
use stepcast_core::precision::Precision;

/// The layers that share coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) class: Class,
    /// None if both precisions share coefficients: bytes account for the difference.
    pub(super) precision: Option<Precision>,
    pub(super) phase: Phase,
}

impl Key {
    pub(super) fn new(class: Class, precision: Precision, phase: Phase) -> Self {
        let shared = matches!(class, Class::LayerNorm | Class::Pool | Class::Depthwise);
        // Only the fast algorithms in 32 bits distinguish windows.
        let class =
            if class == Class::Square && precision != Precision::Fp32 { Class::Window } else { class };
        // Attention is not a separate module: only its share of the backward pass is visible.
        let phase = if class == Class::Attention { Phase::Backward } else { phase };
        Self { class, precision: (!shared).then_some(precision), phase }
    }
}

/// The layers that ran between two moments.
#[derive(Debug, Clone)]
pub(super) struct Interval {
    pub(super) ops: Range<usize>,
    pub(super) phase: Phase,
    pub(super) time: f64,
    /// Whether the device had work queued throughout.
    pub(super) clean: bool,
}

#[derive(Debug, Clone)]
pub(super) struct LayerWork {
    pub(super) key: Key,
    pub(super) fitted: bool,
    pub(super) features: Vec<f64>,
    pub(super) counted: f64,
}

pub(super) struct PreparedStep<'a> {
    pub(super) step: &'a MeasuredStep,
    pub(super) ops: Vec<StepOp>,
    forward: Vec<LayerWork>,
    backward: Vec<LayerWork>,
    pub(super) intervals: Vec<Interval>,
}

/// Host time of one launch while hooks were timing: chosen by hand on the H200 steps in `validation/steps`.
fn hooked_launch(precision: Precision) -> f64 {
    if precision == Precision::Fp32 { 150e-6 } else { 250e-6 }
}

/// Launches that hooks see of a layer: chosen by hand on the same steps.
fn launches(op: &StepOp) -> f64 {
    match op.class {
        Class::Attention => 5.0,
        Class::UnfusedGelu => 8.0,
        Class::Loss => 4.0,
        _ => 1.0,
    }
}

impl<'a> PreparedStep<'a> {
    pub(super) fn new(step: &'a MeasuredStep, nominal: &Nominal, products: Option<&GemmModel>) -> Self {
        let ops = StepOp::from_model(&step.model);
        let work = |phase: Phase| {
            let setting = Setting { batch: step.batch, precision: step.precision, phase, nominal, products };
            let one = |op: &StepOp| LayerWork {
                key: Key::new(op.class, step.precision, phase),
                fitted: Class::FITTED.contains(&op.class),
                features: op
                    .class
                    .features(step.precision, phase, products.is_some())
                    .iter()
                    .map(|feature| op.feature(*feature, &setting).get())
                    .collect(),
                counted: op.counted(&setting).get(),
            };
            ops.iter().map(one).collect()
        };
        let mut intervals = forward(step, &ops);
        intervals.extend(backward(step, &ops));
        Self { step, forward: work(Phase::Forward), backward: work(Phase::Backward), ops, intervals }
    }

    pub(super) fn work(&self, phase: Phase) -> &[LayerWork] {
        match phase {
            Phase::Forward => &self.forward,
            Phase::Backward => &self.backward,
        }
    }

    pub(super) fn phase(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Forward => self.step.forward.get(),
            Phase::Backward => self.step.backward.get(),
        }
    }
}

fn forward(step: &MeasuredStep, ops: &[StepOp]) -> Vec<Interval> {
    let launch = hooked_launch(step.precision);
    let mut behind = 0.0_f64;
    let mut intervals = Vec::new();
    for (place, op) in ops.iter().enumerate() {
        let Some(time) = step.leaves.get(&op.name).map(|time| time.get()) else {
            behind = (behind - launch * launches(op)).max(0.0);
            continue;
        };
        let clean = behind > 2.0 * launch || time > 3.0 * launch;
        intervals.push(Interval { ops: place..place + 1, phase: Phase::Forward, time, clean });
        behind = (behind + time - launch).max(0.0);
    }
    intervals
}

fn backward(step: &MeasuredStep, ops: &[StepOp]) -> Vec<Interval> {
    let launch = hooked_launch(step.precision);
    let places: BTreeMap<&str, usize> =
        ops.iter().enumerate().map(|(place, op)| (op.name.as_str(), place)).collect();
    // A layer is done when its last gradient is.
    let mut done: Vec<(usize, f64)> = Vec::new();
    for (name, time) in &step.ready {
        let Some(&place) = places.get(name.as_str()) else { continue };
        match done.iter_mut().find(|(other, _)| *other == place) {
            Some((_, last)) => *last = last.max(time.get()),
            None => done.push((place, time.get())),
        }
    }
    let issued: f64 = ops.iter().map(launches).sum::<f64>() * launch;
    let mut behind = (step.forward.get() - issued).max(0.0);
    let (mut from, mut before) = (ops.len(), 0.0);
    let mut intervals = Vec::new();
    for (place, at) in done {
        if place < from {
            let (time, host) = (at - before, launch * ops[place..from].iter().map(launches).sum::<f64>());
            let clean = behind > 2.0 * host || time > 3.0 * host;
            intervals.push(Interval { ops: place..from, phase: Phase::Backward, time, clean });
            behind = (behind + time - host).max(0.0);
            from = place;
        }
        before = at;
    }
    intervals
}
