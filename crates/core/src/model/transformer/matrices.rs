//! The matrices of a layer, one by one: adapters are added to them, and low-rank optimisers project their gradients.

use super::{Block, FeedForward, Mlp, Parameters, Target, Transformer};

/// A matrix: widths of its input and output, and which of them tensor parallelism divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) divides_input: bool,
    pub(super) count: u64,
}

/// Elements that a low-rank optimiser keeps for the matrices of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LowRank {
    /// Elements of the matrices.
    pub weights: u64,
    /// Elements of one of their two moments.
    pub moment: u64,
    /// Elements of their projections.
    pub projections: u64,
}

impl Transformer {
    /// Weights of the matrices of a layer, which alone are stored in the base's format.
    pub fn layer_matrices(&self, block: Block) -> Parameters {
        let all = self.layer_parameters(block);
        let small = self.norms_of(block) * self.norm.parameters() * self.hidden;
        Parameters { every: all.every.saturating_sub(small), ..all }
    }

    /// What an optimiser keeps that projects the shorter side of every matrix to `rank` (GaLore: Zhao 2024, Table 1).
    pub fn low_rank(&self, block: Block, rank: u64) -> LowRank {
        let mut sum = LowRank::default();
        for (_, Matrix { input, output, count, .. }) in self.matrices(block) {
            let (short, long) = (input.min(output), input.max(output));
            sum.weights += count * short * long;
            sum.moment += count * rank.min(short) * long;
            sum.projections += count * rank.min(short) * short;
        }
        sum
    }

    /// The matrices of attention, but for the narrow ones of latent attention, and of the feed-forward of a layer.
    pub(super) fn matrices(&self, block: Block) -> Vec<(Target, Matrix)> {
        let (key, value) = self.widths();
        let (streams, feeding) = (block.mixer.streams(), self.feeding_streams(block));
        let plain = |input, output, divides_input| Matrix { input, output, divides_input, count: streams };
        let mut all = match self.mla {
            _ if !block.mixer.attends() => Vec::new(),
            None => vec![
                (Target::Q, plain(self.hidden, self.heads * key, false)),
                (Target::K, plain(self.hidden, self.kv_heads * key, false)),
                (Target::V, plain(self.hidden, self.kv_heads * value, false)),
            ],
            Some(mla) => {
                let query = match mla.query_rank {
                    0 => plain(self.hidden, self.heads * key, false),
                    rank => plain(rank, self.heads * key, false),
                };
                let wide = plain(mla.key_value_rank, self.heads * (mla.nope + value), false);
                vec![(Target::Q, query), (Target::K, wide)]
            }
        };
        if block.mixer.attends() {
            let output = plain(self.heads * value, self.hidden, true);
            all.push((Target::O, Matrix { count: feeding, ..output }));
        }
        let mut mlp = |width: u64, count: u64, routed: bool| {
            let each = |target: Target| if routed { Target::Experts } else { target };
            let matrix = |input, output, divides_input| Matrix { input, output, divides_input, count };
            if self.mlp == Mlp::Swiglu {
                all.push((each(Target::Gate), matrix(self.hidden, width, false)));
            }
            all.push((each(Target::Up), matrix(self.hidden, width, false)));
            all.push((each(Target::Down), matrix(width, self.hidden, true)));
        };
        match self.experts.filter(|_| block.has_experts()) {
            Some(experts) => {
                mlp(experts.width, experts.count, true);
                if experts.shared_width > 0 {
                    mlp(experts.shared_width, 1, false);
                }
            }
            None if block.feed == FeedForward::None => {}
            None => mlp(self.mlp_width, feeding, false),
        }
        all
    }
}
