//! Method `simulate`: the event engine on a profile, measured or made from a model (Li 2020 and beyond).
//!
//! One module for each kind of training, `parameter_server`, `all_reduce`, `sprint` and `transformer`, each with `predict` and its
//! program; `measure` continues runs until `estimate` knows the throughput in steady state well enough; `excerpt` is a typical
//! step to explain, `timeline` a run to display.
//!
//! Runs are independent and go in parallel; their order does not matter, so the figures are the same on any number of
//! cores.

pub(crate) mod all_reduce;
mod estimate;
mod excerpt;
mod measure;
mod parameter_server;
mod sprint;
mod timeline;
mod transformer;

pub(crate) use estimate::NOT_STEADY;
use excerpt::NamedProgram;
pub(crate) use excerpt::{Excerpt, excerpt};
pub(crate) use measure::{BUDGET, EXCESS, is_affordable};
pub(crate) use sprint::is_sprint;
pub use sprint::simulated_threads;
pub use timeline::{Recording, events_per_step, round_timeline};
pub use transformer::KINDS;

use stepcast_core::fault::{Fault, Remedies, Remedy};
use stepcast_core::method::{CancelCheck, Method, MethodAbout, Stopped, Watch, unwatched};
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::Operation;
use stepcast_core::quantity::BitsPerSec;
use stepcast_core::scenario::{Scenario, SharingRule};
use stepcast_core::strategy::{Architecture, Synchronisation};
use stepcast_sim::ProgramError;
use stepcast_trace::timeline::{About, FORMAT};

/// Workers beyond which a simulation is refused: closed forms answer at once.
const MAX_WORKERS: u64 = 16_384;

/// Servers beyond which a simulation is refused: every worker has a connection to each.
const MAX_SERVERS: u32 = 64;

/// Numbers that a simulation may keep: a gigabyte.
const MAX_NUMBERS: u64 = 1 << 27;

/// The event engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulate;

impl Method for Simulate {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "simulate",
            summary: "parameter server, all-reduce or a split transformer, by events on a profile or a model's layers",
            source: "Li et al. 2020, doi 10.1145/3358960.3379141, and docs/methods/simulate.md",
        }
    }

    fn is_quick(&self) -> bool {
        false
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        let refuse = |key, reason: &str, remedy: Remedies| Err(Fault::in_key(key, reason, remedy));
        if scenario.strategy.plan.is_some() {
            return transformer::applies(scenario);
        }
        if let Some(period) = unreached_exchange(scenario) {
            let reason =
                format!("so few steps end before the first exchange, which comes after {period} of them");
            let remedy = Remedy::set("methods.simulate.steps", period.to_string());
            return Err(Fault::in_key("methods.simulate.steps", reason, remedy));
        }
        match scenario.strategy.architecture {
            Architecture::AllReduce if is_sprint(scenario) => sprint::applies(scenario),
            Architecture::AllReduce if !waits(scenario.strategy.synchronisation) => refuse(
                "strategy.synchronisation",
                "the simulation has no all-reduce with bounded staleness",
                ["bsp", "async", "local-sgd(8)"]
                    .map(|value| Remedy::set("strategy.synchronisation", value))
                    .into(),
            ),
            Architecture::StandAlone => refuse(
                "strategy.architecture",
                "there is nothing to simulate with a worker that is alone",
                Remedy::method("layerwise").into(),
            ),
            _ if scenario.methods.simulate.transport == SharingRule::Tcp && !ports_are_alike(scenario) => {
                refuse(
                    "methods.simulate.transport",
                    "TCP is modelled for one server and ports of one rate that nothing shares",
                    [
                        Remedy::set("methods.simulate.transport", "fair"),
                        Remedy::advice(
                            "use one server, no `bandwidth` of its own for any group, and no `nodes`",
                        ),
                    ]
                    .into(),
                )
            }
            _ if parameter_server::simulated_servers(scenario) > MAX_SERVERS => refuse(
                "cluster.servers.count",
                "more than 64 servers are too many to simulate",
                [Remedy::method("zeng2023"), Remedy::advice("use fewer servers")].into(),
            ),
            _ if scenario.cluster.workers() > MAX_WORKERS => refuse(
                "cluster.workers",
                "more than 16384 workers are too many to simulate",
                [Remedy::method("zeng2023"), Remedy::advice("use fewer workers")].into(),
            ),
            _ if timeline::numbers_kept(scenario) > MAX_NUMBERS => refuse(
                "cluster.workers",
                "this many workers with this many operations take too much memory to simulate",
                "use fewer workers, join groups of equal ones, or use a closed form".into(),
            ),
            _ => Ok(()),
        }
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.predict_watched(scenario, &unwatched).map_err(Fault::from)
    }

    fn predict_watched(&self, scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
        self.applies(scenario)?;
        if scenario.strategy.plan.is_some() {
            return transformer::predict(scenario, watch);
        }
        if is_sprint(scenario) {
            return sprint::predict(scenario, watch);
        }
        if !is_affordable(scenario) {
            return Err(Stopped::Fault(measure::too_long(&scenario.methods.simulate)));
        }
        if scenario.strategy.architecture == Architecture::AllReduce {
            return all_reduce::predict(scenario, watch);
        }
        parameter_server::predict(scenario, watch)
    }
}

/// The fault of a profile that cannot be simulated: no program can be made, or the engine refuses it.
fn broken(error: ProgramError) -> Fault {
    Fault::in_key("model", error.to_string(), "check the profile")
}

/// The steps between two exchanges of local SGD, if fewer are simulated.
fn unreached_exchange(scenario: &Scenario) -> Option<u32> {
    match scenario.strategy.synchronisation {
        Synchronisation::LocalSgd(period) if scenario.methods.simulate.steps < period => Some(period),
        _ => None,
    }
}

/// Whether workers wait for each other when they exchange.
fn waits(synchronisation: Synchronisation) -> bool {
    matches!(synchronisation, Synchronisation::Bsp | Synchronisation::LocalSgd(_))
}

fn ports_are_alike(scenario: &Scenario) -> bool {
    let cluster = &scenario.cluster;
    let own = |rate: Option<BitsPerSec>| rate.is_some_and(|rate| rate != cluster.network.bandwidth);
    cluster.servers.count == 1
        && !cluster.servers.colocated
        && cluster.nodes.is_none()
        && !own(cluster.servers.bandwidth)
        && !cluster.groups.iter().any(|group| own(group.bandwidth))
}

/// The first `steps` steps of every worker of one run, with cancellation.
pub fn timeline(scenario: &Scenario, steps: u64, wanted: &CancelCheck<'_>) -> Result<Recording, Stopped> {
    Simulate.applies(scenario)?;
    if scenario.strategy.plan.is_some() {
        return transformer::timeline(scenario, steps, wanted);
    }
    let NamedProgram { program, lane_names, operations } = NamedProgram::from_scenario(scenario)?;
    let mut observed = stepcast_sim::Timeline::default();
    measure::observe(&program, scenario.methods.simulate.seed, steps, &mut observed, wanted)?;
    Ok(Recording { program, lane_names, observed, about: about(scenario, operations), marks: Vec::new() })
}

/// The header of a profile made from a run.
fn about(scenario: &Scenario, operations: Vec<Operation>) -> About {
    About {
        format: FORMAT.to_owned(),
        name: scenario.name().to_owned(),
        batch: scenario.batch(0),
        operations,
    }
}
