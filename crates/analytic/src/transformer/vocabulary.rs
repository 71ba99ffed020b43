//! Both ends of a transformer: the embedding, and the output layer with the loss.

use super::compute::{Compute, Computed, Shard};
use super::placement::Group;
use super::spent::Pass;
use super::stages::Run;
use super::{LayerKind, compute, flops, traffic};
use stepcast_core::quantity::Flops;
use stepcast_core::strategy::Loss;

impl Run<'_> {
    fn vocabulary_rows(&self) -> f64 {
        self.shape.vocabulary as f64 / self.plan.tensor as f64
    }

    /// The embedding and its sum, on the first virtual stage.
    pub fn embedding(&self) -> Pass {
        let mut pass = match &self.compute {
            Compute::OneRate { .. } => Pass::default(),
            Compute::Parts(parts) => {
                let parts = self.with_weights(parts);
                let shard = self.shard(LayerKind::default());
                // Tokens of the encoder are looked up beside those of the decoder.
                let own_tokens = match self.shape.target {
                    0 => shard.own_tokens,
                    _ if self.shape.signal.is_some() => shard.own_tokens,
                    target => shard.own_tokens * (1.0 + self.shape.sequence as f64 / target as f64),
                };
                let shard = Shard { own_tokens, ..shard };
                self.pass_of(&parts.embedding(&shard, self.vocabulary_rows()))
            }
        };
        if let Some(vocabulary) = self.vocabulary() {
            pass.forward.tensor = self.time(&vocabulary.embedding, self.seats(Group::Tensor));
        }
        self.joined(self.waiting_for_tensors(pass))
    }

    /// The output layer and the loss, on the last virtual stage.
    pub fn head(&self) -> Pass {
        let split = self.split();
        let computed = match &self.compute {
            Compute::OneRate { rate, .. } => {
                let logits = flops::logits(self.shape, self.work()) as f64;
                let time = Flops::new(logits / (split.tensor * split.context) as f64) / *rate;
                let work = compute::Work { device: time, kernels: 0.0 };
                let weight = if self.shape.tuning.frozen_output { compute::Work::default() } else { work };
                Computed { forward: work, input: work, weight, ..Computed::default() }
            }
            Compute::Parts(parts) => {
                // Norms see all tokens of the last layer, the output layer those that reach it.
                let shard = self.shard(LayerKind::default());
                let tokens = match self.shape.signal {
                    None => shard.tokens,
                    Some(_) => shard.tokens * self.shape.predicted() as f64 / self.shape.decoded() as f64,
                };
                self.with_weights(parts).head(&Shard { tokens, ..shard }, self.vocabulary_rows())
            }
        };
        let chunked = self.plan.loss == Some(Loss::Chunked);
        let computed = if chunked { computed.in_forward() } else { computed };
        let mut pass = self.pass_of(&computed);
        if let Some(vocabulary) = self.vocabulary() {
            let (seats, passes) = (self.seats(Group::Tensor), (1 + self.shape.multi_token) as f64);
            let gather = self.time(&vocabulary.gathers, seats) * (0.5 * passes);
            pass.forward.tensor = gather + self.time(&vocabulary.loss, seats) * passes;
            pass.backward.tensor = self.time(&vocabulary.logits, seats) * passes;
            pass.weight.tensor = gather;
        }
        self.joined(self.waiting_for_tensors(pass))
    }

    /// The pass with links that are busy with all tensor-parallel traffic.
    fn waiting_for_tensors(&self, mut pass: Pass) -> Pass {
        for spent in pass.each_mut() {
            spent.busy[self.seats(Group::Tensor).level()] = spent.tensor;
        }
        pass
    }

    fn vocabulary(&self) -> Option<traffic::Vocabulary> {
        if !self.shape.looks_up() {
            return None;
        }
        let split = self.split();
        let tokens = self.shape.predicted() * self.plan.micro_batch / split.context;
        traffic::vocabulary(self.shape, &split, tokens)
    }
}
