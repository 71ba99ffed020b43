//! Method `simulate`: the event engine on a profile, measured or made from a model (Li 2020 and beyond).
//!
//! One module for each kind of training, `parameter_server`, `all_reduce`, `sprint` and `transformer`, each with `predict` and its
//! program; `measure` continues runs until `estimate` knows the throughput in steady state well enough; `excerpt` is a typical
//! step to explain, `timeline` a run to look at.
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
pub use timeline::{Recording, events_per_step};
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

/// No program can be made, or the engine refuses it: the profile is beyond what can be simulated.
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

/// The first `steps` steps of every worker of one run, as long as they are wanted.
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

/// The head of a profile made from a run.
fn about(scenario: &Scenario, operations: Vec<Operation>) -> About {
    About {
        format: FORMAT.to_owned(),
        name: scenario.name().to_owned(),
        batch: scenario.batch(0),
        operations,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::scenario::{Document, Edit};

    fn predicted(changes: &[&str]) -> Prediction {
        let text = "[model]\nzoo = \"resnet50\"\n[cluster.servers]\nsoftware = \"none\"\n[strategy]\nsynchronisation = \"async\"\n[methods.simulate]\nsteps = 60\nwarm-up = 10\n";
        Simulate
            .predict(&Document::new("test", text).scenario(&Edit::parse_all(changes).unwrap()).unwrap())
            .unwrap()
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| predicted(&[]))
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn staleness_is_the_number_of_others() {
        let simulation = predicted(&[]).simulation.unwrap();
        // Four equal workers: each of the others updates once in between.
        assert!((simulation.mean_staleness - 3.0).abs() < 0.2, "{simulation:?}");
        assert!((simulation.effective_minibatch - 128.0).abs() < 8.0);
        let total: f64 = simulation.staleness_histogram.iter().sum();
        assert!((total - 1.0).abs() < 1e-9);
        let [low, high] = simulation.throughput_interval;
        assert!(low > 0.0 && high < 1.2 * low, "{low} {high}");
    }

    #[test]
    fn waiting_costs_throughput() {
        let wide = "cluster.network.bandwidth=\"100 Gbit/s\"";
        let rate =
            |how: &str| predicted(&[wide, &format!("strategy.synchronisation={how}")]).throughput.get();
        let (never, bounded, always) = (rate("async"), rate("ssp(3)"), rate("bsp"));
        assert!(never >= 0.99 * bounded && bounded >= 0.99 * always, "{never} {bounded} {always}");
        assert!(predicted(&[wide, "strategy.synchronisation=bsp"]).simulation.unwrap().mean_staleness < 3.0);
    }

    #[test]
    fn every_order_and_transport_has_an_answer() {
        for change in ["order=tic", "order=tac", "order=reverse", "order=random", "transport=tcp"] {
            let prediction = predicted(&[&format!("methods.simulate.{change}")]);
            assert!(prediction.throughput.get() > 0.0, "{change}");
        }
    }

    #[test]
    fn more_servers_are_not_slower_where_links_decide() {
        let narrow = "cluster.network.bandwidth=\"1 Gbit/s\"";
        let rate =
            |servers: u32| predicted(&[narrow, &format!("cluster.servers.count={servers}")]).throughput.get();
        assert!(rate(4) > 1.5 * rate(1), "{} {}", rate(4), rate(1));
    }

    fn deep(layers: usize, groups: usize) -> Scenario {
        let mut text = "strategy.batch = 8\n".to_owned();
        for group in 0..groups {
            text += &format!("[[cluster.workers]]\ncount = 2\nspeed = {}\n", 1 + group);
        }
        text += "[model.custom]\nname = \"deep\"\ninput = [1]\nlayers = [\n";
        text += &"{ op = \"linear\", out = 1 },\n".repeat(layers);
        Document::new("test", text + "]\n").scenario(&[]).unwrap()
    }

    /// What a budget has no room for, or memory, is refused before anything is made ready for it.
    #[test]
    fn what_is_too_large_is_refused_at_once() {
        let mut scenario = deep(4000, 2);
        scenario.methods.simulate.budget = 1000;
        assert!(!is_affordable(&scenario));
        assert_eq!(Simulate.predict(&scenario).unwrap_err().key, BUDGET);
        let many = scenario.on(scenario.cluster.resized(16_000));
        let refused = Simulate.applies(&many).unwrap_err();
        assert!(refused.reason.contains("memory"), "{refused:?}");
        assert!(Simulate.applies(&deep(100, 2)).is_ok());
    }
}
