//! Causes of slowness in recordings of several ranks.

use super::{Extremes, RankRecording, RankSeries, SlowCause, SlowKind, Slowness, StepDistribution};
use std::collections::{BTreeMap, BTreeSet};
use stepcast_core::quantity::Seconds;
use stepcast_stats::{deviation, mean, mean_and_half_width, quantile};

/// A rank, machine or stage is slow if its own work is longer than the others' by this share and by this many
/// standard deviations between the others: devices of one kind differ by one or two percent.
const SLOWER: f64 = 0.05;
const DEVIATIONS: f64 = 3.0;
/// Transfers of healthy links of one kind differ by less than this factor.
const SLOW_LINK: f64 = 1.3;
/// A step that is longer than the median by this share, and by this many standard deviations, is a pause.
const PAUSE: f64 = 0.05;
const PAUSE_DEVIATIONS: f64 = 5.0;
const FEWEST_PAUSES: usize = 3;
/// A loss of time below this share is not reported.
const NOTICED: f64 = 0.01;
/// Pauses whose distances differ by less than this share of their mean come at regular intervals.
const REGULAR: f64 = 0.25;
/// Quartiles of a normal distribution are this many standard deviations apart.
const QUARTILES: f64 = 1.349;

fn median(values: &[f64]) -> f64 {
    quantile(&mut values.to_vec(), 0.5)
}

/// Standard deviation by the quartiles, which single outliers do not move.
fn spread(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    (quantile(&mut sorted, 0.75) - quantile(&mut sorted, 0.25)) / QUARTILES
}

/// Standard deviation by the lower quartile, which not even a quarter of pauses moves.
fn spread_below(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    2.0 * (quantile(&mut sorted, 0.5) - quantile(&mut sorted, 0.25)) / QUARTILES
}

/// Distribution and drift of step times, in seconds.
pub fn distribution(times: &[f64]) -> StepDistribution {
    let logarithms: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let mut sorted = times.to_vec();
    let tails = [0.95, 0.99, 1.0].map(|share| Seconds::new(quantile(&mut sorted, share)));
    let third = times.len() / 3;
    let drift = (third >= 10).then(|| {
        let [(first, a), (last, b)] =
            [&logarithms[..third], &logarithms[times.len() - third..]].map(mean_and_half_width);
        ((last - first).exp() - 1.0, (last - first).abs() > 2.0 * a.hypot(b))
    });
    StepDistribution {
        median: Seconds::new(median(times)),
        spread: spread(&logarithms),
        tails,
        drift: drift.and_then(|(drift, is_clear)| (is_clear && drift.abs() > NOTICED).then_some(drift)),
    }
}

/// Own work of all ranks: one row for each.
struct OwnWork {
    rows: Vec<Vec<f64>>,
    /// Excess of each rank over the usual one, as a logarithm.
    excess: Vec<f64>,
    step: f64,
}

impl OwnWork {
    fn new(ranks: &[RankSeries], step: f64) -> Self {
        let rows: Vec<Vec<f64>> =
            ranks.iter().map(|rank| rank.steps.iter().map(|step| step.own()).collect()).collect();
        let usual: Vec<f64> = rows.iter().map(|row| median(row).ln()).collect();
        let middle = median(&usual);
        Self { rows, excess: usual.iter().map(|own| own - middle).collect(), step }
    }

    /// The mean over steps of the longest own work, with ranks sped up by logarithms of factors.
    fn longest(&self, faster: &dyn Fn(usize) -> f64) -> f64 {
        let factors: Vec<f64> = (0..self.rows.len()).map(|rank| (-faster(rank)).exp()).collect();
        let steps = self.rows.first().map_or(0, Vec::len);
        let longest = |step: usize| {
            self.rows.iter().zip(&factors).map(|(row, factor)| row[step] * factor).fold(0.0, f64::max)
        };
        mean(&(0..steps).map(longest).collect::<Vec<_>>())
    }

    fn cause(&self, kind: SlowKind, name: String, ranks: &[usize]) -> SlowCause {
        let excess = median(&ranks.iter().map(|&rank| self.excess[rank]).collect::<Vec<_>>());
        let without = |rank: usize| if ranks.contains(&rank) { self.excess[rank].max(0.0) } else { 0.0 };
        let cost = self.longest(&|_| 0.0) - self.longest(&without);
        SlowCause { kind, name, factor: excess.exp(), cost: Seconds::new(cost), gain: cost / self.step }
    }
}

/// Causes of slowness in a recording, without the steps of its warm-up.
pub fn find(recording: &RankRecording) -> Slowness {
    let mut warm = recording.clone();
    for rank in &mut warm.ranks {
        rank.steps.drain(..crate::check::warm_up(rank.steps.len()));
    }
    let recording = &warm;
    let mut causes = Vec::new();
    if recording.ranks.first().is_some_and(|rank| !rank.steps.is_empty()) {
        let times: Vec<f64> = recording.steps().iter().map(|step| step.get()).collect();
        let own = OwnWork::new(&recording.ranks, mean(&times));
        causes.extend(slow_ranks(&recording.ranks, &own));
        causes.extend(documents(&recording.ranks, &own));
        causes.extend(data_loading(&recording.ranks, own.step));
        causes.extend(slow_host(&recording.ranks, own.step));
        causes.extend(pauses(&recording.ranks, &times));
        causes.extend(slow_links(recording, own.step));
    }
    let [computing, loading] = &recording.extremes;
    let step = median(&computing.iter().map(|line| line.most.0).collect::<Vec<_>>());
    causes.extend(extremes(SlowKind::Rank, computing, step));
    causes.extend(extremes(SlowKind::DataLoading, loading, step).filter(|cause| cause.gain > NOTICED));
    causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Slowness { ranks: recording.ranks.len(), causes }
}

/// Stages, machines, then ranks whose own work is longer than the others'.
fn slow_ranks(ranks: &[RankSeries], own: &OwnWork) -> Vec<SlowCause> {
    if ranks.len() < 3 || ranks.iter().any(|rank| rank.steps.iter().any(|step| step.communication.is_none()))
    {
        return Vec::new();
    }
    let labels = |label: &dyn Fn(&RankSeries) -> Option<String>| {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, rank) in ranks.iter().enumerate() {
            if let Some(label) = label(rank) {
                groups.entry(label).or_default().push(place);
            }
        }
        groups
    };
    let kinds = [
        (SlowKind::Stage, labels(&|rank| rank.stage.map(|stage| format!("stage {stage}")))),
        (SlowKind::Machine, labels(&|rank| rank.machine.as_ref().map(|name| format!("machine {name}")))),
        (SlowKind::Rank, labels(&|rank| Some(format!("rank {}", rank.rank)))),
    ];
    let mut explained: BTreeSet<usize> = BTreeSet::new();
    let mut causes = Vec::new();
    for (kind, groups) in kinds {
        // Groups of one rank or of all ranks are ignored.
        let is_group =
            |places: &&Vec<usize>| kind == SlowKind::Rank || places.len() > 1 && places.len() < ranks.len();
        for (name, places) in &groups {
            let others: Vec<f64> = (0..ranks.len())
                .filter(|place| !places.contains(place) && !explained.contains(place))
                .map(|place| own.excess[place])
                .collect();
            if !is_group(&places) || others.is_empty() || places.iter().any(|place| explained.contains(place))
            {
                continue;
            }
            let least = SLOWER.ln_1p().max(DEVIATIONS * spread(&others));
            let middle = median(&others);
            if places.iter().all(|&place| own.excess[place] - middle > least) {
                causes.push(own.cause(kind, name.clone(), places));
                explained.extend(places);
            }
        }
    }
    causes
}

/// Work that differs between ranks from step to step, as far as the recorded work explains it or no single rank does.
fn documents(ranks: &[RankSeries], own: &OwnWork) -> Option<SlowCause> {
    let deviations = |row: &[f64]| -> Vec<f64> {
        let middle = median(row).ln();
        row.iter().map(|own| own.ln() - middle).collect()
    };
    let rows: Vec<Vec<f64>> = own.rows.iter().map(|row| deviations(row)).collect();
    let spread = median(&rows.iter().map(|row| spread(row)).collect::<Vec<_>>());
    let works: Option<Vec<f64>> = ranks.iter().flat_map(|rank| &rank.steps).map(|step| step.work).collect();
    let explained = works.map(|works| correlation(&works, &rows.concat()) > 0.5);
    // Work that is the same for all ranks of a step is not uneven.
    let steps = rows.first().map_or(0, Vec::len);
    let uneven: Vec<f64> = (0..steps)
        .map(|step| {
            let of_step: Vec<f64> = rows.iter().map(|row| row[step]).collect();
            deviation(&of_step).unwrap_or(0.0)
        })
        .collect();
    let is_uneven = match explained {
        Some(explained) => explained && spread > NOTICED,
        None => median(&uneven) > SLOWER,
    };
    if ranks.len() < 2 || !is_uneven {
        return None;
    }
    let equal: Vec<f64> = (0..steps)
        .map(|step| {
            let middle = mean(&rows.iter().map(|row| row[step]).collect::<Vec<_>>());
            own.rows
                .iter()
                .zip(&rows)
                .map(|(times, row)| times[step] * (middle - row[step]).exp())
                .fold(0.0, f64::max)
        })
        .collect();
    let cost = (own.longest(&|_| 0.0) - mean(&equal)).max(0.0);
    let name = if explained.is_some() {
        "documents of different lengths"
    } else {
        "work that differs between ranks"
    };
    let (factor, gain) = (1.0 + cost / mean(&equal), cost / own.step);
    (gain > NOTICED).then(|| SlowCause {
        kind: SlowKind::Documents,
        name: name.to_owned(),
        factor,
        cost: Seconds::new(cost),
        gain,
    })
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (of_a, of_b) = (mean(a), mean(b));
    let both: f64 = a.iter().zip(b).map(|(x, y)| (x - of_a) * (y - of_b)).sum();
    let scale =
        |values: &[f64], middle: f64| values.iter().map(|value| (value - middle).powi(2)).sum::<f64>().sqrt();
    both / (scale(a, of_a) * scale(b, of_b)).max(f64::MIN_POSITIVE)
}

fn data_loading(ranks: &[RankSeries], step: f64) -> Option<SlowCause> {
    let own: Vec<f64> =
        ranks.iter().map(|rank| mean(&rank.steps.iter().map(|step| step.data).collect::<Vec<_>>())).collect();
    let steps = ranks.first().map_or(0, |rank| rank.steps.len());
    let longest = |place: usize| ranks.iter().map(|rank| rank.steps[place].data).fold(0.0, f64::max);
    let cost = mean(&(0..steps).map(longest).collect::<Vec<_>>());
    let usual = median(&own).max(1e-9);
    let (most, place) =
        own.iter().zip(ranks).map(|(own, rank)| (*own, rank.rank)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = match most > 2.0 * usual && ranks.len() > 2 {
        true => format!("rank {place}"),
        false => "all ranks".to_owned(),
    };
    let gain = cost / step;
    let factor = 1.0 + cost / (step - cost).max(1e-9);
    (gain > NOTICED).then_some(SlowCause {
        kind: SlowKind::DataLoading,
        name,
        factor,
        cost: Seconds::new(cost),
        gain,
    })
}

/// How long the device of each rank usually waits for its host in a step.
fn usual_silence(ranks: &[RankSeries]) -> Vec<f64> {
    let silent = |rank: &RankSeries| median(&rank.steps.iter().map(|step| step.silent).collect::<Vec<_>>());
    ranks.iter().map(silent).collect()
}

/// A rank whose device waits longer for its host in every step than others do.
fn slow_host(ranks: &[RankSeries], step: f64) -> Option<SlowCause> {
    let usual = usual_silence(ranks);
    let (most, rank) = usual.iter().zip(ranks).max_by(|a, b| a.0.total_cmp(b.0))?;
    let cost = most - median(&usual);
    (ranks.len() > 2 && cost > SLOWER * step).then(|| SlowCause {
        kind: SlowKind::Host,
        name: format!("rank {}", rank.rank),
        factor: step / (step - cost).max(1e-9),
        cost: Seconds::new(cost),
        gain: cost / step,
    })
}

/// Pauses: as recorded, or steps whose longest own work is far longer than usual.
fn pauses(ranks: &[RankSeries], steps: &[f64]) -> Option<SlowCause> {
    let usual = usual_silence(ranks);
    let stood = |place: usize| -> Vec<f64> {
        let more = |(rank, usual): (&RankSeries, &f64)| {
            let step = &rank.steps[place];
            step.pause + (step.silent - usual).max(0.0)
        };
        ranks.iter().zip(&usual).map(more).collect()
    };
    // A pause lengthens the longest own work by as much as the step, which also varies by communication.
    let own = |place: usize| -> Vec<f64> {
        let own = |rank: &RankSeries| rank.steps[place].own() + rank.steps[place].pause;
        ranks.iter().map(own).collect()
    };
    let step = median(steps);
    let recorded: Vec<Vec<f64>> = (0..steps.len()).map(stood).collect();
    let inferred: Vec<Vec<f64>> = (0..steps.len()).map(own).collect();
    let is_garbage = ranks.iter().flat_map(|rank| &rank.steps).any(|step| step.pause > 0.0);
    standstill(ranks, &recorded, step, steps, if is_garbage { "garbage collection, " } else { "" })
        .or_else(|| standstill(ranks, &inferred, 0.0, steps, ""))
}

/// Steps in which the longest of the ranks' times, each beside `base`, is far longer than usual.
fn standstill(
    ranks: &[RankSeries],
    rows: &[Vec<f64>],
    base: f64,
    steps: &[f64],
    what: &str,
) -> Option<SlowCause> {
    let times: Vec<f64> =
        rows.iter().map(|row| base + row.iter().fold(0.0, |most: f64, own| most.max(*own))).collect();
    let logarithms: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let usual = median(&times);
    let least = PAUSE.ln_1p().max(PAUSE_DEVIATIONS * spread_below(&logarithms));
    let longer = |place: usize| logarithms[place] - usual.ln();
    let mut found: Vec<f64> = (0..times.len()).map(longer).filter(|by| *by > least).collect();
    // Chance makes single steps a little longer: pauses are at least half as long as the longest of them.
    let least = least.max(0.5 * quantile(&mut found, 0.9));
    let places: Vec<usize> = (0..times.len()).filter(|&place| longer(place) > least).collect();
    let lost: f64 = places.iter().map(|&place| times[place] - usual).sum();
    let gain = lost / steps.iter().sum::<f64>();
    if places.len() < FEWEST_PAUSES || places.len() * 3 > times.len() || gain < NOTICED {
        return None;
    }
    let gaps: Vec<f64> = places.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let is_regular = deviation(&gaps).is_some_and(|own| own < REGULAR * mean(&gaps));
    let when = match is_regular {
        true => format!("every {:.0} steps", mean(&gaps)),
        false => format!("{} of {} steps", places.len(), times.len()),
    };
    // One rank, if it causes nearly all pauses.
    let pausing = |place: &usize| {
        let (rank, most) = rows[*place].iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        (most - median(&rows[*place]) > 0.5 * (times[*place] - usual)).then_some(rank)
    };
    let found: Vec<Option<usize>> = places.iter().map(pausing).collect();
    let who = (0..ranks.len())
        .find(|rank| 5 * found.iter().filter(|own| **own == Some(*rank)).count() >= 4 * found.len())
        .map_or_else(String::new, |rank| format!("rank {}, ", ranks[rank].rank));
    let longest = median(&places.iter().map(|&place| times[place]).collect::<Vec<_>>());
    Some(SlowCause {
        kind: SlowKind::Pauses,
        name: format!("{who}{what}{when}"),
        factor: longest / usual,
        cost: Seconds::new(lost / times.len() as f64),
        gain,
    })
}

/// Groups whose transfers take longer than those of other groups of the same size.
fn slow_links(recording: &RankRecording, step: f64) -> Vec<SlowCause> {
    let steps = recording.ranks.first().map_or(1, |rank| rank.steps.len().max(1)) as f64;
    let usual: Vec<f64> = recording.transfers.iter().map(|group| median(&group.times)).collect();
    let machine = |rank: &u64| {
        let own = recording.ranks.iter().find(|series| series.rank == *rank);
        own.and_then(|series| series.machine.clone()).map_or_else(String::new, |name| format!(" ({name})"))
    };
    let mut causes = Vec::new();
    for (place, group) in recording.transfers.iter().enumerate() {
        let alike = recording.transfers.iter().zip(&usual).enumerate();
        let others: Vec<f64> = alike
            .filter(|(other, (it, _))| *other != place && it.ranks.len() == group.ranks.len())
            .map(|(_, (_, time))| *time)
            .collect();
        let middle = median(&others);
        if others.len() < 2
            || usual[place] < SLOW_LINK * middle
            || spread(&group.times) > usual[place] - middle
        {
            continue;
        }
        let names: Vec<String> =
            group.ranks.iter().map(|rank| format!("rank {rank}{}", machine(rank))).collect();
        let cost = (usual[place] - middle) * group.times.len() as f64 / steps;
        causes.push(SlowCause {
            kind: SlowKind::Link,
            name: names.join(" – "),
            factor: usual[place] / middle,
            cost: Seconds::new(cost),
            gain: cost / step,
        });
    }
    causes
}

/// The rank that is the slowest of nearly all intervals.
fn extremes(kind: SlowKind, lines: &[Extremes], step: f64) -> Option<SlowCause> {
    let mut slowest: BTreeMap<u64, usize> = BTreeMap::new();
    for line in lines {
        *slowest.entry(line.most.1).or_default() += 1;
    }
    let (rank, count) = slowest.into_iter().max_by_key(|(_, count)| *count)?;
    let own: Vec<&Extremes> = lines.iter().filter(|line| line.most.1 == rank).collect();
    let factor = median(&own.iter().map(|line| line.most.0 / line.least.max(1e-9)).collect::<Vec<_>>());
    let cost = median(&own.iter().map(|line| line.most.0 - line.least).collect::<Vec<_>>());
    let is_clear = count >= FEWEST_PAUSES && count * 5 >= lines.len() * 4 && factor > 1.0 + SLOWER;
    let name = format!("rank {rank}");
    is_clear.then(|| SlowCause { kind, name, factor, cost: Seconds::new(cost), gain: cost / step })
}
