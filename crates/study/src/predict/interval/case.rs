//! A measured run with its prediction: what model error is learned from.

use super::regime::Regime;
use stepcast_core::quantity::{BitsPerSec, SamplesPerSec};

/// One measured run and what a method said of it without having seen it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The validation set.
    pub set: &'static str,
    /// What shares its particulars within the set: a network, or a configuration.
    pub group: String,
    /// The method that predicted it.
    pub method: String,
    /// What kind of training.
    pub regime: Regime,
    /// Number of workers.
    pub workers: u32,
    /// Rate of a worker's link, where it is known.
    pub bandwidth: Option<BitsPerSec>,
    /// Number of parameters, where it is known.
    pub parameters: Option<u64>,
    /// What was predicted.
    pub predicted: SamplesPerSec,
    /// What was measured.
    pub measured: SamplesPerSec,
    /// How simulated runs differ: standard deviation of the logarithm; zero for closed forms.
    pub run_spread: f64,
}

impl Case {
    /// ln(measured / predicted) of the throughput: positive where the prediction was too slow.
    pub fn residual(&self) -> f64 {
        (self.measured.get() / self.predicted.get()).ln()
    }
}
