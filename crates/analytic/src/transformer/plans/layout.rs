//! Which layers every virtual stage has, and which stages are alike.

use crate::transformer::kinds;
use crate::transformer::memory::ChunkLayers;
use crate::transformer::schedules::{place_of, stage_of};
use std::ops::Range;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::strategy::{Recomputation, ScheduleKind, stage_share};

/// Layers of one kind in a virtual stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AlikeLayers {
    /// Recomputation applies to the first half (0) and not to the second (1).
    half: usize,
    pub(super) kind: usize,
    pub(super) count: u64,
}

/// Virtual stages with the same layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) layers: Vec<AlikeLayers>,
    pub(super) count: u64,
    /// Whether it has the embedding.
    pub(super) first: bool,
    /// Whether it has the output layer.
    pub(super) last: bool,
    /// The kind of its stage's workers.
    pub(super) kind: usize,
}

impl Class {
    /// The value of every kind of its layers, and the number of such layers.
    pub(super) fn each<'a, T>(
        &self,
        of: &'a [[T; kinds::COUNT]; 2],
    ) -> impl Iterator<Item = (&'a T, f64)> + use<'a, '_, T> {
        self.layers.iter().map(|own| (&of[own.half][own.kind], own.count as f64))
    }
}

/// Stages beside each other with the same virtual stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EqualStages {
    pub(super) first: usize,
    pub(super) count: usize,
    /// The classes of their virtual stages, in order.
    pub(super) classes: Vec<usize>,
    /// Every one of these classes, and how many virtual stages have it.
    pub(super) counted: Vec<(usize, u32)>,
    pub(super) layers: u64,
    /// The layers of the stages, chunk by chunk.
    pub(super) chunks: ChunkLayers,
    /// Sends of each to other stages, for one micro-batch.
    pub(super) sends: u32,
}

/// The shares of the layers of p·v virtual stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// p.
    pub(super) stages: usize,
    /// v.
    pub(super) chunks: usize,
    /// Class of every virtual stage.
    pub(super) class_of: Vec<usize>,
    pub(super) classes: Vec<Class>,
    pub(super) alike: Vec<EqualStages>,
}

impl Layout {
    pub(super) const fn place(&self, kind: ScheduleKind, stage: usize, chunk: usize) -> usize {
        place_of(kind, self.stages as u64, stage as u64, chunk as u64) as usize
    }

    /// The layout of a shape for a schedule, whose recomputation is as given.
    pub(super) fn new(
        shape: &Transformer,
        kind: ScheduleKind,
        [pipeline, chunks]: [u64; 2],
        recompute: Recomputation,
        kind_of_stage: impl Fn(u64) -> usize,
    ) -> Self {
        let places = pipeline * chunks;
        let stage_at = |place: u64| stage_of(kind, pipeline, place);
        let mut classes: Vec<Class> = Vec::new();
        let mut ranges: Vec<[Range<u64>; 2]> = Vec::new();
        let mut from = 0;
        let class_of: Vec<usize> = (0..places)
            .map(|place| {
                let each = stage_share(shape.layers, places, place);
                let (first, to) = (from + recompute.among(each), from + each);
                let mut layers = Vec::new();
                let halves = [from..first, first..to];
                for (half, range) in halves.iter().enumerate() {
                    let counted = kinds::count(shape, range).into_iter().enumerate();
                    let present = counted.filter(|(_, count)| *count > 0);
                    layers.extend(present.map(|(kind, count)| AlikeLayers { half, kind, count }));
                }
                ranges.push(halves);
                from = to;
                let class = Class {
                    layers,
                    count: each,
                    first: place == 0,
                    last: place + 1 == places,
                    kind: kind_of_stage(stage_at(place)),
                };
                let known = classes.iter().position(|known| *known == class);
                known.unwrap_or_else(|| {
                    classes.push(class);
                    classes.len() - 1
                })
            })
            .collect();
        let mut alike: Vec<EqualStages> = Vec::new();
        for stage in 0..pipeline {
            let own: Vec<u64> = (0..places).filter(|&place| stage_at(place) == stage).collect();
            let leaves = |other: u64| u32::from(other < places && stage_at(other) != stage);
            let sends = own.iter().map(|&place| leaves(place + 1) + leaves(place.wrapping_sub(1))).sum();
            let classes_of: Vec<usize> = own.iter().map(|&place| class_of[place as usize]).collect();
            match alike.last_mut() {
                Some(last) if last.classes == classes_of && last.sends == sends => last.count += 1,
                _ => {
                    let halves = own.iter().map(|&place| ranges[place as usize].clone());
                    let chunks = ChunkLayers::new(shape, halves);
                    let layers = classes_of.iter().map(|&class| classes[class].count).sum();
                    let mut counted: Vec<(usize, u32)> = Vec::new();
                    for &class in &classes_of {
                        match counted.iter_mut().find(|(known, _)| *known == class) {
                            Some((_, count)) => *count += 1,
                            None => counted.push((class, 1)),
                        }
                    }
                    let first = stage as usize;
                    alike.push(EqualStages {
                        first,
                        count: 1,
                        classes: classes_of,
                        counted,
                        layers,
                        chunks,
                        sends,
                    });
                }
            }
        }
        Self { stages: pipeline as usize, chunks: chunks as usize, class_of, classes, alike }
    }
}
