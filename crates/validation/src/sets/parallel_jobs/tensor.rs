//! Tensor-parallel jobs, with replicas or without: every collective waits for the slowest rank.

use super::data::{Data, TensorJob};
use super::profile::LayerTimes;
use crate::judged::Judged;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::traffic::{self, Collective, Message, Phase};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{Block, Transformer};
use stepcast_core::strategy::Recompute;

/// Traffic counts 16-bit elements; the jobs send 32-bit ones.
const WIDER: f64 = 2.0;

pub(super) fn figures(data: &Data) -> Result<Vec<Judged>, Fault> {
    let figure = |job: &TensorJob| {
        let TensorJob { t, dp, layers, sp, overlap, .. } = *job;
        let family = if dp > 1 { "tensor x data, from a profile" } else { "tensor, from a profile" };
        let place = &job.job.place;
        let name = format!(
            "{} t {t} d {dp} L {layers} b {}{}{} at {} ({} hosts)",
            job.job.model,
            job.job.b,
            if sp { " sequence parallel" } else { "" },
            if overlap { " overlapped" } else { "" },
            place.rate,
            place.world
        );
        Ok(Judged::new(family, name, predict(data, job)?, job.job.measured()))
    };
    data.tensors.iter().map(figure).collect()
}

/// "g256s512": hidden width and tokens of a sequence.
fn sizes(model: &str) -> Option<(u64, u64)> {
    let digits = model.strip_prefix('g')?;
    let (hidden, sequence) = digits.split_once('s').unwrap_or((digits, "128"));
    Some((hidden.parse().ok()?, sequence.parse().ok()?))
}

fn predict(data: &Data, job: &TensorJob) -> Result<f64, Fault> {
    let TensorJob { t, dp, layers, sp, overlap, .. } = *job;
    let (hidden, sequence) = sizes(&job.job.model)
        .ok_or_else(|| Fault::new(format!("model {}", job.job.model), "name it such as \"g256s512\""))?;
    let times = LayerTimes::of(data, &job.job, t, sp)?;
    let shape = Transformer::gpt(layers, hidden, t, t, sequence);
    let split = Split { tensor: t, sequence_parallel: sp, data: dp, ..Split::WHOLE };
    let active = t * dp;
    let sent = |message: &Message, wider: f64| -> Result<f64, Fault> {
        let bytes = message.bytes as f64 * wider;
        let time = data.time(&job.job.place, message.collective, t, bytes, active)?;
        Ok(time.get() * message.count as f64)
    };
    let of = |message: &Message| sent(message, WIDER);
    // A block keeps its gathered inputs, so that nothing is gathered again for the gradients of weights.
    let block = |phase: Phase| -> Result<f64, Fault> {
        let messages = traffic::tensor_layer(&shape, &split, job.job.b, Block::DENSE, Recompute::None.into());
        messages.filter(|message| message.phase == phase).map(|message| of(&message)).sum()
    };
    let ends = traffic::vocabulary(&shape, &split, sequence * job.job.b);
    let (mut embedding, mut head, mut head_back, mut embedding_back) = (0.0, 0.0, 0.0, 0.0);
    if let Some(ends) = ends {
        let gather = Message { count: 1, ..ends.gathers };
        let gather = if sp { of(&gather)? } else { 0.0 };
        // Traffic counts the loss in 32 bits.
        let loss = sent(&ends.loss, 1.0)?;
        (embedding, head, head_back) = (of(&ends.embedding)?, gather + loss, of(&ends.logits)?);
        embedding_back = gather;
    }
    let wait = times.wait(active);
    let forward = wait * (times.embedding.fwd + layers as f64 * times.block.fwd + times.head.fwd)
        + embedding
        + layers as f64 * block(Phase::Forward)?
        + head;
    // Gradients are summed after the backward pass, or layer by layer as far as computing lasts: tensor-parallel
    // collectives use the same links.
    let mut now = forward;
    let mut left = 0.0_f64;
    let back = block(Phase::Backward)?;
    let blocks = (1..=layers as usize).rev().map(|index| (times.block.bwd, back, index));
    let order = std::iter::once((times.head.bwd, head_back, layers as usize + 1))
        .chain(blocks)
        .chain(std::iter::once((times.embedding.bwd, embedding_back, 0)));
    for (compute, waited, index) in order {
        let compute = wait * compute;
        if overlap {
            left = (left - compute).max(0.0);
        }
        now += compute + waited;
        if dp > 1 {
            let bytes = job.job.grad_bytes.get(index).copied().unwrap_or(0.0);
            left += data.time(&job.job.place, Collective::AllReduce, dp, bytes, active)?.get();
        }
    }
    if sp {
        now += data.time(&job.job.place, Collective::AllReduce, t, job.norm_bytes, active)?.get();
    }
    let update = times.embedding.opt + layers as f64 * times.block.opt + times.head.opt;
    Ok(now + left + update)
}
