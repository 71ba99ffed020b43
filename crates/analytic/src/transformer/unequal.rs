//! Workers of two kinds in one plan.
//!
//! Ranks are numbered tensor fastest, then context, data and pipeline, and worker groups fill them in the order in which
//! they are listed, so that the stages of a pipeline differ by kind. With proportional shares of the batch, the replicas differ instead: the
//! ranks of each kind are numbered separately, and a replica has all of its stages on one kind.
//!
//! n_k replicas of kind k take t_k(m) for m micro-batches each, and a step takes the longer t_k(m_k). Of all micro-batches
//! Σ n_k·m_k, one kind gains what the other loses, and t_k grows with m: the best division lies where both times cross.

use super::Split;
use super::compute::Compute;
use super::placement::{Group, Seats};
use super::stages::Run;
use stepcast_core::fault::Fault;
use stepcast_core::strategy::{PlanChoice, ScheduleKind, Sharding, Shares};

/// Two kinds of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoKinds {
    /// Ranks of each; those of the first come first.
    pub ranks: [u64; 2],
    /// How fast each of them computes.
    pub compute: [Compute; 2],
}

impl TwoKinds {
    /// The kind of the `count` ranks from `from` on; none if they are of both kinds.
    const fn of(&self, from: u64, count: u64) -> Option<usize> {
        match () {
            () if from + count <= self.ranks[0] => Some(0),
            () if from >= self.ranks[0] => Some(1),
            () => None,
        }
    }

    /// Replicas of each kind that may have their own numbers of micro-batches, or why there are none: ranks of different kinds
    /// must not exchange anything with every micro-batch, and the schedule must take any number of micro-batches.
    fn replicas(&self, choice: &PlanChoice) -> Result<[u64; 2], &'static str> {
        let own = choice.tensor * choice.context * choice.pipeline;
        let sharded = match (choice.sharding, choice.sharding_group) {
            (Sharding::None | Sharding::Zero1, _) => own,
            (Sharding::Hsdp, Some(group)) if choice.pipeline == 1 => group * choice.tensor,
            _ => return Err("replicas of both kinds exchange weights or gradients with every micro-batch"),
        };
        if choice.pipeline > 1 {
            let any = matches!(choice.schedule, ScheduleKind::OneFOneB | ScheduleKind::ZbH1);
            if !any || choice.virtual_stages > 1 {
                return Err("pipelines of a kind by itself are `1f1b` or `zb-h1`, with one chunk on a stage");
            }
            if choice.expert > 1 {
                return Err("pipelines of a kind by itself do not divide experts");
            }
        }
        let apart = |among: u64| self.ranks.iter().all(|ranks| ranks.is_multiple_of(among));
        match [own, sharded, choice.expert].into_iter().all(apart) {
            true => Ok(self.ranks.map(|ranks| ranks / own)),
            false => Err("the ranks of a replica, or of what its ranks share, are not all of one kind"),
        }
    }
}

/// Micro-batches of replicas of each kind, and the longer of their times; all have `m` on average.
pub fn balanced(
    [first, second]: [u64; 2],
    m: u64,
    mut time: impl FnMut(usize, u64) -> Option<f64>,
) -> Option<([u64; 2], f64)> {
    let divisor = gcd(first, second);
    let [gained, lost] = [second / divisor, first / divisor];
    // From the fewest micro-batches of the first kind to the most.
    let fewest = m - (m - 1) / gained * gained;
    let most_of_second = m + (m - fewest) / gained * lost;
    let at = |shift: u64| [fewest + shift * gained, most_of_second - shift * lost];
    let mut times = |shift: u64| -> Option<[f64; 2]> {
        let [first, second] = at(shift);
        Some([time(0, first)?, time(1, second)?])
    };
    let (mut low, mut high) = (0, (most_of_second - 1) / lost);
    while low < high {
        let middle = low.midpoint(high);
        let [first, second] = times(middle)?;
        if first >= second { high = middle } else { low = middle + 1 }
    }
    let both = [low.saturating_sub(1), low];
    let mut best = None;
    for shift in both {
        let [first, second] = times(shift)?;
        let longer = first.max(second);
        if best.is_none_or(|(_, least)| longer < least) {
            best = Some((at(shift), longer));
        }
    }
    best
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl<'a> Run<'a> {
    /// The run on workers of one kind alone.
    #[must_use]
    pub(super) fn on_kind(&self, kind: usize) -> Self {
        let own = |kinds: TwoKinds| kinds.compute[kind].updating_with(&kinds.compute[1 - kind]);
        let compute = self.kinds.map_or(self.compute, own);
        let shared = self.kinds.filter(|_| self.shares_batch());
        let apart = shared.map(|kinds| [kinds.ranks[kind], kinds.ranks[1 - kind]]);
        Self { compute, kinds: None, apart, ..*self }
    }

    fn shares_batch(&self) -> bool {
        self.plan.shares == Some(Shares::Proportional)
    }

    /// Where the ranks of a group are if this kind of replica and the other have these ranks, on separate machines.
    pub(super) fn seats_by_kind(&self, group: Group, ranks: [u64; 2]) -> Seats {
        let split = self.split();
        let replica = split.tensor * split.context * split.pipeline;
        let [own, other] =
            ranks.map(|ranks| group.seats(&Split { data: ranks / replica, ..split }, self.node));
        match group {
            Group::Data | Group::DataContext => own.beside(other),
            Group::Tensor | Group::Context | Group::Pipeline => own,
        }
    }

    /// The kind of a stage's workers, and 2 if it has both: the slower sets its pace.
    pub(super) fn kind_of_stage(&self, stages: u64, stage: u64) -> usize {
        let kind = |kinds: TwoKinds| {
            let each = kinds.ranks.iter().sum::<u64>() / stages;
            kinds.of(stage * each, each).unwrap_or(2)
        };
        self.kinds.map_or(0, kind)
    }

    /// The run by [kind of stage](Self::kind_of_stage).
    pub(super) fn by_kind_of_stage(&self) -> Vec<Self> {
        match self.kinds {
            None => vec![*self],
            Some(_) => vec![self.on_kind(0), self.on_kind(1), Self { kinds: None, ..*self }],
        }
    }

    /// Replicas of each kind with their own number of micro-batches, if the plan says so.
    pub(super) fn shared_replicas(&self, choice: &PlanChoice) -> Option<[u64; 2]> {
        self.kinds.filter(|_| self.shares_batch())?.replicas(choice).ok()
    }

    /// `shared_replicas` of the run's own plan.
    pub fn shared(&self) -> Option<[u64; 2]> {
        self.shared_replicas(&self.plan.choice(&self.division))
    }

    /// Whether a choice can have the shares of the batch that the plan asks for.
    pub fn admits(&self, choice: &PlanChoice) -> bool {
        self.kinds.is_none() || !self.shares_batch() || self.shared_replicas(choice).is_some()
    }

    /// Refuses shares of the batch that the plan cannot have.
    pub(super) fn check_shares(&self) -> Result<(), Fault> {
        let choice = self.plan.choice(&self.division);
        match self.kinds.filter(|_| self.shares_batch()).map(|kinds| kinds.replicas(&choice)) {
            Some(Err(reason)) => {
                let remedy = "use `shares = \"equal\"`, or what divides within each kind of workers";
                Err(Fault::in_key("strategy.plan.shares", reason, remedy))
            }
            _ => Ok(()),
        }
    }

    /// The run of every kind of replica, with its micro-batches; one run if all have as many.
    pub fn by_replica(&self) -> Vec<Self> {
        let with = |kind: usize, micro_batches: u64| {
            let mut run = self.on_kind(kind);
            run.division.micro_batches = micro_batches;
            run
        };
        let time = |kind, m| with(kind, m).step().ok().map(|step| step.time.get());
        let found = self.shared().and_then(|replicas| balanced(replicas, self.division.micro_batches, time));
        found.map_or_else(|| vec![*self], |(own, _)| vec![with(0, own[0]), with(1, own[1])])
    }
}
