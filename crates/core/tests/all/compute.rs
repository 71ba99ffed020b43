//! What the workers of a scenario reach: sources of speeds, and passes of recorded steps.

use stepcast_core::compute::{SpeedSource, assumptions};
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::pass::{Pass, Recorded};
use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::Fusion;

fn scenario(workers: &str, strategy: &str) -> Result<Scenario, Fault> {
    let text = format!("model.zoo = \"resnet50\"\n[[cluster.workers]]\n{workers}\n[strategy]\n{strategy}\n");
    Document::new("scenario.toml", text).scenario(&[])
}

fn step(scenario: &Scenario) -> Seconds {
    let speed = Speed::of_group(scenario, 0);
    scenario.workload.layers.iter().map(|layer| speed.forward(layer) + speed.backward(layer)).sum()
}

fn source(scenario: &Scenario) -> String {
    let source = SpeedSource::new(scenario, &scenario.cluster.groups[0]);
    format!("{source:?}").split('(').next().unwrap().to_owned()
}

fn near(one: Seconds, other: f64) -> bool {
    (one.get() / other - 1.0).abs() < 1e-9
}

/// A fit of the catalog counts where nothing else is known, and only for the settings in which it was measured.
#[test]
fn fits_of_the_catalog_come_after_all_that_a_scenario_says() {
    let step = |workers: &str, strategy: &str| {
        let scenario = scenario(workers, strategy).unwrap();
        (source(&scenario) == "FittedSteps", self::step(&scenario).get() * 1e3)
    };
    let h200 = "device = \"h200-sxm\"";
    let (fitted, ms) = step(h200, "batch = 64\nprecision = \"bf16\"");
    // Measured: 28.4 ms.
    assert!(fitted && (ms / 28.4 - 1.0).abs() < 0.1, "{ms}");
    assert!(!step(h200, "batch = 64\nprecision = \"tf32\"").0);
    assert!(!step(h200, "batch = 64\nprecision = \"bf16\"\ncompiled = true").0);
    let measured = format!("{h200}\nstep-time = \"20 ms\"");
    let (fitted, ms) = step(&measured, "batch = 64\nprecision = \"bf16\"");
    assert!(!fitted && (ms - 20.0).abs() < 1e-9, "{ms}");
}

#[test]
fn a_measured_throughput_is_what_a_worker_reaches() {
    for device in ["rtx-3090", "xeon-e5-2620"] {
        let measured =
            scenario(&format!("device = \"{device}\"\nthroughput = \"250 samples/s\""), "batch = 50");
        assert!(near(step(&measured.unwrap()), 0.2), "{device}");
        let timed = scenario(&format!("device = \"{device}\"\nstep-time = \"40 ms\""), "").unwrap();
        assert!(near(step(&timed), 0.04), "{device}");
        assert_eq!(assumptions(&timed), []);
    }
}

#[test]
fn a_measurement_scales_to_other_batches_and_precisions() {
    let device = "device = \"rtx-3090\"\n";
    let assumed = |strategy: &str| step(&scenario(device, strategy).unwrap());
    let slower = assumed("batch = 16").get() * 1.5;
    let measured =
        format!("{device}step-time = \"{slower} s\"\nmeasured-batch = 16\nmeasured-precision = \"fp32\"");
    for strategy in ["batch = 16", "batch = 128", "batch = 64\nprecision = \"amp\""] {
        let got = step(&scenario(&measured, strategy).unwrap());
        assert!(near(got, 1.5 * assumed(strategy).get()), "{strategy}");
    }
}

#[test]
fn a_speed_is_given_once() {
    for (workers, key) in [
        ("throughput = \"9 samples/s\"\nefficiency = 0.5", "throughput"),
        ("throughput = \"9 samples/s\"\nstep-time = \"9 ms\"", "step-time"),
        ("step-time = \"9 ms\"\ndevice = { base = \"l4\", efficiency = 0.4 }", "step-time"),
        ("measured-batch = 8", "measured-batch"),
    ] {
        let fault = scenario(workers, "").unwrap_err();
        assert_eq!(fault.key.to_string(), format!("cluster.workers[0].{key}"), "{fault}");
    }
}

#[test]
fn a_range_of_throughput_is_an_uncertain_input() {
    let scenario = scenario("throughput = \"200..242 samples/s\"", "batch = 22").unwrap();
    let [slow, fast] = scenario.at_ends(&scenario.uncertain[0]);
    assert!(near(step(&slow), 0.11) && near(step(&scenario), 0.1) && near(step(&fast), 22.0 / 242.0));
}

#[test]
fn assumed_speeds_are_told() {
    let told = assumptions(&scenario("device = \"l4\"", "").unwrap());
    assert_eq!(told.len(), 1);
    assert!(told[0].message.starts_with("the speed of the NVIDIA L4 is assumed from its data sheet"));
    let told = assumptions(&scenario("device = \"xeon-core\"", "").unwrap());
    assert!(told[0].message.contains("is assumed from its data sheet and published runs"), "{told:?}");
    assert_eq!(assumptions(&scenario("efficiency = 0.4", "").unwrap()), []);
}

#[test]
fn every_source_of_speed_is_recognised() {
    for (workers, expected) in [
        ("device = \"h200-sxm\"", "Assumed"),
        ("device = \"l4\"\nefficiency = 0.4", "Share"),
        ("device = { base = \"l4\", efficiency = 0.4 }", "Share"),
        ("device = \"l4\"\nstep-time = \"9 ms\"", "Measured"),
    ] {
        assert_eq!(source(&scenario(workers, "precision = \"amp\"").unwrap()), expected, "{workers}");
    }
}

#[test]
fn every_shipped_fit_is_read_and_belongs_to_the_device_of_the_catalog() {
    let is_used = |device: &str| {
        ["fp32", "tf32", "fp16", "bf16"].into_iter().any(|precision| {
            let found =
                scenario(&format!("device = {{ {device} }}"), &format!("precision = \"{precision}\""));
            found.is_ok_and(|scenario| source(&scenario) == "FittedSteps")
        })
    };
    for (id, _) in stepcast_catalog::FITTED {
        assert!(is_used(&format!("base = \"{id}\"")), "{id}");
        let slower = format!("base = \"{id}\", memory-rate = \"1 TB/s\"");
        assert!(!is_used(&slower), "{id}");
    }
    assert!(!is_used("base = \"tesla-v100-sxm2-16gb\""));
}

/// One second of forward pass, then `b` in 2 s and `a` in 3 s. The gradients are listed in reverse, with `c`, which
/// is ready together with `b`, between them.
fn profile(steps: Vec<Step>) -> Profile {
    let operation = Operation::new;
    let operations = vec![
        operation("parameters", Resource::Downlink, 600, &[]),
        operation("forward", Resource::Worker, 0, &[0]),
        operation("backward b", Resource::Worker, 0, &[1]),
        operation("backward a", Resource::Worker, 0, &[1]),
        operation("a", Resource::Uplink, 100, &[3]),
        operation("c", Resource::Uplink, 200, &[2]),
        operation("b", Resource::Uplink, 300, &[2]),
    ];
    Profile::new("made up", "by hand", 8, operations, steps)
}

/// A step that computes `b` first, one that does not, and the first one again.
fn steps() -> [Step; 3] {
    let step = |start: [f64; 7], end: [f64; 7]| Step { start: start.into(), end: end.into(), length: 8.0 };
    let usual = step([0.0, 1.0, 2.0, 4.0, 7.0, 4.0, 4.0], [1.0, 2.0, 4.0, 7.0, 8.0, 5.0, 5.0]);
    let other = step([0.0, 1.0, 5.0, 2.0, 5.0, 7.0, 7.0], [1.0, 2.0, 7.0, 5.0, 6.0, 8.0, 8.0]);
    [usual.clone(), other, usual]
}

fn layers(pass: &Pass) -> Vec<(f64, f64)> {
    pass.layers.iter().map(|layer| (layer.backward.get(), layer.gradients.get())).collect()
}

#[test]
fn gradients_come_in_the_order_in_which_they_are_ready() {
    let [usual, ..] = steps();
    let profile = profile(vec![usual]);
    let recorded = Recorded::new(&profile).unwrap();
    let gradients = recorded.gradients();
    let names: Vec<&str> = gradients.iter().map(|gradient| gradient.name.as_str()).collect();
    // Gradients that are ready together keep the order of the profile.
    assert_eq!(names, ["c", "b", "a"]);
    let pass = recorded.mean(2.0);
    assert_eq!((pass.forward.get(), pass.update.get()), (6.0, 0.0));
    assert_eq!(layers(&pass), [(0.0, 200.0), (0.0, 300.0), (6.0, 100.0)]);
    let sizes: Vec<Bytes> = gradients.iter().map(|gradient| gradient.size).collect();
    assert_eq!(sizes, pass.layers.iter().map(|layer| layer.gradients).collect::<Vec<_>>());
}

#[test]
fn all_steps_keep_the_order_of_the_mean_one() {
    let profile = profile(steps().into());
    let passes: Vec<Pass> = Recorded::new(&profile).unwrap().steps(1.0).collect();
    assert_eq!(layers(&passes[0]), [(0.0, 200.0), (0.0, 300.0), (3.0, 100.0)]);
    // In this step `a` is ready after 4 s and has to wait for the others until 6 s.
    assert_eq!(layers(&passes[1]), [(0.0, 200.0), (0.0, 300.0), (0.0, 100.0)]);
    assert_eq!(passes[1].forward, Seconds::new(6.0));
    assert_eq!(passes[2], passes[0]);
    for pass in &passes {
        assert_eq!(pass.computing(), Seconds::new(6.0));
    }
}

struct Made(Profile);

impl Files for Made {
    fn profile(&self, _: &str) -> Result<Profile, Fault> {
        Ok(self.0.clone())
    }
}

fn with_buckets(buckets: &str) -> Result<Scenario, Fault> {
    let text = format!(
        "[model]\nprofile = \"p.json\"\n[strategy]\narchitecture = \"all-reduce\"\n[strategy.fusion]\nbuckets = {buckets}\n"
    );
    Document::new("test", text).scenario_with(&Made(profile(steps().into())), &[])
}

#[test]
fn buckets_name_gradients_in_that_order() {
    let scenario = with_buckets(r#"[["c"], ["b", "a"]]"#).unwrap();
    assert_eq!(scenario.strategy.exchange.fusion, Fusion::Buckets([1, 2].into()));
    let as_recorded = with_buckets(r#"[["a"], ["c", "b"]]"#).unwrap_err();
    assert!(as_recorded.to_string().contains("\"c\" is missing before \"a\""), "{as_recorded}");
}

#[test]
fn gradients_that_nothing_makes_are_refused_where_they_matter() {
    let mut profile = profile(steps().into());
    profile.operations[5].after = vec![0];
    let refused = Recorded::new(&profile).unwrap_err();
    assert_eq!(refused.reason, "the gradient \"c\" waits for nothing that is computed");
    let text = "[model]\nprofile = \"p.json\"\n";
    assert!(Document::new("test", text).scenario_with(&Made(profile), &[]).is_ok());
}
