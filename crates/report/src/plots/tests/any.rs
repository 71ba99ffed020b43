//! Plots of anything.

use crate::draw::check;
use crate::plots::breakdown::{Breakdown, Column};
use crate::plots::fusion::{FusionComparison, Plan, Standing};
use crate::plots::gantt::{Bar, Gantt, Lane};
use crate::plots::pareto::{Choice, Pareto};
use crate::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use crate::plots::rank_grid::{RankGrid, Tile};
use crate::plots::scaling_curve::{Measured, Point, ScalingCurve};
use crate::plots::stage_memory::StageMemory;
use crate::plots::staleness::Staleness;
use crate::plots::varied::Varied;
use crate::plots::varied_pair::VariedPair;
use proptest::collection::vec;
use proptest::prelude::*;
use stepcast_core::quantity::{Bytes, SamplesPerSec, Seconds};

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
    fn breakdowns_are_sound(
        title in name(), columns in vec((0..u64::MAX, vec((name(), time()), 0..12)), 0..30),
    ) {
        let columns = columns.into_iter().map(|(workers, parts)| Column { workers, parts }).collect();
        check::sound(&Breakdown { title, method: "m".to_owned(), columns }.svg());
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
    fn memory_of_stages_is_sound(
        title in name(), capacity in value(), parts in vec(name(), 0..8), stages in vec(vec(value(), 0..8), 0..40),
    ) {
        let bytes = |sizes: Vec<f64>| sizes.into_iter().map(Bytes::new).collect();
        let stages = stages.into_iter().map(bytes).collect();
        check::sound(&StageMemory { title, capacity: Bytes::new(capacity), parts, stages }.svg());
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
