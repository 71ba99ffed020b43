//! The kept records of a trace: name, place and time of all works, with each name stored once.
//!
//! A record takes some 40 bytes. Beyond a number of records only the marks of steps are kept, and
//! the trace is read again for the steps that fit.

use super::event::{Category, Details, Event, Shape};
use super::head::Head;
use super::records::{
    Accumulation, Collective, Fact, Launch, Message, Names, Numbered, Operator, Phase, Placed, Range, Role,
    STEP, Span, Time, Work, WorkKind,
};
use crate::source::Memory;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Times beyond this many microseconds are mistakes, and their nanoseconds hardly fit: the year 2096.
const LATEST: f64 = 4e15;
/// Longer events are mistakes: 12 days.
const LONGEST: f64 = 1e12;

/// One launch in this many is kept, to find the works of a time window by their correlation.
const SAMPLED: usize = 64;

/// A part of a trace: events of the host in a window, and works that it launched then, by correlation. The
/// part may include a few more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) window: Span,
    correlations: (u32, u32),
}

/// Adds to a list that grows by quarters: doubling would hold twice the memory.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 1024);
    }
    list.push(item);
}

/// Events that could not be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Read after repair.
    pub(super) repaired: u64,
    /// Impossible times.
    pub(super) absurd: u64,
}

#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) head: Head,
    pub(super) events: u64,
    pub(super) losses: Losses,
    pub(super) works: Vec<Placed>,
    pub(super) launches: Vec<Launch>,
    pub(super) operators: Vec<Operator>,
    pub(super) ranges: Vec<Range>,
    pub(super) accumulations: Vec<Accumulation>,
    pub(super) collectives: Vec<Collective>,
    /// Messages of collectives on the device, by correlation.
    pub(super) messages: FxHashMap<u32, Message>,
    pub(super) numbered: Vec<Numbered>,
    /// When each numbered step begins on the device, by its marks.
    pub(super) device_marks: BTreeMap<u64, Time>,
    /// Shape of the first input of the first layer that takes samples.
    pub(super) first_input: Option<(Time, Shape)>,
    pub(super) devices: Vec<u64>,
    pub(super) names: Names,
    threads: FxHashMap<u64, u16>,
    /// Threads on which gloo runs collectives, each of one process group, with their numbers in the trace.
    pub(super) pool_threads: BTreeMap<u16, u32>,
    /// Only this part is kept.
    part: Option<Part>,
    /// Times and correlations of one launch in [`SAMPLED`].
    samples: Vec<(Time, u32)>,
    calls: usize,
    /// Records seen, and the most that are kept.
    records: usize,
    most: usize,
    /// Counts other kept data: marks, collectives, names.
    memory: Memory,
    held: usize,
}

/// Bytes of a record in a list that grows, or in a map.
const BESIDE: usize = 200;
const MOST_DEVICES: usize = 1024;

impl Recording {
    pub(super) fn new(most: usize, memory: Memory) -> Self {
        Self { most, memory, ..Self::default() }
    }

    /// Bytes that were counted in the import's memory.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn hold(&mut self) {
        self.held += BESIDE;
        self.memory.hold(BESIDE);
    }

    /// An empty recording for a part of a trace that has more records than fit.
    pub(super) fn within(part: Part, most: usize, memory: Memory) -> Self {
        Self { part: Some(part), ..Self::new(most, memory) }
    }

    pub(super) fn part(&self, window: Span) -> Part {
        let of = |inside: &dyn Fn(Time) -> bool| {
            self.samples
                .iter()
                .filter(|(time, _)| inside(*time))
                .map(|(_, correlation)| *correlation)
                .collect::<Vec<_>>()
        };
        let first = of(&|time| time < window.start).into_iter().max().unwrap_or(0);
        let last = of(&|time| time >= window.end).into_iter().min().unwrap_or(u32::MAX);
        Part { window, correlations: (first, last) }
    }

    pub(super) fn overflow(&self) -> Option<usize> {
        (self.records > self.most).then_some(self.records)
    }

    /// Sorts everything by time.
    pub(super) fn sort(&mut self) {
        self.accumulations.sort_by_key(|it| it.span);
        self.numbered.sort_by_key(|it| it.start);
        self.collectives.sort_by_key(|it| it.span);
    }

    pub(super) fn name(&self, index: u32) -> &str {
        self.names.text(index)
    }

    fn thread(&mut self, label: u64) -> u16 {
        // Threads beyond those that can be numbered share the last number.
        let next = u16::try_from(self.threads.len()).unwrap_or(u16::MAX);
        match self.threads.get(&label) {
            Some(number) => *number,
            None if next == u16::MAX => next,
            None => *self.threads.entry(label).or_insert(next),
        }
    }

    /// Whether there is room for one more.
    fn count(&mut self) -> bool {
        self.records += 1;
        if self.records == self.most + 1 {
            self.works = Vec::new();
            self.launches = Vec::new();
            self.operators = Vec::new();
            self.numbered = Vec::new();
            self.accumulations = Vec::new();
            self.ranges.retain(|range| range.role == Role::Step);
        }
        self.records <= self.most
    }

    pub(super) fn keep(&mut self, event: &Event<'_>) {
        if !event.complete || event.category == Category::Other {
            return;
        }
        let (Some(start), duration) = (event.start, event.duration.unwrap_or(0.0)) else {
            self.losses.absurd += 1;
            return;
        };
        if start.abs() > LATEST || !(0.0..=LONGEST).contains(&duration) {
            self.losses.absurd += 1;
            return;
        }
        let nanoseconds = |microseconds: f64| (microseconds * 1e3).round() as Time;
        let start = nanoseconds(start);
        let span = Span { start, end: start + nanoseconds(duration) };
        let on_device = matches!(event.category, Category::Kernel | Category::Copy | Category::Fill);
        if let Some(part) = self.part {
            let correlation = event.details.correlation.unwrap_or(0) as u32;
            let (first, last) = part.correlations;
            let inside =
                if on_device { (first..=last).contains(&correlation) } else { part.window.contains(start) };
            if !inside {
                return;
            }
        }
        match event.category {
            Category::Kernel | Category::Copy | Category::Fill => self.keep_work(event, span),
            Category::Runtime => self.keep_call(event, span),
            Category::DeviceAnnotation => {
                let number =
                    event.name.strip_prefix(STEP).and_then(|rest| rest.strip_prefix('#')?.parse().ok());
                if let Some(number) = number {
                    self.hold();
                    let begin = self.device_marks.entry(number).or_insert(start);
                    *begin = start.min(*begin);
                }
            }
            Category::Operator | Category::Annotation => self.keep_range(event, span),
            Category::Other => {}
        }
    }

    fn keep_work(&mut self, event: &Event<'_>, span: Span) {
        if !self.count() {
            return;
        }
        let details = &event.details;
        let (name, facts) = self.names.intern(&event.name);
        let kind = match event.category {
            Category::Kernel if facts.has(Fact::CollectiveKernel) => WorkKind::Collective,
            Category::Kernel => WorkKind::Compute,
            Category::Copy if facts.has(Fact::WithinDevice) => WorkKind::Copy,
            _ => WorkKind::Transfer,
        };
        let threads = details.grid.zip(details.block).and_then(|(grid, block)| grid.checked_mul(block));
        let known = |device: &u64| self.devices.len() == MOST_DEVICES || self.devices.contains(device);
        if let Some(device) = details.device.filter(|device| !known(device)) {
            self.devices.push(device);
        }
        let work = Work {
            span,
            amount: details.bytes.or(threads).unwrap_or(0),
            correlation: details.correlation.unwrap_or(0) as u32,
            name,
            kind,
            elements: details.elements.and_then(|elements| u32::try_from(elements).ok()).unwrap_or(0),
        };
        if kind == WorkKind::Collective && details.collective.is_some() {
            let message = self.message(details);
            self.hold();
            self.messages.insert(work.correlation, message);
        }
        push(
            &mut self.works,
            Placed { work, launch: span.start, phase: Phase::Forward, thread: 0, sums_gradients: false },
        );
    }

    /// The message in the arguments of a kernel or of an operator.
    fn message(&mut self, details: &Details<'_>) -> Message {
        let described = details.group_description.as_deref().filter(|text| *text != "undefined");
        let group = described.or(details.group.as_deref()).map(|name| self.names.intern(name).0);
        let element = details.element_type.as_deref().map_or(0, element_bytes);
        let elements = details.elements.max(details.elements_out).unwrap_or(0);
        Message {
            collective: details.collective.as_deref().map(|name| self.names.intern(name).0),
            group,
            ranks: details.group_size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0),
            bytes: elements.saturating_mul(element.into()),
        }
    }

    fn keep_call(&mut self, event: &Event<'_>, span: Span) {
        let thread = self.thread(event.thread);
        let (_, facts) = self.names.intern(&event.name);
        if facts.has(Fact::Waits) && self.count() {
            push(&mut self.ranges, Range { span, role: Role::Synchronising, thread });
        }
        // Most calls only query the device.
        let details = &event.details;
        if let Some(correlation) = details.correlation.filter(|_| facts.has(Fact::SetsToWork)) {
            if self.calls.is_multiple_of(SAMPLED) {
                self.hold();
                self.samples.push((span.start, correlation as u32));
            }
            self.calls += 1;
            if !self.count() {
                return;
            }
            push(&mut self.launches, Launch { span, correlation: correlation as u32, thread });
        }
    }

    fn keep_range(&mut self, event: &Event<'_>, span: Span) {
        let thread = self.thread(event.thread);
        let (name, details) = (&*event.name, &event.details);
        let (index, facts) = self.names.intern(name);
        if let Some(role) = facts.role
            && (role != Role::Backward || self.count())
        {
            if role != Role::Backward {
                self.hold();
            }
            push(&mut self.ranges, Range { span, role, thread });
        }
        if let Some(name) = facts.collective {
            self.hold();
            // The range has the shape of one tensor: the whole message, except of gathers and scatters.
            let whole = ["all_reduce", "allreduce", "all_to_all", "send", "recv", "broadcast"];
            let whole = whole.contains(&self.name(name));
            let elements = details.shape.and_then(|shape| shape.product()).filter(|_| whole);
            let element = details.types.as_deref().filter(|_| whole).map_or(0, element_bytes);
            let bytes = elements.unwrap_or(0).saturating_mul(element.into());
            let message = Message { collective: Some(name), bytes, ..Message::default() };
            self.collectives.push(Collective { span, thread, name, elements, element, message });
            // Sends and receives of gloo are recorded on the requesting thread.
            if event.name.starts_with("gloo:") && !matches!(self.name(name), "send" | "recv") {
                self.pool_threads.insert(thread, event.thread as u32);
            }
        }
        if facts.has(Fact::RecordsCollective)
            && let Some(elements) = details.elements
        {
            let message = self.message(details);
            let (called, _) = self.names.intern(details.collective.as_deref().unwrap_or(name));
            let element = details.element_type.as_deref().map_or(0, element_bytes);
            self.hold();
            self.collectives.push(Collective {
                span,
                thread,
                name: called,
                elements: Some(elements),
                element,
                message,
            });
        }
        if !self.count() {
            return;
        }
        if facts.has(Fact::Accumulates) {
            let accumulation = Accumulation {
                span,
                thread,
                element: details.types.as_deref().map_or(0, element_bytes),
                elements: details.shape.and_then(|shape| shape.product()).unwrap_or(0),
            };
            push(&mut self.accumulations, accumulation);
        }
        if let Some(number) = details.sequence {
            push(&mut self.numbered, Numbered { start: span.start, number: number as u32, thread });
        }
        if let Some(shape) = details.shape.filter(|shape| takes_samples(name, shape.sizes()))
            && self.first_input.as_ref().is_none_or(|(before, _)| span.start < *before)
        {
            self.first_input = Some((span.start, shape));
        }
        if event.category == Category::Operator {
            push(&mut self.operators, Operator { span, name: index, thread });
        }
    }
}

/// Whether the first input of an operator is a batch: its first dimension counts samples.
fn takes_samples(name: &str, shape: &[u32]) -> bool {
    match name {
        "aten::conv1d" => shape.len() == 3,
        "aten::conv2d" => shape.len() == 4,
        "aten::conv3d" => shape.len() == 5,
        "aten::linear" => shape.len() >= 2,
        _ => false,
    }
}

/// Bytes of one element of a type, by PyTorch's and C++'s names; 0 if it is none.
fn element_bytes(name: &str) -> u8 {
    match name.to_ascii_lowercase().trim_start_matches("c10::") {
        "double" | "long" | "int64" | "long int" => 8,
        "float" | "int" | "int32" => 4,
        "half" | "bfloat16" | "short" => 2,
        "byte" | "char" | "bool" | "int8" | "uint8" | "float8_e4m3fn" | "float8_e5m2" => 1,
        _ => 0,
    }
}
