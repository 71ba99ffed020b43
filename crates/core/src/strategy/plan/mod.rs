//! Plans: how a transformer is split over ranks.
//!
//! [`Plan`] holds the keys of `[strategy.plan]`, one for each row of the table of dimensions. [`Plan::divide`] checks
//! them against a transformer and a number of ranks, and derives the values that they leave open. [`PlanChoice`] has the dimensions
//! that a search varies.

mod batches;
mod check;
mod choices;
mod coded;
mod dimensions;
mod recompute;
mod schedule;

pub use batches::usual_global_batch;
pub use check::{Division, has_layers};
pub use choices::{
    Attention, Conditions, ContextExchange, Dispatcher, Framework, Implementation, Loss, Mask, Offload,
    Offloaded, OverlapPreset, Overlaps, Recipe, Sharding, Shares, States,
};
pub use coded::Coded;
pub(crate) use dimensions::plan_dimensions;
pub use dimensions::{Dimension, ListedValue, Setting, SettingForm};
pub use recompute::{Recomputation, Recompute, Recomputed};
pub use schedule::{ScheduleKind, Sends};

use crate::fault::Fault;
use crate::fitted::collectives::MeasuredCollectives;
use crate::keys::{Check, Figure, keys, plain, section_of};
use crate::model::transformer::Transformer;
use crate::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use Framework::{Deepspeed, Fsdp, Megatron, Torchtitan};
use coded::Decoded;
use dimensions::{item, names, number, real, refused, switch};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Largest number of ranks of one kind.
const MOST: u64 = 1_000_000;

/// Share of all tensors that the allocator loses between them: the median of measured steps (docs/validation.md); an input,
/// because no measurement is general.
const FRAGMENTATION: f64 = 0.1;

/// Context of the device, buffers of the communication library and workspaces, assumed.
const RESERVED: Bytes = Bytes::new(2.0 * (1_u64 << 30) as f64);

/// Rate of the states that the host of a machine updates; assumed. An update in 32 bits moves about 30 bytes for each
/// parameter.
const HOST_MEMORY: BytesPerSec = BytesPerSec::new(100e9);

plain!(Vec<u64>, "list of integers");

macro_rules! first {
    ($first:expr $(; $rest:expr)*) => {
        $first
    };
}

/// Declares plans, choices of a search and the table of dimensions.
macro_rules! declare_plan {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $given:ty => $type:ty, $presence:ident $(($default:expr))?, $check:expr
        $(, model { $model:ident })?
        $(, replicas { $replicas:ident })?
        $(, each {
            $chosen:ty, $entry:ty, $each_doc:literal, $open:literal
            $(, words($neutral:literal, $words:literal))? $(, of($of:ident))? $(, also { $($also:tt)* })?
        })?
        $(, listed { $listed:ty, $listed_doc:literal, words($absent:literal, $listed_words:literal) })?
        $(, launch { $($setting:expr),* })?;
    )*) => {
        keys! {
            /// How a transformer is split over ranks.
            #[derive(Debug, Clone, PartialEq)]
            struct Plan;
            /// `[strategy.plan]`: how a transformer is split.
            section PlanSection;
            before {}
            keys { $($(#[doc = $doc])* $field: $given => $type, $presence $(($default))?, $check, Resolved;)* }
            after {}
            made {}
        }

        /// The dimensions of a plan that a search varies; the layers are divided by [`stage_share`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub struct PlanChoice {
            $($(#[doc = $each_doc] pub $field: $chosen,)?)*
            /// Replicas.
            pub data: u64,
            /// Micro-batches of a replica.
            pub micro_batches: u64,
        }

        impl Plan {
            /// What a search would vary of it; stages by themselves are left out.
            pub fn choice(&self, division: &Division) -> PlanChoice {
                PlanChoice {
                    $($($field: { let _ = $each_doc; first!($(self.$of();)? self.$field) },)?)*
                    data: division.data,
                    micro_batches: division.micro_batches,
                }
            }
        }

        impl PlanChoice {
            /// The plan, with everything else as in `base`.
            pub fn plan(&self, base: &Plan) -> Plan {
                Plan {
                    $($($field: { let chosen: $chosen = self.$field; chosen.into() },)?)*
                    stage_layers: None,
                    data: None,
                    global_batch: Some(self.global_batch()),
                    recompute_layers: self.recompute.layers,
                    stage_recompute: None,
                    ..base.clone()
                }
            }

            /// Codes of the values that reports compare, in the order of the dimensions.
            pub fn codes(&self) -> [u64; COMPARED_EACH] {
                [$($($({ let _ = $words; self.$field.code() },)?)?)*]
            }

            /// The values that reports compare, as text.
            pub fn written(&self) -> [String; COMPARED_EACH] {
                [$($($({ let _ = $words; self.$field.written() },)?)?)*]
            }
        }

        /// The names of all dimensions, for those that something is special about.
        #[derive(Debug, Clone, Copy)]
        pub struct DimensionNames {
            $($(#[doc = $doc])* pub $field: &'static str,)*
        }

        impl DimensionNames {
            pub const ALL: Self = Self { $($field: stringify!($field),)* };
        }

        /// All dimensions of a plan.
        pub const DIMENSIONS: &[Dimension] = &[$(Dimension {
            field: stringify!($field),
            each: first!($({ let _ = $each_doc; true };)? false),
            listed: first!($({
                let _ = $listed_doc;
                Some(ListedValue {
                    code: |plan| plan.$field.code(),
                    set: |plan, code| plan.$field = Decoded::from_code(code),
                    written: |plan| plan.$field.written(),
                    check: |plan| ($check).apply(stringify!($field), &Figure::value(&plan.$field)),
                })
            };)? None),
            words: first!($($(Some([$neutral, $words]);)?)? $(Some([$absent, $listed_words]);)? None),
            neutral: first!($(<$chosen as Coded>::NEUTRAL;)? 0),
            settings: &[$($($setting),*)?],
        },)*];

        /// Checks of dimensions against the model.
        const MODEL_CHECKS: &[fn(&Plan, &Transformer) -> Result<(), Fault>] = &[$($(Plan::$model,)?)*];

        /// Checks of dimensions against the model and the number of replicas.
        const REPLICA_CHECKS: &[fn(&Plan, &Transformer, u64) -> Result<(), Fault>] = &[$($(Plan::$replicas,)?)*];
    };
}

plan_dimensions!(declare_plan);

section_of!(Plan, PlanSection);

/// How many dimensions a search tries in full, of those that reports compare.
pub const COMPARED_EACH: usize = compared(true);

/// How many dimensions a search tries as `[plan]` lists them.
pub const COMPARED_LISTED: usize = compared(false);

const fn compared(each: bool) -> usize {
    let (mut count, mut place) = (0, 0);
    while place < DIMENSIONS.len() {
        let Dimension { each: tried, listed, words, .. } = &DIMENSIONS[place];
        count += if each { *tried && words.is_some() } else { listed.is_some() } as usize;
        place += 1;
    }
    count
}

impl PlanChoice {
    /// Sequences of a step.
    pub const fn global_batch(&self) -> u64 {
        self.data * self.micro_batch * self.micro_batches
    }

    /// The values that a plan would leave open.
    pub const fn division(&self) -> Division {
        Division { data: self.data, micro_batches: self.micro_batches, global_batch: self.global_batch() }
    }

    #[must_use]
    pub const fn without_sharding(&self) -> Self {
        Self { sharding: Sharding::None, sharding_group: None, ..*self }
    }
}

/// Layers of the virtual stage at `place` of `places`: equal shares where these divide. Otherwise the embedding and the output
/// layer count as a layer each, and the remainder goes to the first stages (Megatron-LM's
/// `account_for_embedding_in_pipeline_split` and `account_for_loss_in_pipeline_split`; `pipeline_module_split` of torchtitan).
pub const fn stage_share(layers: u64, places: u64, place: u64) -> u64 {
    if layers.is_multiple_of(places) {
        return layers / places;
    }
    let weighed = layers + 2;
    let share = weighed / places + (place < weighed % places) as u64;
    share.saturating_sub((place == 0) as u64 + (place + 1 == places) as u64)
}

/// Layers of all virtual stages before `place`, where `places` are two more than the layers at most.
pub const fn layers_before(layers: u64, places: u64, place: u64) -> u64 {
    if layers.is_multiple_of(places) {
        return layers / places * place;
    }
    let weighed = layers + 2;
    let over = if place < weighed % places { place } else { weighed % places };
    (weighed / places * place + over).saturating_sub((place > 0) as u64)
}

impl Plan {
    /// The order of operations of a stage.
    pub fn schedule_kind(&self) -> ScheduleKind {
        self.schedule.unwrap_or(match self.virtual_stages {
            1 => ScheduleKind::OneFOneB,
            _ => ScheduleKind::Interleaved,
        })
    }

    /// The recomputed parts, and in how many layers.
    pub fn recomputation(&self) -> Recomputation {
        Recomputation { what: self.recompute.iter().copied().collect(), layers: self.recompute_layers }
    }

    /// The plan with `what` recomputed in every layer.
    #[must_use]
    pub fn recomputing(&self, what: Recompute) -> Self {
        Self {
            recompute: Recomputation::from(what).into(),
            recompute_layers: None,
            stage_recompute: None,
            ..self.clone()
        }
    }

    pub fn stage_sends(&self) -> Sends {
        self.sends.unwrap_or(match self.overlaps().sends {
            true => Sends::Asynchronous,
            false => Sends::Blocking,
        })
    }

    /// Whether concurrent kinds of traffic share links.
    pub fn shares_links(&self) -> bool {
        self.shared_links || self.interference > 0.0
    }

    /// Software whose kernels compute a layer.
    pub fn implemented_by(&self) -> Implementation {
        self.implementation.unwrap_or(match self.overlap.is_fsdp() {
            true => Implementation::Pytorch,
            false => Implementation::Megatron,
        })
    }

    /// How tokens reach their experts.
    pub fn dispatcher_kind(&self) -> Dispatcher {
        self.dispatcher.unwrap_or(match self.implemented_by() {
            Implementation::Pytorch | Implementation::HuggingFace | Implementation::Liger => {
                Dispatcher::AllToAll
            }
            Implementation::Textbook | Implementation::Megatron | Implementation::Xla => Dispatcher::Flex,
        })
    }

    pub fn attention_kind(&self) -> Attention {
        self.attention.unwrap_or(match self.implemented_by() {
            _ if self.overlap == OverlapPreset::Megatron2021 => Attention::Unfused,
            Implementation::Pytorch => Attention::Flash,
            Implementation::Textbook
            | Implementation::Megatron
            | Implementation::Xla
            | Implementation::HuggingFace
            | Implementation::Liger => Attention::Cudnn,
        })
    }

    /// Bytes of a number of a product's input as it is kept: Transformer Engine keeps what the product reads.
    pub fn kept_input(&self) -> f64 {
        match (self.implemented_by(), self.recipe.bits()) {
            (Implementation::Megatron, Some(bits)) => f64::from(bits) / 8.0,
            _ => 2.0,
        }
    }

    /// Bytes of a logit: kept until the backward pass, and further temporary bytes.
    pub fn logit(&self, shape: &Transformer) -> [f64; 2] {
        let [kept, meanwhile] = self.loss.unwrap_or(Loss::Eager).logit(self.implemented_by(), shape);
        match self.logit_bytes {
            // Autocast computes the loss of encoders in 32 bits.
            None if (kept - 2.0).abs() < 1e-9 && self.loss.is_none() && self.states == States::Fp32 => {
                [4.0, 6.0]
            }
            Some(most) => [kept.min(most as f64), (most as f64 - kept).max(0.0)],
            None => [kept, meanwhile],
        }
    }

    /// Which traffic overlaps computing: the preset's, unless single switches override it.
    pub fn overlaps(&self) -> Overlaps {
        self.overlaps_with(self.virtual_stages)
    }

    pub fn overlaps_with(&self, virtual_stages: u64) -> Overlaps {
        let preset = self.overlap.overlaps(virtual_stages > 1);
        Overlaps {
            tensor_backward: self.overlap_tensor.unwrap_or(preset.tensor_backward),
            gradients: self.overlap_gradients.unwrap_or(preset.gradients),
            weights: self.overlap_weights.unwrap_or(preset.weights),
            prefetch: self.overlap_prefetch.unwrap_or(preset.prefetch),
            sends: self.overlap_sends.unwrap_or(preset.sends),
            context: self.overlap_context.unwrap_or(preset.context),
        }
    }

    pub fn given_layers(&self) -> &[u64] {
        self.stage_layers.as_deref().unwrap_or_default()
    }

    /// Layers of every virtual stage to which `recompute` applies, that are given.
    pub fn given_recompute(&self) -> &[u64] {
        self.stage_recompute.as_deref().unwrap_or_default()
    }

    /// States kept in the host's memory.
    pub fn offloaded(&self) -> Offloaded {
        Offloaded {
            optimiser: self.offload.contains(&Offload::Optimiser),
            activations: self.offload.contains(&Offload::Activations),
            outer: self.offload.contains(&Offload::Outer),
        }
    }

    /// Workers of one of the replicas that exchange outer gradients.
    pub const fn inner_workers(&self, workers: u64) -> u64 {
        workers / self.outer_replicas
    }

    /// Sites of the replicas that exchange outer gradients.
    pub fn sites(&self) -> u64 {
        let joined = if self.outer_link.is_some() { self.outer_replicas } else { 1 };
        self.outer_sites.unwrap_or(joined)
    }

    /// Bytes of an outer gradient as it is sent.
    pub fn outer_width(&self) -> f64 {
        self.outer_bits as f64 / 8.0
    }

    /// The range of layers of every virtual stage, for a model with this number of layers.
    pub fn stage_ranges(&self, layers: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let places = self.pipeline * self.virtual_stages;
        let given = self.given_layers();
        let mut from = 0;
        (0..places).map(move |place| {
            let given = usize::try_from(place).ok().and_then(|place| given.get(place));
            let to = from + given.copied().unwrap_or_else(|| stage_share(layers, places, place));
            std::mem::replace(&mut from, to)..to
        })
    }

    /// The ranges of layers that `recompute` applies to, for a model with this number of layers.
    pub fn recomputed_ranges(&self, layers: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let recompute = self.recomputation();
        (0..).zip(self.stage_ranges(layers)).map(move |(place, own)| {
            own.start..own.start + recompute.among_at(place, own.end - own.start, self.given_recompute())
        })
    }
}
