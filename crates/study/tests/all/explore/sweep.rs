//! Axes, grids, scenarios along them against documents resolved alone, and the method for all points; maps of nodes and batches.

use crate::example;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::oyama2016::{Oyama2016, Structure};
use stepcast_core::files::NoFiles;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::MethodChoice;
use stepcast_study::explore::map::{Extent, Map, MinibatchRange};
use stepcast_study::explore::sweep::{Agreement, Axis, Grid, Variants, VaryError, estimate};
use stepcast_study::predict::methods;

fn values(text: &str) -> Vec<String> {
    let axis = Axis::parse(text).unwrap();
    (0..axis.values.len()).map(|place| axis.value(place)).collect()
}

fn reason(text: &str) -> String {
    Axis::parse(text).unwrap_err().reason
}

#[test]
fn lists_and_ranges_are_read() {
    assert_eq!(values("strategy.batch=1..4"), ["1", "2", "3", "4"]);
    assert_eq!(values("strategy.batch=1..=10:4"), ["1", "5", "9"]);
    assert_eq!(values("strategy.batch=3..50:x2"), ["3", "6", "12", "24", "48"]);
    assert_eq!(values("network.bandwidth=1Gbit/s, 10 Gbit/s"), ["1Gbit/s", "10 Gbit/s"]);
    let tables = "strategy.fusion={rule=\"none\"},{rule=\"horovod\", size=\"64 MB\"}";
    assert_eq!(values(tables).len(), 2);
    assert_eq!(values("synchronisation=bsp,ssp(3)"), ["bsp", "ssp(3)"]);
}

#[test]
fn what_is_no_axis_says_why() {
    assert!(reason("strategy.batch=1..").contains("has no end"));
    assert!(reason("strategy.batch=..4").contains("has no beginning"));
    assert!(reason("strategy.batch=4..1").contains("is empty"));
    assert!(reason("strategy.batch=1..4:0").contains("no step"));
    assert!(reason("strategy.batch=1..4:x1").contains("does not grow"));
    assert!(reason("strategy.batch=").contains("no values"));
    assert!(reason("strategy.batch=1,,2").contains("a value is empty"));
    assert!(reason("strategy.batch=1,2,1").contains("twice"));
    assert!(reason("strategy.batch=1,4..8").contains("range within a list"));
    assert!(reason("network.bandwidth=1..10Gbit/s").contains("whole numbers"));
    assert!(reason("strategy.batch").contains("no \"=\""));
    assert!(reason("bandwith=1").contains("no scenario has a key"));
}

#[test]
fn sections_may_be_left_out_where_that_is_clear() {
    let key = |text: &str| Axis::parse(text).unwrap().key;
    assert_eq!(key("network.bandwidth=1Gbit/s"), "cluster.network.bandwidth");
    assert_eq!(key("workers.0.count=1"), "cluster.workers.0.count");
    assert_eq!(key("batch=1"), "strategy.batch");
    assert_eq!(key("cluster.nodes.workers=1"), "cluster.nodes.workers");
    assert_eq!(key("simulate.seed=1"), "methods.simulate.seed");
}

#[test]
fn keys_hide_what_they_replace() {
    let axis = |key: &str| Axis::parse(&format!("{key}=1")).unwrap();
    let hides = |a: &str, b: &str| axis(a).hides(&axis(b));
    assert!(hides("cluster.workers", "cluster.workers.0.count"));
    assert!(hides("cluster.workers.count", "cluster.workers.1.count"));
    assert!(hides("cluster.workers.count", "cluster.workers.count"));
    assert!(!hides("cluster.workers.1.count", "cluster.workers.count"));
    assert!(hides("cluster.network", "cluster.network.bandwidth"));
    assert!(!hides("cluster.network.bandwidth", "cluster.network"));
    assert!(!hides("cluster.workers.0.count", "cluster.workers.1.count"));
    assert!(!hides("cluster.workers.0.count", "cluster.workers.0.batch"));
    assert!(axis("cluster.workers.1.count").is_below(&axis("cluster.workers.count")));
    assert!(!axis("cluster.workers.count").is_below(&axis("cluster.workers.batch")));
}

#[test]
fn digits_and_index_are_inverse() {
    let grid = Grid::new(vec![3, 1, 4, 5]);
    assert_eq!(grid.points(), 60);
    let mut digits = Vec::new();
    let mut last = None;
    for index in 0..60 {
        grid.digits(index, &mut digits);
        assert_eq!(grid.index(&digits), index);
        assert!(last.as_ref() < Some(&digits), "{digits:?}");
        last = Some(digits.clone());
    }
    assert_eq!(Grid::new(vec![u64::MAX; 3]).points(), u128::MAX);
    assert_eq!(Grid::new(Vec::new()).points(), 1);
}

#[test]
fn long_sweeps_are_tried_before_they_begin() {
    let document = Document::new("test", "model.zoo = \"alexnet\"\n");
    let long = |axis: &str| {
        let axes = vec![Axis::parse(axis).unwrap()];
        let variants = Variants::new(&document, &NoFiles, &[], axes).unwrap();
        let agreement = Agreement::of(&variants, MethodChoice::Auto);
        estimate(&variants, &agreement, variants.grid().points() * 1_000_000, &never_cancelled)
    };
    assert_eq!(long("batch=1"), None);
    assert!(long("batch=1..1000000").unwrap() > Duration::from_secs(3600));
}

/// Two groups, and a network with a table of its own.
const TEXT: &str = include_str!("sweep.toml");

/// Every key with its own setting, and some that require resolving the document.
const AXES: &str = include_str!("axes.txt");

/// Keys that look like a single field but require resolving the document.
const DOCUMENT_ONLY: [&str; 4] =
    ["cluster.workers.1.device.efficiency", "cluster.network.base", "cluster.nodes.workers", "model.zoo"];

fn document() -> Document {
    Document::new("test", TEXT)
}

fn axes(places: &[usize]) -> Vec<Axis> {
    places.iter().map(|&place| Axis::parse(AXES.lines().nth(place).unwrap()).unwrap()).collect()
}

/// Reference: resolves the document alone and leaves out groups without workers.
fn resolved(variants: &Variants<'_>, digits: &[u64]) -> Result<Scenario, String> {
    let mut scenario = variants.resolve(digits).map_err(|error| error.reason)?;
    scenario.cluster.groups.retain(|group| group.count > 0);
    scenario.check_together().map_err(|fault| fault.reason)?;
    Ok(scenario)
}

#[test]
fn every_key_has_the_reach_it_should() {
    let document = document();
    for text in AXES.lines() {
        let axis = Axis::parse(text).unwrap();
        let key = axis.key.clone();
        let variants = Variants::new(&document, &NoFiles, &[], vec![axis]).unwrap();
        let expected = DOCUMENT_ONLY.contains(&key.as_str()) || key.starts_with("methods");
        assert_eq!(variants.is_resolved(0), expected, "{text}");
    }
}

#[test]
fn a_field_that_brings_others_with_it_is_left_to_the_document() {
    // Without a network section, setting a bandwidth creates a network without latency.
    let document = Document::new("test", "[model]\nzoo = \"alexnet\"\n");
    let axis = Axis::parse("network.bandwidth=1Gbit/s,10Gbit/s").unwrap();
    let variants = Variants::new(&document, &NoFiles, &[], vec![axis]).unwrap();
    assert!(!variants.is_resolved(0), "the first point has it already");
    let axis = |text: &str| Axis::parse(text).unwrap();
    let both = vec![axis("cluster.network=25gbe,10gbe"), axis("cluster.network.base=1gbe,25gbe")];
    let variants = Variants::new(&document, &NoFiles, &[], both).unwrap();
    assert!(variants.is_resolved(0) && variants.is_resolved(1));
}

#[test]
fn wrong_values_are_the_axis_s_fault() {
    let document = document();
    let wrong = |text: &str| {
        let axis = Axis::parse(text).unwrap();
        match Variants::new(&document, &NoFiles, &[], vec![axis]) {
            Err(VaryError::Axis { axis, fault }) => {
                assert_eq!(axis, text);
                fault.reason
            }
            other => panic!("{text}: {:?}", other.err()),
        }
    };
    assert!(wrong("strategy.batch=0..8").contains("must be between 1 and 100000000, but is 0"));
    assert!(wrong("strategy.batch=1,8,0").contains("must be between 1 and 100000000, but is 0"));
    assert!(wrong("cluster.workers.7.count=1,2").contains("no element 7"));
    assert!(wrong("cluster.network.bandwidth=1,2").contains("bandwidth"));
    assert!(wrong("cluster.network.bandwith=1Gbit/s").contains("unknown"));
    assert!(wrong("model.zoo=alexnet,alexnett").contains("alexnett"));
    let twice = ["cluster.workers.0.count=1,2", "cluster.workers.count=1,2"];
    let axes = twice.map(|text| Axis::parse(text).unwrap()).to_vec();
    let error = Variants::new(&document, &NoFiles, &[], axes).err().unwrap();
    assert!(error.to_string().contains("hides"), "{error}");
}

proptest! {
    #[test]
    fn walking_is_resolving(
        places in proptest::sample::subsequence((0..AXES.lines().count()).collect::<Vec<_>>(), 1..5).prop_shuffle(),
        steps in proptest::collection::vec(any::<u64>(), 12),
    ) {
        let document = document();
        // Axes that hide each other, or an invalid first point, are refused as a whole.
        let Ok(variants) = Variants::new(&document, &NoFiles, &[], axes(&places)) else { return Ok(()) };
        let points = variants.grid().points() as u64;
        let mut walker = variants.walker();
        let mut digits = Vec::new();
        for step in steps {
            variants.grid().digits(step % points, &mut digits);
            let walked = walker.look(&digits, Scenario::clone).map_err(|fault| fault.reason);
            prop_assert_eq!(walked, resolved(&variants, &digits), "{:?} {:?}", variants.axes(), digits);
        }
    }
}

#[test]
fn points_have_a_small_budget_unless_the_scenario_gives_one() {
    let budget = |text: &str, overrides: &[&str]| {
        let overrides = Edit::parse_all(overrides).unwrap();
        let document = Document::new("test", text);
        Variants::new(&document, &NoFiles, &overrides, Vec::new()).unwrap().first().methods.simulate.budget
    };
    let given = format!("{TEXT}[methods.simulate]\nbudget = 50000\n");
    assert_eq!(budget(TEXT, &[]), 1_000_000);
    assert_eq!(budget(TEXT, &["methods.simulate.budget=8000"]), 8000);
    assert_eq!(budget(&given, &[]), 50_000);
}

fn with<T>(text: &str, axes: &[&str], look: impl FnOnce(&Variants<'_>) -> T) -> T {
    let document = Document::new("test", text);
    let axes = axes.iter().map(|axis| Axis::parse(axis).unwrap()).collect();
    look(&Variants::new(&document, &NoFiles, &[], axes).unwrap())
}

fn agreed(text: &str, axes: &[&str]) -> Vec<&'static str> {
    with(text, axes, |variants| Agreement::of(variants, MethodChoice::Auto).methods().to_vec())
}

/// The same by looking at every point.
fn slowly(variants: &Variants<'_>) -> Vec<&'static str> {
    let methods = methods::all();
    let places = |scenario: &Scenario| -> BTreeSet<usize> {
        (0..methods.len()).filter(|place| methods[*place].applies(scenario).is_ok()).collect()
    };
    // Methods of all points, of any, and the preferred ones of the points.
    let (mut all, mut any, mut own) = ((0..methods.len()).collect(), BTreeSet::new(), BTreeSet::new());
    let (mut walker, mut digits) = (variants.walker(), Vec::new());
    for index in 0..variants.grid().points() as u64 {
        variants.grid().digits(index, &mut digits);
        let Ok(found) = walker.look(&digits, places) else { continue };
        let Some(first) = found.first() else { continue };
        own.insert(*first);
        any.extend(&found);
        all = &all & &found;
    }
    let is_fine = |place: &usize| !methods[*place].is_rough();
    let fine = any.iter().any(is_fine);
    let common = all.iter().find(|place| !fine || is_fine(place)).filter(|_| !any.is_empty());
    common.map_or(own, |place| BTreeSet::from([*place])).iter().map(|place| methods[*place].name()).collect()
}

const MODEL: &str = "strategy.architecture = \"parameter-server\"\nmodel.zoo = \"alexnet\"\ncluster.network.base = \"10gbe\"\n";

#[test]
fn the_first_method_that_models_all_points() {
    assert_eq!(agreed(MODEL, &["batch=1..64", "network.latency=1us,2us"]), ["layerwise"]);
    assert_eq!(agreed(MODEL, &["synchronisation=bsp,local-sgd(4)"]), ["layerwise"]);
    assert_eq!(agreed(MODEL, &["synchronisation=bsp,ssp(3),async"]), ["simulate"]);
    assert_eq!(agreed(MODEL, &["architecture=parameter-server,all-reduce"]), ["simulate"]);
    let one = format!("{MODEL}[[cluster.workers]]\ncount = 1\n");
    assert_eq!(agreed(&one, &["architecture=parameter-server,stand-alone"]), ["layerwise"]);
    // All-reduce with bounded staleness is modelled by no method: such points do not count.
    let axes = ["architecture=parameter-server,all-reduce", "synchronisation=bsp,ssp(3)"];
    assert_eq!(agreed(MODEL, &axes), ["simulate"]);
}

#[test]
fn methods_are_named_where_none_models_all_points() {
    let axes = ["architecture=all-reduce,stand-alone", "synchronisation=bsp"];
    let one = format!("{MODEL}[[cluster.workers]]\ncount = 1\n");
    assert_eq!(agreed(&one, &axes), ["layerwise", "liu2022"]);
    // Too many workers to simulate are left to a rough method.
    let text =
        format!("{MODEL}strategy.synchronisation = \"async\"\n[cluster.servers]\nsoftware = \"none\"\n");
    assert_eq!(agreed(&text, &["cluster.workers.count=1..20000"]), ["simulate", "cynthia2019"]);
    assert_eq!(agreed(&text, &["cluster.workers.count=17000..20000"]), ["cynthia2019"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nothing_is_overlooked(
        chosen in proptest::sample::subsequence(
            include_str!("agreement_axes.txt").lines().collect::<Vec<_>>(),
            1..4,
        ),
    ) {
        let text = format!("{MODEL}[[cluster.workers]]\ncount = 4\n[[cluster.workers]]\ncount = 2\n");
        with(&text, &chosen, |variants| {
            let found = Agreement::of(variants, MethodChoice::Auto);
            prop_assert_eq!(found.methods(), slowly(variants), "{:?}", chosen);
            Ok(())
        })?;
    }
}

fn scenario(changes: &[&str]) -> Scenario {
    crate::scenario(&example("sprint.toml"), changes)
}

fn extent(minibatch: Option<MinibatchRange>) -> Extent {
    Extent { nodes: Some((1..=16).collect()), batches: Some(vec![1, 4, 8, 11]), minibatch }
}

#[test]
fn every_cell_is_the_prediction_of_its_scenario() {
    let range = MinibatchRange { low: 103.5, high: 172.5 };
    let map = Map::new(&scenario(&[]), &Oyama2016, extent(Some(range))).unwrap();
    assert_eq!(map.cells.len(), 16 * 4);
    let cell = map.cells[4 * 7 + 2];
    assert_eq!((cell.nodes, cell.batch), (8, 8));
    let alone = Oyama2016.predict(&scenario(&["strategy.batch=8"])).unwrap();
    assert_eq!(cell.iteration, alone.iteration);
    assert_eq!(cell.minibatch.to_bits(), alone.updating.unwrap().minibatch.to_bits());
}

#[test]
fn the_ranking_holds_all_admissible_cells_by_epoch() {
    let range = MinibatchRange { low: 103.5, high: 172.5 };
    let map = Map::new(&scenario(&[]), &Oyama2016, extent(Some(range))).unwrap();
    let admissible = map.cells.iter().filter(|cell| range.contains(cell.minibatch)).count();
    assert!(admissible > 1 && admissible < map.cells.len());
    assert_eq!(map.ranking.len(), admissible);
    assert!(map.ranking.windows(2).all(|pair| map.cells[pair[0]].epoch <= map.cells[pair[1]].epoch));
    assert!(map.best().unwrap().admissible);
    let all = Map::new(&scenario(&[]), &Oyama2016, extent(None)).unwrap();
    assert_eq!(all.ranking.len(), all.cells.len());
    let none = MinibatchRange { low: 1e9, high: 2e9 };
    assert_eq!(Map::new(&scenario(&[]), &Oyama2016, extent(Some(none))).unwrap().best(), None);
}

#[test]
fn synchronous_steps_have_the_minibatch_of_all_workers() {
    let changes = ["strategy.architecture=parameter-server", "strategy.synchronisation=bsp"];
    let map = Map::new(&scenario(&changes), &Layerwise, extent(None)).unwrap();
    let cell = map.cells[4 * 2 + 1];
    assert_eq!((cell.nodes, cell.batch, cell.minibatch as u64), (3, 4, 3 * 8 * 4));
}

#[test]
fn a_map_can_be_stopped() {
    let mut seen = Vec::new();
    let stopped = Map::watched(&scenario(&[]), &Oyama2016, extent(None), &mut |done, of| {
        seen.push((done, of));
        if done < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(stopped.unwrap_err().reason, "the map was stopped");
    assert_eq!(seen, [(0, 64), (1, 64), (2, 64), (3, 64)]);
}

#[test]
fn a_map_of_too_many_cells_is_refused_before_it_begins() {
    let numbers = Some((1..=4096).collect());
    let extent = Extent { nodes: numbers.clone(), batches: numbers, minibatch: None };
    let refused = Map::watched(&scenario(&[]), &Oyama2016, extent, &mut |_, _| unreachable!());
    assert!(refused.unwrap_err().reason.contains("16777216 cells"));
}

#[test]
fn minibatches_are_ranges() {
    let range = |low, high| Ok(MinibatchRange { low, high });
    assert_eq!("103.5..172.5".parse(), range(103.5, 172.5));
    assert_eq!("64 .. 64".parse(), range(64.0, 64.0));
    for text in ["", "64", "..", "1..", "2..1", "-1..5", "nan..1", "1..inf", "a..b"] {
        assert!(text.parse::<MinibatchRange>().is_err(), "{text}");
    }
}

#[test]
fn batches_go_as_far_as_the_memory() {
    let map = Map::new(&scenario(&[]), &Oyama2016, Extent::default()).unwrap();
    assert_eq!(map.nodes, (1..=8).collect::<Vec<_>>());
    // The paper ran sub-batches of up to 11 on a K80 and of up to 5 on a K20X.
    let largest = *map.batches.last().unwrap();
    assert_eq!(largest, 11);
    let older = scenario(&["cluster.workers.0.device=tesla-k20x"]);
    assert_eq!(Map::new(&older, &Oyama2016, Extent::default()).unwrap().batches, [1, 2, 3, 4, 5]);
    let memory = scenario(&[]).cluster.smallest_memory();
    let structure = Structure::from_model(scenario(&[]).workload.graph.as_deref().unwrap()).unwrap();
    assert!(structure.memory(largest) <= memory && structure.memory(largest + 1) > memory);
    let small = scenario(&["cluster.workers.0.device={base=\"tesla-k80\", memory=\"100 MB\"}"]);
    assert_eq!(Map::new(&small, &Oyama2016, Extent::default()).unwrap_err().key, "cluster.workers");
}
