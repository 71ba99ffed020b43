//! One step on the device, with and without sums of gradients. Other collectives are works like any other: they stay.
//!
//! Between two works the device is idle for one of three reasons: the host had not launched the second yet (late), the
//! second waited for a sum of gradients (exposed), or neither. A wait counts as exposed while the second work had been
//! launched, or while the host itself waited for the device. Exposed waits are removed, and everything after them moves
//! forward; but no work starts before its launch, so a slow host stays slow. A host that waits for
//! the device continues as much earlier as the device finishes earlier, though not before it began to wait.
//!
//! A replay puts the sums back. A sum starts when all work launched before it is done and when all sums that ended before it in the trace have
//! ended. Collectives of one process group run one after another, so a sum may delay collectives that stay in the step, and all work
//! after them; the rest of the step waits for all sums. The difference between the result and the recorded step shows the error of
//! the profile.

use super::rank::{Bucket, Rank, Step};
use super::records::{Latest, Placed, Span, Time, within};
use std::collections::BTreeMap;
use stepcast_core::quantity::BytesPerSec;

#[derive(Debug, Clone)]
pub(super) struct Timeline {
    /// From its mark, the first work that does not run beside the previous step, to the mark of the next step.
    pub(super) span: Span,
    /// Time that the device waits for sums of gradients.
    pub(super) exposed: Time,
    /// Time that the device computes or copies.
    pub(super) busy: Time,
    /// Time that it idles because the host is late, without communication.
    pub(super) late: Time,
    pub(super) sums: Time,
    /// Time that it computes, without any collective.
    pub(super) computing: Time,
    /// Time that it neither computes nor communicates: while the host loads data, and while the host issues no work.
    pub(super) loading: Time,
    pub(super) silent: Time,
    /// When the first work of the backward pass starts.
    pub(super) backward: Option<Time>,
    last_end: Time,
    /// Start times, in order, and the shift of works that start then or later.
    shifts: Vec<(Time, Time)>,
    /// Shift of the host, as it waits less itself.
    host_shift: Time,
    /// Time up to which its waits have been counted.
    counted: Time,
}

/// Shift of works on the device and of calls on the host; each step inherits it from the previous one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shift {
    device: Time,
    host: Time,
    /// Time up to which waits of the host have been counted.
    counted: Time,
}

/// Data that all steps share.
pub(super) struct Surroundings {
    pub(super) sums: Vec<Span>,
    pub(super) waiting: Vec<Span>,
    /// Works other than collectives, all works, and the times at which the host loads data.
    pub(super) computing: Vec<Span>,
    pub(super) works: Vec<Span>,
    pub(super) loading: Vec<Span>,
    /// Whether the host itself computes: then nothing is launched ahead of time.
    pub(super) on_host: bool,
}

impl Timeline {
    /// The timeline of the works of one step, in order of their start. `marks` are the start and launch of the works
    /// that this step and the next are measured from; without a next one, `usual` is its delay after the last work and
    /// its launch.
    pub(super) fn new(
        works: &[&Placed],
        carried: Shift,
        marks: ((Time, Time), Option<(Time, Time)>),
        usual: (Time, Time),
        around: &Surroundings,
        backward_is: impl Fn(&Placed) -> bool,
    ) -> Self {
        let computing = || works.iter().filter(|placed| placed.stays());
        let ((start, _), next) = marks;
        let mut timeline = Self {
            span: Span { start, end: start },
            exposed: 0,
            busy: 0,
            late: 0,
            sums: 0,
            computing: 0,
            loading: 0,
            silent: 0,
            backward: computing().find(|placed| backward_is(placed)).map(|placed| placed.work.span.start),
            last_end: start,
            shifts: vec![(start, carried.device)],
            host_shift: carried.host,
            counted: carried.counted,
        };
        for placed in computing() {
            let span = placed.work.span;
            timeline.pass(Span { start: timeline.last_end, end: span.start }, placed.launch, around);
            timeline.busy += (span.end - span.start.max(timeline.last_end)).max(0);
            timeline.last_end = timeline.last_end.max(span.end);
        }
        let (end, launch) = next.unwrap_or((timeline.last_end + usual.0, usual.1));
        let end = end.max(start);
        timeline.pass(Span { start: timeline.last_end, end }, launch, around);
        timeline.span.end = end;
        // Where steps overlap, the rest of this one runs beside the next.
        timeline.busy = timeline.busy.min(timeline.span.length());
        timeline.sums = within(&around.sums, timeline.span).map(Span::length).sum();
        timeline.attribute(around);
        timeline
    }

    /// Attributes the time of the device in the whole span.
    fn attribute(&mut self, around: &Surroundings) {
        let Span { start, end } = self.span;
        let covered = |spans: &[Span], span: Span| within(spans, span).map(Span::length).sum::<Time>();
        self.computing = covered(&around.computing, self.span);
        let mut before = start;
        for work in within(&around.works, self.span).chain([Span { start: end, end }]) {
            let gap = Span { start: before, end: work.start };
            let loading = covered(&around.loading, gap);
            self.loading += loading;
            self.silent += gap.length() - loading;
            before = work.end;
        }
    }

    /// The device is idle in `gap`; the work that ends it was launched at `launch`.
    fn pass(&mut self, gap: Span, launch: Time, around: &Surroundings) {
        if gap.length() < 0 {
            return;
        }
        let asked = if around.on_host { gap.start } else { launch.clamp(gap.start, gap.end) };
        let late = Span { start: gap.start, end: asked };
        let waits = within(&around.sums, late).flat_map(|part| within(&around.waiting, part));
        let by_host: Time = waits.map(Span::length).sum();
        let by_device: Time =
            within(&around.sums, Span { start: asked, end: gap.end }).map(Span::length).sum();
        self.exposed += by_host + by_device;
        let before = self.shifts.last().map_or(0, |(_, shift)| *shift);
        self.count_waits(launch, before, around);
        self.host_shift += by_host;
        let free = before + by_host + by_device;
        let most = if around.on_host { free } else { (gap.end - launch).max(0) + self.host_shift };
        let shift = free.min(most);
        self.late += late.length() - by_host + free - shift;
        if shift != before {
            self.shifts.push((gap.end, shift));
        }
    }

    /// Counts waits of the host for the device, which finishes `shift` earlier, before the launch at `launch`.
    fn count_waits(&mut self, launch: Time, shift: Time, around: &Surroundings) {
        let first = around.waiting.partition_point(|wait| wait.end <= self.counted);
        for wait in around.waiting[first..].iter().take_while(|wait| wait.end <= launch) {
            self.host_shift = self.host_shift.max(shift.min(self.host_shift + wait.length()));
            self.counted = wait.end;
        }
    }

    /// Time from the start of the step to the start of a work at `time`, without waits for sums of gradients.
    pub(super) fn clock_at_start(&self, time: Time) -> Time {
        self.clock(time, self.shifts.partition_point(|(from, _)| *from <= time))
    }

    pub(super) fn clock_at_end(&self, time: Time) -> Time {
        self.clock(time, self.shifts.partition_point(|(from, _)| *from < time))
    }

    /// The clock at `time`; `next` is the first shift that does not apply yet.
    fn clock(&self, time: Time, next: usize) -> Time {
        let time = time.clamp(self.span.start, self.span.end);
        let shift = self.shifts[next.saturating_sub(1)].1;
        let moved = time - shift;
        let latest = self.shifts.get(next).map_or(moved, |(from, shift)| from - shift);
        let begin = self.shifts.first().map_or(0, |(from, shift)| from - shift);
        moved.min(latest) - begin
    }

    /// The shift that the next step inherits.
    pub(super) fn carry(&self) -> Shift {
        Shift {
            device: self.shifts.last().map_or(0, |(_, shift)| *shift),
            host: self.host_shift,
            counted: self.counted,
        }
    }

    /// Length without waits for sums of gradients.
    pub(super) fn length(&self) -> Time {
        self.clock_at_start(self.span.end)
    }

    pub(super) fn held(&self) -> usize {
        self.shifts.capacity() * size_of::<(Time, Time)>()
    }

    pub(super) fn idle(&self) -> Time {
        (self.length() - self.busy).max(0)
    }
}

/// A collective of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) ran: Span,
    /// When everything was computed that had been launched before it.
    pub(super) ready: Time,
    /// Its process group; none if unknown.
    pub(super) group: Option<u32>,
    pub(super) sums_gradients: bool,
}

impl Step {
    /// Time of the step with its recorded sums of gradients.
    pub(super) fn replayed(&self) -> Time {
        let clock = &self.timeline;
        let mut delay = 0;
        // When sums ended in the trace, and when the last of those up to each ends in the replay.
        let mut all = Latest::default();
        let mut of_group = BTreeMap::<Option<u32>, Latest>::new();
        let before = |ends: &Latest, next: Span| ends.until(next.start).unwrap_or(0);
        for exchange in &self.exchanges {
            let own = of_group.entry(exchange.group).or_default();
            if exchange.sums_gradients {
                let ready = clock.clock_at_end(exchange.ready) + delay;
                let end = ready.max(before(&all, exchange.ran)) + exchange.ran.length();
                all.add(exchange.ran.end, end);
                own.add(exchange.ran.end, end);
            } else {
                delay = delay.max(before(own, exchange.ran) - clock.clock_at_start(exchange.ran.start));
            }
        }
        clock.length() + delay.max(all.last().unwrap_or(0) - self.backward_end())
    }
}

impl Bucket {
    /// Bytes that each link of a ring carries in an all-reduce of it.
    fn ring_bytes(&self) -> Option<f64> {
        let ranks = Some(f64::from(self.ranks)).filter(|ranks| *ranks > 1.0)?;
        let element = if self.element == 0 { 4.0 } else { f64::from(self.element) };
        Some(2.0 * (ranks - 1.0) / ranks * self.elements? as f64 * element)
    }
}

/// The rate of a link at which a ring all-reduce of all sums takes as long as they did.
pub(super) fn ring_rate(rank: &Rank) -> Option<BytesPerSec> {
    let sums = rank.steps.iter().flat_map(|step| &step.buckets);
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for bucket in sums {
        bytes += bucket.ring_bytes()?;
        seconds += bucket.ran?.length() as f64 / 1e9;
    }
    (bytes > 0.0 && seconds > 0.0).then(|| BytesPerSec::new(bytes / seconds))
}
