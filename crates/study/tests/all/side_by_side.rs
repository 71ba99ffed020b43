//! Closed forms and the event engine side by side, for every strategy and every example: steps do not vary and links
//! are shared fairly. Where the premises of the two agree, so do their steps; where they do not, the reason stands in
//! strategies.txt or exceptions.txt and in docs/methods/agreement.md, and bounds the difference.

use crate::predicted_by;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepcast_core::prediction::{PartKind, Prediction};
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_core::strategy::{BufferReading, Fusion};
use stepcast_study::Request;
use stepcast_study::predict::methods;

/// Steps that differ by less than this share agree.
const AGREE: f64 = 0.02;

/// Local steps of local SGD: all but the last one of a round.
const LOCAL: f64 = 7.0 / 8.0;

/// What the premises of a closed form and of the engine have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Premise {
    Same,
    /// The closed form begins to compute when all parameters have arrived, and its server starts transfers of all
    /// workers one at a time. In the engine a layer is computed as soon as its own parameters are there, and every
    /// connection starts transfers by itself. The step of the engine is shorter, by no more than pulls and start-ups.
    PullsOverlap,
    /// The closed form takes the exchange with servers whose software costs time as a whole: pulls hide behind the
    /// backward pass too, a share shows in any case, and the wire is busy meanwhile. In the engine the software works on
    /// pushes while the backward pass goes on, and pulls follow over the wire and hide behind the forward pass. The step
    /// is not shorter than computing, and not longer than if everything showed, the wire beside the software.
    Served,
    /// The closed form is a queue of workers that draw random times and do not overlap phases; the engine overlaps them.
    Queue,
    /// The closed form knows four phases that do not overlap and one average worker; workers of the engine overlap
    /// them, and without jitter stay in lock-step. The engine is not faster than computing and links allow, and not
    /// slower than bulk-synchronous training.
    Phases,
    /// There is no closed form. The step lies between those of asynchronous and bulk-synchronous training.
    Between,
    /// All-reduce waits for the slowest of the steps that workers draw from the recording, and the closed form has a
    /// mean step: the engine's step is longer.
    StepsVary,
    /// Threads hold a lock for nearly the whole step; the closed form has the mean wait of threads that come at random, and
    /// those of the engine come one after the other: the engine's step is longer.
    Locked,
    /// The closed form refuses the example, for this key.
    Refused(&'static str),
}

use Premise::{Between, Locked, Phases, PullsOverlap, Queue, Refused, Same, Served, StepsVary};

/// Name, closed form, changes, premise.
type Strategy = (&'static str, &'static str, Vec<&'static str>, Premise);

const SERVERS: &str = "strategy.architecture=parameter-server";
const ALL_REDUCE: &str = "strategy.architecture=all-reduce";
const GRPC: &str = "cluster.servers.software=grpc";
const BSP: &str = "strategy.synchronisation=bsp";

/// Kinds of traffic that do not meet.
const APART: &str = "strategy.plan.shared-links=false";

/// Buckets of one, two and three gradients; all others travel alone. A file would have to list all of them.
const BUCKETS: &str = "buckets";

/// The rows of a table, whose columns bars divide.
fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(" | ").collect::<Vec<_>>().try_into().unwrap())
}

fn strategies() -> Vec<Strategy> {
    let rows = rows(include_str!("../strategies.txt"));
    rows.map(|[name, method, premise, edits]| (name, method, edits.split(' ').collect(), premise.into()))
        .collect()
}

impl From<&'static str> for Premise {
    fn from(text: &'static str) -> Self {
        match text {
            "same" => Same,
            "pulls overlap" => PullsOverlap,
            "served" => Served,
            "queue" => Queue,
            "phases" => Phases,
            "between" => Between,
            "steps vary" => StepsVary,
            "locked" => Locked,
            _ => Refused(text.strip_prefix("refused: ").unwrap()),
        }
    }
}

/// Whether a file of the examples is a scenario; the manifest of their crate is none.
fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml")
}

/// Examples whose transformers a plan splits, and the others.
fn all_examples() -> [Vec<PathBuf>; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| is_scenario(path)).collect();
    files.sort();
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    // Adapters need the plan that questions by name are given.
    files.retain(|path| !text(path).contains("[model.adapters]"));
    let has_plan = |path: &PathBuf| text(path).contains("[strategy.plan]");
    let (with, without): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(has_plan);
    assert!(with.len() >= 2 && without.len() >= 13, "{with:?} {without:?}");
    [with, without]
}

fn examples() -> Vec<PathBuf> {
    let [_, without] = all_examples();
    without
}

fn scenario(file: &Path, changes: &[&str]) -> Scenario {
    // A fast worker of local SGD is up to a round ahead when the measured period ends.
    let local = changes.iter().any(|change| change.contains("local-sgd"));
    let steps = if local { "steps=800" } else { "steps=40" };
    let fixed = ["jitter=0", "transport=fair", "runs=1", steps, "warm-up=8"];
    let fixed = fixed.map(|option| format!("methods.simulate.{option}"));
    // Where a strategy does not name it, servers' software costs nothing: its terms are taken as a whole by closed forms.
    let free = ["cluster.servers.software=none"].into_iter().filter(|_| !changes.contains(&GRPC));
    let all = fixed.iter().map(String::as_str).chain(free).chain(changes.iter().copied());
    let overrides =
        all.filter(|change| *change != BUCKETS).map(|change| Edit::parse(change).unwrap()).collect();
    let request = Request::open(file.to_str().unwrap(), overrides).unwrap();
    let mut scenario = request.scenario().unwrap().as_ref().clone();
    // The engine's messages wait while others are sent.
    if let Fusion::Buffer { reading, .. } = &mut scenario.strategy.exchange.fusion {
        *reading = BufferReading::Concurrent;
    }
    if changes.contains(&BUCKETS) {
        scenario.strategy.exchange.fusion = Fusion::Buckets([1, 2, 3].into());
    }
    scenario
}

fn step(prediction: &Prediction) -> f64 {
    prediction.iteration.get()
}

fn simulated(scenario: &Scenario) -> f64 {
    step(&predicted_by("simulate", scenario))
}

fn premise(example: &str, strategy: &Strategy) -> Premise {
    let exception = rows(include_str!("../exceptions.txt"))
        .find(|[file, begins, _]| *file == example && strategy.0.starts_with(begins));
    exception.map_or(strategy.3, |[_, _, premise]| premise.into())
}

fn closed(file: &Path, strategy: &Strategy, scenario: &Scenario) -> f64 {
    let method = strategy.1;
    if strategy.0 != "all-reduce, local-sgd(8)" {
        return step(&predicted_by(method, scenario));
    }
    // Weights are averaged whole, whatever rows a batch has touched.
    let mut whole = self::scenario(file, &[ALL_REDUCE, BSP]);
    for layer in &mut Arc::make_mut(&mut whole.workload).layers {
        layer.tensors.iter_mut().for_each(|tensor| tensor.rows = None);
    }
    let exchanging = predicted_by(method, &whole);
    let slowest = exchanging.groups.iter().map(|group| group.compute.get()).fold(0.0, f64::max);
    LOCAL * slowest + (1.0 - LOCAL) * step(&exchanging)
}

/// A reason why the row does not hold.
fn broken(file: &Path, example: &str, strategy: &Strategy) -> Option<String> {
    let scenario = scenario(file, &strategy.2);
    let premise = premise(example, strategy);
    if let Refused(key) = premise {
        let refused = methods::find(strategy.1).unwrap().applies(&scenario).err();
        let found = refused.map(|fault| fault.key.to_string());
        return (found.as_deref() != Some(key)).then(|| format!("refused for {found:?} instead of {key}"));
    }
    let engine = simulated(&scenario);
    let with = |changes: &[&'static str]| simulated(&self::scenario(file, changes));
    let one_server = "cluster.servers.count=1";
    let between = |low: f64, high: f64| {
        let holds = engine >= low * (1.0 - AGREE) && engine <= high * (1.0 + AGREE);
        (!holds).then(|| format!("{engine} s is not between {low} s and {high} s"))
    };
    match premise {
        Same => {
            let closed = closed(file, strategy, &scenario);
            between(closed, closed)
        }
        PullsOverlap => {
            let closed = predicted_by(strategy.1, &scenario);
            let hidden = closed.part(PartKind::Pull) + closed.part(PartKind::StartUp);
            between(step(&closed) - hidden.get(), step(&closed))
        }
        Served => {
            let at_end = |change: &'static str| {
                let changes: Vec<&str> = strategy.2.iter().copied().chain([change]).collect();
                predicted_by(strategy.1, &self::scenario(file, &changes))
            };
            let all_shows = at_end("cluster.servers.overlap=false");
            // The engine's messages go over the wire first and through the software then.
            let wire = at_end("cluster.servers.software=none");
            let wire = [PartKind::Push, PartKind::Queueing, PartKind::Pull]
                .map(|part| wire.part(part).get())
                .iter()
                .sum::<f64>();
            let computing = all_shows.part(PartKind::Compute) + all_shows.part(PartKind::HostToDevice);
            between(computing.get(), step(&all_shows) + wire)
        }
        // Formulas of papers have no software of servers.
        Queue if scenario.as_published => None,
        Queue => {
            // The queue takes no more than computing and everyone's turn, of which the engine takes the larger at least.
            let closed = predicted_by(strategy.1, &scenario);
            between(0.5 * step(&closed), with(&[SERVERS, BSP, GRPC, one_server]))
        }
        Phases => {
            let rates = scenario
                .cluster
                .groups
                .iter()
                .map(|group| group.bandwidth.unwrap_or(scenario.cluster.network.bandwidth));
            let port = scenario.cluster.servers.bandwidth.or(rates.reduce(|a, b| a.min(b))).unwrap();
            let bytes = scenario.profile().map_or(scenario.sent_in_all(0), |profile| {
                profile.bytes(stepcast_core::profile::Resource::Uplink)
            });
            let wire = bytes / scenario.cluster.network.payload_rate(port);
            let low = wire.get() * scenario.cluster.workers() as f64;
            between(low, with(&[SERVERS, BSP, one_server]))
        }
        Between => {
            let free = with(&[SERVERS, "strategy.synchronisation=async", one_server]);
            between(free, with(&[SERVERS, BSP, one_server]))
        }
        Locked => {
            let closed = closed(file, strategy, &scenario);
            between(closed, 1.1 * closed)
        }
        StepsVary => {
            let closed = closed(file, strategy, &scenario);
            between(closed, 1.15 * closed)
        }
        Refused(_) => None,
    }
}

#[test]
fn closed_forms_and_the_engine_agree_where_their_premises_do() {
    let mut wrong = Vec::new();
    for file in examples() {
        let example = file.file_name().unwrap().to_str().unwrap();
        for strategy in &strategies() {
            if let Some(why) = broken(&file, example, strategy) {
                wrong.push(format!("{example}, {}: {why}", strategy.0));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// With equal devices and links that are apart, a plan takes the same by both; links that are shared take longer, and
/// stages on devices of their own less than all of them on the slowest.
#[test]
fn plans_take_the_same_by_the_closed_form_and_the_engine() {
    let [with, _] = all_examples();
    for file in with {
        let steps = |changes: &[&str]| {
            let mut scenario = scenario(&file, changes);
            if changes.contains(&APART) {
                let device = scenario.cluster.groups[0].device.clone();
                for group in &mut scenario.cluster.groups {
                    group.speed = 1.0;
                    group.device = device.clone();
                }
            }
            let closed = step(&predicted_by("transformer", &scenario));
            [closed, simulated(&scenario)]
        };
        let [closed, engine] = steps(&[APART]);
        assert!((engine / closed - 1.0).abs() < 1e-9, "{}: {engine} {closed}", file.display());
        let [slowest, shared] = steps(&[]);
        assert!(shared > engine * (1.0 - 1e-9), "{}: {shared} {engine}", file.display());
        assert!(shared < slowest * 1.2, "{}: {shared} {slowest}", file.display());
    }
}

/// With a single layer nothing overlaps: pulls, computing and pushes follow each other, and both take framing, copies
/// on hosts and unequal workers alike.
#[test]
fn nothing_overlaps_with_a_single_layer() {
    let text = "strategy.batch = 64\n[model.custom]\nname = \"one\"\ninput = [2000]\n\
                layers = [{ name = \"fc\", op = \"linear\", out = 2000 }]\n\
                [[cluster.workers]]\ncount = 3\ndevice = \"tesla-t4\"\n\
                [[cluster.workers]]\ncount = 1\ndevice = \"tesla-t4\"\nspeed = 0.1\n\
                [cluster.network]\nbandwidth = \"10 Gbit/s\"\nefficiency = 0.9\nhost-rate = \"2 GB/s\"\n";
    for synchronisation in ["bsp", "local-sgd(1)"] {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let scenario = scenario(file.path(), &[&format!("strategy.synchronisation={synchronisation}")]);
        let closed = step(&predicted_by("layerwise", &scenario));
        let engine = simulated(&scenario);
        assert!((engine / closed - 1.0).abs() < AGREE, "{synchronisation}: {engine} {closed}");
    }
}

/// Scaling factors with Horovod's rule vary smoothly with the number of workers: the phase of its cycles does not show.
#[test]
fn horovods_cycles_leave_no_trace_in_scaling() {
    let rule = "strategy.fusion={rule=\"horovod\"}";
    let ideal = "cluster.network={base=\"25gbe\",transport=\"ideal\"}";
    let example = examples().into_iter().find(|path| path.ends_with("all-reduce.toml")).unwrap();
    let factor = |workers: u32| {
        let count = format!("cluster.workers.0.count={workers}");
        predicted_by("liu2022", &scenario(&example, &[rule, ideal, &count])).scaling_factor
    };
    let factors: Vec<f64> = [4, 8, 16, 32, 64].map(factor).to_vec();
    assert!(factors.windows(2).all(|pair| pair[1] <= pair[0]), "{factors:?}");
    assert!(factors.windows(2).all(|pair| pair[0] - pair[1] < 0.02), "{factors:?}");
}
