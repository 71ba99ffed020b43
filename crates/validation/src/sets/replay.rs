//! Published runs revealed one by one: which configuration of a model uses its machines best, decided after each of them.
//!
//! Runs of one model are offers at a price in proportion to the peak rate of their devices, so that the one with the highest MFU
//! is the cheapest. Each is predicted without its source. After every revealed run the offer with the least expected cost is
//! chosen; its regret is what it costs more, as measured, than the cheapest. The advised order reveals the run of the largest
//! value of information; it is held against random orders and the order of the files.

use indexmap::IndexMap;
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_core::prior::REPEATS;
use stepcast_study::advise::{Decision, DecisionOption, UncertainFigure, joint};

/// Fewest and most runs of a model from which one is chosen; of more, some at equal distances are taken.
const FEWEST: usize = 5;
const MOST: usize = 12;
const REVEALED: usize = 4;
const SHUFFLES: u64 = 32;

pub(super) struct ReplayedRun {
    pub(super) figure: UncertainFigure,
    /// The price of a second.
    pub(super) price: f64,
    /// Logarithm of its step as predicted without its source.
    pub(super) predicted: f64,
    /// Logarithm of its step as measured.
    pub(super) measured: f64,
}

/// The order in which runs are revealed.
#[derive(Clone, Copy)]
enum RevealOrder {
    Advised,
    Random(u64),
    Given,
}

/// The places of runs that are alternatives, given the model of each run that may be one.
pub(super) fn alternatives(models: impl IntoIterator<Item = Option<String>>) -> Vec<Vec<usize>> {
    let mut places: IndexMap<String, Vec<usize>> = IndexMap::new();
    for (place, model) in models.into_iter().enumerate() {
        if let Some(model) = model {
            places.entry(model).or_default().push(place);
        }
    }
    places.into_values().filter(|runs| runs.len() >= FEWEST).map(thinned).collect()
}

fn thinned(places: Vec<usize>) -> Vec<usize> {
    let count = places.len();
    let is_kept = |place: usize| count <= MOST || place * MOST / count != (place + 1) * MOST / count;
    places.into_iter().enumerate().filter(|(place, _)| is_kept(*place)).map(|(_, run)| run).collect()
}

/// Mean regret over all models after each number of revealed runs, by order.
pub(super) fn replay(models: &[Vec<ReplayedRun>]) -> Vec<Value> {
    let mean = |orders: &[RevealOrder]| -> Vec<f64> {
        let each: Vec<Vec<f64>> = models
            .par_iter()
            .flat_map(|runs| orders.par_iter().filter_map(|order| regrets(runs, *order)))
            .collect();
        (0..=REVEALED)
            .map(|place| each.iter().map(|own| own[place]).sum::<f64>() / each.len().max(1) as f64)
            .collect()
    };
    let random: Vec<RevealOrder> = (0..SHUFFLES).map(RevealOrder::Random).collect();
    let orders =
        [("advised", vec![RevealOrder::Advised]), ("random", random), ("as given", vec![RevealOrder::Given])];
    let row = |(name, orders): (&str, Vec<RevealOrder>)| {
        let regrets = mean(&orders);
        let whole = regrets[1..].iter().sum::<f64>() / REVEALED as f64;
        json!({ "order": name, "models": models.len(), "regrets": regrets, "mean": whole })
    };
    orders.into_iter().map(row).collect()
}

/// The regret after each number of revealed runs; none if the figures have no joint distribution.
fn regrets(runs: &[ReplayedRun], order: RevealOrder) -> Option<Vec<f64>> {
    let options =
        runs.iter().map(|run| DecisionOption { time: run.predicted.exp(), price: run.price }).collect();
    let figures: Vec<_> = runs.iter().chain(runs).map(|run| (&run.figure, REPEATS)).collect();
    let mut decision = Decision::new(options, None, joint(&figures));
    // Places of the runs that are not revealed yet, in the order of their readings; what readings are expected to be.
    let mut hidden: Vec<usize> = (0..runs.len()).collect();
    let mut random = match order {
        RevealOrder::Random(seed) => seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        RevealOrder::Advised | RevealOrder::Given => 0,
    };
    let cost = |run: &ReplayedRun| run.price * run.measured.exp();
    let cheapest = runs.iter().map(cost).fold(f64::INFINITY, f64::min);
    let mut found = vec![cost(&runs[decision.best()]) / cheapest - 1.0];
    for _ in 0..REVEALED {
        let next = match order {
            RevealOrder::Given => 0,
            RevealOrder::Random(_) => {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((random >> 33) as usize) % hidden.len()
            }
            RevealOrder::Advised => {
                let worlds = decision.worlds()?;
                let values = (0..hidden.len()).map(|place| decision.value(&[runs.len() + place], &worlds));
                let values: Vec<f64> = values.map(|value| value.map(|it| it.value)).collect::<Option<_>>()?;
                (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]))?
            }
        };
        let run = hidden.remove(next);
        let surprise = runs[run].measured - decision.options()[run].time.ln();
        decision = decision.after(runs.len() + next, surprise);
        found.push(cost(&runs[decision.best()]) / cheapest - 1.0);
    }
    Some(found)
}
