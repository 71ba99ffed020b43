//! Searches against trying everything, their goals, and fronts against comparing all pairs.

use crate::by;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::machine::catalog;
use stepcast_core::method::never_cancelled;
use stepcast_core::scenario::Document;
use stepcast_study::MethodChoice;
use stepcast_study::explore::search::{
    Constraint, Effort, Entry, Front, Goal, Objective, SearchReport, SearchStrategy, search,
};
use stepcast_study::explore::sweep::{Axis, Variants, on_threads};

const TEXT: &str = include_str!("search.toml");

const EFFORT: Effort = Effort { how: None, budget: None, seed: 1 };

fn ask(
    vary: &[&str],
    method: &str,
    objective: &str,
    constraints: &[&str],
    effort: Effort,
) -> Result<SearchReport, Fault> {
    let document = Document::new("test", TEXT);
    let axes = vary.iter().map(|text| Axis::parse(text).unwrap()).collect();
    let variants = Variants::new(&document, &NoFiles, &[], axes).unwrap();
    let choice = match method {
        "auto" => MethodChoice::Auto,
        name => by(name),
    };
    let constraints = constraints.iter().map(|text| Constraint::parse(text).unwrap()).collect();
    let goal = Goal { objective: objective.parse().unwrap(), constraints };
    search(&variants, choice, &goal, effort, &never_cancelled, &mut |_| ())
}

fn how(how: SearchStrategy) -> Effort {
    Effort { how: Some(how), ..EFFORT }
}

const SPACE: [&str; 5] = [
    "cluster.workers.0.count=0..6",
    "cluster.workers.1.count=0..5",
    "cluster.servers.count=1..4",
    "network.bandwidth=25Gbit/s,1Gbit/s,10Gbit/s",
    "batch=8..64:x2",
];

fn best(report: &SearchReport) -> Vec<(u64, f64)> {
    report.best.iter().map(|entry| (entry.index, entry.value)).collect()
}

/// Where nothing has a price, that of the catalog counts, for each device its own.
#[test]
fn prices_of_the_catalog_are_assumed() {
    let named = "model.zoo = \"resnet50\"\ndata.samples = 1e6\n[[cluster.workers]]\ndevice = \"tesla-t4\"\n";
    let axis = |text: &str| vec![Axis::parse(text).unwrap()];
    let goal = Goal { objective: Objective::Cost, constraints: Vec::new() };
    let find = |text: &str| {
        let document = Document::new("test", text);
        let variants = Variants::new(&document, &NoFiles, &[], axis("cluster.workers.0.count=1..4")).unwrap();
        search(&variants, MethodChoice::Auto, &goal, EFFORT, &never_cancelled, &mut |_| ()).unwrap()
    };
    let price = |name: &str| catalog::device_price(&catalog::device(name).unwrap()).unwrap().hour;
    let of_one = find(named);
    let given = find(&format!("{named}[price]\nworker-hour = {}\n", price("tesla-t4")));
    assert!(of_one.catalog_prices.is_some() && given.catalog_prices.is_none());
    assert_eq!(best(&of_one), best(&given));
    let both = format!("{named}[[cluster.workers]]\ndevice = \"a100\"\n");
    let each = ["tesla-t4", "a100"].map(|name| format!("price = {}\n", price(name)));
    let priced = both.replacen("tesla-t4\"\n", &format!("tesla-t4\"\n{}", each[0]), 1) + &each[1];
    assert_eq!(best(&find(&both)), best(&find(&priced)));
}

#[test]
fn the_best_is_the_best_of_all() {
    let report = ask(&SPACE, "zeng2023", "cost", &["deadline<=10d"], EFFORT).unwrap();
    assert_eq!((report.how, report.gap, report.best.len()), (SearchStrategy::Exhaustive, Some(0.0), 10));
    assert_eq!(report.evaluated, 7 * 6 * 4 * 3 * 4);
    // Without any worker there is nothing to predict.
    assert_eq!(report.refused, 4 * 3 * 4);
    assert_eq!(report.evaluated, report.refused + report.admitted + report.constraints[0].excluded);
    assert!(report.best.windows(2).all(|pair| pair[0].value <= pair[1].value));
    let cheapest = report.front.last().unwrap();
    assert_eq!(cheapest.index, report.best[0].index);
    assert!(report.front.windows(2).all(|pair| pair[0].figures.training < pair[1].figures.training
        && pair[0].figures.cost > pair[1].figures.cost));
    assert!(report.runner_up.unwrap().contains("instead of"));
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let on = |threads, effort| {
        on_threads(Some(threads), || ask(&SPACE, "layerwise", "cost-time", &["nodes<=6"], effort).unwrap())
    };
    assert_eq!(on(1, EFFORT), on(3, EFFORT));
    assert_eq!(on(1, how(SearchStrategy::Heuristic)), on(3, how(SearchStrategy::Heuristic)));
}

#[test]
fn a_heuristic_says_how_far_off_it_may_be() {
    let all = ask(&SPACE, "layerwise", "time", &["memory"], EFFORT).unwrap();
    let quick = ask(&SPACE, "layerwise", "time", &["memory"], how(SearchStrategy::Heuristic)).unwrap();
    assert!(quick.evaluated < all.evaluated && !quick.stopped.is_empty(), "{quick:?}");
    let gap = quick.gap.unwrap();
    // The optimum lies within the gap.
    assert!(quick.best[0].value * (1.0 - gap) <= all.best[0].value, "{gap}");
    assert!((quick.best[0].value / all.best[0].value - 1.0).abs() < 1e-12, "{quick:?}");
}

#[test]
fn a_search_that_is_cut_short_states_its_gap() {
    let vary = ["cluster.workers.0.count=0..400", "cluster.workers.1.count=0..400", "batch=1..512"];
    let short = Effort { how: Some(SearchStrategy::Bound), budget: Some(1000), seed: 1 };
    let report = ask(&vary, "zeng2023", "time", &["nodes<=300"], short).unwrap();
    let gap = report.gap.unwrap();
    assert!(report.stopped.contains("1000 predictions") && gap > 0.0 && gap <= 1.0, "{report:?}");
}

#[test]
fn mixtures_can_be_excluded() {
    let mixed = |entry: &Entry| entry.devices.len() > 1;
    let all = ask(&SPACE, "zeng2023", "time", &[], EFFORT).unwrap();
    assert!(all.best.iter().any(mixed), "{:?}", all.best);
    for how in [SearchStrategy::Exhaustive, SearchStrategy::Bound] {
        let one = ask(&SPACE, "zeng2023", "time", &["kinds<=1"], self::how(how)).unwrap();
        assert!(!one.best.is_empty() && !one.best.iter().chain(&one.front).any(mixed), "{:?}", one.best);
        let best = &one.best[0];
        let chosen: u64 = best.values.iter().take(2).map(|(_, count)| count.parse::<u64>().unwrap()).sum();
        assert_eq!(best.devices.iter().map(|(_, count)| count).sum::<u64>(), chosen, "{best:?}");
    }
}

#[test]
fn what_excludes_everything_is_named() {
    let wrong =
        |constraints: &[&str]| ask(&SPACE, "zeng2023", "time", constraints, EFFORT).unwrap_err().reason;
    let reason = wrong(&["minibatch<=4", "nodes<=3"]);
    assert!(
        reason.contains("minibatch<=4 excludes 1968 (the smallest minibatch among them is 8)"),
        "{reason}"
    );
    assert!(wrong(&["staleness>=1"]).contains("staleness>=1 excludes"));
    assert!(wrong(&["nodes<=3", "nodes>=5"]).contains("contradict"));
    let nothing = ask(&["batch=8"], "zeng2023", "time", &[], EFFORT).unwrap_err().reason;
    assert!(nothing.contains("nothing to choose"));
    let refused = ask(&["batch=8,16"], "liu2022", "time", &[], EFFORT).unwrap_err().reason;
    assert!(refused.contains("all 2 configurations are refused"), "{refused}");
    let huge =
        ["batch=1..100000000", "cluster.workers.0.count=1..1000000", "cluster.workers.1.count=1..1000000"];
    assert!(ask(&huge, "zeng2023", "time", &[], EFFORT).unwrap_err().reason.contains("numbered"));
}

#[test]
fn a_constraint_costs_what_it_says() {
    let free = ask(&SPACE, "zeng2023", "time", &[], EFFORT).unwrap();
    let bound = ask(&SPACE, "zeng2023", "time", &["nodes<=3"], EFFORT).unwrap();
    assert!(free.without_constraints.is_none());
    let words = bound.without_constraints.unwrap();
    assert!(words.starts_with("Without nodes<=3 there would be"), "{words}");
    assert!(bound.best[0].value > free.best[0].value);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Reference for branch and bound: an exhaustive search.
    #[test]
    fn branch_and_bound_finds_the_best_ten(
        method in prop_oneof![Just("zeng2023"), Just("layerwise")],
        objective in prop_oneof![Just("iteration"), Just("epoch"), Just("time"), Just("cost"), Just("cost-time")],
        constraints in proptest::sample::subsequence(
            vec!["nodes<=7", "minibatch>=100", "minibatch<=300", "budget<=30", "memory", "throughput>=200"], 0..4),
        low in 0u32..3, length in 1u32..9, step in 1u32..4,
    ) {
        let counts = format!("cluster.workers.1.count={low}..{}:{step}", low + length * step);
        let space = ["cluster.workers.0.count=0..8", &counts, "cluster.servers.count=1..3",
            "synchronisation=bsp,local-sgd(4)", "network.latency=100 us,10 us", "batch=4..40:6"];
        let all = ask(&space, method, objective, &constraints, how(SearchStrategy::Exhaustive));
        let bound = ask(&space, method, objective, &constraints, how(SearchStrategy::Bound));
        match (all, bound) {
            (Ok(all), Ok(bound)) => {
                prop_assert_eq!(bound.gap, Some(0.0));
                prop_assert_eq!(best(&all), best(&bound));
                prop_assert!(bound.evaluated <= all.evaluated);
            }
            (Err(_), Err(_)) => {}
            (all, bound) => prop_assert!(false, "{:?} {:?}", all.is_ok(), bound.is_ok()),
        }
    }
}

/// A search that is interrupted within its first predictions, and one that is interrupted later.
#[test]
fn an_interrupted_search_reports_what_it_has_found() {
    let vary = ["cluster.workers.0.count=1..4", "batch=8..64:x2"];
    let document = Document::new("test", TEXT);
    let axes = vary.iter().map(|text| Axis::parse(text).unwrap()).collect();
    let variants = Variants::new(&document, &NoFiles, &[], axes).unwrap();
    let goal = Goal { objective: Objective::Time, constraints: Vec::new() };
    let interrupted = |how, after: u32| {
        let asked = AtomicU32::new(0);
        let wanted = || match asked.fetch_add(1, Ordering::Relaxed) < after {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let report = on_threads(Some(1), || {
            search(&variants, by("simulate"), &goal, self::how(how), &wanted, &mut |_| ())
        });
        (report, asked.load(Ordering::Relaxed))
    };
    for how in [SearchStrategy::Exhaustive, SearchStrategy::Heuristic] {
        let nothing = interrupted(how, 2).0.unwrap_err();
        assert!(nothing.reason.contains("it was interrupted"), "{how:?}: {}", nothing.reason);
        let (all, looks) = interrupted(how, u32::MAX);
        let some = interrupted(how, looks / 2).0.unwrap();
        assert!((1..all.unwrap().evaluated).contains(&some.evaluated), "{how:?}: {}", some.evaluated);
        assert_eq!((some.stopped.as_str(), some.refused), ("it was interrupted", 0));
        assert!(!some.best.is_empty() && some.gap != Some(0.0), "{how:?}");
    }
}

/// What every configuration would cost is known before the first: one has to ask for it, or gets a cheaper search.
#[test]
fn too_many_configurations_are_not_tried_one_by_one() {
    let vary = ["cluster.workers.0.count=1..100000", "batch=1..100000"];
    let all = how(SearchStrategy::Exhaustive);
    let refused = ask(&vary, "layerwise", "cost", &[], all).unwrap_err();
    assert!(refused.remedy.contains("`budget`, such as 10000000000"), "{refused:?}");
    let found = ask(&vary, "layerwise", "cost", &[], EFFORT).unwrap();
    assert_eq!(found.how, SearchStrategy::Bound);
    let few = ask(&["batch=1..100"], "layerwise", "cost", &[], EFFORT).unwrap();
    assert_eq!(few.how, SearchStrategy::Exhaustive);
}

#[test]
fn bounds_are_read_with_their_units() {
    let bound = |text: &str| Constraint::parse(text).unwrap();
    assert!((bound("deadline<=2h").bound - 7200.0).abs() < 1e-9);
    assert!((bound("iteration <= 50 ms").bound - 0.05).abs() < 1e-12);
    assert!(bound("throughput>=100").at_least);
    assert!((bound("throughput > 100 img/s").bound - 100.0).abs() < 1e-9);
    assert!((bound("budget<50 USD").bound - 50.0).abs() < 1e-9);
    for (text, most) in [("memory", 0.0), ("any-memory", 1.0)] {
        assert!(bound(text).is_of_memory() && (bound(text).bound - most).abs() < 1e-12, "{text}");
    }
    let reason = |text: &str| Constraint::parse(text).unwrap_err().reason;
    assert!(reason("").contains("empty"));
    assert!(reason("deadline<=2").contains("no unit"));
    assert!(reason("minibatch").contains("no bound"));
    assert!(reason("minibatch<=many").contains("no number"));
    assert!(reason("minibatch<=8 USD").contains("no number"));
    assert!(reason("minibatch<=-1").contains("zero or more"));
    assert!(reason("colour<=1").contains("cannot be bounded"));
    assert!(reason("memory<=1").contains("by the devices"));
}

#[test]
fn contradictions_are_found_before_anything_is_tried() {
    let parse = |texts: &[&str]| -> Vec<Constraint> {
        texts.iter().map(|text| Constraint::parse(text).unwrap()).collect()
    };
    let error = Constraint::check_all(&parse(&["minibatch>=512", "nodes<=4", "minibatch<=256"]));
    assert!(error.unwrap_err().reason.contains("minibatch>=512 and minibatch<=256"));
    assert!(Constraint::check_all(&parse(&["minibatch>=256", "minibatch<=256"])).is_ok());
}

/// Reference: compares every pair.
fn slowly(points: &[(u8, u8)]) -> Vec<usize> {
    let beats = |a: usize, b: usize| {
        let ((ta, ca), (tb, cb)) = (points[a], points[b]);
        ta <= tb && ca <= cb && (ta < tb || ca < cb || a < b)
    };
    let mut front: Vec<usize> = (0..points.len())
        .filter(|&place| (0..points.len()).all(|other| other == place || !beats(other, place)))
        .collect();
    front.sort_by_key(|&place| points[place]);
    front
}

proptest! {
    #[test]
    fn the_front_is_what_comparing_all_pairs_finds(
        points in proptest::collection::vec((0u8..20, 0u8..20), 0..60),
        cut in 0usize..60,
    ) {
        let half = |range: std::ops::Range<usize>| {
            let mut front = Front::new();
            for place in range {
                let (time, cost) = points[place];
                front.add(time.into(), cost.into(), place as u64, || place);
            }
            front
        };
        let cut = cut.min(points.len());
        // The halves are added in reverse order, which must not matter.
        let mut front = half(cut..points.len());
        front.merge(half(0..cut));
        prop_assert_eq!(front.into_entries().collect::<Vec<_>>(), slowly(&points));
    }
}
