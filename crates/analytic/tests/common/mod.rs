//! Passes and curves for tests of all-reduce training, also used by the engine's tests.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use stepcast_core::fitted::transfer::{Curve, LogLinear, Measured};
use stepcast_core::pass::{Layer, Pass};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// Layers with the time of their backward pass and the size of their gradients.
pub(crate) fn pass(layers: &[(f64, f64)]) -> Pass {
    let layer = |&(backward, gradients): &(f64, f64)| Layer {
        backward: Seconds::new(backward),
        gradients: Bytes::new(gradients),
    };
    Pass::new(layers.iter().map(layer).collect())
}

/// A curve with a start-up time and a bandwidth.
pub(crate) fn line(startup: f64, bandwidth: f64) -> Curve {
    Curve::AlphaBeta { startup: Seconds::new(startup), bandwidth: BytesPerSec::new(bandwidth) }
}

pub(crate) fn curves() -> impl Strategy<Value = Curve> {
    prop_oneof![
        (0.0..3.0, 0.5..4.0).prop_map(|(startup, bandwidth)| line(startup, bandwidth)),
        (1.0..50.0, 0.0..1.0, 0.5..4.0, 0.0..2.0).prop_map(
            |(threshold, per_doubling, bandwidth, overhead)| {
                Curve::Piecewise(LogLinear::continuous(
                    Bytes::new(threshold),
                    Seconds::new(per_doubling),
                    BytesPerSec::new(bandwidth),
                    Seconds::new(overhead),
                ))
            }
        ),
        prop::collection::vec(0.1..9.0, 2..6).prop_map(|times| {
            let points: Vec<(Bytes, Seconds)> = times
                .iter()
                .enumerate()
                .map(|(index, time)| (Bytes::new(5.0 * (index + 1) as f64), Seconds::new(*time)))
                .collect();
            Curve::Measured(Measured::new(&points).unwrap())
        }),
    ]
}

/// Strategy for passes of up to `most` layers, some without gradients.
pub(crate) fn passes(most: usize) -> impl Strategy<Value = Pass> {
    prop::collection::vec((0.0..4.0, prop_oneof![Just(0.0), 0.1..20.0]), 1..=most)
        .prop_map(|layers| pass(&layers))
}
