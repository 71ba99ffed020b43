//! Steady states of simulated training, against what they must be in the limit; and what no change may do.

use crate::{by, forecast_by, predicted_by, request};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use stepcast_core::machine::ServerSoftware;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, PartKind, Prediction};
use stepcast_core::scenario::{Document, Scenario};
use stepcast_sim::jitter_factors;
use stepcast_study::simulate::Simulate;

/// Three layers on devices of 1 Tflop/s, so that a sample takes 12 µs at full efficiency.
const MODEL: &str = "[model.custom]\nname = \"three\"\ninput = [1000]\nlayers = [\
    { name = \"a\", op = \"linear\", out = 1000 }, { name = \"b\", op = \"linear\", out = 500 }, \
    { name = \"c\", op = \"linear\", out = 1000 }]\n";

fn scenario(text: &str) -> Scenario {
    let mut scenario = Document::new("test", format!("{MODEL}{text}")).scenario(&[]).unwrap();
    scenario.cluster.servers.software = Some(ServerSoftware::None);
    scenario
}

fn group(count: u32, speed: f64) -> String {
    format!(
        "[[cluster.workers]]\ncount = {count}\ndevice = \"tesla-v100-sxm2-16gb\"\nefficiency = {}\n",
        0.4 * speed
    )
}

fn network(rate: &str) -> String {
    format!(
        "[cluster.network]\nbandwidth = \"{rate}\"\nlatency = \"0 s\"\nstartup = \"0 s\"\nefficiency = 1.0\n\
         transport = \"ideal\"\n"
    )
}

/// Time of the step of one worker alone with an endless network and no jitter.
fn alone(speed: f64, architecture: &str) -> f64 {
    let (machine, network) = (group(1, speed), network("1000000 Tbit/s"));
    let text = format!(
        "{machine}{network}[strategy]\narchitecture = \"{architecture}\"\n[methods.simulate]\njitter = 0\n"
    );
    Simulate.predict(&scenario(&text)).unwrap().iteration.get()
}

/// Time of copying a batch to the device.
fn copying() -> f64 {
    let text = format!("{}[strategy]\narchitecture = \"stand-alone\"\n", group(1, 1.0));
    predicted_by("layerwise", &scenario(&text)).part(PartKind::HostToDevice).get()
}

/// Expected largest of `count` draws from `factors`.
fn largest(mut factors: Vec<f64>, count: u32) -> f64 {
    factors.sort_by(f64::total_cmp);
    let below = |place: usize| (place as f64 / factors.len() as f64).powi(count as i32);
    (0..factors.len()).map(|place| factors[place] * (below(place + 1) - below(place))).sum()
}

/// How a case is trained, and its throughput in steps of one worker per second, all workers together.
#[derive(Debug, Clone)]
enum Case {
    /// The slowest of unequal workers, whatever the bound.
    Ssp {
        bound: u32,
        fast: u32,
        slowdown: f64,
    },
    Async {
        workers: u32,
    },
    /// The slowest of equal workers in every step.
    Bsp {
        workers: u32,
        architecture: &'static str,
    },
}

fn cases() -> impl Strategy<Value = (Case, f64)> {
    let case = prop_oneof![
        (1u32..200, 1u32..12, 1.1..4.0f64).prop_map(|(bound, fast, slowdown)| Case::Ssp {
            bound,
            fast,
            slowdown
        }),
        (1u32..24).prop_map(|workers| Case::Async { workers }),
        (2u32..40, prop::sample::select(vec!["parameter-server", "all-reduce"]))
            .prop_map(|(workers, architecture)| Case::Bsp { workers, architecture }),
    ];
    (case, prop::sample::select(vec![0.0, 0.02, 0.1, 0.3]))
}

/// The simulated throughput in steps per second, its half-width, and what it must be.
fn against_limit(case: &Case, jitter: f64) -> (f64, f64, f64) {
    let factors: Vec<f64> = jitter_factors(jitter, 1).collect();
    let mean = factors.iter().sum::<f64>() / factors.len() as f64;
    let (machines, strategy, limit) = match *case {
        Case::Ssp { bound, fast, slowdown } => (
            group(fast, 1.0) + &group(1, 1.0 / slowdown),
            format!("synchronisation = \"ssp({bound})\"\n"),
            f64::from(fast + 1) / (alone(1.0 / slowdown, "parameter-server") * mean),
        ),
        Case::Async { workers } => (
            group(workers, 1.0),
            "synchronisation = \"async\"\n".to_owned(),
            f64::from(workers) / (alone(1.0, "parameter-server") * mean),
        ),
        Case::Bsp { workers, architecture } => {
            (group(workers, 1.0), format!("architecture = \"{architecture}\"\n"), {
                let step = alone(1.0, architecture);
                // Copies to the device do not vary with computing in all-reduce training.
                let fixed = if architecture == "all-reduce" { copying() } else { 0.0 };
                f64::from(workers) / (fixed + (step - fixed) * largest(factors, workers))
            })
        }
    };
    let text = format!(
        "{machines}{}[strategy]\n{strategy}[methods.simulate]\njitter = {jitter}\nbudget = 100000\n",
        network("1000000 Tbit/s")
    );
    let predicted = Simulate.predict(&scenario(&text)).unwrap();
    let simulation = predicted.simulation.unwrap();
    let [low, high] = simulation.throughput_interval.map(|rate| rate / 32.0);
    (predicted.throughput.get() / 32.0, 0.5 * (high - low), limit)
}

/// Simulations take long.
fn most_cases() -> u32 {
    ProptestConfig::default().cases.min(200)
}

#[test]
fn intervals_hold_the_limit() {
    let mut runner = TestRunner::deterministic();
    let mut outside = Vec::new();
    let cases_tried = most_cases();
    for _ in 0..cases_tried {
        let (case, jitter) = cases().new_tree(&mut runner).unwrap().current();
        let (rate, half_width, limit) = against_limit(&case, jitter);
        // The network is fast, not endless.
        if (rate - limit).abs() > half_width + 1e-3 * limit {
            outside.push(format!("{case:?} {jitter}: {rate:.2} ± {half_width:.2}, not {limit:.2}"));
        }
    }
    assert!(
        10 * outside.len() <= cases_tried as usize,
        "{} of {cases_tried}:\n{}",
        outside.len(),
        outside.join("\n")
    );
}

fn strategies() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "synchronisation = \"bsp\"\n",
        "synchronisation = \"async\"\n",
        "synchronisation = \"ssp(4)\"\n",
        "synchronisation = \"local-sgd(4)\"\n",
        "architecture = \"all-reduce\"\n",
        "architecture = \"all-reduce\"\nsynchronisation = \"local-sgd(4)\"\n",
    ])
    .prop_map(str::to_owned)
}

/// Whether a warning names what keeps a throughput from growing with its parts.
fn is_explained(prediction: &Prediction) -> bool {
    prediction.warnings.iter().any(|warning| ["lock-step", "not-steady"].contains(&warning.code))
}

struct Cluster {
    workers: u32,
    servers: u32,
    speed: f64,
    mbits: f64,
    strategy: String,
    transport: &'static str,
}

impl Cluster {
    /// The forecast's prediction, and the interval that is printed with it.
    fn predict(&self) -> (Prediction, [f64; 2]) {
        let servers = match self.strategy.contains("all-reduce") {
            true => String::new(),
            false => format!("[cluster.servers]\ncount = {}\n", self.servers),
        };
        let text = format!(
            "{}{}{servers}[strategy]\n{}[methods.simulate]\ntransport = \"{}\"\nbudget = 600000\n",
            group(self.workers, self.speed),
            network(&format!("{} Mbit/s", self.mbits)),
            self.strategy,
            self.transport
        );
        let request = request(&format!("{MODEL}{text}"), &["cluster.servers.software=none"]);
        let forecast = forecast_by(&request, by("simulate"));
        let interval = forecast.interval.unwrap().throughput_samples_per_s.map(|rate| rate.get());
        (forecast.prediction, interval)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(most_cases()) })]

    /// No resource carries more than it can. What is twice as fast, and twice as many workers, make the whole neither slower,
    /// nor more than twice as fast, by more than the printed intervals, unless a warning says why.
    #[test]
    fn faster_parts_make_no_slower_whole(
        workers in 1u32..20, servers in 1u32..4, speed in 0.2..1.0f64, megabits in 2.0..5.0f64,
        strategy in strategies(), transport in prop::sample::select(vec!["uneven", "fair", "tcp"]),
    ) {
        let servers = if transport == "tcp" { 1 } else { servers };
        let mbits = 10f64.powf(megabits);
        let cluster = || Cluster { workers, servers, speed, mbits, strategy: strategy.clone(), transport };
        let (now, [low, high]) = cluster().predict();
        for usage in &now.simulation.as_ref().unwrap().usage {
            prop_assert!(usage.share <= 1.0 + 1e-6, "{} {}", usage.resource, usage.share);
        }
        let mut changes = vec![
            ("workers", Cluster { workers: 2 * workers, ..cluster() }),
            ("bandwidth", Cluster { mbits: 2.0 * mbits, ..cluster() }),
            ("compute", Cluster { speed: 2.0 * speed, ..cluster() }),
        ];
        // Tensors are not split: beyond two servers, that of the largest tensor has no less to do.
        if !strategy.contains("all-reduce") && transport != "tcp" && servers == 1 {
            changes.push(("servers", Cluster { servers: 2 * servers, ..cluster() }));
        }
        for (name, change) in changes {
            let (then, [then_low, then_high]) = change.predict();
            // Exactly equal shares keep workers in lock-step, which a small change may break up or bring about.
            if transport == "fair" && (is_explained(&now) || is_explained(&then)) {
                continue;
            }
            let rate = then.throughput.get();
            // A worker of an all-reduce that is alone exchanges nothing: the bottleneck names what two of them wait for.
            if name == "workers" && workers == 1 && then.bottleneck == Bottleneck::WorkerLink {
                continue;
            }
            prop_assert!(then_high >= low.max(0.0) && rate >= 0.8 * now.throughput.get(), "{name}: {rate} {now:?}");
            prop_assert!(then_low <= 2.0 * high, "{name}: {rate} {now:?}");
        }
    }
}
