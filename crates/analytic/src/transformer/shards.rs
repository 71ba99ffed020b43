//! Weights, gradients and optimiser states that replicas hold a part of: what a micro-batch gathers and reduces, and where.

use super::placement::{Group, Seats};
use super::stages::Run;
use super::traffic::{self, Message};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::Sharding;

impl Run<'_> {
    /// Gather of the weights and reduction of the gradients of one layer, for every micro-batch.
    pub(super) fn sharded_layer(&self, layers: u64, parameters: u64) -> [Seconds; 2] {
        let plan = self.plan;
        let (gathers, reduces) = match plan.sharding {
            Sharding::None | Sharding::Zero1 | Sharding::Keep => return [Seconds::ZERO; 2],
            Sharding::Zero2 => (false, true),
            Sharding::Zero3 | Sharding::Hsdp => (true, true),
        };
        let [mut gather, mut reduce] = [Seconds::ZERO; 2];
        let reduction = self.reduction();
        let unit = parameters / layers.max(1);
        for message in traffic::data_step(reduction, unit, 1, self.widths()) {
            let one = Message { count: 1, ..message };
            match message.collective {
                traffic::Collective::AllGather if gathers => gather += self.time(&one, self.sharding_seats()),
                traffic::Collective::AllGather => {}
                traffic::Collective::AllReduce => reduce += self.time(&one, self.copies_seats()),
                _ if reduces => reduce += self.time(&one, self.sharding_seats()),
                _ => {}
            }
        }
        [gather, reduce]
    }

    /// The ranks that reduce the gradients of dense parameters.
    pub fn reduction(&self) -> traffic::Reduction {
        let replicas = self.split().replicas();
        let ranks = self.plan.sharding_group.unwrap_or(replicas);
        traffic::Reduction { sharding: self.plan.sharding, ranks, copies: replicas / ranks }
    }

    /// Bytes of gradients and weights as they are sent.
    pub fn widths(&self) -> traffic::Widths {
        let [_, gradient, _] = self.plan.states.bytes();
        traffic::Widths { gradient, weight: self.weight_width }
    }

    /// Where the ranks of one sharding group are.
    pub fn sharding_seats(&self) -> Seats {
        let all = self.seats(Group::DataContext);
        match self.plan.sharding_group {
            Some(group) => {
                let per_node = all.per_node.min(group);
                Seats { size: group, per_node, nodes: group.div_ceil(per_node) }
            }
            None => all,
        }
    }

    /// Where the ranks with the same shard of different groups are.
    pub fn copies_seats(&self) -> Seats {
        let all = self.seats(Group::DataContext);
        let size = self.reduction().copies;
        let per_node = (all.per_node / self.sharding_seats().per_node).clamp(1, size.max(1));
        Seats { size, per_node, nodes: size.div_ceil(per_node) }
    }
}
