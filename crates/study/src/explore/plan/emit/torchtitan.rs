//! A file of torchtitan (`torchtitan/config/job_config.py`).

use super::{Launch, cannot};
use stepcast_core::fault::Fault;
use stepcast_core::strategy::{Attention, Recompute, ScheduleKind, Sharding};

pub(super) fn file(launch: &Launch<'_>) -> Result<String, Fault> {
    let Launch { shape, plan, .. } = *launch;
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
    let replicas = launch.data;
    let (replicate, shard, reshard) = match (plan.sharding, plan.sharding_group) {
        (Sharding::None, _) => (replicas, 1, "default"),
        (Sharding::Zero2 | Sharding::Keep, _) => (1, replicas, "never"),
        (Sharding::Zero3, _) => (1, replicas, "always"),
        (Sharding::Hsdp, Some(group)) => {
            let shard = (group / plan.context).max(1);
            (replicas / shard, shard, "always")
        }
        (other, _) => {
            let set = "plan.sharding=[\"none\", \"zero-2\", \"zero-3\", \"hsdp\"]";
            return Err(cannot("torchtitan", &format!("`{other}`"), set));
        }
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
    let local = plan.micro_batch * if plan.pipeline > 1 { launch.micro_batches } else { 1 };
    let mut text = format!(
        "[training]\nlocal_batch_size = {local}\nglobal_batch_size = {}\nseq_len = {}\n\n[parallelism]\n\
         data_parallel_replicate_degree = {replicate}\ndata_parallel_shard_degree = {shard}\n\
         fsdp_reshard_after_forward = \"{reshard}\"\ntensor_parallel_degree = {}\n\
         context_parallel_degree = {}\npipeline_parallel_degree = {}\n",
        launch.global_batch(),
        shape.sequence,
        plan.tensor,
        plan.context,
        plan.pipeline,
    );
    if plan.pipeline > 1 {
        let each = shape.layers / (plan.pipeline * plan.virtual_stages);
        text.push_str(&format!(
            "pipeline_parallel_schedule = \"{schedule}\"\npipeline_parallel_microbatch_size = {}\n\
             pipeline_parallel_layers_per_stage = {each}\n",
            plan.micro_batch
        ));
    }
    if plan.expert > 1 {
        text.push_str(&format!("expert_parallel_degree = {}\n", plan.expert));
    }
    text.push_str(&format!("\n[activation_checkpoint]\nmode = \"{recompute}\"\n"));
    Ok(text)
}
