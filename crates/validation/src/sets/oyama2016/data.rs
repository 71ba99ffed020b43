//! The figures of `validation/oyama2016/`, embedded.

use super::table10::PrintedCondition;
use crate::ValidationError;
use crate::embedded::{json, rows};
use serde::Deserialize;
use std::collections::BTreeMap;
use stepcast_analytic::oyama2016::Threads;
use stepcast_core::quantity::Seconds;
use stepcast_validation_data::oyama2016::{EQ_8, MODEL, TABLE_10};

/// `[oyama2016]` of `validation/bounds.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) deviation: Deviations,
    pub(super) order: OrderBound,
    pub(super) simulated: SimulatedBound,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviations {
    pub(super) configurations: f64,
    pub(super) barrier: f64,
    pub(super) products: f64,
    pub(super) interpolation: f64,
    pub(super) table10: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderBound {
    /// Pairs of rows of Table 10 whose measured and predicted epochs have the same order.
    pub(super) pairs: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SimulatedBound {
    /// Largest deviation of the closed form's T_GPU from the simulated one, in percent.
    pub(super) gpu: f64,
}

/// `model.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Golden {
    pub(super) coefficients: Coefficients,
    #[serde(rename = "N_File")]
    pub(super) samples: u64,
    #[serde(rename = "cases")]
    pub(super) configurations: Vec<Configuration>,
    pub(super) search: Search,
    pub(super) sgemm_trilinear: Vec<Interpolation>,
    pub(super) structure_example: StructureExample,
}

/// Coefficients of a synthetic machine: times per sample, per parameter, or fixed (`_b`).
#[derive(Debug, Deserialize)]
pub(super) struct Coefficients {
    grad_a: f64,
    grad_b: f64,
    load_a: f64,
    load_b: f64,
    deform_a: f64,
    deform_b: f64,
    fetch: f64,
    upval: f64,
    updgrad: f64,
    sumgrad: f64,
    oldw: f64,
    addm: f64,
    updm: f64,
    ar_a: f64,
    ar_b: f64,
    updw: f64,
}

impl Coefficients {
    /// The threads of the machine for a network of so many parameters.
    pub(super) fn threads(&self, nodes: u32, gpus: u32, batch: u32, parameters: f64) -> Threads {
        let samples = f64::from(batch);
        let slice = parameters / f64::from(nodes);
        Threads {
            nodes,
            gpus,
            batch,
            fetch_weights: Seconds::new(self.fetch * parameters),
            load_images: Seconds::new(self.load_a * samples + self.load_b),
            deform_images: Seconds::new(self.deform_a * samples + self.deform_b),
            compute: Seconds::new(self.grad_a * samples + self.grad_b),
            scale_gradient: Seconds::new(self.upval * parameters),
            update_gradient: Seconds::new(self.updgrad * parameters),
            sum_buffer: Seconds::new(self.sumgrad * parameters),
            keep_old_weights: Seconds::new(self.oldw * slice),
            add_momentum: Seconds::new(self.addm * slice),
            all_reduce: Seconds::new((self.ar_a * f64::from(nodes).log2() + self.ar_b) * parameters),
            update_momentum: Seconds::new(self.updm * slice),
            update_weights: Seconds::new(self.updw * parameters),
        }
    }
}

/// One configuration of the machine and its steady state.
#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    #[serde(rename = "N_Node")]
    pub(super) nodes: u32,
    #[serde(rename = "N_GPU")]
    pub(super) gpus: u32,
    #[serde(rename = "N_Subbatch")]
    pub(super) batch: u32,
    #[serde(rename = "N_Param")]
    pub(super) parameters: f64,
    #[serde(rename = "n_roots")]
    pub(super) states: u32,
    #[serde(rename = "T_GPU")]
    pub(super) gpu: f64,
    #[serde(rename = "T_Update")]
    pub(super) update: f64,
    #[serde(rename = "T_Barrier")]
    pub(super) barrier: f64,
    #[serde(rename = "N_Minibatch_avg")]
    pub(super) minibatch: f64,
    #[serde(rename = "T_Epoch")]
    pub(super) epoch: f64,
    pub(super) gpu_thread: BTreeMap<String, f64>,
    pub(super) update_thread: BTreeMap<String, f64>,
}

/// Configurations whose minibatch is near a target, ordered by the time of an epoch.
#[derive(Debug, Deserialize)]
pub(super) struct Search {
    pub(super) target: f64,
    #[serde(rename = "tol")]
    pub(super) tolerance: f64,
    /// Nodes and batch.
    pub(super) ranked: Vec<(u32, u32)>,
}

/// The time of a matrix product between measured ones.
#[derive(Debug, Deserialize)]
pub(super) struct Interpolation {
    pub(super) lo: [f64; 3],
    pub(super) hi: [f64; 3],
    #[serde(rename = "T_corner_order_mnk_lo_hi")]
    pub(super) corners: [f64; 8],
    pub(super) query: [f64; 3],
    pub(super) predicted: f64,
}

/// A network with its shapes and matrix products.
#[derive(Debug, Deserialize)]
pub(super) struct StructureExample {
    #[serde(rename = "x0")]
    pub(super) input_side: u64,
    #[serde(rename = "c")]
    pub(super) filter: u64,
    #[serde(rename = "p")]
    pub(super) pooling: Vec<u64>,
    /// Maps of the input and of every layer.
    #[serde(rename = "m")]
    pub(super) maps: Vec<u64>,
    #[serde(rename = "N_Subbatch")]
    pub(super) batch: u32,
    /// Sides of the input and of every layer.
    #[serde(rename = "x")]
    pub(super) sides: Vec<f64>,
    #[serde(rename = "x_prime")]
    pub(super) unpooled: Vec<f64>,
    #[serde(rename = "N_Param")]
    pub(super) parameters: f64,
    #[serde(rename = "sgemm_m_n_k")]
    pub(super) products: BTreeMap<String, [f64; 3]>,
}

/// A value of eq. 8.
#[derive(Debug, Deserialize)]
pub(super) struct Barrier {
    #[serde(rename = "N_GPU")]
    pub(super) gpus: u32,
    pub(super) p: f64,
    #[serde(rename = "N_Node")]
    pub(super) nodes: u32,
    pub(super) closed_form: f64,
}

pub(super) fn golden() -> Result<Golden, ValidationError> {
    json(MODEL)
}

pub(super) fn barriers() -> Result<Vec<Barrier>, ValidationError> {
    rows(EQ_8)
}

pub(super) fn table10() -> Result<Vec<PrintedCondition>, ValidationError> {
    rows(TABLE_10)
}
