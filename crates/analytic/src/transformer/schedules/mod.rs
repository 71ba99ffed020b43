//! Pipeline schedules as data: the order of operations of every stage.
//!
//! Every schedule is a function from its sizes to an [`Order`] for each stage (`orders`), its only definition.
//! [`execute()`] runs any of them, and so does the event engine; the recurrences of `plans` are a fast twin of
//! [`execute()`]. Forward of virtual stage q waits for that of q−1; backward waits for its own forward and for the
//! backward of q+1; with a split backward, the gradients of weights wait for those of inputs.

mod execute;
mod long;
mod orders;

pub(super) use execute::beside_sends;
pub use execute::{Deadlock, Timeline, Times, execute};
pub use long::{ends_of_any, is_long, is_too_large};
pub use orders::order;
pub use stepcast_core::strategy::Sends;

use stepcast_core::strategy::ScheduleKind;

/// What an operation computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassKind {
    Forward,
    /// Its backward pass; with a split backward, the gradients of inputs.
    Backward,
    /// With a split backward, the gradients of weights.
    Weight,
}

/// One operation of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub kind: PassKind,
    pub micro_batch: u32,
    pub chunk: u32,
    /// Whether it runs as one with the next operation of its stage: they begin when all inputs of both have arrived, and their
    /// results leave when both have ended.
    pub with_next: bool,
}

impl Operation {
    const fn new(kind: PassKind, micro_batch: u32, chunk: u32) -> Self {
        Self { kind, micro_batch, chunk, with_next: false }
    }
}

pub type Order = Vec<Operation>;

/// The sizes of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// p: stages.
    pub stages: u32,
    /// m: micro-batches.
    pub micro_batches: u32,
    /// v: chunks on each stage; 1 for schedules without chunks, 2 for folded ones.
    pub chunks: u32,
    /// q: micro-batches of a group, at least p, for interleaved schedules; p unless set.
    pub group: Option<u32>,
}

pub fn orders(kind: ScheduleKind, sizes: &Sizes) -> Vec<Order> {
    (0..sizes.stages).map(|stage| order(kind, sizes, stage)).collect()
}

/// Whether the backward pass is split into gradients of inputs and of weights.
pub const fn is_split(kind: ScheduleKind) -> bool {
    matches!(kind, ScheduleKind::ZbH1 | ScheduleKind::InterleavedZeroBubble) || kind.is_folded()
}

pub const fn has_chunks(kind: ScheduleKind) -> bool {
    use ScheduleKind::{Interleaved, InterleavedZeroBubble, LoopedBfs};
    matches!(kind, Interleaved | InterleavedZeroBubble | LoopedBfs) || kind.is_folded()
}

/// The stage that has virtual stage `place`: they go round all stages, in folded schedules there and back.
pub const fn stage_of(kind: ScheduleKind, stages: u64, place: u64) -> u64 {
    match kind.is_folded() && place >= stages {
        true => (2 * stages - 1).saturating_sub(place),
        false => place % stages,
    }
}

pub(super) const fn place_of(kind: ScheduleKind, stages: u64, stage: u64, chunk: u64) -> u64 {
    match kind.is_folded() && chunk == 1 {
        true => 2 * stages - 1 - stage,
        false => chunk * stages + stage,
    }
}

/// Most micro-batches that are in flight on a stage, or chunks of them if there are several: begun, and not yet gone
/// backward, or with a split backward, their gradients of weights not yet computed. For `interleaved-zero-bubble` and
/// folded schedules, an upper bound.
pub fn in_flight(kind: ScheduleKind, stages: u64, stage: u64, micro_batches: u64, chunks: u64) -> u64 {
    let (p, m, v) = (stages, micro_batches, chunks);
    let behind = p - 1 - stage;
    match kind {
        ScheduleKind::Gpipe | ScheduleKind::LoopedBfs => m * v,
        ScheduleKind::OneFOneB => (behind + 1).min(m),
        ScheduleKind::Interleaved => (2 * behind + (v - 1) * p + 1).min(m * v),
        ScheduleKind::ZbH1 => p.min(m),
        ScheduleKind::InterleavedZeroBubble => (2 * behind + (v - 1) * p + 1 + stage).min(m * v),
        ScheduleKind::Zbv => (2 * p).min(2 * m),
        ScheduleKind::DualPipeV | ScheduleKind::DualPipe => (2 * p + 1).min(2 * m),
    }
}
