//! Which plans a framework runs, and how: its kernels, states and overlap.

use super::settings::cannot;
use super::{accelerate, deepspeed, megatron, recipes, torchtitan};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{
    ContextExchange, Framework, Implementation, Loss, OverlapPreset, Plan, PlanChoice, Recipe, States,
};

/// A plan that a framework is asked to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proposal<'a> {
    /// The transformer.
    pub(crate) shape: &'a Transformer,
    /// All that a search does not vary.
    pub(crate) base: &'a Plan,
    /// What it varies.
    pub(crate) choice: &'a PlanChoice,
    /// Workers of a machine.
    pub(crate) node: u64,
}

/// What a framework does not run, and the change of a scenario that excludes it.
pub(super) type Refusal = (&'static str, &'static str);

impl Proposal<'_> {
    /// What of the plan a framework does not run; nothing if it runs all.
    pub(super) fn refusal(&self, framework: Framework) -> Option<Refusal> {
        let decoders = [
            (self.shape.tuning.adapters.is_some(), ("adapters", "plan.frameworks=[\"fsdp\"]")),
            (self.shape.target > 0, ("an encoder with its decoder here", "plan.frameworks=[\"fsdp\"]")),
            (self.shape.signal.is_some(), ("patches or frames here", "plan.frameworks=[\"fsdp\"]")),
        ];
        match framework {
            Framework::Megatron | Framework::Torchtitan if decoders.iter().any(|(found, _)| *found) => {
                first(decoders)
            }
            Framework::Megatron => megatron::refusal(self),
            Framework::Torchtitan => torchtitan::refusal(self),
            Framework::Deepspeed => deepspeed::refusal(self),
            Framework::Fsdp => accelerate::refusal(self),
            _ if self.shape.signal.is_some() => first(decoders),
            _ => recipes::refusal(framework, self),
        }
    }

    /// The refusal as an error.
    pub(crate) fn refused(&self, framework: Framework) -> Option<Fault> {
        self.refusal(framework).map(|(what, change)| cannot(framework, what, change))
    }

    /// Whether a framework runs it.
    pub(crate) fn runs_on(&self, framework: Framework) -> bool {
        self.refusal(framework).is_none()
    }
}

/// The first of some refusals that applies.
pub(super) fn first<const N: usize>(cases: [(bool, Refusal); N]) -> Option<Refusal> {
    cases.into_iter().find_map(|(found, refusal)| found.then_some(refusal))
}

/// The number format in which a framework runs a model: Accelerate's mixed precision is autocast, as in recipes that it runs, and
/// no other has autocast.
pub(crate) fn adopted_precision(framework: Framework, precision: Precision) -> Precision {
    let autocast = match framework {
        Framework::Megatron | Framework::Torchtitan | Framework::Deepspeed | Framework::Torchtune => false,
        Framework::Fsdp | Framework::Axolotl | Framework::LlamaFactory | Framework::Trl => true,
    };
    match precision.of_products() {
        Precision::Bf16 if autocast => Precision::AmpBf16,
        Precision::Fp16 if autocast => Precision::AmpFp16,
        own => own,
    }
}

/// A plan in the way of a framework that computes in this format: what it has no options for is as it does it.
pub(crate) fn adopted(framework: Framework, plan: &Plan, precision: Precision) -> Plan {
    let own = Plan {
        sends: None,
        implementation: None,
        logit_bytes: None,
        overlap_tensor: None,
        overlap_products: plan.overlap_products && framework == Framework::Megatron,
        overlap_gradients: None,
        overlap_weights: None,
        overlap_prefetch: None,
        overlap_sends: None,
        overlap_context: None,
        stage_layers: None,
        stage_recompute: None,
        shares: None,
        reduce_bits: None,
        ..plan.clone()
    };
    let states = |known: &[States]| if known.contains(&plan.states) { plan.states } else { known[0] };
    match framework {
        Framework::Megatron => Plan {
            overlap: OverlapPreset::Megatron,
            states: states(&[States::MegatronBf16, States::MegatronFp16, States::MixedFp16, States::Fp32]),
            offload: Vec::new(),
            loss: plan.loss.filter(|loss| *loss == Loss::Compiled),
            ..own
        },
        Framework::Torchtitan => Plan {
            overlap: OverlapPreset::Torchtitan,
            states: states(&[States::Fp32, States::Bf16]),
            context_exchange: ContextExchange::AllGather,
            attention: None,
            offload: Vec::new(),
            bucket: None,
            dropout: false,
            loss: plan.loss.or(Some(Loss::Chunked)),
            ..own
        },
        Framework::Deepspeed => Plan {
            overlap: OverlapPreset::Deepspeed,
            implementation: Some(Implementation::HuggingFace),
            states: states(&[States::MixedFp16, States::Fp32]),
            context_exchange: ContextExchange::AllToAll,
            attention: None,
            recipe: Recipe::None,
            dropout: false,
            loss: None,
            ..own
        },
        Framework::Fsdp => Plan {
            overlap: OverlapPreset::Fsdp2,
            implementation: Some(Implementation::HuggingFace),
            states: States::Fp32,
            reduce_bits: accelerate::reduce_bits(precision),
            context_exchange: ContextExchange::Ring,
            attention: None,
            offload: Vec::new(),
            bucket: None,
            recipe: Recipe::None,
            dropout: false,
            loss: None,
            ..own
        },
        _ => recipes::adopted(framework, &Plan { implementation: plan.implementation, ..own }, precision),
    }
}
