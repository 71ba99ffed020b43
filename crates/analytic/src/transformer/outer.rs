//! Replicas that train on their own and exchange outer gradients every H steps: DiLoCo (Douillard 2023, arXiv:2311.08105)
//! and its streaming form (Douillard 2025, arXiv:2501.18512).
//!
//! An outer gradient is the change of a weight since the exchange before. Its sum over replicas updates the outer weights
//! with Nesterov's momentum, and replicas go on from these. In P fragments, one is exchanged every H/P steps, beside the τ
//! steps that follow.

use super::Split;
use super::placement::{Group, Seats};
use super::stages::Run;
use super::traffic::{Collective, Message, Phase};
use stepcast_core::prediction::OuterReport;
use stepcast_core::quantity::{BitsPerSec, Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Plan, Sharding, Synchronisation};

/// Bytes of the outer optimiser for each parameter: weights and momentum in 32 bits.
const STATES: f64 = 8.0;

/// Bytes that an outer step moves for each parameter, beside the gradient as it is sent, which is written and read: both
/// weights read for their difference, outer weights and momentum read and written, weights written; all in 32 bits.
const MOVED: f64 = 28.0;

/// Bytes of a weight as it goes to the host and comes back.
const WIDE: f64 = 4.0;

/// Bytes of a parameter that the outer optimiser keeps on a device: its states, and the fragment that is under way.
pub(super) fn kept(plan: &Plan) -> f64 {
    let states = if plan.offloaded().outer { 0.0 } else { STATES };
    if plan.outer_replicas > 1 { states + WIDE / plan.outer_fragments as f64 } else { 0.0 }
}

/// The exchange of outer gradients, fragment by fragment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outer {
    /// H/P: steps from the exchange of a fragment to that of the next.
    pub interval: u64,
    /// P.
    pub fragments: u64,
    /// τ: steps until the result of an exchange is needed.
    pub delay: u64,
    /// Time of a fragment on links.
    pub exchange: Seconds,
    /// Time of the device for a fragment, during which it computes nothing else.
    pub update: Seconds,
    /// The part of the exchange that passes the link between sites.
    pub between: Seconds,
    /// Bytes that a site sends for a fragment.
    pub sent: Bytes,
}

impl Outer {
    /// The exchange of a scenario's replicas, if it has several.
    pub fn of(scenario: &Scenario, run: &Run<'_>) -> Option<Self> {
        let Synchronisation::LocalSgd(steps) = scenario.strategy.synchronisation else { return None };
        let plan = run.plan;
        if plan.outer_replicas < 2 {
            return None;
        }
        let fragments = plan.outer_fragments;
        let held = run.held();
        let (mut beside, mut update) = (Seconds::ZERO, Seconds::ZERO);
        for stage in 0..plan.pipeline {
            let [own, alone] = run.outer_step(held.stage_trained(stage));
            (beside, update) = (beside.max(own), update.max(alone));
        }
        // Around a ring of sites, each sends 2(S − 1)/S of the fragment in 2(S − 1) messages.
        let sites = plan.sites() as f64;
        let size = run.shape.trained_parameters() as f64 * plan.outer_width() / fragments as f64;
        let sent = Bytes::new(size * 2.0 * (sites - 1.0) / sites);
        let over = |link: BitsPerSec| sent / link.to_bytes_per_sec();
        let between = plan.outer_link.map_or(Seconds::ZERO, over);
        Some(Self {
            interval: u64::from(steps) / fragments,
            fragments,
            delay: plan.outer_delay,
            exchange: between + plan.outer_latency * (2.0 * (sites - 1.0)) + beside,
            update,
            between,
            sent,
        })
    }

    /// The mean step of a round, `inner` being the step of a replica by itself.
    ///
    /// With I steps from one exchange to the next, X and U for its links and its update, the time λ of an interval is the
    /// largest cycle mean of the dependency graph: computing, I·T + U; links, X; and an exchange with the steps that its
    /// result precedes until another begins, (X + U + (nI − τ)T)/n with n = ⌈τ/I⌉. Without delay it is I·T + X + U.
    pub fn step(&self, inner: Seconds) -> Seconds {
        let (interval, laps) = (self.interval as f64, self.laps());
        let behind = laps * interval - self.delay as f64;
        let waiting = (self.exchange + self.update + inner * behind) / laps;
        let lap = (inner * interval + self.update).max(self.exchange).max(waiting);
        lap / interval
    }

    /// Exchanges that begin before the result of one is needed.
    fn laps(&self) -> f64 {
        self.delay.div_ceil(self.interval).max(1) as f64
    }

    /// Time that training waits for exchanges and outer updates, between two exchanges of the same weight.
    pub fn exposed(&self, inner: Seconds) -> Seconds {
        (self.step(inner) - inner) * (self.interval * self.fragments) as f64
    }

    pub fn report(&self, plan: &Plan, inner: Seconds) -> OuterReport {
        // The longest exchange that is hidden completely.
        let computing = inner * self.interval as f64 + self.update;
        let longest = computing.min(inner * self.delay as f64 + self.update * (self.laps() - 1.0));
        let room = longest - (self.exchange - self.between);
        let hidden = self.between > Seconds::ZERO && room > Seconds::ZERO;
        OuterReport {
            replicas: plan.outer_replicas,
            steps: self.interval * self.fragments,
            sent: self.sent * self.fragments as f64,
            exchange: self.exchange,
            exposed: self.exposed(inner),
            hides_from: hidden.then(|| (self.sent / room).to_bits_per_sec()),
        }
    }
}

impl Run<'_> {
    /// Time of a fragment of a stage with these trained parameters, dense ones and those of experts: on the links of a site
    /// and the host, and on the device.
    ///
    /// Of ranks with the same weights, each exchanges a part. Ranks that hold all weights then gather the sums; those that
    /// hold a part of the optimiser's states alone gather updated weights.
    fn outer_step(&self, (dense, expert): (u64, u64)) -> [Seconds; 2] {
        let (plan, split) = (self.plan, self.split());
        let part = 1.0 / plan.outer_fragments as f64;
        let own = dense as f64 / split.replicas() as f64 + expert as f64 / split.expert_replicas() as f64;
        let local = plan.outer_replicas / plan.sites();
        let beside = Split { tensor: split.world(), data: local, ..Split::WHOLE };
        let seats = Group::Data.seats(&beside, self.node);
        let send = |collective, seats: Seats, bytes: f64| {
            let message = Message {
                phase: Phase::Step,
                collective,
                ranks: seats.size,
                count: 1,
                bytes: (bytes * part).ceil() as u64,
            };
            if seats.size > 1 { self.time(&message, seats) } else { Seconds::ZERO }
        };
        let mut exchange = send(Collective::AllReduce, seats, own * plan.outer_width());
        let mut update = Seconds::ZERO;
        let gather = |width: f64| {
            let experts = expert as f64 * width;
            send(Collective::AllGather, self.sharding_seats(), dense as f64 * width)
                + send(Collective::AllGather, self.expert_replica_seats(), experts)
        };
        match plan.sharding {
            Sharding::None => exchange += gather(plan.outer_width()),
            Sharding::Zero1 | Sharding::Zero2 => update += gather(self.weight_width as f64),
            Sharding::Hsdp => {
                let shard = dense as f64 / self.reduction().ranks as f64;
                exchange += send(Collective::AllGather, self.copies_seats(), shard * plan.outer_width());
            }
            Sharding::Zero3 | Sharding::Keep => {}
        }
        let updated = self.owned(dense, expert) * part;
        let moved = updated * (MOVED + 2.0 * plan.outer_width());
        if plan.offloaded().outer {
            let copied = Bytes::new(updated * WIDE) / self.host_link;
            let devices = self.machine.min(split.world()).max(1) as f64;
            exchange += copied + Bytes::new(moved * devices) / self.host_memory;
            update += copied;
        } else {
            update += self.compute.update(Bytes::new(moved));
        }
        [exchange, update]
    }
}
