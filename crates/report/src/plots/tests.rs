//! Plots of arbitrary figures against the checks of `draw::check`. The book's pictures are compared to the byte by
//! `.ci/pictures --check`; kinds of plots that it does not show, with golden files here.

use crate::draw::check;
use crate::plots::fusion::{FusionComparison, Plan, Standing};
use crate::plots::gantt::{Bar, Gantt, Lane};
use crate::plots::lines::Lines;
use crate::plots::pareto::{Choice, Pareto};
use crate::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use crate::plots::rank_grid::{RankGrid, Tile};
use crate::plots::scaling_curve::{Measured, Point, ScalingCurve};
use crate::plots::stacked::{StackedBar, StackedBars};
use crate::plots::staleness::Staleness;
use crate::plots::varied::{Varied, VariedPair};
use proptest::collection::vec;
use proptest::prelude::*;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::predict::layout::{Layout, Role};
use stepcast_study::simulate::timeline;

/// Mostly what occurs, now and then what must not.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 1e-6..1e6_f64,
        2 => (-12.0..12.0_f64).prop_map(|exponent| 10_f64.powf(exponent)),
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(5e-324), Just(1e300)],
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z<&\"]{0,12}", "\\PC{0,80}", Just("W".repeat(200))]
}

fn rate() -> impl Strategy<Value = SamplesPerSec> {
    value().prop_map(SamplesPerSec::new)
}

fn time() -> impl Strategy<Value = Seconds> {
    value().prop_map(Seconds::new)
}

fn workers() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..40_u32, 1 => 0..200_000_u32]
}

proptest! {
    #[test]
    fn scaling_curves_are_sound(
        title in name(), method in name(),
        mut points in vec((workers(), rate(), proptest::option::of((rate(), rate())), proptest::option::of(rate())), 0..12),
        measured in vec((workers(), rate()), 0..4),
        here in proptest::option::of(workers()), saturates_at in proptest::option::of(workers()),
    ) {
        points.sort_by_key(|point| point.0);
        let point = |(workers, throughput, ends, ideal): (u32, _, Option<(SamplesPerSec, SamplesPerSec)>, _)| {
            Point { workers, throughput, low_high: ends.map(|(low, high)| [low, high]), ideal }
        };
        check::sound(&ScalingCurve {
            title, method, here, saturates_at,
            points: points.into_iter().map(point).collect(),
            measured: measured.into_iter().map(|(workers, throughput)| Measured { workers, throughput }).collect(),
        }.svg());
    }

    #[test]
    fn stacked_bars_are_sound(
        title in name(), names in vec(name(), 0..8), limit in proptest::option::of(1e-6..1e6_f64),
        bars in vec((name(), vec((0..9_usize, value()), 0..12)), 0..40), narrow in any::<bool>(),
    ) {
        let bar = |(label, sizes): (String, _)| StackedBar { words: label.clone(), label, sizes };
        let bars = StackedBars {
            title,
            parts: names.into_iter().zip(0..).collect(),
            bars: bars.into_iter().map(bar).collect(),
            limit: limit.map(|limit| (limit, "limit")),
            ..StackedBars::from_steps(&[], "", "")
        };
        check::sound(&if narrow { bars.svg_of(460.0) } else { bars.svg() });
    }

    #[test]
    fn lines_are_sound(
        title in name(), lines in vec((name(), vec((value(), value()), 0..60)), 0..10), whole in any::<bool>(),
    ) {
        let unit = if whole { crate::Unit::Number } else { crate::Unit::Time };
        let upwards = ("time".to_owned(), crate::Unit::Time);
        check::sound(&Lines { title, across: ("samples".to_owned(), unit), upwards, lines }.svg());
    }

    #[test]
    fn timelines_are_sound(
        title in name(), lanes in vec((0..4_u8, name(), vec((name(), time(), time()), 0..12)), 0..20),
    ) {
        let lane = |(group, name, bars): (u8, String, Vec<(String, Seconds, Seconds)>)| {
            let mut bars: Vec<Bar> =
                bars.into_iter().map(|(name, since, long)| Bar { name, since, until: since + long, ..Bar::default() }).collect();
            bars.sort_by(|a, b| a.since.get().total_cmp(&b.since.get()));
            // Bars of one lane do not overlap.
            let mut free = f64::NEG_INFINITY;
            bars.retain(|bar| {
                let keep = bar.since.get() >= free;
                free = if keep { bar.until.get() } else { free };
                keep
            });
            Lane { group: format!("worker {group}"), name, kind: group.into(), bars }
        };
        check::sound(&Gantt { title, lanes: lanes.into_iter().map(lane).collect(), ..Gantt::default() }.svg());
    }

    #[test]
    fn comparisons_of_fusion_are_sound(
        title in name(), plans in vec((name(), time(), time(), 0..1000_usize, 0..3_u8), 0..20),
    ) {
        let plan = |(rule, step, exposed, messages, standing)| Plan {
            rule, step, exposed, messages,
            standing: match standing { 0 => Standing::Own, 1 => Standing::Best, _ => Standing::Other },
        };
        check::sound(&FusionComparison { title, plans: plans.into_iter().map(plan).collect() }.svg());
    }

    #[test]
    fn fronts_are_sound(
        title in name(), currency in name(),
        candidates in vec((name(), time(), value()), 0..10), front in vec((name(), time(), value()), 0..10),
        chosen in proptest::option::of((name(), time(), value())),
    ) {
        let choice = |(name, time, cost)| Choice { name, index: None, time, cost };
        check::sound(&Pareto {
            title, currency,
            candidates: candidates.into_iter().map(choice).collect(),
            front: front.into_iter().map(choice).collect(),
            chosen: chosen.map(choice),
        }.svg());
    }

    #[test]
    fn predictions_against_measurements_are_sound(
        title in name(), quantity in name(), sets in vec((name(), vec((name(), time(), time()), 0..10)), 0..10),
    ) {
        let pair = |(name, measured, predicted)| Pair { name, measured, predicted };
        let sets = sets
            .into_iter()
            .map(|(name, pairs)| Set { name, pairs: pairs.into_iter().map(pair).collect() })
            .collect();
        check::sound(&PredictedMeasured { title, quantity, sets }.svg());
    }

    #[test]
    fn grids_of_ranks_are_sound(
        title in name(), note in name(), values in vec(name(), 0..20), narrow in any::<bool>(),
        columns in vec(proptest::option::of(name()), 0..12), rows in vec(proptest::option::of(name()), 0..12),
        across in 0..5_usize, down in 0..3_usize, first in any::<u64>(),
    ) {
        let blocks = columns.iter().flatten().count() * rows.iter().flatten().count();
        let tile = |place: usize| Tile { value: first.wrapping_add(place as u64), words: format!("rank {place}") };
        let blocks = (0..blocks).map(|_| (0..across * down).map(tile).collect()).collect();
        let grid = RankGrid { title, note, values, columns, rows, across, down, blocks };
        check::sound(&if narrow { grid.svg_of(460.0) } else { grid.svg() });
    }

    #[test]
    fn histograms_are_sound(
        title in name(), shares in vec(prop_oneof![9 => 0.0..1.0_f64, 1 => value()], 0..200),
        open_ended in any::<bool>(), mean in proptest::option::of(value()),
    ) {
        check::sound(&Staleness { title, shares, open_ended, mean }.svg());
    }

    #[test]
    fn varied_keys_are_sound(
        title in name(), key in name(),
        points in prop_oneof![
            vec((name(), proptest::option::of(rate())), 0..30),
            (1..50_u32, vec(proptest::option::of(rate()), 0..300)).prop_map(|(first, rates)| {
                (first..).zip(rates).map(|(number, rate)| (number.to_string(), rate)).collect()
            }),
        ],
        too_large in vec(proptest::bool::ANY, 0..40),
        best in proptest::option::of(0..40_usize),
    ) {
        check::sound(&Varied { title, key, quantity: "throughput".to_owned(), points, too_large, best }.svg());
    }

    #[test]
    fn pairs_of_varied_keys_are_sound(
        title in name(), keys in (name(), name()), across in vec(name(), 0..20), upwards in vec(name(), 0..20),
        figures in vec(proptest::option::of(rate()), 0..400), too_large in vec(proptest::bool::ANY, 0..500),
        best in proptest::option::of(0..400_usize),
    ) {
        check::sound(&VariedPair {
            title, quantity: "throughput".to_owned(),
            across: (keys.0, across), upwards: (keys.1, upwards), figures, too_large, best,
        }.svg());
    }
}

#[test]
fn plots_are_as_they_were() {
    check::golden("rank_grid", &rank_grid().svg_of(460.0));
    check::golden("stage_memory", &stage_memory().svg());
    check::golden("varied_numbers", &varied_numbers().svg());
}

fn rank_grid() -> RankGrid {
    let name = |words: &str| Some(words.to_owned());
    let block = |place: u64| {
        (0..4).map(move |rank| Tile { value: place, words: format!("rank {}", 4 * place + rank) })
    };
    RankGrid {
        title: "Ranks of llama3-8b, by stage".to_owned(),
        note: "Rows: stages; columns: replicas; 2 tensor ranks across".to_owned(),
        values: (0..3).map(|stage| format!("stage {stage}")).collect(),
        columns: vec![name("0"), name("1"), None, name("15")],
        rows: vec![name("stage 0"), name("stage 1"), None],
        across: 2,
        down: 2,
        blocks: (0..6).map(|place| block(place).collect()).collect(),
    }
}

/// Bars of four stages with five parts each.
fn stage_memory() -> StackedBars {
    let bar = |place: u32| StackedBar {
        label: place.to_string(),
        words: format!("stage {place}"),
        sizes: (0..)
            .zip([9.1, 9.1, 18.2, 30.0 - 7.0 * f64::from(place), 1.5].map(|size| 1e9 * size))
            .collect(),
    };
    let parts = ["weights", "gradients", "optimiser", "activations", "working sets"].map(str::to_owned);
    StackedBars {
        title: "Memory of llama3-8b".to_owned(),
        note: "What a rank of every stage holds".to_owned(),
        description: "Stacked bars for 4 stages; a rank of the fullest holds 67.9 GB of 64 GB.".to_owned(),
        axes: ["stage", "memory"],
        unit: crate::Unit::Bytes,
        height: 280.0,
        parts: parts.into_iter().zip(0..).collect(),
        bars: (0..4).map(bar).collect(),
        limit: Some((64e9, "memory of a device")),
        ..StackedBars::from_steps(&[], "", "")
    }
}

fn varied_numbers() -> Varied<SamplesPerSec> {
    let points = [(8, Some(61.0)), (16, Some(104.0)), (32, Some(150.0)), (64, Some(171.0)), (128, None)];
    let too_large = vec![false, false, false, true];
    Varied {
        title: "Throughput of resnet50".to_owned(),
        key: "strategy.batch".to_owned(),
        quantity: "throughput".to_owned(),
        points: points.map(|(batch, value)| (batch.to_string(), value.map(SamplesPerSec::new))).into(),
        too_large,
        best: Some(2),
    }
}

#[test]
fn a_plot_of_nothing_says_so() {
    use super::*;
    let drawn = [
        scaling_curve::ScalingCurve::default().svg(),
        stacked::StackedBars::from_steps(&[], "", "").svg(),
        gantt::Gantt::default().svg(),
        fusion::FusionComparison::default().svg(),
        pareto::Pareto::default().svg(),
        rank_grid::RankGrid::default().svg(),
        staleness::Staleness::default().svg(),
    ];
    for drawn in drawn {
        check::sound(&drawn);
        assert!(drawn.contains(">There is nothing to show"), "{drawn}");
    }
}

#[test]
fn narrow_bars_are_merged() {
    let bar = |place: u32| Bar {
        name: format!("op {place}"),
        since: Seconds::new(f64::from(place) * 1e-6),
        until: Seconds::new(f64::from(place) * 1e-6 + 9e-7),
        ..Bar::default()
    };
    let lane = Lane { bars: (0..50_000).map(bar).collect(), ..Lane::default() };
    let drawn = Gantt { title: "many".to_owned(), lanes: vec![lane], ..Gantt::default() }.svg();
    assert!(drawn.len() < 20_000, "{}", drawn.len());
    assert!(drawn.contains("op 0 and 49999 more"));
}

/// Points of a front are joined by steps: a slope would suggest configurations that were not found.
#[test]
fn the_front_is_a_staircase() {
    let choice = |(hours, cost): (f64, f64)| Choice {
        name: String::new(),
        index: None,
        time: Seconds::new(3600.0 * hours),
        cost,
    };
    let front = [(3.2, 128.0), (5.4, 108.0), (19.0, 95.0)].map(choice).into();
    let drawn = Pareto { front, currency: "EUR".to_owned(), ..Pareto::default() }.svg();
    let path = drawn.lines().find(|line| line.starts_with("<path") && line.contains("s0 stroke")).unwrap();
    let d = path.split('"').nth(1).unwrap();
    let points: Vec<Vec<&str>> = d[1..].split('L').map(|point| point.split(' ').collect()).collect();
    assert!(points.len() > 2);
    assert!(points.windows(2).all(|pair| pair[0][0] == pair[1][0] || pair[0][1] == pair[1][1]), "{d}");
}

/// A plan of 4,096 ranks.
fn scenario(changes: &[&str]) -> Scenario {
    let text = include_str!("../../../../examples/plan-175b.toml");
    Document::new("test", text).scenario(&Edit::parse_all(changes).unwrap()).unwrap()
}

/// 4,096 ranks are folded; what is shown is in its place.
#[test]
fn large_plans_are_folded() {
    let layout = Layout::of(&scenario(&[])).unwrap();
    let grid = RankGrid::from_layout(&layout, Role::Pipeline, "gpt3-175b");
    assert_eq!((grid.rows.len(), grid.columns.len(), grid.across), (8, 4, 8));
    assert_eq!(grid.columns.last(), Some(&Some("63".to_owned())));
    assert_eq!(grid.blocks.len(), 8 * 3);
    let last = grid.blocks.last().and_then(|block| block.last()).unwrap();
    assert_eq!(last.words, "rank 4095: stage 7, replica 63, tensor 7, machine 511");
    for role in [Role::Pipeline, Role::Tensor, Role::Data, Role::Node] {
        check::sound(&RankGrid::from_layout(&layout, role, "gpt3-175b").svg_of(460.0));
    }
}

/// The parts of the fullest stage add up to what the forecast says it needs.
#[test]
fn memory_adds_up() {
    let layout = Layout::of(&scenario(&[])).unwrap();
    let plot = StackedBars::from_split(&layout.split, "gpt3-175b");
    let fullest = plot.bars[layout.split.memory.stage].total();
    assert!((fullest / layout.split.memory.most.get() - 1.0).abs() < 1e-12);
    check::sound(&plot.svg_of(460.0));
}

/// A row of numbered passes for every stage, in the colours of the legend.
#[test]
fn a_pipeline_is_drawn_as_in_the_papers() {
    let text = "[model]\nzoo = \"llama3-8b\"\nsequence = 8192\n\
                [[cluster.workers]]\ncount = 32\ndevice = { base = \"h100-sxm5\", efficiency = 0.5 }\n\
                [cluster.network]\nbase = \"infiniband-ndr\"\n\
                [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\nports = 8\n\
                [strategy.plan]\ntensor = 2\npipeline = 4\nschedule = \"zb-h1\"\nglobal-batch = 32\n\
                [methods.simulate]\njitter = 0\n";
    let scenario = Document::new("test", text).scenario(&[]).unwrap();
    let recording = timeline(&scenario, 1, &stepcast_study::never_cancelled).unwrap();
    let gantt = Gantt::from_recording(&recording, "A pipeline");
    let passes: Vec<&Lane> = gantt.lanes.iter().filter(|lane| lane.name == "passes").collect();
    assert_eq!(passes.len(), 4);
    for kind in ["forward", "backward", "weight", "communication"] {
        let place = gantt.kinds.iter().find(|(_, known)| known == kind).map(|(colour, _)| *colour);
        assert!(place.is_some(), "{kind}: {:?}", gantt.kinds);
        let of_kind = |lane: &Lane| lane.bars.iter().filter(|bar| bar.kind == place).count();
        if kind != "communication" {
            assert_eq!(passes.iter().map(|lane| of_kind(lane)).collect::<Vec<_>>(), [8; 4], "{kind}");
        }
    }
    let last = passes[3].bars.iter().find(|bar| bar.name == "B7");
    assert_eq!(last.and_then(|bar| bar.label.clone()).as_deref(), Some("7"));
    // One stage computes one thing at a time.
    for lane in passes {
        let ends = lane.bars.windows(2).map(|pair| pair[1].since.get() - pair[0].until.get());
        assert!(ends.into_iter().all(|gap| gap > -1e-12), "{}", lane.group);
    }
}

#[test]
fn the_pipeline_has_a_row_for_every_stage() {
    let scenario = scenario(&["strategy.plan.global-batch=512", "methods.simulate.jitter=0"]);
    let recording =
        stepcast_study::simulate::timeline(&scenario, 1, &|| std::ops::ControlFlow::Continue(())).unwrap();
    let drawn = Gantt::from_pipeline(&recording, "gpt3-175b");
    assert_eq!(drawn.lanes.len(), 8);
    let groups: Vec<String> = drawn.lanes.iter().map(|lane| lane.group.clone()).collect();
    assert_eq!(groups, (0..8).map(|stage| format!("stage {stage}")).collect::<Vec<_>>());
    let known = |name: &str| drawn.kinds.iter().any(|(_, kind)| kind == name);
    assert!(known("forward") && known("backward"), "{:?}", drawn.kinds);
    check::sound(&drawn.svg());
}
