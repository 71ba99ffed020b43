//! The records that are kept, one type for each kind of event, and the names of events, each stored once with derived
//! facts.

use rustc_hash::FxHashMap;

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

    pub(super) fn common(self, other: Self) -> Option<Self> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Self { start, end })
    }
}

/// The kind of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkKind {
    Compute,
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
    pub(super) kind: WorkKind,
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
        self.work.kind == WorkKind::Collective
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

/// Recorded data of a collective's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Message {
    /// `all_reduce`.
    pub(super) collective: Option<u32>,
    pub(super) group: Option<u32>,
    /// Ranks of the group; 0 if unknown.
    pub(super) ranks: u32,
    /// The larger of input and output in bytes; 0 if unknown.
    pub(super) bytes: u64,
}

impl Message {
    /// Combines two records of the same message.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            collective: self.collective.or(other.collective),
            group: self.group.or(other.group),
            ranks: self.ranks.max(other.ranks),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

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

/// The `items`, sorted by start, that start in `window`.
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

/// When things began or ended in the trace, in order, and the latest of a second time, up to each.
#[derive(Debug, Default)]
pub(super) struct Latest(Vec<(Time, Time)>);

impl Latest {
    pub(super) fn add(&mut self, at: Time, time: Time) {
        let (before, latest) = self.0.last().copied().unwrap_or((at, time));
        self.0.push((before.max(at), latest.max(time)));
    }

    /// The latest time of all up to `at`; none if there are none.
    pub(super) fn until(&self, at: Time) -> Option<Time> {
        let before = self.0.partition_point(|(own, _)| *own <= at);
        before.checked_sub(1).map(|last| self.0[last].1)
    }

    pub(super) fn last(&self) -> Option<Time> {
        self.0.last().map(|(_, latest)| *latest)
    }
}

pub(super) const STEP: &str = "ProfilerStep";

/// Bytes of names that are kept; all further names share one number.
const MOST: usize = 8 << 20;
/// Bytes of a name beside its text.
const ENTRY: usize = 64;

/// A fact that follows from a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    /// A kernel of NCCL or its like.
    CollectiveKernel,
    WithinDevice,
    /// A call that waits for the device.
    Waits,
    /// A call that launches work on the device.
    SetsToWork,
    /// A gradient is added to its parameter.
    Accumulates,
    /// An operator that records the size of a collective.
    RecordsCollective,
}

/// All facts that follow from a name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    flags: u8,
    pub(super) role: Option<Role>,
    pub(super) collective: Option<u32>,
}

impl Facts {
    pub(super) fn has(self, fact: Fact) -> bool {
        self.flags & (1 << fact as u8) != 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Names {
    indices: FxHashMap<Box<str>, u32>,
    listed: Vec<(Box<str>, Facts)>,
    bytes: usize,
}

impl Names {
    pub(super) fn intern(&mut self, name: &str) -> (u32, Facts) {
        if let Some(&index) = self.indices.get(name) {
            return (index, self.listed[index as usize].1);
        }
        let facts = self.facts(name);
        self.add(name, facts)
    }

    fn add(&mut self, name: &str, facts: Facts) -> (u32, Facts) {
        let kept = if self.bytes < MOST { name } else { "…" };
        self.bytes += kept.len() + ENTRY;
        let index = self.listed.len() as u32;
        if kept.len() < name.len()
            && let Some(&index) = self.indices.get(kept)
        {
            return (index, facts);
        }
        self.indices.insert(kept.into(), index);
        self.listed.push((kept.into(), facts));
        (index, facts)
    }

    pub(super) fn text(&self, index: u32) -> &str {
        self.listed.get(index as usize).map_or("", |(name, _)| name)
    }

    fn facts(&mut self, name: &str) -> Facts {
        let contains = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let flags = [
            (Fact::CollectiveKernel, contains(&["nccl", "rccl", "oneccl", "gloo", "msccl"])),
            (Fact::WithinDevice, contains(&["DtoD"])),
            (Fact::Waits, contains(&["Synchronize"])),
            (Fact::SetsToWork, contains(&["Launch", "Memcpy", "Memset"])),
            (Fact::Accumulates, name.ends_with("AccumulateGrad")),
            (Fact::RecordsCollective, name == "record_param_comms"),
        ];
        let flags = flags.iter().filter(|(_, holds)| *holds).fold(0, |all, (fact, _)| all | 1 << *fact as u8);
        // The name of a collective has no further facts, so this does not recurse for `nccl:nccl:…`.
        let collective = collective(name).map(|what| match self.indices.get(what) {
            Some(&index) => index,
            None => self.add(what, Facts { role: role(what), ..Facts::default() }).0,
        });
        Facts { flags, role: role(name), collective }
    }
}

fn role(name: &str) -> Option<Role> {
    if name.starts_with(STEP) {
        Some(Role::Step)
    } else if name.starts_with("Optimizer.step") {
        Some(Role::Optimiser)
    } else if name.starts_with("Optimizer.zero_grad") {
        Some(Role::Clearing)
    } else if name.starts_with("enumerate(DataLoader)") || name.contains("data_load") {
        Some(Role::Loading)
    } else if name.starts_with("autograd::engine::evaluate_function") {
        Some(Role::Backward)
    } else {
        None
    }
}

/// The collective that an annotation such as `nccl:all_reduce` is about.
fn collective(name: &str) -> Option<&str> {
    let (library, what) = name.split_once(':')?;
    let known = matches!(library, "nccl" | "rccl" | "gloo" | "mpi" | "ucc" | "xccl" | "hccl");
    (known && !what.starts_with(':')).then_some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are() {
        let mut names = Names::default();
        let (first, facts) = names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        assert!(facts.has(Fact::CollectiveKernel) && !facts.has(Fact::Waits));
        assert_eq!(names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL").0, first);
        let (_, facts) = names.intern("nccl:all_reduce");
        assert_eq!(names.text(facts.collective.unwrap()), "all_reduce");
        assert_eq!(names.intern("ProfilerStep#7").1.role, Some(Role::Step));
        assert_eq!(names.intern("c10d::allreduce_").1.collective, None);
        assert!(names.intern("cudaStreamSynchronize").1.has(Fact::Waits));
    }

    #[test]
    fn collectives_of_collectives_do_not_recurse() {
        let mut names = Names::default();
        let (_, facts) = names.intern(&"nccl:".repeat(500_000));
        assert!(facts.collective.is_some());
    }

    #[test]
    fn too_many_names_are_not_told_apart() {
        let mut names = Names::default();
        let long = "x".repeat(MOST / 4);
        let indices: Vec<u32> = (0..9).map(|number| names.intern(&format!("{long}{number}")).0).collect();
        assert!(indices[..4].windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(indices[7], indices[8]);
        assert_eq!(names.text(indices[8]), "…");
    }
}
