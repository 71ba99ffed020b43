//! `[methods.zeng2023]`: inputs of the paper's model that other methods do not use.

use crate::fault::Fault;
use crate::files::Files;
use crate::keys::{Check, keys};
use crate::model::Activation;
use crate::quantity::Bytes;

/// Operations to update a weight (eq. 18).
const UPDATE: f64 = 2.0;

keys! {
    /// Inputs of Zeng 2023 beside the scenario.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Zeng2023;
    /// `[methods.zeng2023]`: inputs of the paper beside the scenario.
    section Zeng2023Section;
    before {
        /// Non-linearity whose cost stands in the backward count.
        activation: Activation, "string", "`\"sigmoid\"`";
    }
    keys {
        /// Backward operations per weight and step; overrides `activation`. Eqs. 23 and 26 as printed give 89; the tables use
        /// 85.
        flops_per_weight: f64 => f64, default(flops_per_weight(Activation::Sigmoid)), Check::NotNegative("a number such as 85"), Resolved;
        /// Operations of a CPU in one cycle (eq. 28).
        simd: f64 => f64, default(2.0), Check::Positive("a number such as 2"), Resolved;
        /// Operations of one GPU stream processor in one cycle (eq. 33); 2 with fused multiply-add.
        fc: f64 => f64, default(1.0), Check::Positive("1, or 2 with fused multiply-add"), Resolved;
        /// Whether workers copy each batch from the host to the GPU before they compute.
        host_copy: bool => bool, default(false), Check::Any, Resolved;
        /// Bytes that a worker pulls, P (eq. 31).
        parameters: Bytes => Bytes, optional("what the model's parameters take"), Check::Positive("a size such as \"102 MB\""), Resolved;
        /// Bytes that a worker pushes, G (eq. 30).
        gradients: Bytes => Bytes, optional("as much as it pulls"), Check::Positive("a size such as \"102 MB\""), Resolved;
        /// Segments in which a GPU pushes its gradients (Algorithm 2, line 3).
        pushes: u32 => u32, optional("the model's tensors"), Check::Between(1, 1_000_000, "a number such as 19"), Resolved;
    }
}

/// Backward operations per weight for an activation: two to update the weight (eq. 18) plus those of the activation,
/// 83 for the sigmoid, which gives the 85 of Table 1.
fn flops_per_weight(activation: Activation) -> f64 {
    UPDATE + activation.operations() as f64
}

impl Default for Zeng2023 {
    fn default() -> Self {
        Self {
            flops_per_weight: flops_per_weight(Activation::Sigmoid),
            simd: 2.0,
            fc: 1.0,
            host_copy: false,
            parameters: None,
            gradients: None,
            pushes: None,
        }
    }
}

pub(super) fn resolve(mut section: Zeng2023Section, files: &dyn Files) -> Result<Zeng2023, Fault> {
    let by_activation = section.activation.map(flops_per_weight);
    section.flops_per_weight = section.flops_per_weight.or(by_activation);
    section.fill(None, files)
}
