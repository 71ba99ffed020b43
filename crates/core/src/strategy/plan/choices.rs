//! The named choices of a plan, and their consequences.

use super::coded::{Coded, Decoded};
use crate::keys::plain;
use crate::model::transformer::Transformer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Declares an enumeration whose variants have names in files.
macro_rules! choice {
    ($(#[$doc:meta])* $type:ident, $written:literal { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $type { $($(#[$vdoc])* #[serde(rename = $name)] $variant,)* }

        $crate::variant_names!($type { $($variant = $name,)* });
        plain!($type, $written);
        plain!(Vec<$type>, "list of strings");

        impl Coded for $type {
            fn code(&self) -> u64 {
                *self as u64
            }

            fn written(&self) -> String {
                self.to_string()
            }
        }

        impl Coded for Option<$type> {
            fn code(&self) -> u64 {
                self.map_or(0, |own| 1 + own.code())
            }

            fn written(&self) -> String {
                self.map(|own| own.to_string()).unwrap_or_default()
            }
        }

        impl Decoded for Option<$type> {
            fn from_code(code: u64) -> Self {
                $type::ALL.iter().copied().find(|own| 1 + own.code() == code)
            }
        }
    };
}

pub(super) use choice;

choice! {
    /// States that data-parallel ranks divide.
    Sharding, "string" {
        /// Nothing: gradients are all-reduced.
        None = "none",
        /// Optimiser states (ZeRO 1, Megatron's distributed optimiser).
        Zero1 = "zero-1",
        /// Optimiser states and gradients.
        Zero2 = "zero-2",
        /// Optimiser states, gradients and weights; weights are gathered for every pass (FSDP, full shard).
        Zero3 = "zero-3",
        /// As `zero-3`, but gathered weights are kept, and gradients are reduced once, until the end of a step.
        Keep = "fsdp-keep",
        /// As `zero-3` within groups, and gradients are all-reduced between them.
        Hsdp = "hsdp",
    }
}

impl Sharding {
    /// Stage of ZeRO: what is divided. The kept weights of `fsdp-keep` are divided between steps.
    pub const fn stage(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zero1 => 1,
            Self::Zero2 => 2,
            Self::Zero3 | Self::Keep | Self::Hsdp => 3,
        }
    }
}

choice! {
    /// States kept in the host's memory.
    Offload, "string" {
        /// Optimiser states; the host updates the weights (Ren 2021).
        Optimiser = "optimiser",
        /// Activations of layers.
        Activations = "activations",
        /// Weights and momentum of the outer optimiser; the host updates them.
        Outer = "outer",
    }
}

/// States kept in the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloaded {
    /// Optimiser states, and gradients as soon as they are reduced.
    pub optimiser: bool,
    /// Activations of layers.
    pub activations: bool,
    /// States of the outer optimiser.
    pub outer: bool,
}

choice! {
    /// How attention is computed.
    Attention, "string" {
        /// In one kernel that keeps no scores and computes them again: FlashAttention 2 (Dao 2023).
        Flash = "flash",
        /// Flash attention by cuDNN, whose kernels are written for Hopper and Blackwell (Transformer Engine's choice).
        Cudnn = "cudnn",
        /// Flash attention by Triton, as of 2023 (llm-foundry): without instructions of Hopper and Blackwell.
        Triton = "triton",
        /// In several kernels that write the scores to memory.
        Unfused = "unfused",
    }
}

impl Attention {
    pub const fn keeps_scores(self) -> bool {
        matches!(self, Self::Unfused)
    }
}

choice! {
    /// Number format of the layers' products, and the block of numbers that shares a scale.
    Recipe, "string" {
        /// The format of `precision`.
        None = "none",
        /// 8 bits, one scale a tensor from the largest values of earlier steps (Transformer Engine: delayed).
        Fp8Delayed = "fp8-delayed",
        /// 8 bits, one scale a tensor from its largest value now (current scaling; torchao: tensorwise).
        Fp8 = "fp8",
        /// 8 bits, one scale a row (torchao: rowwise).
        Fp8Row = "fp8-row",
        /// 8 bits, one scale for 128 numbers of an input and for 128 × 128 weights (DeepSeek-V3).
        Fp8Block = "fp8-block",
        /// 8 bits, one scale for 32 numbers, in hardware (Blackwell, CDNA 4).
        Mxfp8 = "mxfp8",
        /// Integers of 8 bits, one scale a row or column (AQT of MaxText on TPUs); at the device's 8-bit rate.
        Int8 = "int8",
        /// 4 bits, one scale for 16 numbers and one a tensor, in hardware (Blackwell).
        Nvfp4 = "nvfp4",
        /// 4 bits, one scale for 32 numbers, in hardware.
        Mxfp4 = "mxfp4",
    }
}

impl Recipe {
    /// Bits of a number; none if the format is the precision's.
    pub const fn bits(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Fp8Delayed | Self::Fp8 | Self::Fp8Row | Self::Fp8Block | Self::Mxfp8 | Self::Int8 => {
                Some(8)
            }
            Self::Nvfp4 | Self::Mxfp4 => Some(4),
        }
    }

    /// The recipe of 8 or 4 bits with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|own| own.bits().is_some() && own.name() == name)
    }

    /// Whether tensor units apply the scales of small blocks themselves.
    pub const fn scales_in_hardware(self) -> bool {
        matches!(self, Self::Mxfp8 | Self::Nvfp4 | Self::Mxfp4)
    }
}

choice! {
    /// How tokens reach their experts, in the words of Megatron-LM.
    Dispatcher, "string" {
        /// All tokens go to all ranks, which keep those of their experts.
        AllGather = "allgather",
        /// A copy of a token for each of its experts.
        AllToAll = "alltoall",
        /// A copy of a token for each machine with one of its experts, which passes it on inside (DeepEP, HybridEP).
        Flex = "flex",
    }
}

choice! {
    /// Shares of a batch for replicas on two kinds of workers.
    Shares, "string" {
        /// All replicas have the same number of micro-batches; the stages of a pipeline may differ by kind.
        Equal = "equal",
        /// Numbers of micro-batches with which all replicas end together; each has all of its stages on one kind.
        Proportional = "proportional",
    }
}

choice! {
    /// How context-parallel ranks exchange keys and values.
    ContextExchange, "string" {
        /// Sends around a ring.
        Ring = "ring",
        /// All of them at once (Llama 3, torchtitan).
        AllGather = "all-gather",
        /// Heads for tokens and back (Ulysses).
        AllToAll = "all-to-all",
    }
}

choice! {
    /// How the logits of a language model and their cross-entropy are computed.
    Loss, "string" {
        /// Operation by operation: logits are copied to 32 bits and kept until their gradient.
        Eager = "eager",
        /// In one kernel, which reads logits in 16 bits (`torch.compile`, Megatron-LM's `--cross-entropy-loss-fusion`).
        Compiled = "compiled",
        /// With the output layer, chunk by chunk of tokens; gradients are computed in the forward pass (Hsu 2024, Liger).
        Chunked = "chunked",
    }
}

impl Loss {
    /// Bytes of a logit: kept until the backward pass, and further temporary bytes.
    /// Compiled: logits, and their gradients, in 16 bits. Chunked: Liger takes ⌈V/h⌉ chunks, so that the logits of one, which
    /// their gradients overwrite, are about as many as all inputs of the output layer: 2/⌈V/h⌉ bytes for each of all
    /// logits. Gradients of these inputs are kept in their place.
    pub fn logit(self, implementation: Implementation, shape: &Transformer) -> [f64; 2] {
        let [kept, meanwhile] = implementation.logit();
        let hugging_face = implementation.is_hugging_face();
        match self {
            // Some models leave logits in their format; Gemma 2 keeps the hyperbolic tangent of its logits.
            Self::Eager if hugging_face && !shape.widens_logits() => [2.0, 4.0],
            Self::Eager if hugging_face && shape.sandwich && !shape.qk_norm => [kept + 2.0, meanwhile],
            Self::Eager => [kept, meanwhile],
            // The model is compiled with the loss, and its logits exist as a whole (three models on an H200).
            Self::Compiled if hugging_face => [2.0, 3.0],
            Self::Compiled => [2.0, 2.0],
            Self::Chunked => [0.0, 2.0 / shape.vocabulary.div_ceil(shape.hidden) as f64],
        }
    }

    /// Chunks of a chunked loss: ⌈V/h⌉, or fewer, whose tokens are a power of two (Liger).
    pub fn chunks(shape: &Transformer, tokens: f64) -> f64 {
        let most = shape.vocabulary.div_ceil(shape.hidden) as f64;
        let each = ((tokens / most).ceil().max(1.0) as u64).next_power_of_two();
        (tokens / each as f64).ceil().max(1.0)
    }
}

choice! {
    /// Which pairs of query and key count as work.
    Mask, "string" {
        /// All of them.
        None = "none",
        /// Half of them: the usual convention for a causal mask.
        Half = "half",
        /// Exactly the pairs that a causal mask and a window leave.
        Causal = "causal",
    }
}

choice! {
    /// Number formats of weights, gradients and optimiser states.
    States, "string" {
        /// Megatron-LM in bf16: 16-bit weights, 32-bit gradients, 32-bit weights and two moments.
        MegatronBf16 = "megatron-bf16",
        /// Megatron-LM in fp16: 16-bit weights and gradients, 32-bit weights, gradients and two moments.
        MegatronFp16 = "megatron-fp16",
        /// DeepSpeed and the ZeRO paper: 16-bit weights and gradients, 32-bit weights and two moments.
        MixedFp16 = "mixed-fp16",
        /// 32-bit weights and gradients, two moments; also FSDP with 32-bit shards, and autocast.
        Fp32 = "fp32",
        /// Weights, gradients and two moments in 16 bits.
        Bf16 = "bf16",
        /// 32-bit weights and gradients, two moments of 8 bits, without their scales (Dettmers 2022).
        AdamW8Bit = "adamw-8bit",
        /// 32-bit weights and gradients, no first moment, and the second one as sums of rows and columns, which take less than
        /// a hundredth of a byte for each parameter of a matrix and are not counted (Shazeer and Stern 2018).
        Adafactor = "adafactor",
    }
}

impl States {
    /// Bytes of one of the two moments of a parameter.
    pub const fn moment_bytes(self) -> u64 {
        match self {
            Self::MegatronBf16 | Self::MegatronFp16 | Self::MixedFp16 | Self::Fp32 => 4,
            Self::Bf16 => 2,
            Self::AdamW8Bit => 1,
            Self::Adafactor => 0,
        }
    }

    /// Bytes for each parameter: of weights, gradients and the optimiser.
    pub const fn bytes(self) -> [u64; 3] {
        match self {
            Self::MegatronBf16 => [2, 4, 12],
            Self::MegatronFp16 => [2, 2, 16],
            Self::MixedFp16 => [2, 2, 12],
            Self::Fp32 => [4, 4, 8],
            Self::AdamW8Bit => [4, 4, 2],
            Self::Adafactor => [4, 4, 0],
            Self::Bf16 => [2, 2, 4],
        }
    }
}

choice! {
    /// Software whose kernels compute a layer, which determines the activations kept and the temporary memory.
    Implementation, "string" {
        /// As papers count (Korthikanti 2022): kept tensors of fused kernels only.
        Textbook = "textbook",
        /// Megatron-LM with Transformer Engine: the textbook's tensors, and temporary memory of the loss and a backward pass.
        Megatron = "megatron",
        /// XLA, as MaxText uses it: as Megatron-LM, but sharded weights are gathered product by product.
        Xla = "xla",
        /// PyTorch, operation by operation.
        Pytorch = "pytorch",
        /// Models of Hugging Face transformers under PyTorch: norms as separate operations in 32 bits, copies of heads.
        HuggingFace = "hugging-face",
        /// Hugging Face models with the kernels of Liger for norms, rotary positions, gated MLPs and the loss (Hsu 2024).
        Liger = "liger",
    }
}

impl Implementation {
    /// Bytes of a logit: kept until the backward pass, and further temporary bytes.
    ///
    /// Megatron-LM: 32-bit exponentials in place of the logits' copy; temporarily the 16-bit logits. PyTorch: the 32-bit logarithms
    /// of the softmax; temporarily their gradient and the gradient of the logits, both in 32 bits.
    pub const fn logit(self) -> [f64; 2] {
        match self {
            Self::Textbook => [4.0, 0.0],
            Self::Megatron => [4.0, 2.0],
            Self::Xla => [4.0, 6.0],
            Self::Pytorch | Self::HuggingFace | Self::Liger => [4.0, 8.0],
        }
    }

    pub const fn is_eager(self) -> bool {
        matches!(self, Self::Pytorch | Self::HuggingFace | Self::Liger)
    }

    /// Default software for a transformer: Hugging Face for an encoder with its decoder, and for models over patches and
    /// frames.
    pub fn usual(shape: &Transformer) -> Option<Self> {
        (shape.target > 0 || shape.signal.is_some()).then_some(Self::HuggingFace)
    }

    /// Whether its models are those of Hugging Face.
    pub const fn is_hugging_face(self) -> bool {
        matches!(self, Self::HuggingFace | Self::Liger)
    }
}

choice! {
    /// Conditions that slow a run.
    Conditions, "string" {
        /// A tuned run of some steps.
        Benchmark = "benchmark",
        /// A reported run of weeks: data from storage, logging, checkpoints, imperfect workers and links.
        Production = "production",
    }
}

choice! {
    /// A framework's way to overlap.
    OverlapPreset, "string" {
        /// Everything waits for everything.
        None = "none",
        /// Megatron-LM with `overlap_grad_reduce`, `overlap_param_gather` and, for interleaved schedules,
        /// `overlap_p2p_comm`; `tp_comm_overlap` has a key of its own.
        Megatron = "megatron",
        /// Megatron-LM and Megatron-DeepSpeed until 2022: everything in turn, attention unfused.
        Megatron2021 = "megatron-2021",
        /// torchtitan: FSDP2, asynchronous sends, no asynchronous tensor parallelism.
        Torchtitan = "torchtitan",
        /// DeepSpeed: gradients in buckets; the gather of weights at the end of a step is exposed.
        Deepspeed = "deepspeed",
        /// PyTorch's FSDP2 alone.
        Fsdp2 = "fsdp2",
    }
}

choice! {
    /// A training framework with launch files that are read and written.
    Framework, "string" {
        /// Megatron-LM: flags of `pretrain_gpt.py`.
        Megatron = "megatron",
        /// torchtitan: flags of `torchtitan.train`, or the TOML files of its earlier versions.
        Torchtitan = "torchtitan",
        /// DeepSpeed: a JSON file.
        Deepspeed = "deepspeed",
        /// PyTorch's FSDP by Hugging Face Accelerate: a YAML file.
        Fsdp = "fsdp",
        /// Axolotl: settings of a YAML recipe.
        Axolotl = "axolotl",
        /// LLaMA-Factory: settings of a YAML recipe.
        LlamaFactory = "llama-factory",
        /// torchtune: settings of a YAML recipe.
        Torchtune = "torchtune",
        /// TRL: settings of a YAML recipe.
        Trl = "trl",
    }
}

impl Framework {
    /// Frameworks that pre-train any transformer. The others fine-tune models of the Hugging Face hub.
    pub const PRETRAINING: [Self; 4] = [Self::Megatron, Self::Torchtitan, Self::Deepspeed, Self::Fsdp];

    /// Whether it fine-tunes by a recipe.
    pub fn has_recipes(self) -> bool {
        !Self::PRETRAINING.contains(&self)
    }

    /// Its name and the version whose options are written.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Megatron => "Megatron-LM (core 0.16)",
            Self::Torchtitan => "torchtitan 0.3",
            Self::Deepspeed => "DeepSpeed 0.19",
            Self::Fsdp => "FSDP (Accelerate 1.15)",
            Self::Axolotl => "Axolotl 0.19",
            Self::LlamaFactory => "LLaMA-Factory 0.9",
            Self::Torchtune => "torchtune 0.6",
            Self::Trl => "TRL 1.16",
        }
    }
}

impl FromStr for Framework {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| {
            let all: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("\"{text}\" is no framework; use {}", all.join(", "))
        })
    }
}

/// Which traffic overlaps computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlaps {
    /// Tensor-parallel sums of the backward pass run beside the gradients of weights of the same layer.
    pub tensor_backward: bool,
    /// Gradients are reduced layer by layer during the backward pass of the last micro-batch.
    pub gradients: bool,
    /// Weights of ZeRO 1 and 2 are gathered beside the first forward pass.
    pub weights: bool,
    /// Sharded weights of the next layer are gathered beside the computing of this one.
    pub prefetch: bool,
    /// Stages go on while they send.
    pub sends: bool,
    /// Keys and values of the next step around the ring travel beside the attention of this one.
    pub context: bool,
}

impl OverlapPreset {
    /// Whether it is PyTorch's FSDP, whose root unit has all parameters outside of layers.
    pub const fn is_fsdp(self) -> bool {
        matches!(self, Self::Torchtitan | Self::Fsdp2)
    }

    /// Whether sharded weights are copied out of the buffer into which they were gathered, and gradients into the one that is reduced.
    pub const fn copies_units(self) -> bool {
        self.is_fsdp() || matches!(self, Self::Deepspeed)
    }

    /// Which traffic overlaps computing, with several chunks on each stage or without.
    pub const fn overlaps(self, interleaved: bool) -> Overlaps {
        let none = Overlaps {
            tensor_backward: false,
            gradients: false,
            weights: false,
            prefetch: false,
            sends: false,
            context: false,
        };
        match self {
            Self::None | Self::Megatron2021 => none,
            Self::Megatron => Overlaps {
                tensor_backward: true,
                gradients: true,
                weights: true,
                prefetch: true,
                sends: interleaved,
                context: true,
            },
            Self::Torchtitan => Overlaps { gradients: true, prefetch: true, sends: true, ..none },
            Self::Deepspeed => Overlaps { gradients: true, prefetch: true, ..none },
            Self::Fsdp2 => Overlaps { gradients: true, prefetch: true, sends: true, ..none },
        }
    }
}
