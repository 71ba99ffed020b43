//! A file of torchtitan (`torchtitan/config/job_config.py`).

use super::{Launch, cannot, refuse_buckets};
use stepcast_core::fault::Fault;
use stepcast_core::model::zoo;
use stepcast_core::strategy::{Attention, ContextExchange, Recompute, ScheduleKind, Sharding};

pub(super) fn file(launch: &Launch<'_>) -> Result<String, Fault> {
    let Launch { shape, plan, .. } = *launch;
    refuse_buckets("torchtitan", plan)?;
    let schedule = match plan.schedule_kind() {
        ScheduleKind::OneFOneB => "1F1B",
        ScheduleKind::Gpipe => "GPipe",
        ScheduleKind::Interleaved => "Interleaved1F1B",
        ScheduleKind::LoopedBfs => "LoopedBFS",
        ScheduleKind::InterleavedZeroBubble => "InterleavedZeroBubble",
        ScheduleKind::Zbv => "ZBVZeroBubble",
        other => {
            let set = "plan.schedule=[\"1f1b\", \"interleaved\", \"zbv\"]";
            return Err(cannot("torchtitan", &format!("`{other}`"), set));
        }
    };
    if plan.tensor > 1 && !plan.sequence_parallel {
        let what = "tensor parallelism without sequence parallelism";
        return Err(cannot("torchtitan", what, "plan.sequence-parallel=[true, false]"));
    }
    let [replicate, shard] = degrees(launch)?;
    let reshard = match plan.sharding {
        Sharding::None => "default",
        Sharding::Zero2 | Sharding::Keep => "never",
        _ => "always",
    };
    let recompute = match plan.recomputation().what {
        Recompute::None => "none",
        // Flash attention keeps nothing that this would compute again.
        Recompute::Attention if plan.attention == Attention::Flash => "none",
        Recompute::Attention => {
            let set = "plan.recompute=[\"none\", \"operators\", \"layer\"]";
            return Err(cannot("torchtitan", "recomputation of attention alone", set));
        }
        Recompute::Operators => "selective",
        Recompute::Layer => "full",
    };
    let rotate = match plan.context_exchange {
        ContextExchange::AllGather => "allgather",
        ContextExchange::Ring => "alltoall",
        ContextExchange::AllToAll if plan.context == 1 => "allgather",
        ContextExchange::AllToAll => {
            let set = "strategy.plan.context-exchange=all-gather";
            return Err(cannot("torchtitan", "an exchange of heads", set));
        }
    };
    let local = plan.micro_batch * if plan.pipeline > 1 { launch.micro_batches } else { 1 };
    let mut text = model(launch.name, plan.float8);
    text.push_str(&format!(
        "[training]\nlocal_batch_size = {local}\nglobal_batch_size = {}\nseq_len = {}\n\n[parallelism]\n\
         data_parallel_replicate_degree = {replicate}\ndata_parallel_shard_degree = {shard}\n\
         fsdp_reshard_after_forward = \"{reshard}\"\ntensor_parallel_degree = {}\n\
         context_parallel_degree = {}\npipeline_parallel_degree = {}\n",
        launch.global_batch(),
        shape.sequence,
        plan.tensor,
        plan.context,
        plan.pipeline,
    ));
    if plan.context > 1 {
        text.push_str(&format!("context_parallel_rotate_method = \"{rotate}\"\n"));
    }
    if plan.pipeline > 1 {
        let each = shape.layers / (plan.pipeline * plan.virtual_stages);
        let [first, each, last] = match &plan.stage_layers {
            None => [each; 3],
            Some(_) => launch.ends().filter(|[first, each, last]| first <= each && last <= each).ok_or_else(
                || {
                    let what = "stages with different numbers of layers, but for fewer of them at the ends,";
                    cannot("torchtitan", what, "plan.per-stage=false")
                },
            )?,
        };
        let [less_at_first, less_at_last] = [each - first, each - last];
        text.push_str(&format!(
            "pipeline_parallel_schedule = \"{schedule}\"\npipeline_parallel_microbatch_size = {}\n\
             pipeline_parallel_layers_per_stage = {each}\n\
             pipeline_parallel_first_stage_less_layers = {less_at_first}\n\
             pipeline_parallel_last_stage_less_layers = {less_at_last}\n",
            plan.micro_batch
        ));
    }
    if plan.expert > 1 {
        text.push_str(&format!("expert_parallel_degree = {}\n", plan.expert));
    }
    text.push_str(&format!("\n[activation_checkpoint]\nmode = \"{recompute}\"\n"));
    if recompute == "selective" {
        text.push_str("selective_ac_option = \"op\"\n");
    }
    Ok(text)
}

/// Replicas of the weights, and ranks that each divides its own over.
fn degrees(launch: &Launch<'_>) -> Result<[u64; 2], Fault> {
    let Launch { plan, data, .. } = *launch;
    let refused = |what: &str, shardings: &str| {
        Err(cannot("torchtitan", what, &format!("plan.sharding=[{shardings}]")))
    };
    match (plan.sharding, plan.sharding_group) {
        // Ranks that divide a sequence also divide the weights.
        (Sharding::None, _) if plan.context > 1 => {
            refused("context parallelism with whole weights", "\"zero-3\", \"hsdp\"")
        }
        (Sharding::None, _) => Ok([data, 1]),
        (Sharding::Zero2, _) if plan.pipeline > 1 => {
            refused("`zero-2` with a pipeline", "\"none\", \"fsdp-keep\", \"zero-3\", \"hsdp\"")
        }
        (Sharding::Keep, _) if plan.pipeline == 1 => {
            refused("`fsdp-keep` without a pipeline", "\"none\", \"zero-2\", \"zero-3\", \"hsdp\"")
        }
        (Sharding::Zero2 | Sharding::Keep | Sharding::Zero3, _) => Ok([1, data]),
        (Sharding::Hsdp, Some(group)) if group.is_multiple_of(plan.context) => {
            let shard = group / plan.context;
            Ok([data / shard, shard])
        }
        (Sharding::Hsdp, _) => refused("groups that divide a sequence", "\"none\", \"zero-3\""),
        (Sharding::Zero1, _) => refused("`zero-1`", "\"none\", \"zero-2\", \"zero-3\", \"hsdp\""),
    }
}

/// The model, if torchtitan has one of this name.
fn model(name: &str, float8: bool) -> String {
    let known = ["llama3", "qwen3"].iter().find_map(|family| {
        let size = name.strip_prefix(family)?.strip_prefix('-')?;
        zoo::transformer(name).map(|_| format!("name = \"{family}\"\nflavor = \"{}\"\n", size.to_uppercase()))
    });
    let mut table = known.unwrap_or_default();
    if float8 {
        table.push_str("converters = [\"float8\"]\n");
    }
    if table.is_empty() { table } else { format!("[model]\n{table}\n") }
}
