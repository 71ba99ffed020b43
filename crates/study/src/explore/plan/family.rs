//! Families of plans: all that share one property. The best of each says what the property costs.

use super::setup::{Naming, Setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepcast_analytic::transformer::plans::Choice;
use stepcast_core::strategy::{Recompute, Sharding};

/// A property of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Which machines.
    Machine,
    /// Machines.
    Nodes,
    /// Tensor-parallel ranks.
    Tensor,
    /// Whether tokens are divided between the matrices of a layer.
    SequenceParallel,
    /// Context-parallel ranks.
    Context,
    /// Stages.
    Pipeline,
    /// Order of operations.
    Schedule,
    /// Chunks on each stage.
    VirtualStages,
    /// Expert-parallel ranks.
    Expert,
    /// What replicas hold only a part of.
    Sharding,
    /// Sequences of a micro-batch.
    MicroBatch,
    /// What is computed again.
    Recompute,
    /// What is kept in the host's memory.
    Offload,
    /// Parameters whose gradients are sent together.
    Bucket,
    /// Whether sharded weights are gathered ahead.
    OverlapPrefetch,
}

impl Property {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Machine,
        Self::Nodes,
        Self::Tensor,
        Self::SequenceParallel,
        Self::Context,
        Self::Pipeline,
        Self::Schedule,
        Self::VirtualStages,
        Self::Expert,
        Self::Sharding,
        Self::MicroBatch,
        Self::Recompute,
        Self::Offload,
        Self::Bucket,
        Self::OverlapPrefetch,
    ];

    /// The value of a plan, as a number.
    pub(super) const fn of(self, setup: &Setup, choice: &Choice) -> u64 {
        match self {
            Self::Machine => match setup.offer {
                Some(place) => place as u64 + 1,
                None => 0,
            },
            Self::Nodes => setup.nodes,
            Self::Tensor => choice.tensor,
            Self::SequenceParallel => choice.sequence_parallel as u64,
            Self::Context => choice.context,
            Self::Pipeline => choice.pipeline,
            Self::Schedule => choice.schedule as u64,
            Self::VirtualStages => choice.chunks,
            Self::Expert => choice.expert,
            Self::Sharding => choice.sharding as u64,
            Self::MicroBatch => choice.micro_batch,
            Self::Recompute => 2 * choice.recompute.what as u64 + choice.recompute.layers.is_some() as u64,
            Self::Offload => setup.offloaded.optimiser as u64 + 2 * setup.offloaded.activations as u64,
            Self::Bucket => match setup.bucket {
                Some(parameters) => parameters,
                None => 0,
            },
            Self::OverlapPrefetch => matches!(setup.prefetch, Some(true)) as u64,
        }
    }

    /// The value as a file writes it.
    pub(super) fn written(self, setup: &Setup, choice: &Choice, naming: Naming<'_>) -> String {
        let Choice { schedule, sharding, recompute, .. } = choice;
        match self {
            Self::Machine => naming.machine.unwrap_or_default().to_owned(),
            Self::Offload => offloaded(setup),
            Self::SequenceParallel => choice.sequence_parallel.to_string(),
            Self::OverlapPrefetch => setup.prefetch.unwrap_or_default().to_string(),
            Self::Schedule => schedule.to_string(),
            Self::Sharding => sharding.to_string(),
            Self::Recompute if recompute.layers.is_some() => format!("some {}s", recompute.what),
            Self::Recompute => recompute.what.to_string(),
            _ => self.of(setup, choice).to_string(),
        }
    }

    /// "tensor 8", "without a pipeline", "zero-3".
    pub(super) fn words(self, setup: &Setup, choice: &Choice, naming: Naming<'_>) -> String {
        let value = self.written(setup, choice, naming);
        match (self, self.of(setup, choice)) {
            (Self::Machine, _) => value,
            (Self::Offload, 0) => "without offloading".to_owned(),
            (Self::Offload, _) => format!("offloading {value}"),
            (Self::Bucket, 0) => "a bucket for each layer".to_owned(),
            (Self::Bucket, _) => format!("buckets of {value} parameters"),
            (Self::OverlapPrefetch, 0) => "weights gathered when needed".to_owned(),
            (Self::OverlapPrefetch, _) => "weights gathered ahead".to_owned(),
            (Self::Nodes, 1) => "1 machine".to_owned(),
            (Self::Nodes, _) => format!("{value} machines"),
            (Self::Tensor, 1) => "without tensor parallelism".to_owned(),
            (Self::Tensor, ranks) if ranks > naming.node => format!("tensor {value}, across machines"),
            (Self::Tensor, _) => format!("tensor {value}"),
            (Self::SequenceParallel, 0) => "without sequence parallelism".to_owned(),
            (Self::SequenceParallel, _) => "with sequence parallelism".to_owned(),
            (Self::Context, 1) => "without context parallelism".to_owned(),
            (Self::Context, _) => format!("context {value}"),
            (Self::Pipeline, 1) => "without a pipeline".to_owned(),
            (Self::Pipeline, _) => format!("pipeline {value}"),
            (Self::Schedule, _) => value,
            (Self::VirtualStages, 1) => "one chunk on a stage".to_owned(),
            (Self::VirtualStages, _) => format!("{value} chunks on a stage"),
            (Self::Expert, 1) => "without expert parallelism".to_owned(),
            (Self::Expert, _) => format!("expert {value}"),
            (Self::Sharding, _) => match choice.sharding {
                Sharding::None => "without sharding".to_owned(),
                _ => value,
            },
            (Self::MicroBatch, _) => format!("micro-batch {value}"),
            (Self::Recompute, _) => match choice.recompute.what {
                Recompute::None => "without recomputation".to_owned(),
                _ => format!("recomputing {value}"),
            },
        }
    }
}

/// What is kept in the host's memory, in words.
pub(super) fn offloaded(setup: &Setup) -> String {
    let list = setup.offloaded.list();
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// The best of some plans.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    /// What is minimised.
    pub(super) value: f64,
    /// Time of a step, in seconds.
    pub(super) step: f64,
    pub(super) setup: Setup,
    pub(super) choice: Choice,
}

/// One family.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Family {
    pub(super) property: Property,
    pub(super) key: u64,
    /// Plans of it.
    pub(super) plans: u64,
    /// Of which fit into memory.
    pub(super) fitting: u64,
    /// The plan that needs least memory.
    pub(super) least: (f64, Setup, Choice),
    /// The best admissible one.
    pub(super) best: Option<Best>,
}

/// All families that have been seen, by property.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Families {
    by: [Vec<Family>; Property::ALL.len()],
}

impl Families {
    /// The family of a plan, which needs this much memory, by one property.
    fn of(&mut self, property: Property, setup: &Setup, choice: &Choice, memory: f64) -> &mut Family {
        let key = property.of(setup, choice);
        let list = &mut self.by[property as usize];
        let known = list.iter().position(|family| family.key == key);
        let place = known.unwrap_or_else(|| {
            let least = (memory, *setup, *choice);
            list.push(Family { property, key, plans: 0, fitting: 0, least, best: None });
            list.len() - 1
        });
        &mut list[place]
    }

    /// Counts a plan.
    pub(super) fn count(&mut self, setup: &Setup, choice: &Choice, memory: f64, fits: bool) {
        for property in Property::ALL {
            let family = self.of(property, setup, choice, memory);
            family.plans += 1;
            family.fitting += u64::from(fits);
            if memory < family.least.0 {
                family.least = (memory, *setup, *choice);
            }
        }
    }

    /// Adds what was counted and found elsewhere; of equal plans the own one stays.
    pub(super) fn merge(&mut self, other: Self) {
        for family in other.by.into_iter().flatten() {
            let (memory, setup, choice) = family.least;
            let own = self.of(family.property, &setup, &choice, memory);
            own.plans += family.plans;
            own.fitting += family.fitting;
            if memory < own.least.0 {
                own.least = family.least;
            }
            if let Some(best) = family.best
                && own.best.is_none_or(|own| best.value < own.value)
            {
                own.best = Some(best);
            }
        }
    }

    /// Whether a plan of at least this value cannot be the best of any of its families.
    pub(super) fn beat(&self, setup: &Setup, choice: &Choice, value: f64) -> bool {
        Property::ALL.iter().all(|property| {
            let key = property.of(setup, choice);
            let own = self.by[*property as usize].iter().find(|family| family.key == key);
            own.and_then(|family| family.best).is_some_and(|best| best.value <= value)
        })
    }

    /// Takes an admissible plan into account; the first of equal ones stays.
    pub(super) fn offer(&mut self, found: &Best, memory: f64) {
        for property in Property::ALL {
            let family = self.of(property, &found.setup, &found.choice, memory);
            if family.best.is_none_or(|best| found.value < best.value) {
                family.best = Some(*found);
            }
        }
    }

    /// Plans that were counted.
    pub(super) fn plans(&self) -> u64 {
        self.by[Property::Nodes as usize].iter().map(|family| family.plans).sum()
    }

    /// Of which fit.
    pub(super) fn fitting(&self) -> u64 {
        self.by[Property::Nodes as usize].iter().map(|family| family.fitting).sum()
    }

    /// The best of all plans.
    pub(super) fn best(&self) -> Option<Best> {
        let best = self.by[Property::Nodes as usize].iter().filter_map(|family| family.best);
        best.reduce(|a, b| if b.value < a.value { b } else { a })
    }

    /// The plan that needs least memory.
    pub(super) fn least(&self) -> Option<(f64, Setup, Choice)> {
        let least = self.by[Property::Nodes as usize].iter().map(|family| family.least);
        least.reduce(|a, b| if b.0 < a.0 { b } else { a })
    }

    /// The plan of every family that needs least memory, the smallest first.
    pub(super) fn smallest(&self) -> Vec<Choice> {
        let mut least: Vec<(f64, Setup, Choice)> =
            self.by.iter().flatten().map(|family| family.least).collect();
        least.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut found: Vec<Choice> = Vec::new();
        for (_, _, choice) in least {
            if !found.contains(&choice) {
                found.push(choice);
            }
        }
        found
    }

    /// All families, those of a property in the order of their values.
    pub(super) fn sorted(mut self) -> Vec<Family> {
        self.by.iter_mut().for_each(|list| list.sort_by_key(|family| family.key));
        self.by.into_iter().flatten().collect()
    }
}
