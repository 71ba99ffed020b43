//! Bytes of gradients that workers exchange: dense ones in full, sparse ones by the rows that their batches touch.

use super::Scenario;
use crate::prediction::Warning;
use crate::quantity::Bytes;
use crate::strategy::{Architecture, Strategy, Synchronisation};
use crate::workload::{Gradient, LayerWork, Tensor};

impl Scenario {
    /// Bytes of a layer that a worker of the group at `index` pushes to servers, and pulls, in one exchange. Rows of all
    /// steps since the previous exchange count.
    pub fn sent(&self, index: usize, layer: &LayerWork) -> Bytes {
        let steps = match self.strategy.synchronisation {
            Synchronisation::LocalSgd(steps) => steps,
            _ => 1,
        };
        layer.sent(f64::from(self.samples(index)) * f64::from(steps)) * self.workload.shipped()
    }

    /// Bytes that a worker of the group at `index` pushes, and pulls, in one exchange.
    pub fn sent_in_all(&self, index: usize) -> Bytes {
        self.workload.layers.iter().map(|layer| self.sent(index, layer)).sum()
    }

    /// The size of the all-reduce that takes as long as the exchange of `tensor` among workers. All of them gather the
    /// rows of a sparse one from each other: their indices, then their values, n − 1 steps each, in which a worker
    /// receives the s bytes of every other one. Those are the 2 (n − 1) steps and the 2 (n − 1)/n · S bytes of an
    /// all-reduce of S = n s/2 around a ring. Workers that average weights (local SGD) or do not wait for each other
    /// (SPRINT) exchange whole tables.
    pub fn summed(&self, tensor: &Tensor) -> Bytes {
        let share = self.strategy.exchange.gradients.share();
        if tensor.rows.is_none() || !self.gathers() {
            return tensor.bytes() * share;
        }
        let groups = self.cluster.groups.iter().enumerate();
        let gathered: Bytes = groups
            .map(|(index, group)| tensor.sent(f64::from(self.samples(index)), share) * f64::from(group.count))
            .sum();
        gathered / 2.0
    }

    /// The gradients of a model in the order in which they are ready, with the sizes of their all-reduces.
    pub(super) fn summed_gradients(&self) -> Vec<Gradient> {
        let tensors = self.workload.layers.iter().rev().flat_map(|layer| &layer.tensors);
        tensors.map(|tensor| Gradient { name: tensor.name.clone(), size: self.summed(tensor) }).collect()
    }

    /// Samples whose rows a worker of the group at `index` updates in its copy of the tables: the samples of all workers,
    /// if they gather them.
    pub fn updating(&self, index: usize) -> f64 {
        let own = f64::from(self.samples(index));
        if !self.gathers() {
            return own;
        }
        let groups = self.cluster.groups.iter().enumerate();
        groups.map(|(index, group)| f64::from(self.samples(index)) * f64::from(group.count)).sum()
    }

    /// Whether workers gather the rows of each other in every step.
    fn gathers(&self) -> bool {
        let Strategy { architecture, synchronisation, .. } = &self.strategy;
        *architecture == Architecture::AllReduce && *synchronisation == Synchronisation::Bsp
    }

    /// Warns of assumptions about sparse gradients, and where dense ones would be smaller.
    pub fn sparse_warnings(&self) -> Vec<Warning> {
        let tables =
            || self.workload.layers.iter().flat_map(|layer| &layer.tensors).filter(|it| it.rows.is_some());
        let count = tables().count();
        let served = self.strategy.architecture == Architecture::ParameterServer;
        if count == 0 || !(served || self.gathers()) {
            return Vec::new();
        }
        let samples = f64::from(self.samples(0));
        let whole: Bytes = tables().map(Tensor::bytes).sum();
        let sent: Bytes = tables().map(|tensor| tensor.sent(samples, 1.0)).sum();
        let several = if count == 1 { "table" } else { "tables" };
        let uniform = Warning {
            code: "uniform-rows",
            message: format!(
                "of {count} sparse {several} with {}, a worker sends the rows of its batch, {}, taking all rows to be \
                 equally likely; skewed access touches fewer",
                whole.human(),
                sent.human()
            ),
        };
        let dense = whole * self.strategy.exchange.gradients.share();
        let gathered: Bytes = tables().map(|tensor| self.summed(tensor)).sum();
        let gathered = (self.gathers() && gathered > dense).then(|| Warning {
            code: "gathered-rows",
            message: format!(
                "{} workers gather more rows than dense all-reduces of whole tables would move, {} against {}: dense \
                 gradients are faster here",
                self.cluster.workers(),
                (gathered * 2.0).human(),
                (dense * 2.0).human()
            ),
        });
        [uniform].into_iter().chain(gathered).collect()
    }
}
