//! The layers of a stage.

use super::Held;
use crate::transformer::schedules;

/// The dense layers and the layers with experts of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageLayers {
    /// Layers with a dense MLP.
    pub dense: u64,
    /// Layers with experts.
    pub expert: u64,
}

impl Held<'_> {
    /// Layers of a stage, over all its chunks.
    pub fn layers(&self, stage: u64) -> StageLayers {
        let halves = self.chunks(stage).flatten();
        halves.fold(StageLayers { dense: 0, expert: 0 }, |sum, half| StageLayers {
            dense: sum.dense + half.dense,
            expert: sum.expert + half.expert,
        })
    }

    /// Layers of every chunk of a stage: those to which recomputation applies, and the others behind them.
    pub(super) fn chunks(&self, stage: u64) -> impl Iterator<Item = [StageLayers; 2]> {
        let places = self.split.pipeline * self.split.chunks;
        let dense = self.shape.layers - self.shape.expert_layers();
        let mut end = 0;
        (0..places).filter_map(move |place| {
            let (from, count) = (end, self.layers_at(place, places));
            end += count;
            let middle = from + self.recompute.among_at(place, count, self.stage_recompute);
            (self.stage_of(place) == stage).then(|| {
                [from..middle, middle..end].map(|range| {
                    let dense = dense.clamp(range.start, range.end) - range.start;
                    StageLayers { dense, expert: range.end - range.start - dense }
                })
            })
        })
    }

    /// Layers of a virtual stage: as given, or an equal share.
    pub(super) fn layers_at(&self, place: u64, places: u64) -> u64 {
        let given = usize::try_from(place).ok().and_then(|place| self.stage_layers.get(place));
        given.copied().unwrap_or(self.shape.layers / places)
    }

    pub(super) fn stage_of(&self, place: u64) -> u64 {
        schedules::stage_of(self.schedule, self.split.pipeline, place)
    }

    /// Whether a stage has the last virtual stage, and so the output layer.
    pub(super) fn is_last(&self, stage: u64) -> bool {
        self.stage_of(self.split.pipeline * self.split.chunks - 1) == stage
    }
}
