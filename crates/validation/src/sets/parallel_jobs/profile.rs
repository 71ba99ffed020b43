//! Times of layers from profiles that were recorded while all ranks computed at once.

use super::data::{Data, Job, Layer, Profile};
use stepcast_core::fault::Fault;
use stepcast_stats::mean;

/// Embedding, block and output layer with the loss: means over all profiles of the same shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerTimes {
    pub(super) embedding: Layer,
    pub(super) block: Layer,
    pub(super) head: Layer,
    /// How much slower the slowest of a group is than the mean rank.
    totals: [f64; 9],
}

impl LayerTimes {
    /// The layers of a job's model and batch, divided by `tensor` ranks; of the shard without sequence parallelism if
    /// the other was not profiled.
    pub(super) fn of(data: &Data, job: &Job, tensor: u64, sequence_parallel: bool) -> Result<Self, Fault> {
        let all = |sp: bool| -> Vec<&Profile> {
            let fits = |row: &&Profile| {
                row.model == job.model
                    && row.place.world == job.place.world
                    && row.b == job.b
                    && row.t == tensor
                    && row.sp == sp
                    && row.ranks > 1
                    && row.layers.len() >= 3
            };
            data.profiles.iter().filter(fits).collect()
        };
        let mut rows = all(sequence_parallel);
        if rows.is_empty() {
            rows = all(false);
        }
        if rows.is_empty() {
            let reason = format!("no profile of {} with batch {} over {tensor} ranks", job.model, job.b);
            return Err(Fault::new(reason, "profile it, or leave the job out"));
        }
        let last = |row: &Profile| row.layers.len() - 1;
        let layer = |range: fn(usize) -> std::ops::RangeInclusive<usize>| {
            let of = |figure: fn(&Layer) -> f64| {
                let each: Vec<f64> = rows
                    .iter()
                    .map(|row| mean(&row.layers[range(last(row))].iter().map(figure).collect::<Vec<_>>()))
                    .collect();
                mean(&each)
            };
            let (fwd, bwd, opt) = (of(|it| it.fwd), of(|it| it.bwd), of(|it| it.opt));
            Layer { fwd, bwd, opt, bwd_input: bwd, bwd_weight: 0.0 }
        };
        let mut totals = [1.0; 9];
        for (count, total) in totals.iter_mut().enumerate().skip(2) {
            let each: Vec<f64> = rows.iter().map(|row| slowest(&row.total_by_rank, count)).collect();
            *total = mean(&each);
        }
        Ok(Self {
            embedding: layer(|_| 0..=0),
            block: layer(|last| 1..=last - 1),
            head: layer(|last| last..=last),
            totals,
        })
    }

    /// With the backward pass in two parts, in the proportions of the profile that has both.
    pub(super) fn split(mut self, data: &Data) -> Self {
        let found = data.profiles.iter().find_map(|row| Some((row, row.split_layers.as_ref()?)));
        if let Some((row, parts)) = found.filter(|(row, parts)| row.layers.len() == parts.len()) {
            let last = parts.len() - 1;
            for (layer, range) in
                [(&mut self.embedding, 0..=0), (&mut self.block, 1..=last - 1), (&mut self.head, last..=last)]
            {
                let sum = |layers: &[Layer], of: fn(&Layer) -> f64| {
                    layers[range.clone()].iter().map(of).sum::<f64>()
                };
                let whole = sum(&row.layers, |it| it.bwd);
                layer.bwd_input = layer.bwd * sum(parts, |it| it.bwd_input) / whole;
                layer.bwd_weight = layer.bwd * sum(parts, |it| it.bwd_weight) / whole;
            }
        }
        self
    }

    /// How much slower the slowest of `ranks` is than the mean: what all wait for in every collective.
    pub(super) fn wait(&self, ranks: u64) -> f64 {
        self.totals[usize::try_from(ranks).unwrap_or(usize::MAX).clamp(1, self.totals.len() - 1)]
    }
}

/// Expected maximum of `count` of the values, all subsets alike, over their mean.
fn slowest(values: &[f64], count: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return 1.0;
    }
    let count = count.min(n);
    // The i-th value (from 0) is the maximum of C(i, count − 1) of all C(n, count) subsets.
    let choose = |n: usize, k: usize| (0..k).map(|j| (n as f64 - j as f64) / (k - j) as f64).product::<f64>();
    let weight = |i: usize| if i + 1 >= count { choose(i, count - 1) } else { 0.0 };
    let sum: f64 = sorted.iter().enumerate().map(|(i, value)| value * weight(i)).sum();
    sum / choose(n, count) / mean(&sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_a_few_is_averaged_over_all_choices() {
        let values = [1.0, 2.0, 6.0];
        assert!((slowest(&values, 1) - 1.0).abs() < 1e-12);
        // Pairs: 2, 6, 6.
        assert!((slowest(&values, 2) - 14.0 / 9.0).abs() < 1e-12);
        assert!((slowest(&values, 3) - 2.0).abs() < 1e-12);
        assert!((slowest(&values, 8) - 2.0).abs() < 1e-12);
    }
}
