//! A measured run with its prediction, from which the model error is estimated.

use super::regime::Regime;
use stepcast_core::quantity::{BitsPerSec, SamplesPerSec};

/// One measured run and its out-of-sample prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The validation set.
    pub set: &'static str,
    /// The group of similar runs within the set: a network, or a configuration.
    pub group: String,
    /// The method that predicted it.
    pub method: String,
    /// The regime of the training.
    pub regime: Regime,
    /// Number of workers.
    pub workers: u32,
    /// Rate of a worker's link, if known.
    pub bandwidth: Option<BitsPerSec>,
    /// Number of parameters, if known.
    pub parameters: Option<u64>,
    /// The predicted throughput.
    pub predicted: SamplesPerSec,
    /// The measured throughput.
    pub measured: SamplesPerSec,
    /// Spread of simulated runs: standard deviation of the logarithm; zero for closed forms.
    pub run_spread: f64,
}

impl Case {
    /// ln(measured / predicted) of the throughput: positive where the prediction was too slow.
    pub fn residual(&self) -> f64 {
        (self.measured.get() / self.predicted.get()).ln()
    }
}
