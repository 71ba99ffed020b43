//! The summary of a trace.

use super::messages::Traffic;
use super::rank::{Bucket, Rank, Step, Usage, median};
use super::ranks::Standing;
use super::records::{Phase, Time};
use super::replay;
use super::sizes::SizeSource;
use super::steps::StepBoundary;
use crate::summary::{Summary, SummaryTable, SummaryValue};
use stepcast_core::quantity::{Bytes, Seconds};

/// Operators that are listed.
const MOST_OPERATORS: usize = 10;

fn time(nanoseconds: f64) -> SummaryValue {
    SummaryValue::Time(Seconds::new(nanoseconds / 1e9))
}

/// The figures of the rank that the profile was made of.
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
    if let Some(rate) = replay::ring_rate(rank) {
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

/// What process groups send in a step, by collective; left out where the table of buckets says it all.
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

/// A table of all ranks.
pub(super) fn ranks(ranks: &[Rank], standings: &[Standing], chosen: usize) -> SummaryTable {
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
