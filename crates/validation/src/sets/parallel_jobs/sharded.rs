//! Jobs with sharded optimiser states, gradients or weights: ZeRO by hand, and PyTorch's FSDP2.

use super::data::{Data, Layer, ShardedJob};
use super::profile::LayerTimes;
use crate::judged::Judged;
use stepcast_analytic::transformer::traffic::Collective;
use stepcast_analytic::transformer::units::{Exchange, Unit, passes};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;

pub(super) fn figures(data: &Data) -> Result<Vec<Judged>, Fault> {
    let figure = |job: &ShardedJob| {
        let ShardedJob { ranks, layers, stage, overlap, .. } = *job;
        let place = &job.job.place;
        let name = format!(
            "{} {} {stage} over {ranks} L {layers} b {}{} at {} ({} hosts)",
            job.implementation,
            job.job.model,
            job.job.b,
            if overlap { " overlapped" } else { "" },
            place.rate,
            place.world
        );
        let family = "ZeRO and FSDP2, from a profile";
        Ok(Judged::new(family, name, predict(data, job)?, job.job.measured()))
    };
    data.sharded.iter().map(figure).collect()
}

fn predict(data: &Data, job: &ShardedJob) -> Result<f64, Fault> {
    let n = job.ranks;
    let times = LayerTimes::of(data, &job.job, 1, false)?;
    let blocks = std::iter::repeat_n(times.block, job.layers);
    let layers: Vec<Layer> =
        std::iter::once(times.embedding).chain(blocks).chain(std::iter::once(times.head)).collect();
    let time = |collective, bytes| data.time(&job.job.place, collective, n, bytes, n);
    let mut units = Vec::with_capacity(layers.len());
    for (layer, &bytes) in layers.iter().zip(&job.job.grad_bytes) {
        units.push(Unit {
            forward: Seconds::new(layer.fwd),
            backward: Seconds::new(layer.bwd),
            gather: time(Collective::AllGather, bytes)?,
            reduce: time(Collective::ReduceScatter, bytes)?,
        });
    }
    let own = job.implementation == "own";
    // FSDP2 on CPUs waits for every reduction. By hand, ZeRO 1 reduces after the backward pass, and ZeRO 1 and 2 gather
    // after the update.
    let exchange = Exchange {
        forward: !own || job.stage == 3,
        backward: job.stage == 3,
        reduce: !own || job.stage >= 2,
        ahead: job.overlap,
        behind: job.overlap && own,
    };
    let [_, mut end] = passes(&units, &exchange);
    if own && job.stage == 1 {
        end += units.iter().map(|unit| unit.reduce).sum::<Seconds>();
    }
    if own && job.stage < 3 {
        end += units.iter().map(|unit| unit.gather).sum::<Seconds>();
    }
    let update: f64 = layers.iter().map(|layer| layer.opt).sum();
    Ok(end.get() + update / n as f64)
}
