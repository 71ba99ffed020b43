//! The table of plan dimensions: one row for each key of `[strategy.plan]`.
//!
//! A row is the key as [`keys!`](crate::keys) declares it, and clauses for all code that uses the value:
//!
//! - `model` and `replicas`: the check of its combinations with other keys, without or with the number of replicas;
//! - `each`: a search tries every valid value; its type in [`PlanChoice`](super::PlanChoice), the type of an entry of the
//!   list in `[plan]`, the meaning of that list, its default, words for the first value and for the others, and the method
//!   that gives a plan's value, if the key alone does not;
//! - `listed`: these items for values that a search tries only if `[plan]` lists them;
//! - `launch`: its names in frameworks.
//!
//! From the rows follow [`Plan`](super::Plan), its section and documentation, `[plan]`, the dimensions that a search varies
//! and compares ([`PlanChoice`](super::PlanChoice), [`DIMENSIONS`](super::DIMENSIONS)), and readers and writers of launch
//! files. `plan_dimensions!(some)` calls the macro `some` with all rows.

/// Calls a macro with the rows of all plan dimensions.
macro_rules! plan_dimensions {
    ($then:ident) => {
        $then! {
            /// Ranks that divide every matrix.
            tensor: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 8"),
                model { check_heads },
                each { u64, u64, "Tensor-parallel ranks to try.", "all that divide",
                    words("without tensor parallelism", "tensor {}"),
                    also {
                        /// Whether tensor-parallel ranks may be on several machines.
                        tensor_across_nodes: bool => bool, default(false), Check::Any, Resolved;
                    } },
                launch {
                    number(Megatron, "--tensor-model-parallel-size").always(),
                    number(Torchtitan, "parallelism.tensor_parallel_degree").always(),
                    number(Deepspeed, "tensor_parallel.autotp_size"),
                    number(Fsdp, "parallelism_config.parallelism_config_tp_size").only_read("tensor parallelism")
                };
            /// Whether tensor-parallel ranks divide norms and dropout by tokens.
            sequence_parallel: bool => bool, default(false), Check::Any,
                each { bool, bool, "Whether to divide norms and dropout by tokens.", "both",
                    words("without sequence parallelism", "with sequence parallelism") },
                launch { switch(Megatron, "--sequence-parallel", ["true", "false"]), refused([Deepspeed], "sequence parallelism") };
            /// Ranks that divide every sequence.
            context: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 2"),
                model { check_context },
                each { u64, u64, "Context-parallel ranks to try.", "all that divide",
                    words("without context parallelism", "context {}") },
                launch {
                    number(Megatron, "--context-parallel-size").always(),
                    number(Torchtitan, "parallelism.context_parallel_degree").always(),
                    number(Deepspeed, "sequence_parallel_size"),
                    number(Fsdp, "parallelism_config.parallelism_config_cp_size").only_read("context parallelism")
                };
            /// How context-parallel ranks exchange keys and values: `"ring"`, `"all-gather"` or `"all-to-all"`.
            context_exchange: ContextExchange => ContextExchange, default(ContextExchange::Ring), Check::Any,
                launch {
                    names(Megatron, "--cp-comm-type", &[("p2p", "ring"), ("all_gather", "all-gather"), ("a2a", "all-to-all")]),
                    names(Torchtitan, "parallelism.context_parallel_rotate_method", &[("alltoall", "ring"), ("allgather", "all-gather")]),
                    names(Fsdp, "parallelism_config.parallelism_config_cp_comm_strategy", &[("alltoall", "ring"), ("allgather", "all-gather")])
                };
            /// Stages of layers.
            pipeline: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 4"),
                model { check_stages },
                each { u64, u64, "Pipeline stages to try.", "all that leave each a layer", words("without a pipeline", "pipeline {}") },
                launch {
                    number(Megatron, "--pipeline-model-parallel-size").always(),
                    number(Torchtitan, "parallelism.pipeline_parallel_degree").always(),
                    number(Deepspeed, "pipeline.stages"),
                    refused([Fsdp], "a pipeline")
                };
            /// Chunks of layers on each stage.
            virtual_stages: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 2"),
                each { u64, u64, "Chunks on each stage to try.", "all that divide, 2 and 4",
                    words("one chunk on a stage", "{} chunks on a stage") },
                launch {
                    number(Megatron, "--num-virtual-stages-per-pipeline-rank"),
                    refused([Deepspeed], "several chunks on a stage")
                };
            /// Layers of every virtual stage, in order.
            stage_layers: Vec<u64> => Vec<u64>, optional("equal shares; where these do not divide, embedding and output layer count as a layer each"), Check::Any,
                launch { refused([Deepspeed, Fsdp], "stages with different numbers of layers").without("plan.per-stage=false") };
            /// Order of operations of a stage: `"gpipe"`, `"1f1b"`, `"interleaved"`, `"zb-h1"`, `"looped-bfs"`,
            /// `"interleaved-zero-bubble"`, `"zbv"`, `"dualpipev"` or `"dualpipe"`.
            schedule: ScheduleKind => ScheduleKind, optional("`\"1f1b\"`, or `\"interleaved\"` with `virtual-stages`"), Check::Any,
                each { ScheduleKind, ScheduleKind, "Schedules to try.", "all", words("gpipe", "{}"), of(schedule_kind) };
            /// How stages send: `"asynchronous"`, `"blocking"`, `"on-demand"` or `"planned"`, the last two if a message moves only
            /// once its receiver has asked for it, as over gloo.
            sends: Sends => Sends, optional("as `overlap` says"), Check::Any;
            /// Time that the host takes for each operation of a stage to issue its messages.
            issue_time: Seconds => Seconds, default(Seconds::ZERO), Check::NotNegative("a time such as \"0.3 ms\"");
            /// File with measured times of collectives, by number of ranks and size, in place of what links allow.
            collectives: String => MeasuredCollectives, optional("what links allow"), Check::Any;
            /// Ranks that divide experts, taken from those of tensor, context and data parallelism.
            expert: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 8"),
                replicas { check_experts },
                each { u64, u64, "Expert-parallel ranks to try.", "all that divide",
                    words("without expert parallelism", "expert {}") },
                launch {
                    number(Megatron, "--expert-model-parallel-size"),
                    number(Torchtitan, "parallelism.expert_parallel_degree"),
                    refused([Deepspeed], "expert parallelism by its file"),
                    refused([Fsdp], "expert parallelism")
                };
            /// How uneven the loads of single experts are, standard deviation against the mean: others wait for the expected fullest rank,
            /// and memory has to suffice for a load that is exceeded in one of 20 runs. About 1.65 with a model's own routing; 0 if balance is forced.
            expert_imbalance: f64 => f64, default(0.0), Check::NotNegative("a share such as 1.65");
            /// Places of an expert against its mean load, beyond which tokens are dropped.
            expert_capacity: f64 => f64, optional("nothing is dropped"), Check::Positive("a factor such as 1.25"),
                launch {
                    real(Megatron, "--moe-expert-capacity-factor"),
                    refused([Torchtitan, Fsdp], "experts that drop tokens"),
                    refused([Deepspeed], "experts that drop tokens by its file")
                };
            /// How tokens reach their experts: `"allgather"`, `"alltoall"` (a copy for each expert) or `"flex"` (a copy for each
            /// machine, as DeepEP and HybridEP send it).
            dispatcher: Dispatcher => Dispatcher, optional("`\"alltoall\"` with `implementation = \"pytorch\"`, else `\"flex\"`"), Check::Any,
                launch {
                    names(Megatron, "--moe-token-dispatcher-type", &[("allgather", "allgather"), ("alltoall", "alltoall"), ("flex", "flex")])
                };
            /// Most machines that the experts of one token are on, with `"flex"`: 4 of DeepSeek-V3's node-limited routing.
            expert_nodes: u64 => u64, optional("all"), Check::Between(1, MOST, "a number such as 4"),
                launch { number(Megatron, "--moe-router-group-topk") };
            /// Tokens on their way to experts and back beside the computing of another micro-batch (Megatron-LM's
            /// `--overlap-moe-expert-parallel-comm`; what `"dualpipe"` and `"dualpipev"` are made for).
            overlap_experts: bool => bool, default(false), Check::Any,
                launch { switch(Megatron, "--overlap-moe-expert-parallel-comm", ["true", "false"]) };
            /// Replicas.
            data: u64 => u64, optional("all workers that the other kinds leave"), Check::Between(1, MOST, "a number such as 8");
            /// What replicas hold only a part of: `"none"`, `"zero-1"`, `"zero-2"`, `"zero-3"`, `"fsdp-keep"` or `"hsdp"`.
            sharding: Sharding => Sharding, default(Sharding::None), Check::Any,
                replicas { check_sharding },
                each { Sharding, Sharding, "Shardings to try.", "all but `\"fsdp-keep\"`", words("without sharding", "{}") };
            /// Bits of a gradient as replicas that hold parts of the weights reduce it (`reduce_dtype` of FSDP): 32 or 16.
            reduce_bits: u64 => u64, optional("those of `states`"), Check::Between(16, 32, "32 or 16"),
                launch {
                    refused([Megatron, Deepspeed], "gradients that are reduced in fewer bits than they are kept in"),
                    refused([Torchtitan], "gradients that are reduced in 16 bits")
                };
            /// Ranks of one group of `"hsdp"`.
            sharding_group: u64 => u64, optional("–"), Check::Between(2, MOST, "a number such as 8"),
                each { Option<u64>, u64, "Ranks of one group of `\"hsdp\"` to try.", "all that divide" };
            /// Replicas of the whole plan, which train independently between the exchanges of `local-sgd(H)` (DiLoCo), each on an
            /// equal part of the workers; `global-batch` counts the sequences of all of them.
            outer_replicas: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 2"),
                model { check_outer },
                launch {
                    refused([Megatron, Deepspeed, Fsdp], "outer gradients of local SGD"),
                    refused([Torchtitan], "outer gradients of local SGD by one launch file")
                };
            /// Sites of these replicas.
            outer_sites: u64 => u64, optional("as many as replicas with `outer-link`, else one"), Check::Between(1, MOST, "a number such as 2");
            /// Rate of the link of a site to the others, each direction.
            outer_link: BitsPerSec => BitsPerSec, optional("the cluster's network joins all replicas"), Check::Positive("a rate such as \"10 Gbit/s\"");
            /// Time of a message from one site to another.
            outer_latency: Seconds => Seconds, default(Seconds::ZERO), Check::NotNegative("a time such as \"30 ms\"");
            /// Fragments of the model that are exchanged in turn, each every H steps (Streaming DiLoCo).
            outer_fragments: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 10");
            /// Number of steps that overlap the exchange of a fragment; with 0, training waits for it.
            outer_delay: u64 => u64, default(0_u64), Check::Between(0, MOST, "a number such as 5");
            /// Bits of an outer gradient as it is sent: 32, 16, 8 or 4.
            outer_bits: u64 => u64, default(32_u64), Check::Between(4, 32, "32, 16, 8 or 4");
            /// Sequences of a micro-batch.
            micro_batch: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 1"),
                each { u64, u64, "Sequences of a micro-batch to try.", "all that divide",
                    words("micro-batch 1", "micro-batch {}") },
                launch {
                    number(Megatron, "--micro-batch-size").always(),
                    number(Deepspeed, "train_micro_batch_size_per_gpu").always()
                };
            /// Micro-batches of replicas on two kinds of workers: `"equal"`, where the stages of a pipeline differ by kind, or
            /// `"proportional"` to their speed, where replicas differ and each has all of its stages on one kind. The latter needs `"none"`
            /// or `"zero-1"`, or groups of `"hsdp"` within a kind without a pipeline, and pipelines of `"1f1b"` or `"zb-h1"`.
            shares: Shares => Shares, optional("`\"equal\"`; a search over plans tries both"), Check::Any,
                listed { Shares, "Shares of the batch to try, where two kinds of workers differ.", words("", "{} shares of the batch") },
                launch { refused(Framework::PRETRAINING, "unequal shares of the batch") };
            /// Sequences of a step.
            global_batch: u64 => u64, optional("what is usual for the size of the model"), Check::Between(1, 1_000_000_000, "a number such as 1024"),
                launch {
                    number(Megatron, "--global-batch-size").always(),
                    number(Torchtitan, "training.global_batch_size").always(),
                    number(Deepspeed, "train_batch_size").always()
                };
            /// Activations to recompute instead of keeping them: `"attention"`, `"mlp"`, `"operators"`, `"layer"`; and, by kernels of
            /// Megatron-LM, `"norms"`, the `"activation"` of experts, and the `"projections"` of latent attention, several together.
            recompute: Vec<Recompute> => Vec<Recompute>, default(Vec::new()), Check::Any,
                model { check_recompute },
                each { Recomputation, Recompute, "Recomputation to try.", "all that the kernels can, parts of a layer also together; `\"attention\"` where it keeps scores",
                    words("without recomputation", "recomputing {}"), of(recomputation) };
            /// Layers of every virtual stage, from its first, to which `recompute` applies.
            recompute_layers: u64 => u64, optional("all"), Check::Between(1, MOST, "a number such as 4"),
                launch {
                    refused([Torchtitan, Deepspeed, Fsdp], "recomputation of some layers").without("plan.recompute-some=false")
                };
            /// Number of recomputed layers for each virtual stage, in order: later stages hold fewer micro-batches.
            stage_recompute: Vec<u64> => Vec<u64>, optional("as `recompute-layers` says"), Check::Any,
                launch {
                    refused(Framework::PRETRAINING, "a number of recomputed layers for each stage").without("plan.per-stage=false")
                };
            /// States kept in the host's memory: `"optimiser"` states, which the host then updates, `"activations"`, or the states of
            /// the `"outer"` optimiser.
            offload: Vec<Offload> => Vec<Offload>, default(Vec::new()), Check::Any,
                replicas { check_offload },
                listed { Vec<Offload>, "States to try keeping in the host's memory, such as `[[], [\"optimiser\"]]`.",
                    words("without offloading", "offloading {}") },
                launch { refused([Megatron, Torchtitan, Fsdp], "offloading") };
            /// Rate between a device and its host, each direction.
            host_link: BytesPerSec => BytesPerSec, optional("88 % of the device's, or 25 GB/s"), Check::Positive("a rate such as \"25 GB/s\"");
            /// Rate at which the host of a machine reads and writes states for an update, of all its devices together.
            host_memory: BytesPerSec => BytesPerSec, default(HOST_MEMORY), Check::Positive("a rate such as \"100 GB/s\"");
            /// Parameters whose gradients, and with `"zero-1"` also weights, are sent together.
            bucket: u64 => u64, optional("those of a layer"), Check::Between(1, 1_000_000_000_000, "a number such as 40000000"),
                listed { u64, "Numbers of parameters to try whose gradients are sent together.",
                    words("a bucket for each layer", "buckets of {} parameters") },
                launch {
                    number(Megatron, "--ddp-bucket-size"),
                    number(Deepspeed, "zero_optimization.reduce_bucket_size"),
                    refused([Torchtitan, Fsdp], "a bucket size, because it sends layer by layer")
                };
            /// How attention is computed: `"flash"` (FlashAttention 2), `"cudnn"`, `"triton"` (flash attention in Triton, as of 2023) or `"unfused"`.
            attention: Attention => Attention, optional("`\"flash\"` with `implementation = \"pytorch\"`, else `\"cudnn\"`"), Check::Any,
                launch {
                    names(Megatron, "--attention-backend", &[("unfused", "unfused"), ("flash", "flash"), ("fused", "cudnn"), ("auto", "")])
                };
            /// Number format of the layers' products, by recipe: `"none"`, `"fp8-delayed"`, `"fp8"` (one scale a tensor from its
            /// largest value now), `"fp8-row"`, `"fp8-block"` (DeepSeek-V3), `"mxfp8"`, `"int8"`, `"nvfp4"` or `"mxfp4"`; the output
            /// layer and attention keep `precision`.
            recipe: Recipe => Recipe, default(Recipe::None), Check::Any,
                launch {
                    names(Megatron, "--fp8-recipe", &[
                        ("delayed", "fp8-delayed"), ("tensorwise", "fp8"), ("blockwise", "fp8-block"), ("mxfp8", "mxfp8"), ("nvfp4", "nvfp4")
                    ]),
                    item(Torchtitan, "model.converters", &[("float8", "fp8")]),
                    refused([Deepspeed, Fsdp], "products in 8 bits")
                };
            /// Whether a whole step is captured in a CUDA graph and replayed: the host issues nothing, and gradients stay allocated and
            /// are zeroed.
            graphs: bool => bool, default(false), Check::Any;
            /// Whether dropout keeps masks.
            dropout: bool => bool, default(false), Check::Any;
            /// Number formats of weights, gradients and optimiser: `"megatron-bf16"`, `"megatron-fp16"`, `"mixed-fp16"`,
            /// `"fp32"`, `"bf16"`, `"adamw-8bit"` or `"adafactor"`. With autocast (`amp-bf16`, `amp-fp16`) or 32-bit products,
            /// `"fp32"` unless given.
            states: States => States, default(States::MegatronBf16), Check::Any;
            /// Rank to which the optimiser projects gradients of layers' matrices, which makes its moments narrower (GaLore, Zhao 2024). Memory
            /// alone: the time of the projections does not count.
            optimiser_rank: u64 => u64, optional("moments as wide as weights"), Check::Between(1, MOST, "a rank such as 128"),
                model { check_optimiser_rank },
                launch { refused(Framework::PRETRAINING, "moments of low rank") };
            /// Conditions of a step: a tuned `"benchmark"`, or a run of weeks in `"production"`, whose steps take 1.1 times as long on
            /// average, from 0.9 to 1.3.
            conditions: Conditions => Conditions, default(Conditions::Benchmark), Check::Any;
            /// Which traffic overlaps computing: `"none"`, `"megatron"`, `"megatron-2021"` (until 2022: nothing, and attention is
            /// unfused unless `attention` says another), `"torchtitan"`, `"deepspeed"` or `"fsdp2"`.
            overlap: OverlapPreset => OverlapPreset, default(OverlapPreset::Megatron), Check::Any;
            /// Tensor-parallel sums of the backward pass beside the gradients of weights, whatever `overlap` says.
            overlap_tensor: bool => bool, optional("as `overlap` says"), Check::Any;
            /// Tensor-parallel gathers and sums in parts beside the products that need or make them, with sequence parallelism
            /// (`--tp-comm-overlap` of Megatron-LM, asynchronous tensor parallelism of torchtitan).
            overlap_products: bool => bool, default(false), Check::Any,
                launch { switch(Megatron, "--tp-comm-overlap", ["true", "false"]) };
            /// Gradients beside the last backward pass, whatever `overlap` says.
            overlap_gradients: bool => bool, optional("as `overlap` says"), Check::Any;
            /// Weights of ZeRO 1 and 2 beside the first forward pass, whatever `overlap` says.
            overlap_weights: bool => bool, optional("as `overlap` says"), Check::Any;
            /// Sharded weights of the next layer beside the computing of this one, whatever `overlap` says.
            overlap_prefetch: bool => bool, optional("as `overlap` says"), Check::Any,
                listed { bool, "Whether to gather sharded weights of the next layer ahead.",
                    words("weights gathered when needed", "weights gathered ahead") };
            /// Sends between stages while these go on, whatever `overlap` says.
            overlap_sends: bool => bool, optional("as `overlap` says"), Check::Any;
            /// Keys and values around the context ring beside attention, whatever `overlap` says.
            overlap_context: bool => bool, optional("as `overlap` says"), Check::Any;
            /// Whether concurrent kinds of traffic of a rank divide the rate of a link.
            shared_links: bool => bool, default(true), Check::Any;
            /// Slowdown of computing and of traffic while both are under way on a rank, as a share. Simulated only.
            interference: f64 => f64, default(0.0), Check::NotNegative("a share such as 0.1");
            /// Pairs of query and key that count in MFU and HFU: `"none"` for all, `"half"`, or `"causal"` for exactly the needed
            /// ones.
            mask: Mask => Mask, default(Mask::Causal), Check::Any;
            /// Software whose kernels compute a layer: `"textbook"`, `"megatron"`, `"xla"`, `"pytorch"`, `"hugging-face"` or `"liger"`.
            implementation: Implementation => Implementation, optional("`\"hugging-face\"` for a `config` with `overlap` of `\"fsdp2\"` or `\"deepspeed\"`, `\"pytorch\"` with `\"torchtitan\"` or `\"fsdp2\"`, `\"xla\"` on TPUs, else `\"megatron\"`"), Check::Any;
            /// How logits and their loss are computed: `"eager"`, `"compiled"` in one kernel, or `"chunked"` together with the output
            /// layer.
            loss: Loss => Loss, optional("`\"chunked\"` with `implementation = \"liger\"`; `\"compiled\"` with `compiled` and kernels of PyTorch or Hugging Face; else as `implementation` has it"), Check::Any,
                listed { Loss, "Ways to compute the loss to try.", words("", "{} loss") },
                launch {
                    switch(Megatron, "--cross-entropy-loss-fusion", ["compiled", "eager"]),
                    item(Torchtitan, "compile.components", &[("loss", "compiled"), ("", "eager"), ("", "chunked"), ("model", "")]),
                    names(Deepspeed, "", &[("", "eager")]),
                    names(Fsdp, "", &[("", "eager")])
                };
            /// Peak bytes of a logit, from the loss to its gradient.
            logit_bytes: u64 => u64, optional("4 for `\"textbook\"`, 10 for `\"megatron\"`, 12 for `\"pytorch\"`"), Check::Between(0, 64, "10 for Megatron-LM");
            /// Share of memory that the allocator may lose between tensors.
            fragmentation: f64 => f64, default(FRAGMENTATION), Check::NotNegative("a share such as 0.05");
            /// Memory beside tensors: context of the device, buffers of the communication library, workspaces.
            reserved: Bytes => Bytes, default(RESERVED), Check::NotNegative("a size such as \"2 GiB\"");
        }
    };
}

pub(crate) use plan_dimensions;

use super::{Framework, Plan};
use crate::fault::Fault;
use crate::keys::kebab;

/// A plan dimension: the clauses of a row beside its key.
#[derive(Debug, Clone, Copy)]
pub struct Dimension {
    pub(super) field: &'static str,
    /// Whether a search tries every valid value.
    pub each: bool,
    /// Access to the value, if a search tries the values that `[plan]` lists.
    pub listed: Option<ListedValue>,
    /// Words for the neutral value, and for others in place of `{}`; none if reports do not compare its values.
    pub words: Option<[&'static str; 2]>,
    pub neutral: u64,
    /// Its names in frameworks.
    pub settings: &'static [Setting],
}

impl Dimension {
    /// The key in `[strategy.plan]`, and in `[plan]` where a search varies it.
    pub fn key(&self) -> String {
        kebab(self.field)
    }

    /// Whether it has this one of [`DimensionNames`](super::DimensionNames).
    pub fn is(&self, name: &str) -> bool {
        self.field == name
    }

    /// Words for a value: "tensor 8", "without a pipeline"; empty if there is nothing to say.
    pub fn phrase(&self, code: u64, written: &str) -> String {
        match self.words {
            Some([without, _]) if code == self.neutral => without.to_owned(),
            Some([_, with]) => with.replace("{}", written),
            None => String::new(),
        }
    }
}

/// Access to a value by its code.
#[derive(Debug, Clone, Copy)]
pub struct ListedValue {
    pub code: fn(&Plan) -> u64,
    pub set: fn(&mut Plan, u64),
    pub written: fn(&Plan) -> String,
    pub check: fn(&Plan) -> Result<(), Fault>,
}

/// Name of a dimension in a framework.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// A bit for each framework that it is of.
    frameworks: u16,
    /// A flag, or the path of a key joined by dots.
    pub name: &'static str,
    pub form: SettingForm,
    /// Whether it is written even if the plan has its default.
    pub always: bool,
    /// Feature that the framework does not run, for plans with another value than the default.
    pub refused: Option<&'static str>,
    /// The change of a scenario that excludes it, unless that is the default alone.
    pub without: Option<&'static str>,
}

/// How a framework writes a value.
#[derive(Debug, Clone, Copy)]
pub enum SettingForm {
    /// A whole number.
    Number,
    Real,
    /// A flag without a value: our names with it and without it.
    Switch([&'static str; 2]),
    /// Names: the framework's and ours. An empty name of the framework is not written; an empty name of ours sets nothing.
    Names(&'static [(&'static str, &'static str)]),
    /// An entry of a list, with names as in `Names`.
    Item(&'static [(&'static str, &'static str)]),
    Absent,
}

impl Setting {
    pub const fn is_of(&self, framework: Framework) -> bool {
        self.frameworks & bit(framework) != 0
    }

    /// Writes the setting even if the plan has its default.
    #[must_use]
    pub(super) const fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// Reads the setting; a plan with another value than the default is not written.
    #[must_use]
    pub(super) const fn only_read(self, what: &'static str) -> Self {
        Self { refused: Some(what), ..self }
    }

    /// Names the change of a scenario that excludes the refused feature.
    #[must_use]
    pub(super) const fn without(self, change: &'static str) -> Self {
        Self { without: Some(change), ..self }
    }
}

const fn bit(framework: Framework) -> u16 {
    1 << framework as u16
}

const fn setting(framework: Framework, name: &'static str, form: SettingForm) -> Setting {
    Setting { frameworks: bit(framework), name, form, always: false, refused: None, without: None }
}

pub(super) const fn number(framework: Framework, name: &'static str) -> Setting {
    setting(framework, name, SettingForm::Number)
}

pub(super) const fn real(framework: Framework, name: &'static str) -> Setting {
    setting(framework, name, SettingForm::Real)
}

pub(super) const fn switch(framework: Framework, name: &'static str, ours: [&'static str; 2]) -> Setting {
    setting(framework, name, SettingForm::Switch(ours))
}

pub(super) const fn names(
    framework: Framework,
    name: &'static str,
    names: &'static [(&'static str, &'static str)],
) -> Setting {
    setting(framework, name, SettingForm::Names(names))
}

pub(super) const fn item(
    framework: Framework,
    name: &'static str,
    items: &'static [(&'static str, &'static str)],
) -> Setting {
    setting(framework, name, SettingForm::Item(items))
}

pub(super) const fn refused<const N: usize>(frameworks: [Framework; N], what: &'static str) -> Setting {
    let (mut bits, mut place) = (0, 0);
    while place < N {
        bits |= bit(frameworks[place]);
        place += 1;
    }
    Setting { frameworks: bits, ..setting(frameworks[0], "", SettingForm::Absent).only_read(what) }
}
