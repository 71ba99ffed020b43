//! One step as the device saw it, and the same without communication.
//!
//! Between two works the device is idle for one of three reasons: the host had not asked for the second yet (late), the
//! second waited for a collective (exposed), or neither. A wait for a collective is one while the second work had been
//! asked for, or while the host itself waited for the device. Only exposed waits are taken out: a collective that
//! runs while the host is late costs nothing.

use super::join::{Placed, union, within};
use super::recording::{Kind, Span, Time};

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    /// From its first work to that of the next step.
    pub(super) span: Span,
    /// Waits for collectives, in order.
    pub(super) exposed: Vec<Span>,
    /// The device computes or copies.
    pub(super) busy: Time,
    /// It does nothing because the host is late.
    pub(super) late: Time,
    /// Collectives run.
    pub(super) collectives: Time,
    /// When the first work of the backward pass starts.
    pub(super) backward: Option<Time>,
    pub(super) last_end: Time,
}

/// What steps share.
pub(super) struct Surroundings {
    /// When collectives run.
    pub(super) collectives: Vec<Span>,
    /// When the host waits for the device.
    pub(super) waiting: Vec<Span>,
    /// Whether the host itself computes: then nothing is asked for ahead of time.
    pub(super) on_host: bool,
}

impl Timeline {
    /// Of the works of one step in order of their start, and of the first work of the next: its start and launch. Where
    /// there is none, the step ends `gap` after its last work.
    pub(super) fn of(
        works: &[&Placed],
        next: Option<(Time, Time)>,
        gap: Time,
        around: &Surroundings,
        backward_is: impl Fn(&Placed) -> bool,
    ) -> Option<Self> {
        let computing = || works.iter().filter(|placed| placed.work.kind != Kind::Collective);
        let start = computing().next()?.work.span.start;
        let mut timeline = Self {
            span: Span { start, end: start },
            exposed: Vec::new(),
            busy: 0,
            late: 0,
            collectives: 0,
            backward: computing().find(|placed| backward_is(placed)).map(|placed| placed.work.span.start),
            last_end: start,
        };
        for placed in computing() {
            let span = placed.work.span;
            timeline.pass(Span { start: timeline.last_end, end: span.start }, placed.launch, around);
            timeline.busy += (span.end - span.start.max(timeline.last_end)).max(0);
            timeline.last_end = timeline.last_end.max(span.end);
        }
        let (end, launch) = next.unwrap_or((timeline.last_end + gap, timeline.last_end + gap));
        let end = end.max(timeline.last_end);
        timeline.pass(Span { start: timeline.last_end, end }, launch, around);
        timeline.span.end = end;
        timeline.collectives = within(&around.collectives, timeline.span).map(Span::length).sum();
        Some(timeline)
    }

    /// The device does nothing in `gap`; what ends it was asked for at `launch`.
    fn pass(&mut self, gap: Span, launch: Time, around: &Surroundings) {
        if gap.length() <= 0 {
            return;
        }
        let asked = if around.on_host { gap.start } else { launch.clamp(gap.start, gap.end) };
        let late = Span { start: gap.start, end: asked };
        let mut exposed: Vec<Span> = within(&around.collectives, late)
            .flat_map(|part| within(&around.waiting, part).collect::<Vec<_>>())
            .collect();
        self.late += late.length() - exposed.iter().map(|span| span.length()).sum::<Time>();
        exposed.extend(within(&around.collectives, Span { start: asked, end: gap.end }));
        self.exposed.extend(union(exposed));
    }

    /// All waits for collectives.
    pub(super) fn exposed_time(&self) -> Time {
        self.exposed.iter().map(|span| span.length()).sum()
    }

    /// Time from the start of the step to `time`, without waits for collectives.
    pub(super) fn clock(&self, time: Time) -> Time {
        let time = time.clamp(self.span.start, self.span.end);
        let waits = self.exposed.iter().take_while(|wait| wait.start < time);
        let waited: Time = waits.map(|wait| wait.end.min(time) - wait.start).sum();
        time - self.span.start - waited
    }

    /// Length without waits for collectives.
    pub(super) fn length(&self) -> Time {
        self.clock(self.span.end)
    }

    pub(super) fn idle(&self) -> Time {
        (self.length() - self.busy).max(0)
    }
}
