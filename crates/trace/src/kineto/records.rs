//! The records that are kept, one type for each kind of event.

/// Nanoseconds since the origin of the trace's clock.
pub(super) type Time = i64;

/// A time span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) start: Time,
    pub(super) end: Time,
}

impl Span {
    pub(super) fn length(self) -> Time {
        self.end - self.start
    }

    pub(super) fn contains(self, time: Time) -> bool {
        self.start <= time && time < self.end
    }

    /// The overlap of both.
    pub(super) fn common(self, other: Self) -> Option<Self> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Self { start, end })
    }
}

/// The kind of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A kernel that computes.
    Compute,
    /// A kernel of a collective.
    Collective,
    /// A copy from device to device.
    Copy,
    /// A copy from or to the host, or memory that is filled.
    Transfer,
}

/// A kernel, copy or fill of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    pub(super) span: Span,
    /// Bytes of a copy; threads of a kernel.
    pub(super) amount: u64,
    pub(super) correlation: u32,
    pub(super) name: u32,
    pub(super) kind: Kind,
    /// Elements of a collective; 0 if unknown.
    pub(super) elements: u32,
}

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Loading,
    Forward,
    Backward,
    Optimiser,
    Collective,
}

/// A work of the device, and the host's call that launched it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placed {
    pub(super) work: Work,
    pub(super) launch: Time,
    pub(super) phase: Phase,
    pub(super) thread: u16,
    /// Whether it sums gradients over replicas. Such works are taken out of a step; other collectives stay in it.
    pub(super) sums_gradients: bool,
}

impl Placed {
    /// Whether it is part of a step of one replica.
    pub(super) fn stays(&self) -> bool {
        !self.sums_gradients
    }

    pub(super) fn is_collective(&self) -> bool {
        self.work.kind == Kind::Collective
    }
}

/// A call on the host that may have launched a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) span: Span,
    pub(super) correlation: u32,
    pub(super) thread: u16,
}

/// An operator on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operator {
    pub(super) span: Span,
    pub(super) name: u32,
    pub(super) thread: u16,
}

/// The meaning of a range on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// `ProfilerStep#7`.
    Step,
    /// `Optimizer.step`.
    Optimiser,
    /// `Optimizer.zero_grad`.
    Clearing,
    /// A `DataLoader`'s next batch.
    Loading,
    /// A node of autograd's graph, or a range that is called backward.
    Backward,
    /// A call that waits for the device.
    Synchronising,
}

/// A range on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) span: Span,
    pub(super) role: Role,
    pub(super) thread: u16,
}

/// A gradient was added to its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accumulation {
    pub(super) span: Span,
    pub(super) thread: u16,
    /// Bytes of one element; 0 if unknown.
    pub(super) element: u8,
    /// 0 if unknown.
    pub(super) elements: u64,
}

/// What is recorded about the message of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Message {
    /// `all_reduce`.
    pub(super) collective: Option<u32>,
    /// The process group.
    pub(super) group: Option<u32>,
    /// Ranks of the group; 0 if unknown.
    pub(super) ranks: u32,
    /// The larger of what goes in and what comes out; 0 if unknown.
    pub(super) bytes: u64,
}

impl Message {
    /// What one of two records of the same message says.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            collective: self.collective.or(other.collective),
            group: self.group.or(other.group),
            ranks: self.ranks.max(other.ranks),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// The host's record of a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Collective {
    pub(super) span: Span,
    pub(super) thread: u16,
    /// `all_reduce`.
    pub(super) name: u32,
    pub(super) elements: Option<u64>,
    pub(super) element: u8,
    pub(super) message: Message,
}

/// An operator that autograd numbered, or the backward of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) start: Time,
    pub(super) number: u32,
    pub(super) thread: u16,
}

/// Those of `items`, which are in order of their start, that start in `window`.
pub(super) fn inside<T>(items: &[T], window: Span, start: impl Fn(&T) -> Time) -> &[T] {
    let first = items.partition_point(|item| start(item) < window.start);
    let last = items.partition_point(|item| start(item) < window.end);
    &items[first..last.max(first)]
}

/// The union of spans, in order and without overlaps.
pub(super) fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// The parts of `span` that lie in `spans`, which are in order and disjoint.
pub(super) fn within(spans: &[Span], span: Span) -> impl Iterator<Item = Span> {
    let first = spans.partition_point(|other| other.end <= span.start);
    spans[first..]
        .iter()
        .map_while(move |other| (other.start < span.end).then(|| other.common(span)))
        .flatten()
}
