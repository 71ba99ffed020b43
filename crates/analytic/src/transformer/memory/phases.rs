//! A step of PyTorch in phases: the end of the forward pass, the loss, the backward pass of every layer, the gradient of
//! the embedding, the update. A rank needs the memory of the largest phase.

use super::eager::{Gradients, Layer};
use super::widths::{is_autocast, norm_width, stream_width, vocabulary_matrix};
use super::{LayerKind, MemoryInputs, RankMemory, WORKSPACES};
use stepcast_core::model::transformer::Backward;
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{Recompute, Recomputed};

/// Memory of a rank of `stage` in the phase that needs most; `states` is the rank with its states alone.
pub(super) fn peak(held: &MemoryInputs<'_>, stage: u64, states: RankMemory) -> RankMemory {
    let phases = Phases::new(held, stage, states);
    let mut most = phases.update();
    for phase in
        [phases.forward(), phases.loss()].into_iter().chain(phases.layers()).chain(phases.embedding())
    {
        if phase.total() > most.total() {
            most = phase;
        }
    }
    most
}

struct Phases<'a> {
    held: &'a MemoryInputs<'a>,
    first: bool,
    last: bool,
    states: RankMemory,
    /// Whether gradients of earlier micro-batches exist.
    gradients: Gradients,
    stage: u64,
    /// Layers from the first: each as it is computed.
    layers: Vec<Layer>,
    /// Activations of all micro-batches in flight but one.
    earlier: f64,
    /// Largest activations of a layer.
    largest: f64,
}

impl<'a> Phases<'a> {
    fn new(held: &'a MemoryInputs<'a>, stage: u64, states: RankMemory) -> Self {
        // Layers of a kind are alike, and frozen ones keep nothing.
        let mut known: Vec<(LayerKind, Recomputed, Layer)> = Vec::new();
        let mut layers = Vec::with_capacity(held.layers(stage).count() as usize);
        for (half, what) in
            held.ranges(stage).flat_map(|halves| halves.into_iter().zip(held.choice.recompute.halves()))
        {
            for index in half {
                let backward = held.shape.backward_at(index);
                if backward == Backward::Nothing {
                    continue;
                }
                let kind = LayerKind { block: held.shape.block(index), window: None, backward };
                let alike = known.iter().find(|(own, again, _)| *own == kind && *again == what);
                let layer = alike.map_or_else(|| Layer::new(held, kind, what), |(_, _, layer)| *layer);
                if alike.is_none() {
                    known.push((kind, what, layer));
                }
                layers.push(layer);
            }
        }
        let mut phases = Self {
            held,
            first: stage == 0,
            last: held.is_last(stage),
            states,
            stage,
            gradients: match held.choice.micro_batches > 1 || held.plan.graphs {
                true => Gradients::Added,
                false => Gradients::New,
            },
            layers,
            earlier: 0.0,
            largest: 0.0,
        };
        let in_flight = states.in_flight as f64 / held.split().chunks as f64;
        phases.earlier = phases.kept() * (in_flight - 1.0).max(0.0);
        phases.largest = phases.layers.iter().map(Layer::kept).fold(0.0, f64::max);
        phases
    }

    /// Activations of one micro-batch in all layers.
    fn kept(&self) -> f64 {
        self.layers.iter().map(Layer::kept).sum()
    }

    /// Hidden states that pass between layers.
    fn stream(&self) -> f64 {
        self.held.tokens() / self.held.split().token_ranks() as f64
            * self.held.shape.hidden as f64
            * stream_width(self.held)
    }

    /// The part of this micro-batch's `kept` activations, and of earlier ones, that is on the device.
    fn on_device(&self, kept: f64) -> Bytes {
        self.held.on_device(Bytes::new(self.earlier + kept), Bytes::new(self.largest))
    }

    /// Weights that are gathered when the loss is computed: the embedding, the output layer and the last layer.
    fn gathered(&self) -> f64 {
        if self.held.keeps_units_whole() {
            return self.held.unsharded(self.stage).get();
        }
        if self.held.choice.sharding.stage() < 3 {
            return 0.0;
        }
        let ends = f64::from(u8::from(self.first && !self.held.shape.tied)) + f64::from(u8::from(self.last));
        let [unit, _] = self.held.unit(self.held.layers(self.stage));
        2.0 * ends * vocabulary_matrix(self.held) + self.held.gathered_width() * unit as f64
    }

    /// After the forward pass of the micro-batch: no gradients yet, unless earlier micro-batches have some.
    fn after_forward(&self) -> RankMemory {
        let held = self.held;
        let gradients = match self.gradients {
            Gradients::New => Bytes::ZERO,
            Gradients::Added => self.states.gradients,
        };
        RankMemory {
            gradients,
            activations: self.on_device(self.kept()),
            embedding: if self.first { held.embedding() } else { Bytes::ZERO },
            head: if self.last { self.head() } else { Bytes::ZERO },
            unsharded: Bytes::new(self.gathered()),
            ..self.states
        }
    }

    /// Activations of the output layer and the loss, and the input of the final norm.
    fn head(&self) -> Bytes {
        self.held.kept_by_head() + Bytes::new(self.stream() * norm_width(self.held) / stream_width(self.held))
    }

    /// The forward pass: autocast keeps copies of all matrices until its end, even if layers are computed again; and
    /// the 32-bit logits are beside their softmax.
    fn forward(&self) -> RankMemory {
        // Layers that keep everything keep their copies among it, unless that leaves the device.
        let apart = |layer: &&Layer| {
            self.held.plan.offloaded().activations
                || layer.recompute == Recompute::Operators
                || layer.recompute == Recompute::Layer
        };
        let copies: f64 = self.layers.iter().filter(apart).map(Layer::copies).sum();
        // Models of Hugging Face return their 16-bit logits, too.
        let returned = if self.held.plan.implemented_by().is_hugging_face() { 0.75 } else { 0.5 };
        self.beside(copies + returned * self.held.logits_meanwhile(self.last))
    }

    fn loss(&self) -> RankMemory {
        self.beside(self.held.logits_meanwhile(self.last))
    }

    fn beside(&self, temporary: f64) -> RankMemory {
        RankMemory { temporary: WORKSPACES + Bytes::new(temporary), ..self.after_forward() }
    }

    /// The backward pass of every layer, from the last.
    fn layers(&self) -> impl Iterator<Item = RankMemory> {
        let held = self.held;
        let sharded = held.choice.sharding.stage() == 3;
        let unsharded = if sharded { held.unsharded(self.stage) } else { Bytes::ZERO };
        let embedding = if self.first { held.embedding() } else { Bytes::ZERO };
        let (dense, expert) = held.stage_trained(self.stage);
        let trained = (dense + expert).max(1) as f64;
        let embedded = self.first && !held.shape.tied && !held.shape.tuning.frozen_embedding;
        let later = if embedded { vocabulary_matrix(self.held) } else { 0.0 };
        let mut missing = later + self.layers.iter().map(|layer| layer.trained).sum::<f64>();
        let mut kept = self.kept();
        self.layers.iter().rev().map(move |layer| {
            let again = layer.whole() - layer.kept();
            let gradients = match self.gradients {
                Gradients::New => self.states.gradients * (1.0 - missing / trained).max(0.0),
                Gradients::Added => self.states.gradients,
            };
            let phase = RankMemory {
                gradients,
                activations: self.on_device(kept),
                recomputed: Bytes::new(again),
                embedding,
                unsharded,
                temporary: WORKSPACES + Bytes::new(layer.stream + layer.backward(self.gradients)),
                ..self.states
            };
            kept -= layer.kept();
            missing -= layer.trained;
            phase
        })
    }

    /// The gradient of the embedding. A tied one has two, which are added: in place under autocast, else into a third.
    fn embedding(&self) -> Option<RankMemory> {
        let held = self.held;
        if !self.first || held.shape.tuning.frozen_embedding {
            return None;
        }
        let matrix = vocabulary_matrix(self.held);
        let width = if is_autocast(held) { 4.0 } else { 2.0 };
        let copies = match (held.shape.tied && self.last, is_autocast(held), self.gradients) {
            (true, false, Gradients::New) => 2.0,
            (false, _, Gradients::New) => 0.0,
            _ => 1.0,
        };
        let stream = self.stream();
        Some(RankMemory {
            activations: self.on_device(0.0),
            embedding: held.embedding(),
            temporary: WORKSPACES + Bytes::new(copies * width * matrix + stream),
            ..self.states
        })
    }

    fn update(&self) -> RankMemory {
        RankMemory { temporary: WORKSPACES, ..self.states }
    }
}
