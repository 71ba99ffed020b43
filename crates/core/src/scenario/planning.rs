//! Choices of a search over plans, failures of a long run, and its energy.

use super::offers::{Offer, OfferSection};
use crate::keys::{Check, kebab, keys, plain, section_of, used_as};
use crate::quantity::{Amount, BytesPerSec, Seconds, Watts};
use crate::strategy::{
    Coded, Framework, Loss, Offload, Recompute, ScheduleKind, Sharding, Shares, plan_dimensions,
};

plain!(Vec<bool>, "list of booleans");
plain!(Vec<Vec<Offload>>, "list of lists of strings");
plain!([f64; 2], "list of two numbers");

pub type ListCodes = fn(&Planning) -> Option<Vec<u64>>;

/// A list of `[plan]`: values of a plan dimension that a search may choose from.
#[derive(Debug, Clone, Copy)]
pub struct PlanList {
    field: &'static str,
    pub given: fn(&Planning) -> bool,
    pub remove: fn(&mut Planning),
    /// Takes the list of another search, if present.
    pub take: fn(&mut Planning, &Planning),
    /// The codes of its values, if the search tries only these.
    pub codes: Option<ListCodes>,
}

impl PlanList {
    pub fn key(&self) -> String {
        kebab(self.field)
    }
}

/// Declares the choices of a search: a list for each dimension that it varies, and further keys.
macro_rules! declare_planning {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $given:ty => $type:ty, $presence:ident $(($default:expr))?, $check:expr
        $(, model { $model:ident })?
        $(, replicas { $replicas:ident })?
        $(, each {
            $chosen:ty, $entry:ty, $each_doc:literal, $open:literal
            $(, words($neutral:literal, $words:literal))? $(, of($of:ident))? $(, also { $($also:tt)* })?
        })?
        $(, listed { $listed:ty, $listed_doc:literal, words($absent:literal, $listed_words:literal) })?
        $(, launch { $($setting:expr),* })?;
    )*) => {
        keys! {
            /// Choices of a search over plans of a transformer.
            #[derive(Debug, Clone, PartialEq)]
            struct Planning;
            /// `[plan]`: choices of `stepcast plan`.
            section PlanningSection;
            before {}
            keys {
                /// Machines to choose from instead of those of the cluster, see below.
                offers: Vec<OfferSection> => Vec<Offer>, optional("the cluster's"), Check::Any, Resolved;
                /// Numbers of machines to try.
                nodes: Vec<u64> => Vec<u64>, optional("that of the cluster; for several `offers` without numbers beside one machine, a number that fits and keeps the deadline, about, twice and four times as many"), Check::Any, Resolved;
                /// Frameworks to choose from: only plans that they run, with their kernels, states and overlap; `[]` for all of pre-training.
                frameworks: Vec<Framework> => Vec<Framework>, optional("any plan, as `strategy.plan` says"), Check::Any, Resolved;
                /// Sequences of a step.
                global_batch: u64 => u64, optional("`strategy.plan`'s"), Check::Between(1, 1_000_000_000, "a number such as 1536"), Resolved;
                $(
                    $(
                        #[doc = $each_doc]
                        $field: Vec<$entry> => Vec<$entry>, optional($open), Check::Any, Resolved;
                        $($($also)*)?
                    )?
                    $(
                        #[doc = $listed_doc]
                        $field: Vec<$listed> => Vec<$listed>, optional("as `strategy.plan` says"), Check::Any, Resolved;
                    )?
                )*
                /// Whether to try recomputing no more layers of every stage than a plan needs to fit.
                recompute_some: bool => bool, default(false), Check::Any, Resolved;
                /// Whether to choose layers and recomputation for each stage separately where plans with equal stages recompute layers or
                /// do not fit.
                per_stage: bool => bool, default(true), Check::Any, Resolved;
                /// Whether to include plans that fit only with low memory fragmentation.
                may_fit: bool => bool, default(false), Check::Any, Resolved;
                /// Tokens to train on.
                tokens: Amount => f64, optional("`data`'s samples and epochs, otherwise one step is looked at"), Check::Positive("a number such as 300e9"), Resolved;
                /// Longest time of training.
                deadline: Seconds => Seconds, optional("any"), Check::Positive("a time such as \"30 d\""), Resolved;
                /// The price of a day past the deadline, for advice on what to measure.
                late_day: f64 => f64, optional("that of the machines"), Check::NotNegative("an amount such as 5000"), Resolved;
                /// Highest cost of training.
                budget: f64 => f64, optional("any"), Check::Positive("an amount such as 5e6"), Resolved;
            }
            after {}
            made {}
        }

        impl Planning {
            /// The lists of all dimensions that a search varies, in their order.
            pub const LISTS: &[PlanList] = &[$(
                $(PlanList {
                    field: { let _ = $each_doc; stringify!($field) },
                    given: |it| it.$field.is_some(),
                    remove: |it| it.$field = None,
                    take: |it, other| it.$field = other.$field.clone().or(it.$field.take()),
                    codes: None,
                },)?
                $(PlanList {
                    field: { let _ = $listed_doc; stringify!($field) },
                    given: |it| it.$field.is_some(),
                    remove: |it| it.$field = None,
                    take: |it, other| it.$field = other.$field.clone().or(it.$field.take()),
                    codes: Some(|it| {
                        let code = |value: &$listed| <used_as!($presence $type)>::from(value.clone()).code();
                        it.$field.as_ref().map(|values| values.iter().map(code).collect())
                    }),
                },)?
            )*];
        }
    };
}

plan_dimensions!(declare_planning);

section_of!(Planning, PlanningSection);

keys! {
    /// Failures of a long run, and recovery.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Failures;
    /// `[failures]`: failures of a long run.
    section FailuresSection;
    before {}
    keys {
        /// Interruptions of one device in an hour; 0 for none.
        rate: f64 => f64, optional("1.973e-5 (Llama 3)"), Check::NotNegative("a rate such as 2e-5"), Resolved;
        /// Lower and upper end of this rate.
        rate_range: [f64; 2] => [f64; 2], optional("`[1.82e-5, 2.14e-5]` (Llama 3), or `rate` alone"), Check::Any, Resolved;
        /// Interruptions of one machine in an hour beyond those of its devices; for spot instances, how often they are taken
        /// back.
        node_rate: f64 => f64, default(0.0), Check::NotNegative("a rate such as 0.01"), Resolved;
        /// Time until an interruption is noticed and diagnosed.
        detection: Seconds => Seconds, optional("`\"10 min\"` (MegaScale)"), Check::NotNegative("a time such as \"10 min\""), Resolved;
        /// Time from then until training goes on.
        restart: Seconds => Seconds, optional("`\"5 min\"` (assumed)"), Check::NotNegative("a time such as \"5 min\""), Resolved;
        /// Rate at which each machine writes its part of a checkpoint.
        storage: BytesPerSec => BytesPerSec, optional("`\"977 MB/s\"` (Llama 3)"), Check::Positive("a rate such as \"1 GB/s\""), Resolved;
        /// Whether training goes on while a checkpoint is written.
        asynchronous: bool => bool, default(false), Check::Any, Resolved;
        /// Time that training stands still for an asynchronous checkpoint.
        snapshot: Seconds => Seconds, default(Seconds::new(1.0)), Check::NotNegative("a time such as \"1 s\""), Resolved;
        /// Time between two checkpoints.
        interval: Seconds => Seconds, optional("the best"), Check::Positive("a time such as \"30 min\""), Resolved;
        /// Machines that wait for others to fail.
        spares: u32 => u32, optional("with `repair`, the number with which all machines together take the least machine time; else 0"), Check::Between(0, 100_000, "a number such as 4"), Resolved;
        /// Share of the time in which a machine is slow. All others wait for it.
        slow_share: f64 => f64, default(0.0), Check::NotNegative("a share such as 0.001"), Resolved;
        /// Time of a step on a slow machine, relative to the others.
        slow_factor: f64 => f64, default(1.0), Check::Positive("a factor such as 1.2"), Resolved;
        /// How long a machine is slow each time. It is replaced if training with that interruption takes less time.
        slow_time: Seconds => Seconds, optional("for good, and it is not replaced"), Check::Positive("a time such as \"2 h\""), Resolved;
        /// Time until a machine that was interrupted is repaired.
        repair: Seconds => Seconds, optional("it goes on at once"), Check::Positive("a time such as \"1 d\""), Resolved;
    }
    after {}
    made {}
}

section_of!(Failures, FailuresSection);

keys! {
    /// Factors from time to energy.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Energy;
    /// `[energy]`: gives kilowatt-hours and carbon.
    section EnergySection;
    before {}
    keys {
        /// Power of one worker with its share of the machine.
        power: Watts => Watts, optional("the device's"), Check::Positive("a power such as \"1 kW\""), Resolved;
        /// Energy of the building relative to its machines.
        pue: f64 => f64, optional("1.1 (Google)"), Check::Positive("a factor such as 1.1"), Resolved;
        /// Grams of carbon dioxide for one kilowatt-hour.
        carbon: f64 => f64, optional("not counted"), Check::NotNegative("a number such as 400"), Resolved;
    }
    after {}
    made {}
}

section_of!(Energy, EnergySection);
