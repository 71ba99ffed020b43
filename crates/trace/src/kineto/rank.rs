//! The analysis of one rank's trace: its steps without communication, gradients, sizes, buckets and shares of time.

use super::gradients::{Gradient, Sizes, find_gradients, gradient_sizes};
use super::join::{Joined, StepBoundary, step_windows};
use super::messages;
use super::messages::Traffic;
use super::recording::Recording;
use super::records::{Collective, Operator, Phase, Placed, Role, Span, Time, union, within};
use super::timeline::{Exchange, Shift, Surroundings, Timeline};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Largest deviation of a step's number of works from the usual one, as a share; other steps are left out (a guess).
const MOST_DIFFERENT: f64 = 0.25;
/// Multiple of the usual time from which on a step at the beginning is left out (a guess).
const WARMING_UP: Time = 2;

#[derive(Debug)]
pub(super) struct Step {
    pub(super) host: Span,
    pub(super) timeline: Timeline,
    pub(super) gradients: Vec<Gradient>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) works: usize,
    /// Its collectives, in the order in which they were launched.
    pub(super) exchanges: Vec<Exchange>,
    /// Time that the host spent loading data.
    pub(super) loading: Time,
    /// Time that works of each phase took together.
    pub(super) phases: BTreeMap<Phase, Time>,
}

/// Gradients that are summed over the workers at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    pub(super) elements: Option<u64>,
    pub(super) element: u8,
    /// Ranks that sum; 0 if unknown.
    pub(super) ranks: u32,
    pub(super) ran: Option<Span>,
}

/// An operator and the works that it launched.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usage {
    pub(super) name: String,
    pub(super) works: usize,
    pub(super) time: Time,
}

#[derive(Debug)]
pub(super) struct Rank {
    pub(super) place: String,
    pub(super) number: Option<u64>,
    pub(super) world: Option<u64>,
    pub(super) device: Option<String>,
    pub(super) steps: Vec<Step>,
    pub(super) left_out: usize,
    /// Steps that begin on the device before the previous step has ended.
    pub(super) overlapping: usize,
    pub(super) boundary: StepBoundary,
    pub(super) sizes: Option<Sizes>,
    /// Samples of a step, from the first layer's input.
    pub(super) batch: Option<u32>,
    /// Lengths of the marks on the host, and times between the marks on the device.
    pub(super) host_marks: Vec<Time>,
    pub(super) device_marks: Vec<Time>,
    pub(super) operators: Vec<Usage>,
    /// Traffic of process groups.
    pub(super) traffic: Vec<Traffic>,
    pub(super) on_host: bool,
    pub(super) orphans: usize,
    pub(super) notes: Vec<String>,
}

impl Rank {
    /// The analysis of a recording; none if it has no works.
    pub(super) fn new(place: String, mut recording: Recording, notes: Vec<String>) -> Option<Self> {
        recording.sort();
        recording.attribute_groups();
        let mut joined = Joined::new(&mut recording);
        let (windows, boundary) = step_windows(&recording, &joined);
        messages::mark_gradient_sums(&recording, &mut joined, &windows);
        let (all, overlapping) = analyse_steps(&recording, &joined, &windows);
        let found = all.len();
        let kept = alike(all);
        let sizes = kept.iter().find_map(|(step, works)| {
            let sent = messages::gradient_sums(&recording, step.host);
            gradient_sizes(&recording, &step.gradients, &sent, works)
        });
        let traffic = messages::traffic(&recording, &kept);
        let steps: Vec<Step> = kept.into_iter().map(|(step, _)| step).collect();
        if steps.is_empty() {
            return None;
        }
        let operators = operators(&mut recording, &joined, &windows);
        let distributed = recording.head.distributed.as_ref();
        Some(Self {
            place,
            number: distributed.and_then(|it| it.rank),
            world: distributed.and_then(|it| it.world_size),
            device: recording.head.devices.first().map(|it| it.name.clone()).filter(|name| !name.is_empty()),
            left_out: found - steps.len(),
            overlapping,
            boundary,
            sizes,
            batch: recording.first_input.as_ref().and_then(|(_, shape)| shape.sizes().first().copied()),
            host_marks: host_marks(&recording),
            device_marks: device_marks(&recording),
            operators,
            traffic,
            on_host: joined.on_host,
            orphans: joined.orphans,
            steps,
            notes,
        })
    }

    /// Approximate bytes that it takes, including the resulting profile.
    pub(super) fn held(&self) -> usize {
        let step = |step: &Step| {
            1000 + 300 * step.gradients.len()
                + 100 * step.buckets.len()
                + 50 * step.exchanges.len()
                + step.timeline.held()
        };
        self.steps.iter().map(step).sum::<usize>() + 300 * self.operators.len()
    }

    pub(super) fn mean(&self, of: impl Fn(&Step) -> Time) -> f64 {
        self.steps.iter().map(|step| of(step) as f64).sum::<f64>() / self.steps.len() as f64
    }
}

impl Step {
    pub(super) fn communication(&self) -> Time {
        union(self.exchanges.iter().map(|it| it.ran).collect()).into_iter().map(Span::length).sum()
    }
}

fn host_marks(recording: &Recording) -> Vec<Time> {
    let marks = recording.ranges.iter().filter(|range| range.role == Role::Step);
    marks.map(|range| range.span.length()).collect()
}

/// Times between the beginnings of steps as the device marked them.
fn device_marks(recording: &Recording) -> Vec<Time> {
    let begins: Vec<Time> = recording.device_marks.values().copied().collect();
    begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

pub(super) type AnalysedStep<'a> = (Step, Vec<&'a Placed>);

/// Start and launch of a work.
type Mark = (Time, Time);

fn analyse_steps<'a>(
    recording: &Recording,
    joined: &'a Joined,
    windows: &[Span],
) -> (Vec<AnalysedStep<'a>>, usize) {
    let loading = recording.ranges.iter().filter(|range| range.role == Role::Loading);
    let loading = union(loading.map(|range| range.span).collect());
    let spans = |is: fn(&Placed) -> bool| {
        union(joined.works.iter().filter(|placed| is(placed)).map(|placed| placed.work.span).collect())
    };
    let around = Surroundings {
        sums: spans(|placed| placed.sums_gradients),
        waiting: joined.waiting.clone(),
        computing: spans(|placed| !placed.is_collective()),
        works: spans(|_| true),
        loading,
        on_host: joined.on_host,
    };
    let mut grouped: Vec<(Span, Vec<&Placed>)> = Vec::new();
    for window in windows {
        let first = joined.works.partition_point(|placed| placed.launch < window.start);
        let last = joined.works.partition_point(|placed| placed.launch < window.end);
        let mut works: Vec<&Placed> = joined.works[first..last.max(first)].iter().collect();
        works.sort_by_key(|placed| (placed.work.span, placed.launch));
        if works.iter().any(|placed| !placed.is_collective()) {
            grouped.push((*window, works));
        }
    }
    let overlapping = early(&grouped).into_iter().filter(|early| *early > 0).count();
    let early = usual_early(&grouped);
    let begins: Vec<Mark> = grouped.iter().filter_map(|(_, works)| mark(works, early)).collect();
    let gap = usual_gap(&grouped, &begins);
    let nexts = begins.iter().skip(1).copied().map(Some).chain([None]);
    let mut steps = Vec::new();
    let mut carried = Shift::default();
    for (((host, works), begin), next) in grouped.into_iter().zip(begins.iter().copied()).zip(nexts) {
        let backward = |placed: &Placed| placed.phase == Phase::Backward;
        // The host takes as much time to reach the next step as this step took.
        let launch = works.iter().map(|placed| placed.launch).min().unwrap_or(host.start) + host.length();
        let timeline = Timeline::new(&works, carried, (begin, next), (gap, launch), &around, backward);
        carried = timeline.carry();
        let sent = messages::gradient_sums(recording, host).sums;
        let gradients = find_gradients(recording, joined, &works, &sent, host);
        steps.push((
            step(recording, (host, joined.on_host), &around.loading, timeline, gradients, &sent, &works),
            works,
        ));
    }
    (steps, overlapping)
}

fn step(
    recording: &Recording,
    (host, on_host): (Span, bool),
    loading: &[Span],
    timeline: Timeline,
    gradients: Vec<Gradient>,
    sent: &[Collective],
    works: &[&Placed],
) -> Step {
    let mut phases = BTreeMap::new();
    for placed in works {
        *phases.entry(placed.phase).or_default() += placed.work.span.length();
    }
    let bucket = |it: &Collective| {
        let launched = |placed: &&&Placed| {
            placed.is_collective() && placed.thread == it.thread && it.span.contains(placed.launch)
        };
        let ran = works.iter().find(launched);
        Bucket {
            elements: it.elements.or_else(|| {
                ran.map(|placed| u64::from(placed.work.elements)).filter(|elements| *elements > 0)
            }),
            element: it.element,
            ranks: it.message.ranks,
            ran: ran.map(|placed| placed.work.span),
        }
    };
    Step {
        host,
        gradients,
        buckets: sent.iter().map(bucket).collect(),
        works: works.len(),
        exchanges: messages::exchanges(recording, host, works, on_host),
        loading: within(loading, host).map(Span::length).sum(),
        timeline,
        phases,
    }
}

fn computing<'a>(works: &'a [&Placed]) -> impl Iterator<Item = &'a Placed> {
    works.iter().copied().filter(|placed| placed.stays())
}

fn last_end(works: &[&Placed]) -> Time {
    computing(works).map(|placed| placed.work.span.end).max().unwrap_or(0)
}

/// Number of works of each step but the first that start before the previous step has ended.
fn early(grouped: &[(Span, Vec<&Placed>)]) -> Vec<usize> {
    let pair = |pair: &[(Span, Vec<&Placed>)]| {
        let end = last_end(&pair[0].1);
        computing(&pair[1].1).take_while(|placed| placed.work.span.start < end).count()
    };
    grouped.windows(2).map(pair).collect()
}

/// Usual number of works of a step that run beside the previous step, such as copies of its data. A step is measured from the
/// first work after them; from the very first, if most of the step overlaps.
fn usual_early(grouped: &[(Span, Vec<&Placed>)]) -> usize {
    let mut counts = early(grouped);
    counts.sort_unstable();
    let usual = counts.get(counts.len() / 2).copied().unwrap_or(0);
    let fewest = grouped.iter().map(|(_, works)| computing(works).count()).min().unwrap_or(0);
    if 2 * usual < fewest { usual } else { 0 }
}

/// The work that a step is measured from, after this many early ones: its start and its launch.
fn mark(works: &[&Placed], early: usize) -> Option<Mark> {
    let placed = computing(works).nth(early)?;
    Some((placed.work.span.start, placed.launch))
}

/// The usual time from the last work of a step to the mark of the next; it follows the last step too. Steps that
/// overlap have a negative one.
fn usual_gap(grouped: &[(Span, Vec<&Placed>)], begins: &[Mark]) -> Time {
    let ends = grouped.iter().map(|(_, works)| last_end(works));
    let gaps: Vec<Time> = ends.zip(begins.iter().skip(1)).map(|(end, (start, _))| start - end).collect();
    if let ([(host, works)], true) = (grouped, gaps.is_empty()) {
        // A single step: only the host's window shows how long it took.
        let start = works.iter().map(|placed| placed.work.span.start).min().unwrap_or(0);
        let end = works.iter().map(|placed| placed.work.span.end).max().unwrap_or(0);
        return (host.length() - (end - start)).max(0);
    }
    median(&gaps).unwrap_or(0)
}

pub(super) fn median(times: &[Time]) -> Option<Time> {
    let mut times = times.to_vec();
    times.sort_unstable();
    let (low, high) = (times.get(times.len().checked_sub(1)? / 2)?, times.get(times.len() / 2)?);
    Some(low + (high - low) / 2)
}

/// Steps with the usual number of gradients and about the usual number of works, without steps at the beginning that take
/// twice as long as usual, while libraries are loaded and kernels chosen.
fn alike(steps: Vec<AnalysedStep<'_>>) -> Vec<AnalysedStep<'_>> {
    let usual = |counts: &mut dyn Iterator<Item = usize>| {
        let mut counts: Vec<usize> = counts.collect();
        counts.sort_unstable();
        counts.get(counts.len() / 2).copied().unwrap_or(0)
    };
    let gradients = usual(&mut steps.iter().map(|(step, _)| step.gradients.len()));
    let works = usual(&mut steps.iter().map(|(step, _)| step.works)) as f64;
    let mut steps = steps;
    steps.retain(|(step, _)| {
        step.gradients.len() == gradients && (step.works as f64 - works).abs() <= MOST_DIFFERENT * works
    });
    let lengths: Vec<Time> = steps.iter().map(|(step, _)| step.timeline.length()).collect();
    let usual = median(&lengths).unwrap_or(0);
    let warm = lengths.iter().position(|length| *length <= WARMING_UP * usual).unwrap_or(0);
    steps.drain(..warm);
    steps
}

/// Operators by the time of the works that they launched, the longest first. A work belongs to the innermost operator
/// that its launch lies in.
fn operators(recording: &mut Recording, joined: &Joined, windows: &[Span]) -> Vec<Usage> {
    recording.operators.sort_unstable_by_key(|it| (it.thread, it.span.start, Reverse(it.span.end)));
    let mut works: Vec<&Placed> = joined.works.iter().filter(|placed| !placed.is_collective()).collect();
    works.sort_unstable_by_key(|placed| (placed.thread, placed.launch));
    let mut usages = BTreeMap::<u32, (usize, Time)>::new();
    let mut open: Vec<&Operator> = Vec::new();
    let mut next = recording.operators.iter().peekable();
    for placed in works {
        let at = (placed.thread, placed.launch);
        while let Some(operator) = next.next_if(|it| (it.thread, it.span.start) <= at) {
            open.retain(|outer| outer.thread == operator.thread && outer.span.end > operator.span.start);
            open.push(operator);
        }
        let around = |it: &&&Operator| it.thread == placed.thread && placed.launch < it.span.end;
        let window = windows.partition_point(|window| window.end <= placed.launch);
        let inside = windows.get(window).is_some_and(|window| window.contains(placed.launch));
        if let Some(operator) = open.iter().rev().find(around).filter(|_| inside) {
            let usage = usages.entry(operator.name).or_default();
            usage.0 += 1;
            usage.1 += placed.work.span.length();
        }
    }
    let mut usages: Vec<Usage> = usages
        .into_iter()
        .map(|(name, (works, time))| Usage { name: recording.name(name).to_owned(), works, time })
        .collect();
    usages.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    usages
}
