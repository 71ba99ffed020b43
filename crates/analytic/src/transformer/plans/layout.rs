//! Which layers every virtual stage has, and which stages are alike.

use crate::transformer::schedules::stage_of;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::strategy::ScheduleKind;

/// Virtual stages with the same layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    /// Its layers: dense with a window, other dense, with experts and a window, other with experts.
    pub(super) layers: [u64; 4],
    /// Whether it has the embedding.
    pub(super) first: bool,
    /// Whether it has the output layer.
    pub(super) last: bool,
}

/// Stages beside each other with the same virtual stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alike {
    /// The first of them.
    pub(super) first: usize,
    /// How many.
    pub(super) count: usize,
    /// The classes of their virtual stages, in order.
    pub(super) classes: Vec<usize>,
    /// Layers of each.
    pub(super) layers: u64,
    /// Sends of each to other stages, for one micro-batch.
    pub(super) sends: u32,
}

/// Equal shares of the layers on p·v virtual stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// p.
    pub(super) stages: usize,
    /// v.
    pub(super) chunks: usize,
    /// Class of every virtual stage.
    pub(super) class_of: Vec<usize>,
    /// The classes.
    pub(super) classes: Vec<Class>,
    /// All stages, in order.
    pub(super) alike: Vec<Alike>,
}

impl Layout {
    pub(super) fn new(shape: &Transformer, kind: ScheduleKind, pipeline: u64, chunks: u64) -> Self {
        let places = pipeline * chunks;
        let each = shape.layers / places;
        let mut classes: Vec<Class> = Vec::new();
        let class_of: Vec<usize> = (0..places)
            .map(|place| {
                let layers = layers(shape, place * each, (place + 1) * each);
                let class = Class { layers, first: place == 0, last: place + 1 == places };
                let known = classes.iter().position(|known| *known == class);
                known.unwrap_or_else(|| {
                    classes.push(class);
                    classes.len() - 1
                })
            })
            .collect();
        let stage_at = |place: u64| stage_of(kind, pipeline, place);
        let mut alike: Vec<Alike> = Vec::new();
        for stage in 0..pipeline {
            let own: Vec<u64> = (0..places).filter(|&place| stage_at(place) == stage).collect();
            let leaves = |other: u64| u32::from(other < places && stage_at(other) != stage);
            let sends = own.iter().map(|&place| leaves(place + 1) + leaves(place.wrapping_sub(1))).sum();
            let own: Vec<usize> = own.into_iter().map(|place| class_of[place as usize]).collect();
            match alike.last_mut() {
                Some(last) if last.classes == own && last.sends == sends => last.count += 1,
                _ => {
                    let layers = own.iter().map(|&class| classes[class].layers.iter().sum::<u64>()).sum();
                    alike.push(Alike { first: stage as usize, count: 1, classes: own, layers, sends });
                }
            }
        }
        Self { stages: pipeline as usize, chunks: chunks as usize, class_of, classes, alike }
    }
}

/// Layers from `from` to `to` by kind: dense layers come first, and every n-th layer has the window.
fn layers(shape: &Transformer, from: u64, to: u64) -> [u64; 4] {
    let (dense, every) = (shape.layers - shape.expert_layers(), shape.window_every.max(1));
    let by_window = |first: u64, end: u64| {
        let windowed = end.div_ceil(every) - first.div_ceil(every);
        [windowed, end - first - windowed]
    };
    let [windowed, plain] = by_window(from.min(dense), to.min(dense));
    let [expert_windowed, expert_plain] = by_window(from.max(dense), to.max(dense));
    [windowed, plain, expert_windowed, expert_plain]
}
