//! The choice of a method, all of them side by side, the round of a paper, and the layout of a plan.

use crate::{example, predicted_by, scenario};
use std::collections::{BTreeMap, BTreeSet};
use stepcast_study::predict::compare::{Answer, Comparison, MethodFigures};
use stepcast_study::predict::layout::{Layout, Rank, Role};
use stepcast_study::predict::methods::{self, all, choose};
use stepcast_study::round_timeline;
use stepcast_trace::timeline::Event;

#[test]
fn a_papers_example_is_answered_by_its_formula() {
    let text = example("zeng2023-table7.toml");
    assert_eq!(choose(&scenario(&text, &[])).unwrap().name(), "zeng2023");
    assert_eq!(choose(&scenario(&text, &["as-published=false"])).unwrap().name(), "layerwise");
}

#[test]
fn the_methods_kept_for_comparison_are_rough() {
    let rough: Vec<&str> =
        all().iter().filter(|method| method.is_rough()).map(|method| method.name()).collect();
    assert_eq!(rough, ["cynthia2019", "cynthia2019-half", "lin2018"]);
}

fn compare(synchronisation: &str) -> Comparison {
    let text = format!(
        "[model]\nzoo = \"alexnet\"\n[strategy]\nsynchronisation = \"{synchronisation}\"\n\
         [cluster.servers]\nsoftware = \"none\"\n\
         [methods.simulate]\nruns = 2\nsteps = 20\nwarm-up = 2\n"
    );
    Comparison::new(&scenario(&text, &[]))
}

fn answering(comparison: &Comparison) -> Vec<&str> {
    let predicted = comparison.rows.iter().filter(|row| matches!(row.answer, Answer::Predicted(_)));
    predicted.map(|row| row.method).collect()
}

#[test]
fn every_method_answers_or_says_why_not() {
    let bulk = compare("bsp");
    assert_eq!(bulk.rows.len(), methods::all().len());
    assert_eq!(answering(&bulk), ["layerwise", "zeng2023", "simulate"]);
    assert_eq!(bulk.chosen, Some("layerwise"));
    let asynchronous = compare("async");
    assert_eq!(answering(&asynchronous), ["simulate", "cynthia2019", "cynthia2019-half", "lin2018"]);
    assert_eq!(asynchronous.chosen, Some("simulate"));
    for row in bulk.rows.iter().chain(&asynchronous.rows) {
        match &row.answer {
            Answer::Predicted(figures) => {
                let product = figures.throughput.get() * figures.iteration.get();
                assert!((product / 128.0 - 1.0).abs() < 1e-9, "{row:?}");
                let parts = figures.effects.unwrap().named();
                let sum: f64 = parts.iter().map(|(_, time)| time.get()).sum();
                assert!((sum / figures.iteration.get() - 1.0).abs() < 1e-9, "{row:?}");
                assert!(parts[0].1.get() > 0.0 && parts[2].1.get() >= 0.0, "{row:?}");
            }
            Answer::Refused(why) => assert!(!why.reason.is_empty() && !why.remedy.is_empty(), "{row:?}"),
        }
    }
}

/// Zeng 2023 sends all gradients after the backward pass; layer by layer, all but the first layer's are hidden.
#[test]
fn what_differs_is_told() {
    let text = "[model]\nzoo = \"resnet50\"\n[cluster]\nnetwork = \"100gbe\"\nservers.count = 1\n[[cluster.workers]]\ncount = 1\n\
                [methods.simulate]\nruns = 2\nsteps = 20\nwarm-up = 2\njitter = 0\n";
    let comparison = Comparison::new(&scenario(text, &[]));
    let told = comparison.differences.join("\n");
    assert_eq!(comparison.differences.len(), 2, "{told}");
    for row in &comparison.rows {
        if let Answer::Predicted(MethodFigures { effects: Some(effects), .. }) = &row.answer {
            assert!(effects.contention.get().abs() < 1e-9, "nobody to contend with: {row:?}");
        }
    }
}

#[test]
fn rows_are_flat_for_programs() {
    let value = serde_json::to_value(compare("async")).unwrap();
    assert_eq!(value["rows"][0]["key"], "strategy.synchronisation");
    let rows = value["rows"].as_array().unwrap();
    let simulated = rows.iter().find(|row| row["method"] == "simulate").unwrap();
    assert!(simulated["iteration_s"].as_f64().unwrap() > 0.0);
}

/// Figure 4: a push begins when the one before has ended, all pull at the end, and that is the end of the step.
#[test]
fn a_round_is_the_queue_of_the_paper() {
    let text = example("zeng2023-table7.toml");
    for batch in [32, 4096] {
        let scenario = scenario(&text, &[&format!("strategy.batch={batch}")]);
        let timeline = round_timeline(&scenario).unwrap();
        let of = |lane: u32| timeline.events.iter().filter(move |event| event.lane == lane);
        assert_eq!((timeline.processes.len(), of(2).count(), of(3).count()), (3, 3, 3));
        let pushes: Vec<&Event<'_>> = of(2).collect();
        assert!(pushes.windows(2).all(|pair| pair[0].until <= pair[1].since), "{pushes:?}");
        let step = predicted_by("zeng2023", &scenario).iteration;
        assert!(of(3).all(|pull| (pull.until / step - 1.0).abs() < 1e-9), "{step}");
        assert!(of(3).all(|pull| pull.since >= pushes[2].until * (1.0 - 1e-9)));
    }
}

fn layout(count: u32, plan: &str) -> Layout {
    let text = format!(
        "[model]\nzoo = \"mixtral-8x7b\"\n[[cluster.workers]]\ncount = {count}\ndevice = \"h100-sxm5\"\n\
         [cluster.network]\nbase = \"infiniband-ndr\"\n[cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\n\
         [strategy.plan]\n{plan}\n"
    );
    Layout::of(&scenario(&text, &[])).unwrap()
}

/// Groups found by looking at every rank: those that differ in nothing but their place in the group.
#[test]
fn groups_are_those_of_the_ranks() {
    let layout = layout(64, "tensor = 2\ncontext = 2\npipeline = 4\nexpert = 4");
    let mut all = Vec::new();
    for pipeline in 0..4 {
        for data in 0..layout.data {
            for context in 0..2 {
                all.extend((0..2).map(|tensor| layout.rank([tensor, context, data, pipeline])));
            }
        }
    }
    assert_eq!(all.iter().map(|rank| rank.number).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    for group in layout.groups.iter().filter(|group| group.role != Role::Expert) {
        let others = [Role::Tensor, Role::Context, Role::Data, Role::Pipeline];
        let mut found: BTreeMap<Vec<u64>, Vec<&Rank>> = BTreeMap::new();
        for rank in &all {
            let key = others.iter().filter(|role| **role != group.role).map(|role| rank.of(*role));
            found.entry(key.collect()).or_default().push(rank);
        }
        assert_eq!(found.len() as u64, group.groups, "{group:?}");
        let nodes = |ranks: &Vec<&Rank>| ranks.iter().map(|rank| rank.node).collect::<BTreeSet<_>>().len();
        assert_eq!(found.values().map(nodes).max(), Some(group.nodes as usize), "{group:?}");
        assert!(found.values().all(|ranks| ranks.len() as u64 == group.size), "{group:?}");
    }
    let experts = layout.groups.iter().find(|group| group.role == Role::Expert).unwrap();
    assert_eq!((experts.size, experts.groups, experts.nodes), (4, 16, 1));
    assert_eq!(layout.count(Role::Node), 8);
}

#[test]
fn kinds_of_one_rank_have_no_groups() {
    let roles: Vec<Role> = layout(8, "tensor = 8").groups.iter().map(|group| group.role).collect();
    assert_eq!(roles, [Role::Tensor]);
}
