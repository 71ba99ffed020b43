//! The summary of a trace, and several ranks of one job on one clock.
//!
//! A collective ends on all ranks at about the same time, and begins when the last of them has arrived. So the clocks
//! of two ranks differ by the median difference of the ends of their collectives; the rank that begins last keeps the
//! others waiting.

use super::gradients::SizeSource;
use super::join::StepBoundary;
use super::messages::Traffic;
use super::rank::{Bucket, Rank, Step, Usage, median};
use super::records::{Phase, Span, Time};
use super::timeline::ring_rate;
use crate::overview::{Summary, SummaryTable, SummaryValue};
use stepcast_core::quantity::{Bytes, Seconds};

const MOST_OPERATORS: usize = 10;

fn time(nanoseconds: f64) -> SummaryValue {
    SummaryValue::Time(Seconds::new(nanoseconds / 1e9))
}

pub(super) fn summary(rank: &Rank) -> Summary {
    let mut summary = Summary::default();
    if let Some(device) = &rank.device {
        summary.figure("device", "device", SummaryValue::Text(device.clone()), "");
    }
    if let (Some(number), Some(world)) = (rank.number, rank.world) {
        summary.figure("rank", "rank", SummaryValue::Count(number), format!("of {world}"));
        summary.figure("world", "ranks of the job", SummaryValue::Count(world), "");
    }
    let mean = |of: fn(&Step) -> Time| rank.mean(of);
    let step = mean(|step| step.timeline.span.length());
    let boundary = match rank.boundary {
        StepBoundary::Marks => "from one ProfilerStep to the next",
        StepBoundary::Optimiser => "no ProfilerStep; from one step of the optimiser to the next",
        StepBoundary::Repetition => "no ProfilerStep; kernels that repeat in the same order",
        StepBoundary::Nothing => "nothing repeats; the trace is taken for one step",
    };
    summary.figure("step", "step in the trace", time(step), format!("with communication; {boundary}"));
    let lengths: Vec<Time> = rank.steps.iter().map(|step| step.timeline.span.length()).collect();
    if let Some(median) = median(&lengths) {
        summary.figure("median_step", "median step", time(median as f64), "");
    }
    for (key, label, marks) in [
        ("host_mark", "mark on the host", &rank.host_marks),
        ("device_mark", "marks on the device", &rank.device_marks),
    ] {
        if let Some(median) = median(marks) {
            summary.figure(key, label, time(median as f64), "median");
        }
    }
    let length = mean(|step| step.timeline.length());
    summary.figure("forward", "forward", time(mean(Step::forward_end)), "to the start of the backward pass");
    let backward = mean(|step| step.backward_end() - step.forward_end());
    summary.figure("backward", "backward", time(backward), "to the last gradient");
    let rest = length - mean(Step::backward_end);
    summary.figure("rest", "rest", time(rest), "optimiser, loading, and the way to the next step");
    let kernels = |phase| rank.mean(|step| step.phases.get(&phase).copied().unwrap_or(0));
    summary.figure("optimiser_kernels", "optimiser", time(kernels(Phase::Optimiser)), "its kernels");
    summary.figure("loading", "data loading", time(mean(|step| step.loading)), "on the host");
    summary.figure(
        "communication",
        "communication",
        time(mean(Step::communication)),
        "collectives run on the device",
    );
    let exposed = mean(|step| step.timeline.exposed);
    let of_gradients = "waits for sums of gradients; taken out as far as the host is fast enough";
    summary.figure("exposed", "exposed sums", time(exposed), of_gradients);
    replay(rank, step, &mut summary);
    let share = |part: f64| SummaryValue::Share(if length > 0.0 { part / length } else { 0.0 });
    summary.figure(
        "idle",
        "idle",
        share(mean(|step| step.timeline.idle())),
        "of the step without sums of gradients",
    );
    let late = "the device waits for the host to launch";
    summary.figure("launch_bound", "launch-bound", share(mean(|step| step.timeline.late)), late);
    summary.figure(
        "kernels",
        "kernels in a step",
        SummaryValue::Count(mean(|step| step.works as Time).round() as u64),
        "",
    );
    gradients(rank, &mut summary);
    summary.tables.extend([buckets(rank), traffic(rank), operators(rank)].into_iter().flatten());
    summary
}

/// The step with its sums put back, for traces that have any.
fn replay(rank: &Rank, recorded: f64, summary: &mut Summary) {
    if rank.steps.iter().all(|step| step.buckets.is_empty()) {
        return;
    }
    let replayed = rank.mean(Step::replayed);
    let off = format!(
        "{:+.1} % off the trace: the profile with sums as recorded",
        100.0 * (replayed / recorded - 1.0)
    );
    summary.figure("replayed", "step replayed", time(replayed), off);
    if let Some(rate) = ring_rate(rank) {
        let note = "of each link of a ring that sums in that time: `reached` of `[cluster.network]`";
        summary.figure("reached", "rate of sums", SummaryValue::Rate(rate), note);
    }
}

fn gradients(rank: &Rank, summary: &mut Summary) {
    let Some(step) = rank.steps.first() else { return };
    summary.figure("gradients", "gradients", SummaryValue::Count(step.gradients.len() as u64), "");
    let Some(sizes) = &rank.sizes else { return };
    let parameters: u64 = sizes.elements.iter().sum();
    let from = match sizes.source {
        SizeSource::Shapes => "from recorded shapes",
        SizeSource::Divided => "what a rank exchanges, shared by recorded shapes",
        SizeSource::Copies => "from copies out of the buckets",
        SizeSource::Sent => "from copies before each collective",
        SizeSource::Buckets => "from buckets; single gradients are estimated",
        SizeSource::Kernels => "estimated from kernels that clear gradients",
        SizeSource::Chunks => "estimated from kernels of the optimiser",
    };
    summary.figure("parameters", "parameters", SummaryValue::Count(parameters), from);
    let bytes = parameters.saturating_mul(sizes.element);
    summary.figure("gradient", "gradients", SummaryValue::Size(Bytes::new(bytes as f64)), "");
}

/// The buckets of the first step; when each was ready is a mean.
fn buckets(rank: &Rank) -> Option<SummaryTable> {
    let step = rank.steps.first().filter(|step| !step.buckets.is_empty())?;
    let mut rows = Vec::new();
    for (index, bucket) in step.buckets.iter().enumerate() {
        let same = || rank.steps.iter().filter_map(|step| Some((step, step.buckets.get(index)?)));
        let mean = |of: &dyn Fn(&Step, &Bucket) -> Option<Time>| {
            let times: Vec<f64> =
                same().filter_map(|(step, bucket)| of(step, bucket)).map(|time| time as f64).collect();
            if times.is_empty() {
                SummaryValue::Unknown
            } else {
                time(times.iter().sum::<f64>() / times.len() as f64)
            }
        };
        let alone = rank.sizes.as_ref().filter(|sizes| sizes.source == SizeSource::Sent);
        let elements = bucket.elements.or_else(|| alone?.elements.get(index).copied());
        let element = u64::from(if bucket.element == 0 { 4 } else { bucket.element });
        let size = |elements: u64| SummaryValue::Size(Bytes::new((elements * element) as f64));
        rows.push(vec![
            SummaryValue::Count(index as u64),
            elements.map_or(SummaryValue::Unknown, SummaryValue::Count),
            elements.map_or(SummaryValue::Unknown, size),
            mean(&|step, bucket| Some(step.timeline.clock_at_start(bucket.ran?.start))),
            mean(&|_, bucket| Some(bucket.ran?.length())),
        ]);
    }
    let columns = vec![
        ("bucket", "bucket"),
        ("elements", "elements"),
        ("size", "size"),
        ("start", "starts at"),
        ("time", "takes"),
    ];
    Some(SummaryTable { key: "buckets", title: "All-reduce", columns, rows })
}

/// Traffic of process groups in a step, by collective; left out if the table of buckets is complete.
fn traffic(rank: &Rank) -> Option<SummaryTable> {
    let only_buckets = rank.traffic.iter().all(|own| own.sums_gradients && own.group.is_empty());
    if only_buckets {
        return None;
    }
    let steps = rank.steps.len() as f64;
    let known = |number: u64, value: SummaryValue| if number > 0 { value } else { SummaryValue::Unknown };
    let row = |own: &Traffic| {
        let name = |text: &str| match text {
            "" => SummaryValue::Unknown,
            text => SummaryValue::Text(text.to_owned()),
        };
        vec![
            name(&own.collective),
            name(&own.group),
            known(own.ranks.into(), SummaryValue::Count(own.ranks.into())),
            SummaryValue::Count((own.messages as f64 / steps).round() as u64),
            known(own.bytes, SummaryValue::Size(Bytes::new(own.bytes as f64 / steps))),
            time(own.time as f64 / steps),
            time(own.exposed as f64 / steps),
            SummaryValue::Text(if own.sums_gradients { "sums gradients" } else { "stays" }.to_owned()),
        ]
    };
    let columns = vec![
        ("collective", "collective"),
        ("group", "process group"),
        ("ranks", "ranks"),
        ("messages", "in a step"),
        ("size", "size"),
        ("time", "takes"),
        ("exposed", "exposed"),
        ("use", ""),
    ];
    let rows = rank.traffic.iter().take(MOST_OPERATORS).map(row).collect();
    Some(SummaryTable { key: "communication", title: "Communication", columns, rows })
}

fn operators(rank: &Rank) -> Option<SummaryTable> {
    let steps = rank.steps.len() as f64;
    let row = |usage: &Usage| {
        vec![
            SummaryValue::Text(usage.name.clone()),
            SummaryValue::Count((usage.works as f64 / steps).round() as u64),
            time(usage.time as f64 / steps),
        ]
    };
    let rows: Vec<Vec<SummaryValue>> = rank.operators.iter().take(MOST_OPERATORS).map(row).collect();
    let columns = vec![("operator", "operator"), ("kernels", "kernels in a step"), ("time", "on the device")];
    (!rows.is_empty()).then_some(SummaryTable { key: "operators", title: "Operators", columns, rows })
}

pub(super) fn ranks_table(ranks: &[Rank], standings: &[Standing], chosen: usize) -> SummaryTable {
    let row = |(index, (rank, standing)): (usize, (&Rank, &Standing))| {
        let number = rank.number.unwrap_or(index as u64);
        vec![
            SummaryValue::Count(number),
            time(rank.mean(|step| step.timeline.span.length())),
            time(rank.mean(|step| step.timeline.length())),
            time(rank.mean(|step| step.timeline.exposed)),
            time(standing.waited),
            time(standing.lateness),
            SummaryValue::Share(standing.last),
            time(standing.offset as f64),
            SummaryValue::Text(if index == chosen { "profile".to_owned() } else { String::new() }),
        ]
    };
    let mut rows: Vec<Vec<SummaryValue>> = ranks.iter().zip(standings).enumerate().map(row).collect();
    rows.sort_by_key(|row| match row[0] {
        SummaryValue::Count(number) => number,
        _ => 0,
    });
    let columns = vec![
        ("rank", "rank"),
        ("step", "step"),
        ("compute", "own work"),
        ("exposed", "exposed"),
        ("waited", "waits"),
        ("late", "late by"),
        ("last", "is last"),
        ("clock", "clock"),
        ("use", ""),
    ];
    SummaryTable { key: "ranks", title: "Ranks", columns, rows }
}

/// One rank relative to the others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// Its clock minus that of the first rank.
    pub(super) offset: Time,
    /// Mean time from the first rank's arrival at a collective to its own.
    pub(super) lateness: f64,
    /// Share of the collectives at which it arrived last.
    pub(super) last: f64,
    /// Mean time that it waited in a collective for the last rank to arrive, by step.
    pub(super) waited: f64,
}

/// The standing of every rank; none if they have no collectives in common.
pub(super) fn align_clocks(ranks: &[Rank]) -> Option<Vec<Standing>> {
    let exchanges: Vec<Vec<Span>> = ranks
        .iter()
        .map(|rank| rank.steps.iter().flat_map(|step| step.exchanges.iter().map(|it| it.ran)).collect())
        .collect();
    let count = exchanges.iter().map(Vec::len).min().filter(|count| *count > 0)?;
    if ranks.len() < 2 || exchanges.iter().any(|own| own.len() != count) {
        return None;
    }
    let offset = |own: &Vec<Span>| {
        let mut differences: Vec<Time> =
            own.iter().zip(&exchanges[0]).map(|(own, first)| own.end - first.end).collect();
        differences.sort_unstable();
        differences[differences.len() / 2]
    };
    let offsets: Vec<Time> = exchanges.iter().map(offset).collect();
    let arrival = |rank: usize, index: usize| exchanges[rank][index].start - offsets[rank];
    let all = 0..ranks.len();
    let first = |index: usize| all.clone().map(|rank| arrival(rank, index)).min().unwrap_or(0);
    let last = |index: usize| all.clone().map(|rank| arrival(rank, index)).max().unwrap_or(0);
    let standing = |rank: usize| {
        let sum = |of: &dyn Fn(usize) -> Time| (0..count).map(|index| of(index) as f64).sum::<f64>();
        Standing {
            offset: offsets[rank],
            lateness: sum(&|index| arrival(rank, index) - first(index)) / count as f64,
            last: sum(&|index| Time::from(arrival(rank, index) == last(index))) / count as f64,
            waited: sum(&|index| last(index) - arrival(rank, index)) / ranks[rank].steps.len() as f64,
        }
    };
    Some(all.clone().map(standing).collect())
}

/// The rank whose own computing takes the median time.
pub(super) fn median_rank(ranks: &[Rank]) -> usize {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    let time = |rank: usize| ranks[rank].mean(|step| step.timeline.length());
    order.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
    order[(order.len() - 1) / 2]
}
