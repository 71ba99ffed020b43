//! Sharded weights, gradients and optimiser states: what a micro-batch gathers and reduces, over which ranks, and how long it
//! waits.

use super::compute::Parts;
use super::placement::{Group, Seats};
use super::spent::{lost_beside, uncovered};
use super::stages::Run;
use super::traffic::{self, Message};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::Sharding;

impl Run<'_> {
    /// Gather of the weights and reduction of the gradients of one layer, for every micro-batch.
    /// Takes all parameters of the layers, and the trained ones.
    pub(super) fn sharded_layer(&self, layers: u64, parameters: [u64; 2]) -> [Seconds; 2] {
        let plan = self.plan;
        let (gathers, reduces) = match plan.sharding {
            Sharding::None | Sharding::Zero1 | Sharding::Keep => return [Seconds::ZERO; 2],
            Sharding::Zero2 => (false, true),
            Sharding::Zero3 | Sharding::Hsdp => (true, true),
        };
        let [mut gather, mut reduce] = [Seconds::ZERO; 2];
        let reduction = self.reduction();
        let [all, trained] = parameters.map(|all| all / layers.max(1));
        for message in traffic::data_step(reduction, trained, 1, self.widths()) {
            let bytes = match message.collective {
                traffic::Collective::AllGather => self.gathered_bytes(all, trained),
                _ => message.bytes,
            };
            let one = Message { count: 1, bytes, ..message };
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

    /// Time of a rank's copies for a sharded unit with this many parameters, all and trained ones: its weights after the gather, and its
    /// gradients before the reduction.
    pub(super) fn copied(&self, [all, trained]: [u64; 2]) -> [Seconds; 2] {
        if !self.plan.overlap.copies_units() {
            return [Seconds::ZERO; 2];
        }
        let width = self.weight_width as f64;
        let gathered = self.gathered_bytes(all, trained) as f64;
        let reduced = self.compute.copying(trained as f64, width, self.widths().gradient as f64);
        [self.compute.copying(gathered, 1.0, 1.0), reduced]
    }

    /// Gather and reduction of the root unit of a virtual stage (parameters outside of layers), with its copies: FSDP gathers it before
    /// the first layer and keeps it until it is reduced behind the last gradient.
    pub(super) fn root(&self, first: bool, last: bool) -> [Seconds; 2] {
        let held = self.held();
        let parameters = [held.end_parameters(first, last), held.trained_ends(first, last)];
        if parameters[0] == 0 || !self.plan.overlap.is_fsdp() {
            return [Seconds::ZERO; 2];
        }
        let sent = self.sharded_layer(1, parameters);
        match self.plan.sharding.stage() {
            3 => {
                let copied = self.copied(parameters);
                [sent[0] + copied[0], sent[1] + copied[1]]
            }
            _ => sent,
        }
    }

    /// A device with the weights of the plan: replicas that hold parts of them gather them in 16 bits.
    pub(super) fn with_weights(&self, parts: &Parts) -> Parts {
        if self.plan.sharding.stage() == 3 { parts.gathering() } else { *parts }
    }

    /// The ranks that reduce the gradients of dense parameters.
    pub fn reduction(&self) -> traffic::Reduction {
        let replicas = self.split().replicas();
        let ranks = self.plan.sharding_group.unwrap_or(replicas);
        traffic::Reduction { sharding: self.plan.sharding, ranks, copies: replicas / ranks }
    }

    /// Bytes of gradients and weights as they are sent.
    pub fn widths(&self) -> traffic::Widths {
        let [_, kept, _] = self.plan.states.bytes();
        let reduced = self.plan.reduce_bits.filter(|_| self.plan.sharding.stage() == 3);
        traffic::Widths { gradient: reduced.map_or(kept, |bits| bits / 8), weight: self.weight_width }
    }

    /// Bytes of the weights as they are gathered: the `trained` ones in the format of weights, frozen ones as they are stored.
    pub(super) fn gathered_bytes(&self, all: u64, trained: u64) -> u64 {
        match self.shape.tuning.adapters {
            Some(own) => (all as f64 * own.base.bytes()).round() as u64 + trained * self.weight_width,
            None => all * self.weight_width,
        }
    }

    /// Where the ranks of one sharding group are.
    pub fn sharding_seats(&self) -> Seats {
        let all = self.seats(Group::DataContext);
        match self.plan.sharding_group {
            Some(group) => {
                let per_node = all.per_node.min(group);
                Seats { size: group, per_node, nodes: group.div_ceil(per_node), ..all }
            }
            None => all,
        }
    }

    /// Where the ranks with the same shard of different groups are.
    pub fn copies_seats(&self) -> Seats {
        let all = self.seats(Group::DataContext);
        let size = self.reduction().copies;
        let per_node = (all.per_node / self.sharding_seats().per_node).clamp(1, size.max(1));
        let apart = all.apart * self.sharding_seats().nodes;
        Seats { size, per_node, nodes: size.div_ceil(per_node), apart }
    }
}

// A forward and a backward pass over units whose weights or gradients are sharded, unit by unit.
//
// One link carries all collectives in the order in which they are begun. A unit's weights are gathered before it
// computes, its gradients are reduced after it went backward. Collectives either block, or weights are gathered one unit
// ahead, beside the computing of the unit before, and reductions run behind the backward pass.

/// A part of the model whose weights are gathered together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    pub forward: Seconds,
    pub backward: Seconds,
    pub gather: Seconds,
    pub reduce: Seconds,
}

/// When weights are gathered and gradients reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Weights are gathered before the forward pass of a unit.
    pub forward: bool,
    /// Weights are gathered before the backward pass of a unit.
    pub backward: bool,
    /// Gradients are reduced after the backward pass of a unit.
    pub reduce: bool,
    /// The next unit's weights are gathered while this one computes.
    pub ahead: bool,
    /// Reductions run behind the backward pass.
    pub behind: bool,
}

/// Time and the link, which carries one collective after the other.
#[derive(Default)]
struct Clock {
    now: f64,
    link: f64,
}

impl Clock {
    fn begin(&mut self, time: Seconds) -> f64 {
        self.link = self.link.max(self.now) + time.get();
        self.link
    }

    /// Runs the units in order: gather, compute, reduce.
    fn pass<'a>(
        &mut self,
        units: impl Iterator<Item = &'a Unit>,
        gathers: bool,
        ahead: bool,
        mut compute: impl FnMut(&mut Self, &Unit),
    ) {
        let mut units = units.peekable();
        let mut ready = self.now;
        if let Some(first) = units.peek().filter(|_| gathers) {
            ready = self.begin(first.gather);
        }
        while let Some(unit) = units.next() {
            self.now = self.now.max(ready);
            let next = units.peek().filter(|_| gathers);
            if let Some(next) = next.filter(|_| ahead) {
                ready = self.begin(next.gather);
            }
            compute(self, unit);
            if let Some(next) = next.filter(|_| !ahead) {
                ready = self.begin(next.gather);
            }
        }
    }
}

/// Traffic of equal units for their weights and gradients: the closed form of [`passes`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// Gather of the weights and reduction of the gradients of a unit.
    pub sent: [Seconds; 2],
    /// How many units there are.
    pub count: u64,
    /// Whether weights are gathered one unit ahead, and reductions run behind.
    pub ahead: bool,
    /// Whether the backward pass is split into gradients of inputs, which need weights, and gradients of weights.
    pub split: bool,
}

impl Units {
    /// Exposed traffic of the forward pass and of both halves of the backward pass, `cover` of each hiding traffic.
    ///
    /// With fetching ahead, the first gather, the last reduction, and what does not fit are exposed. A gather goes before
    /// the reduction of the unit that computes meanwhile, so that the first one backward and the last reduction but one have
    /// the link for themselves. The weights with which the backward pass begins were fetched before it.
    pub fn exposed(&self, cover: [Seconds; 3]) -> [Seconds; 3] {
        let [gather, reduce] = self.sent;
        if self.is_idle() || !self.ahead {
            return self.busy();
        }
        let n = self.count as f64;
        let behind = |sent: Seconds, half: usize| uncovered(sent, cover[half] / n, true);
        let there = gather + behind(gather, 0) * (n - 1.0);
        if self.split {
            return [there, behind(gather, 1) * (n - 1.0), behind(reduce, 2) * (n - 1.0) + reduce];
        }
        let back = match self.count {
            1 => Seconds::ZERO,
            _ => behind(gather, 1) + behind(gather + reduce, 1) * (n - 2.0) + behind(reduce, 1),
        };
        [there, back + reduce, Seconds::ZERO]
    }

    /// Loss of the forward and the backward pass, which compute this long, to the traffic beside them.
    pub fn slows(&self, interference: f64, [forward, backward]: [Seconds; 2]) -> [Seconds; 2] {
        if !self.ahead {
            return [Seconds::ZERO; 2];
        }
        let [gather, reduce] = self.sent.map(|time| time * self.count as f64);
        [lost_beside(gather, forward, interference), lost_beside(gather + reduce, backward, interference)]
    }

    /// How long each pass keeps the link busy.
    pub(super) fn busy(&self) -> [Seconds; 3] {
        if self.is_idle() {
            return [Seconds::ZERO; 3];
        }
        let [gather, reduce] = self.sent.map(|time| time * self.count as f64);
        let fetched = if self.ahead { self.sent[0] } else { Seconds::ZERO };
        match self.split {
            true => [gather, gather - fetched, reduce],
            false => [gather, gather - fetched + reduce, Seconds::ZERO],
        }
    }

    fn is_idle(&self) -> bool {
        self.count == 0 || self.sent[0] + self.sent[1] <= Seconds::ZERO
    }
}

/// Ends of the forward and of the backward pass with its last reduction.
pub fn passes(units: &[Unit], exchange: &Exchange) -> [Seconds; 2] {
    let mut clock = Clock::default();
    clock.pass(units.iter(), exchange.forward, exchange.ahead, |clock, unit| {
        clock.now += unit.forward.get();
    });
    let forward = Seconds::new(clock.now);
    let mut reduced = 0.0_f64;
    clock.pass(units.iter().rev(), exchange.backward, exchange.ahead, |clock, unit| {
        clock.now += unit.backward.get();
        if exchange.reduce {
            reduced = clock.begin(unit.reduce);
            if !exchange.behind {
                clock.now = reduced;
            }
        }
    });
    [forward, Seconds::new(clock.now.max(reduced))]
}
