//! The best fusion against every rule and every plan.

use crate::scenario;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::method::never_cancelled;
use stepcast_core::profile::{FORMAT, Operation, Profile, Resource, Step};
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::fuse::{Evaluator, FusionReport, exhaustive, fuse, fuse_while, improved};

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
    let since = std::time::Instant::now();
    let stopped = fuse_while(&scenario, &|| {
        if asked.fetch_add(1, Ordering::Relaxed) >= 200 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(stopped.unwrap_err().reason.contains("stopped"));
    assert_eq!(asked.into_inner(), 201);
    assert!(since.elapsed().as_secs() < 30, "{:?}", since.elapsed());
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
