//! Which layers a stage has.

use super::MemoryInputs;
use crate::transformer::{Split, schedules};
use std::ops::Range;
use stepcast_core::model::transformer::{Block, MOST_BLOCKS, Transformer};
use stepcast_core::strategy::{layers_before, stage_share};

/// Layers of a stage by the place of their block ([`Transformer::blocks`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageLayers(pub [u64; MOST_BLOCKS]);

impl StageLayers {
    fn add(&mut self, shape: &Transformer, range: Range<u64>) {
        for (own, more) in self.0.iter_mut().zip(shape.count_blocks(&range)) {
            *own += more;
        }
    }

    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn has_experts(self, shape: &Transformer) -> bool {
        self.of(shape).any(|(block, _)| block.has_experts())
    }

    /// The blocks that it has, and how many layers of each.
    pub(in crate::transformer) fn of(
        self,
        shape: &Transformer,
    ) -> impl Iterator<Item = (Block, u64)> + use<> {
        let counted = shape.blocks().into_iter().zip(self.0);
        counted.filter_map(|(block, count)| Some((block?, count))).filter(|(_, count)| *count > 0)
    }
}

/// Layers of a stage, chunk by chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::transformer) struct ChunkLayers {
    /// Layers of all chunks.
    pub(super) all: StageLayers,
    /// Layers with a backward pass, recomputed ones first, and the number of consecutive chunks that have the same layers.
    pub(super) backward: Vec<([StageLayers; 2], u64)>,
}

impl ChunkLayers {
    /// Counts the layers of chunks. Recomputation applies to the first range of each chunk.
    pub(in crate::transformer) fn new(
        shape: &Transformer,
        chunks: impl Iterator<Item = [Range<u64>; 2]>,
    ) -> Self {
        let mut layers = Self { all: StageLayers::default(), backward: Vec::new() };
        for halves in chunks {
            let mut own = [StageLayers::default(); 2];
            for (range, own) in halves.into_iter().zip(&mut own) {
                let trained = range.start.max(shape.tuning.frozen_layers).min(range.end)..range.end;
                own.add(shape, trained);
                layers.all.add(shape, range);
            }
            match layers.backward.last_mut() {
                Some((last, count)) if *last == own => *count += 1,
                _ => layers.backward.push((own, 1)),
            }
        }
        layers
    }
}

impl MemoryInputs<'_> {
    /// Layers of a stage, over all its chunks.
    pub fn layers(&self, stage: u64) -> StageLayers {
        let mut all = StageLayers::default();
        self.ranges(stage).flatten().for_each(|range| all.add(self.shape, range));
        all
    }

    pub(super) fn chunk_layers(&self, stage: u64) -> ChunkLayers {
        ChunkLayers::new(self.shape, self.ranges(stage))
    }

    /// Layers of every chunk of a stage: those to which recomputation applies, and the others behind them.
    pub(super) fn ranges(&self, stage: u64) -> impl Iterator<Item = [Range<u64>; 2]> {
        let Split { pipeline, chunks, .. } = self.split();
        (0..chunks).map(move |chunk| {
            let place = schedules::place_of(self.choice.schedule, pipeline, stage, chunk);
            let Range { start, end } = self.layers_at(place, pipeline * chunks);
            let middle = start + self.choice.recompute.among_at(place, end - start, self.stage_recompute);
            [start..middle, middle..end]
        })
    }

    /// Layers of a virtual stage: as given, or an equal share.
    pub(super) fn layers_at(&self, place: u64, places: u64) -> Range<u64> {
        let all = self.shape.layers;
        if self.stage_layers.is_empty() {
            let start = layers_before(all, places, place);
            return start..start + stage_share(all, places, place);
        }
        let given = self.stage_layers.iter().copied();
        let start = given.take(usize::try_from(place).unwrap_or(usize::MAX)).sum();
        start..start + self.stage_layers[place as usize]
    }

    pub(super) fn stage_of(&self, place: u64) -> u64 {
        schedules::stage_of(self.choice.schedule, self.split().pipeline, place)
    }

    /// Whether a stage has the last virtual stage, and so the output layer.
    pub(super) fn is_last(&self, stage: u64) -> bool {
        self.stage_of(self.split().pipeline * self.split().chunks - 1) == stage
    }
}
