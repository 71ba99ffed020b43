//! Experts: a router, tokens brought to their experts and back, and one product for all experts of a device.

use super::shard::ExpertShard;
use super::{Computed, Parts, Product, Shard, Work};

/// Passes over the router's tokens for norm, softmax and sum, in units of the width.
const ROUTED: [f64; 2] = [10.0, 15.0];

/// Kernels beside products: top-k, sorting, gathers and weighted sums.
const KERNELS: [f64; 2] = [20.0, 30.0];

impl Parts {
    /// Router, experts and shared expert of a layer, in place of its MLP.
    pub(super) fn experts(&self, shard: &Shard<'_>, experts: &ExpertShard) -> Computed {
        let router = Product::new(experts.tokens, experts.all, shard.hidden);
        let routed = shard.mlp_of(experts.visits / experts.count, experts.width, experts.count);
        let mut sum = self.matrices(&[router]).and(self.matrices(&routed));
        sum = sum.and(self.activation(shard, experts.visits * experts.width));
        if experts.shared > 0.0 {
            sum = sum.and(self.matrices(&shard.mlp_of(shard.tokens, experts.shared, 1.0)));
            sum = sum.and(self.activation(shard, shard.tokens * experts.shared));
        }
        let w = self.width() * shard.hidden;
        let dispatch = [self.constants.dispatch, self.constants.dispatch_back];
        let moved = |index: usize| Work {
            device: self.passing(w * (experts.visits * dispatch[index] + experts.tokens * ROUTED[index])),
            kernels: KERNELS[index],
        };
        sum.and(Computed { forward: moved(0), input: moved(1), ..Computed::default() })
    }
}
