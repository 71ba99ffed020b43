//! Whether a plan divides a transformer over a number of ranks. Keys of faults are relative to the plan.

use super::{
    ContextExchange, MODEL_CHECKS, Plan, REPLICA_CHECKS, Recompute, ScheduleKind, Sharding, Shares,
    stage_share,
};
use crate::fault::Fault;
use crate::model::transformer::Transformer;
use crate::quantity::Seconds;

/// Derived values that a plan leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// Replicas that sum their gradients in every step.
    pub data: u64,
    /// Micro-batches of a replica in a step.
    pub micro_batches: u64,
    /// Sequences of a step.
    pub global_batch: u64,
}

impl Plan {
    /// Checks the plan for a transformer on `workers` ranks, and derives the values that it leaves open.
    pub fn divide(&self, shape: &Transformer, workers: u64) -> Result<Division, Fault> {
        MODEL_CHECKS.iter().try_for_each(|check| check(self, shape))?;
        let apart = self.outer_replicas;
        if !workers.is_multiple_of(apart) {
            let reason = format!("{apart} replicas with outer gradients do not divide {workers} workers");
            return Err(Fault::in_key(
                "outer-replicas",
                reason,
                format!("use a multiple of {apart} workers"),
            ));
        }
        let data = self.replicas(self.inner_workers(workers))?;
        REPLICA_CHECKS.iter().try_for_each(|check| check(self, shape, data))?;
        let (global_batch, micro_batches) = self.batches(shape, workers, data)?;
        self.check_micro_batches(micro_batches)?;
        Ok(Division { data, micro_batches, global_batch })
    }

    pub(super) fn check_heads(&self, shape: &Transformer) -> Result<(), Fault> {
        let (t, heads, kv_heads) = (self.tensor, shape.heads, shape.kv_heads);
        if shape.divides_heads(t) {
            return Ok(());
        }
        let reason = match (heads.is_multiple_of(t), kv_heads.is_multiple_of(t) || t.is_multiple_of(kv_heads))
        {
            (false, _) => format!("{t} tensor-parallel ranks do not divide {heads} heads"),
            (true, false) => {
                format!("{t} tensor-parallel ranks and {kv_heads} key-value heads do not divide each other")
            }
            (true, true) => format!("{t} tensor-parallel ranks do not divide the heads of all mixers"),
        };
        let fits = |t: &u64| shape.divides_heads(*t);
        Err(Fault::in_key("tensor", reason, format!("use {}", choices((1..=heads).filter(fits)))))
    }

    pub(super) fn check_stages(&self, shape: &Transformer) -> Result<(), Fault> {
        let (p, v, layers) = (self.pipeline, self.virtual_stages, shape.layers);
        let kind = self.schedule_kind();
        if p > 1 && shape.target > 0 {
            let reason = "stages that hold an encoder and a decoder are not modelled";
            return Err(Fault::in_key("pipeline", reason, "use `pipeline = 1`"));
        }
        let has_chunks = matches!(
            kind,
            ScheduleKind::Interleaved | ScheduleKind::InterleavedZeroBubble | ScheduleKind::LoopedBfs
        ) || kind.is_folded();
        if kind.is_folded() && v != 2 {
            let reason = format!("`{kind}` has two chunks on each stage, not {v}");
            return Err(Fault::in_key("virtual-stages", reason, "use `virtual-stages = 2`"));
        }
        if v > 1 && !has_chunks {
            let reason = format!("`{kind}` has one chunk on each stage, not {v}");
            let remedy = "use `schedule = \"interleaved\"`, or `virtual-stages = 1`";
            return Err(Fault::in_key("virtual-stages", reason, remedy));
        }
        if v > 1 && p == 1 {
            let reason = format!("a single stage has no bubble that {v} chunks could fill");
            let remedy = "use `pipeline = 2` or more, or one chunk and `schedule = \"1f1b\"`";
            return Err(Fault::in_key("virtual-stages", reason, remedy));
        }
        let places = p.saturating_mul(v);
        if let Some(given) = &self.stage_layers {
            if given.len() as u64 != places {
                let reason = format!("{} numbers are given for {places} virtual stages", given.len());
                return Err(Fault::in_key("stage-layers", reason, "give one for each virtual stage"));
            }
            let sum = given.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
            if sum != layers {
                let reason = format!("they make up {sum} layers, and the model has {layers}");
                return Err(Fault::in_key("stage-layers", reason, "give numbers that add up"));
            }
        } else if !has_layers(layers, [p, v], kind) {
            let what = if v > 1 { "virtual stages" } else { "stages" };
            let most = (1..=layers).rev().find(|p| has_layers(layers, [*p, v], kind)).unwrap_or(1);
            let reason = format!("{layers} layers are too few for {places} {what}");
            return Err(Fault::in_key("pipeline", reason, format!("use {most} or less")));
        }
        Ok(())
    }

    /// Whether the model has the recomputed parts, and its kernels can recompute each of them alone.
    pub fn check_recompute(&self, shape: &Transformer) -> Result<(), Fault> {
        let what = self.recomputation().what;
        for (part, missing, is_missing) in [
            (
                Recompute::Norms,
                "experts and latent attention",
                shape.experts.is_none() && shape.mla.is_none(),
            ),
            (Recompute::Activation, "experts", shape.experts.is_none()),
            (Recompute::Projections, "latent attention", shape.mla.is_none()),
        ] {
            let reason = match (what.has(part), is_missing) {
                (false, _) => continue,
                (true, true) => format!("a model without {missing} has no \"{part}\" to compute again"),
                (true, false) if self.implemented_by().is_eager() => {
                    format!("{} cannot recompute \"{part}\" alone", self.implemented_by())
                }
                (true, false) => continue,
            };
            return Err(Fault::in_key("recompute", reason, "use \"mlp\", \"operators\" or \"layer\""));
        }
        let nothing = what == Recompute::None;
        let remedy = "add `recompute = [\"layer\"]`, or remove it";
        if let (Some(layers), true) = (self.recompute_layers, nothing) {
            let reason = format!("nothing is computed again in these {layers} layers");
            return Err(Fault::in_key("recompute-layers", reason, remedy));
        }
        let Some(given) = &self.stage_recompute else { return Ok(()) };
        let wrong = |reason: String, remedy: &str| Err(Fault::in_key("stage-recompute", reason, remedy));
        if nothing {
            return wrong("nothing is computed again".to_owned(), remedy);
        }
        if self.recompute_layers.is_some() {
            return wrong("`recompute-layers` says the same of all stages".to_owned(), "remove one of them");
        }
        let places = self.pipeline.saturating_mul(self.virtual_stages);
        if given.len() as u64 != places {
            let reason = format!("{} numbers are given for {places} virtual stages", given.len());
            return wrong(reason, "give one for each virtual stage");
        }
        let stages = (0..).zip(self.stage_ranges(shape.layers)).zip(given);
        for ((place, own), &again) in stages {
            let layers = own.end - own.start;
            if again > layers {
                let reason = format!("virtual stage {place} has {layers} layers, not {again}");
                return wrong(reason, "give no more than the layers of each virtual stage");
            }
        }
        Ok(())
    }

    pub(super) fn check_context(&self, shape: &Transformer) -> Result<(), Fault> {
        let (c, sequence) = (self.context, shape.sequence);
        if c > 1 && shape.pattern.is_some() {
            let reason = "states of delta nets and Mamba that pass from rank to rank are not modelled";
            return Err(Fault::in_key("context", reason, "use `context = 1`, or sequence parallelism"));
        }
        if !sequence.is_multiple_of(c) {
            let reason = format!("{c} context-parallel ranks do not divide {sequence} tokens");
            let divisors = choices(divisors(sequence));
            return Err(Fault::in_key(
                "context",
                reason,
                format!("use a divisor of the sequence: {divisors}"),
            ));
        }
        let heads = shape.heads / self.tensor;
        if self.context_exchange == ContextExchange::AllToAll && !heads.is_multiple_of(c) {
            let reason = format!("{c} ranks cannot exchange the {heads} heads of a tensor-parallel rank");
            let remedy = "use a divisor of these heads, or `context-exchange = \"ring\"`";
            return Err(Fault::in_key("context", reason, remedy));
        }
        Ok(())
    }

    /// Checks that the optimiser sees whole matrices, and that these are trained.
    pub(super) fn check_optimiser_rank(&self, shape: &Transformer) -> Result<(), Fault> {
        let divided = self.tensor > 1 || self.expert > 1 || self.sharding != Sharding::None;
        let reason = match () {
            () if self.optimiser_rank.is_none() => return Ok(()),
            () if shape.tuning.adapters.is_some() => "beside adapters, no matrix of a layer is trained",
            () if shape.pattern.is_some() => "matrices of mixers other than attention are not modelled",
            () if divided || self.offloaded().optimiser => {
                "matrices are projected whole, on the device, and cannot be divided or sharded"
            }
            () => return Ok(()),
        };
        Err(Fault::in_key("optimiser-rank", reason, "remove it, or use replicas alone"))
    }

    pub(super) fn check_outer(&self, _: &Transformer) -> Result<(), Fault> {
        let wrong = |key: &str, reason: String, remedy: &str| Err(Fault::in_key(key, reason, remedy));
        let replicas = self.outer_replicas;
        if replicas == 1 {
            let given = [
                ("outer-sites", self.outer_sites.is_some()),
                ("outer-link", self.outer_link.is_some()),
                ("outer-latency", self.outer_latency > Seconds::ZERO),
                ("outer-fragments", self.outer_fragments > 1),
                ("outer-delay", self.outer_delay > 0),
                ("outer-bits", self.outer_bits != 32),
                ("offload", self.offloaded().outer),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((key, _)) => {
                    let reason = "a single replica exchanges no outer gradients".to_owned();
                    wrong(key, reason, "add `outer-replicas = 2`, or remove it")
                }
                None => Ok(()),
            };
        }
        let sites = self.sites();
        if !replicas.is_multiple_of(sites) {
            let reason = format!("{sites} sites do not divide {replicas} replicas");
            return wrong("outer-sites", reason, "use a divisor of `outer-replicas`");
        }
        if (sites > 1) != self.outer_link.is_some() {
            let reason = format!("the rate between sites goes with several of them, not with {sites}");
            return wrong(
                "outer-link",
                reason,
                "give `outer-link` and at least two `outer-sites`, or neither",
            );
        }
        if ![4, 8, 16, 32].contains(&self.outer_bits) {
            return wrong(
                "outer-bits",
                format!("{} bits are no format", self.outer_bits),
                "use 32, 16, 8 or 4",
            );
        }
        if self.shares == Some(Shares::Proportional) {
            let reason = "replicas with outer gradients have equal shares of the batch".to_owned();
            return wrong("shares", reason, "use \"equal\", or leave it out");
        }
        Ok(())
    }

    /// The replicas: the workers divided by all other kinds of parallelism.
    fn replicas(&self, workers: u64) -> Result<u64, Fault> {
        let inner = self.tensor.saturating_mul(self.context).saturating_mul(self.pipeline);
        let product =
            format!("tensor {} × context {} × pipeline {}", self.tensor, self.context, self.pipeline);
        match self.data {
            Some(data) if inner.saturating_mul(data) != workers => {
                let wanted = inner.saturating_mul(data);
                let whole = if self.outer_replicas > 1 { "an outer replica" } else { "the cluster" };
                let reason =
                    format!("{product} × data {data} is {wanted}, and {whole} has {workers} workers");
                let all = wanted.saturating_mul(self.outer_replicas);
                Err(Fault::in_key("data", reason, format!("use {all} workers, or leave `data` out")))
            }
            Some(data) => Ok(data),
            None if workers == 0 || !workers.is_multiple_of(inner) => {
                let reason = format!("{product} is {inner}, which does not divide {workers} workers");
                let key = if self.pipeline > 1 { "pipeline" } else { "tensor" };
                Err(Fault::in_key(
                    key,
                    reason,
                    format!(
                        "use a multiple of {} workers, or another split",
                        inner.saturating_mul(self.outer_replicas)
                    ),
                ))
            }
            None => Ok(workers / inner),
        }
    }

    pub(super) fn check_experts(&self, shape: &Transformer, data: u64) -> Result<(), Fault> {
        let x = self.expert;
        let wrong = |reason: String, remedy: String| Err(Fault::in_key("expert", reason, remedy));
        let Some(experts) = shape.experts else {
            return match x {
                1 => Ok(()),
                _ => wrong("the model has no experts".to_owned(), "use `expert = 1`".to_owned()),
            };
        };
        let ranks = self.tensor * self.context * data;
        let fits = |x: &u64| experts.count.is_multiple_of(*x) && ranks.is_multiple_of(*x);
        if fits(&x) {
            return Ok(());
        }
        let remedy = format!("use {}", choices((1..=experts.count).filter(fits)));
        match experts.count.is_multiple_of(x) {
            false => wrong(format!("{x} ranks do not divide {} experts", experts.count), remedy),
            true => wrong(format!("{x} does not divide tensor × context × data = {ranks} ranks"), remedy),
        }
    }

    pub(super) fn check_sharding(&self, _: &Transformer, data: u64) -> Result<(), Fault> {
        let replicas = data * self.context;
        match (self.sharding, self.sharding_group) {
            (Sharding::Hsdp, None) => {
                let reason = "`hsdp` needs the size of its groups";
                Err(Fault::in_key("sharding", reason, "add `sharding-group = 8`"))
            }
            (Sharding::Hsdp, Some(group)) if !replicas.is_multiple_of(group) => {
                let reason =
                    format!("groups of {group} do not divide {replicas} ranks with the same weights");
                let divisors = choices(divisors(replicas));
                Err(Fault::in_key("sharding-group", reason, format!("use a divisor of them: {divisors}")))
            }
            (Sharding::Hsdp, Some(_)) | (_, None) => Ok(()),
            (sharding, Some(_)) => {
                let reason = format!("`{sharding}` shards over all replicas");
                Err(Fault::in_key("sharding-group", reason, "remove it, or use `sharding = \"hsdp\"`"))
            }
        }
    }

    pub(super) fn check_offload(&self, _: &Transformer, data: u64) -> Result<(), Fault> {
        let replicas = data * self.context;
        if self.offloaded().optimiser && self.sharding == Sharding::None && replicas > 1 {
            let reason = format!("the hosts of {replicas} replicas would each update all parameters");
            return Err(Fault::in_key("offload", reason, "use `sharding = \"zero-2\"`"));
        }
        Ok(())
    }
}

/// Whether every stage has a layer, `chunks` of them being on each of `pipeline` ranks. Of the virtual stages, only the first
/// and the last may have none.
pub fn has_layers(layers: u64, [pipeline, chunks]: [u64; 2], kind: ScheduleKind) -> bool {
    let places = pipeline.saturating_mul(chunks);
    let apart = chunks > 1 && !kind.is_folded();
    let ends = || [0, places - 1].iter().all(|place| stage_share(layers, places, *place) > 0);
    places <= layers.saturating_add(2) && (apart || ends())
}

/// The divisors of a number that are small enough to be of use.
fn divisors(number: u64) -> impl Iterator<Item = u64> {
    (1..=number.min(1024)).filter(move |divisor| number.is_multiple_of(*divisor))
}

/// "1, 2, 4 or 8".
fn choices(numbers: impl Iterator<Item = u64>) -> String {
    /// Most choices in a message; more are not helpful.
    const MOST: usize = 12;
    let mut numbers: Vec<String> = numbers.take(MOST).map(|number| number.to_string()).collect();
    match (numbers.pop(), numbers.is_empty()) {
        (Some(last), false) => format!("{} or {last}", numbers.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}
