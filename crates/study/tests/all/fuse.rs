//! The best fusion against every rule and every plan; layers that are replaced by smaller ones, and what their gradients cost.

use crate::{example, pass, scenario};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::method::never_cancelled;
use stepcast_core::model::LayerFile;
use stepcast_core::profile::{FORMAT, Operation, Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::fuse::{Evaluator, FusionReport, exhaustive, fuse, fuse_while, improved};
use stepcast_study::replace::{LayerLine, Refusal, ReplacementReport, Substitution, replace};

fn report(changes: &[&str]) -> FusionReport {
    let text = "[model]\nzoo = \"alexnet\"\n[strategy]\narchitecture = \"all-reduce\"\n";
    best_of_all(fuse(&scenario(text, changes)).unwrap(), changes)
}

/// No rule is faster than the best plan.
fn best_of_all(report: FusionReport, changes: &[&str]) -> FusionReport {
    let best = report.best().iteration;
    for line in &report.lines {
        assert!(best <= line.iteration * (1.0 + 1e-12), "{changes:?} {}", line.rule);
    }
    report
}

const NETWORKS: [&str; 4] = [
    "cluster.network=1gbe",
    "cluster.network={ base = \"10gbe\", transport = \"ideal\" }",
    "cluster.network=25gbe",
    "cluster.network={ bandwidth = \"10 Gbit/s\", startup = \"2 ms\" }",
];

#[test]
fn nothing_is_faster_than_the_best_plan() {
    for model in ["alexnet", "resnet50", "bert-base", "mobilenet-v2"] {
        for network in NETWORKS {
            let report = report(&[&format!("model.zoo={model}"), network]);
            assert_eq!(
                report.plan.iter().map(|message| message.gradients.len()).sum::<usize>(),
                report.tensors
            );
            // The best plan for the mean step may lose in a slower one, but not by much.
            let [low, high] = report.gain_interval;
            assert!(low >= -0.1 && high >= low.max(-1e-12), "{model} {network}: {low} to {high}");
            assert!(report.best().gain >= report.settings.pytorch.gain - 1e-12);
        }
    }
}

const DISTURBED: [&str; 2] = ["strategy.all-reduce.interference=0.5", "strategy.all-reduce.channels=2"];

#[test]
fn nothing_is_faster_than_a_searched_plan() {
    for change in DISTURBED {
        for network in NETWORKS {
            let report = report(&[change, network]);
            assert!(report.search.starts_with("searched"), "{}", report.search);
        }
    }
}

#[test]
fn the_search_is_as_good_as_trying_everything() {
    let layers: Vec<String> =
        (1..=6).map(|n| format!("{{ op = \"linear\", out = {} }}", 100 * n * n)).collect();
    let text = format!(
        "[model.custom]\ninput = [2000]\nlayers = [{}]\n[strategy]\narchitecture = \"all-reduce\"\nbatch = 4096\n",
        layers.join(", ")
    );
    for change in DISTURBED {
        for network in NETWORKS {
            let scenario = scenario(&text, &[change, network]);
            assert_eq!(scenario.gradients().unwrap().len(), 12);
            let evaluator = Evaluator::new(&scenario, &never_cancelled).unwrap();
            let all = exhaustive(&evaluator).unwrap();
            let exact = evaluator.optimum().unwrap();
            assert!(exact.is_some());
            let found = improved(&evaluator, exact, &[]).unwrap();
            let (best, found) =
                (evaluator.time(&all.counts).unwrap(), evaluator.time(&found.counts).unwrap());
            assert!(found <= best * 1.002, "{change} {network}: {found} against {best}");
        }
    }
}

/// A profile that lists gradients in another order than that in which they become ready.
#[test]
fn a_plan_names_the_gradients_that_it_sends() {
    struct Backwards;
    impl Files for Backwards {
        fn profile(&self, _: &str) -> Result<Profile, Fault> {
            let operation = |name: String, resource, bytes, after: Vec<u32>| Operation {
                name,
                resource,
                bytes,
                after,
                server: 0,
            };
            let mut operations = vec![operation("parameters".to_owned(), Resource::Downlink, 1_000, vec![])];
            let computing =
                (0..4).map(|layer| operation(format!("backward {layer}"), Resource::Worker, 0, vec![layer]));
            operations.extend(computing);
            // Sent in reverse: the last one to be ready comes first.
            let sent = (0..4).rev().map(|layer| {
                operation(format!("gradient {layer}"), Resource::Uplink, 1_000_000 << layer, vec![layer + 1])
            });
            operations.extend(sent);
            let start: Vec<f64> = vec![0.0, 0.0, 1e-3, 2e-3, 3e-3, 4e-3, 4e-3, 4e-3, 4e-3];
            let end = start.iter().map(|start| start + 1e-3).collect();
            Ok(Profile {
                format: FORMAT.to_owned(),
                name: "backwards".to_owned(),
                source: "by hand".to_owned(),
                batch: 1,
                link_rate: None,
                operations,
                steps: vec![Step { start, end, length: 5e-3 }],
            })
        }
    }
    let text = "[model]\nprofile = \"p.json\"\n[strategy]\narchitecture = \"all-reduce\"\n";
    for network in NETWORKS {
        let changes = [Edit::parse(network).unwrap()];
        let scenario = Document::new("test", text).scenario_with(&Backwards, &changes).unwrap();
        let report = fuse(&scenario).unwrap();
        let names: Vec<&str> =
            report.plan.iter().flat_map(|message| &message.gradients).map(String::as_str).collect();
        assert_eq!(names, ["gradient 0", "gradient 1", "gradient 2", "gradient 3"]);
        let mut layer = 0;
        for message in &report.plan {
            let sizes = (layer..layer + message.gradients.len()).map(|layer| f64::from(1_000_000 << layer));
            assert_eq!(message.size.get().to_bits(), sizes.sum::<f64>().to_bits(), "{network}");
            layer += message.gradients.len();
        }
        // The printed plan is accepted as input and is as fast as predicted.
        let plan: Vec<&Vec<String>> = report.plan.iter().map(|message| &message.gradients).collect();
        let named = [
            Edit::parse(network).unwrap(),
            Edit::parse(&format!("strategy.fusion.buckets={plan:?}")).unwrap(),
        ];
        let again = Document::new("test", text).scenario_with(&Backwards, &named).unwrap();
        assert_eq!(fuse(&again).unwrap().own().iteration, report.best().iteration, "{network}");
    }
}

#[test]
fn what_is_no_longer_wanted_ends_at_once() {
    let layers = vec!["{ op = \"linear\", out = 8 }"; 4_000].join(", ");
    let text = format!(
        "[model.custom]\ninput = [8]\nlayers = [{layers}]\n[strategy]\narchitecture = \"all-reduce\"\nbatch = 4\n"
    );
    let scenario = scenario(&text, &[]);
    let asked = AtomicU32::new(0);
    let stopped = fuse_while(&scenario, &|| {
        if asked.fetch_add(1, Ordering::Relaxed) >= 200 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(stopped.unwrap_err().reason.contains("stopped"));
    assert_eq!(asked.into_inner(), 201);
}

/// What the budget has no room for is searched, no worse than any rule, and the answer says what the exact plan needs.
#[test]
fn the_budget_bounds_the_search() {
    let text = "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\n[strategy.all-reduce]\noverlap = \"ideal\"\n";
    for more in [&[][..], &["strategy.all-reduce.channels=2"][..]] {
        let with = |budget: &str| {
            let changes = [more, &[budget]].concat();
            best_of_all(fuse(&scenario(text, &changes)).unwrap(), &changes)
        };
        let (small, usual) = (with("methods.simulate.budget=1000"), with("methods.simulate.budget=10000000"));
        let needed = (usual.tensors as u64).pow(2) / 20;
        assert!(needed > 1000 && !usual.search.contains("budget`"), "{}", usual.search);
        assert!(
            small.search.ends_with(&format!("`methods.simulate.budget` from {needed} on")),
            "{}",
            small.search
        );
        assert!(usual.best().iteration <= small.best().iteration * (1.0 + 1e-9));
    }
}

fn vgg() -> Scenario {
    scenario(&example("layer-replacement.toml"), &[])
}

fn replaced(scenario: &Scenario, asked: Substitution) -> ReplacementReport {
    replace(scenario, asked, &never_cancelled).unwrap()
}

fn layers(text: &str) -> Vec<LayerFile> {
    Document::new("layers", text).layers().unwrap()
}

/// Liu 2022, section 4.1, with the calibration of errata 4.5.
#[test]
fn the_example_gives_the_factors_of_the_paper() {
    let report = replaced(&vgg(), Substitution::default());
    assert!((report.before.scaling_factor - 0.25).abs() < 1e-5, "{}", report.before.scaling_factor);
    let replacement = report.replacement.unwrap();
    assert!((replacement.after.scaling_factor - 0.72).abs() < 1e-5, "{}", replacement.after.scaling_factor);
    let mib = |lines: &[LayerLine]| -> Vec<f64> {
        lines.iter().map(|line| line.weights.get() / 1024.0 / 1024.0).filter(|size| *size > 0.0).collect()
    };
    assert_eq!(mib(&replacement.removed), [392.0, 64.0, 15.625]);
    assert_eq!(mib(&replacement.added), [1.0, 1.953_125]);
    // Figure 8: both models over the number of workers; one worker sends nothing.
    let at = |workers: u32| report.scaling.iter().find(|point| point.workers == workers).unwrap();
    assert_eq!((at(1).before, at(1).after), (1.0, 1.0));
    assert_eq!(
        (at(32).before, at(32).after),
        (report.before.scaling_factor, replacement.after.scaling_factor)
    );
    assert!(report.scaling.windows(2).all(|pair| pair[0].before >= pair[1].before));
    // fc1 is 74.27 % of all bytes (the text rounds to 74.2 %).
    let worst = &report.layers[0];
    assert_eq!(worst.name, "classifier.0");
    assert!((worst.share - 0.7427).abs() < 5e-5);
    // The new scenario gives the predicted result.
    let again = replaced(&replacement.scenario.resolve().unwrap(), Substitution::default());
    assert_eq!(again.before, replacement.after);
    assert_eq!(
        again.reason.unwrap(),
        "Nothing is proposed: the model does not end in fully connected layers."
    );
}

#[test]
fn exposed_times_are_those_of_steps_without_the_exchange() {
    let scenario = vgg();
    let report = replaced(&scenario, Substitution::default());
    assert_eq!(report.layers.len(), 16);
    let total: Bytes = report.layers.iter().map(|layer| layer.size).sum();
    assert_eq!(total, report.before.gradients);
    assert!(report.layers.is_sorted_by(|a, b| a.exposed >= b.exposed));
    // Without fusion the network is never idle after the first gradients of this model: each layer costs its own time.
    let worst = &report.layers[0];
    let weight = Bytes::new(25088.0 * 4096.0 * 4.0);
    let own = curve_time(&scenario, weight) + curve_time(&scenario, Bytes::new(4096.0 * 4.0));
    assert!((worst.exposed / own - 1.0).abs() < 1e-9);
    assert!(report.before.exposed > worst.exposed);
}

fn curve_time(scenario: &Scenario, size: Bytes) -> Seconds {
    stepcast_analytic::collectives::curve(scenario).time(size)
}

#[test]
fn a_user_chooses_the_cut_and_the_layers() {
    let request = |from: Option<&str>, with: Option<&str>| Substitution {
        from: from.map(str::to_owned),
        with: with.map(layers),
        workers: None,
    };
    let small =
        r#"layers = [{ op = "global-average-pool" }, { op = "flatten" }, { op = "linear", out = 1000 }]"#;
    let found = replaced(&vgg(), request(None, Some(small))).replacement.unwrap();
    assert_eq!(found.added.iter().map(|line| line.parameters).sum::<u64>(), 512 * 1000 + 1000);
    let found = replaced(&vgg(), request(Some("features.30"), None)).replacement.unwrap();
    assert_eq!(found.added.len(), 5);
    assert_eq!(found.added[0].output, "512×14×14");
    let last = request(Some("classifier.6"), Some(r#"layers = [{ op = "linear", out = 10 }]"#));
    let found = replaced(&vgg(), last);
    assert_eq!(found.replacement.unwrap().added[0].parameters, 40_970);
}

/// Where the budget does not pay for a step without each of the layers, those with the most gradients are looked at, with
/// the same figures.
#[test]
fn a_budget_bounds_the_layers_that_are_looked_at() {
    let whole = vgg();
    let mut small = whole.clone();
    small.methods.simulate.budget = 3 * pass(&whole);
    let [all, few] = [&whole, &small].map(|scenario| replaced(scenario, Substitution::default()));
    assert_eq!((all.layers.len(), few.layers.len()), (16, 3));
    assert!(few.layers.iter().all(|layer| all.layers.contains(layer)));
    let smallest = few.layers.iter().map(|layer| layer.size.get()).fold(f64::INFINITY, f64::min);
    assert_eq!(all.layers.iter().filter(|layer| layer.size.get() >= smallest).count(), 3);
    let told = |report: &ReplacementReport| report.warnings.iter().any(|warning| warning.code == "left-out");
    assert_eq!((told(&all), told(&few)), (false, true));
}

#[test]
fn it_ends_when_it_is_no_longer_wanted() {
    let ended = replace(&vgg(), Substitution::default(), &|| ControlFlow::Break(()));
    assert!(matches!(ended, Err(Refusal::Scenario(_))), "{ended:?}");
}
