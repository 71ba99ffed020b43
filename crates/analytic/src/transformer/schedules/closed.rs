//! Closed forms of the step time, where they hold.

use super::Sizes;
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

/// Times of one stage, all its chunks together, the same for all stages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equal {
    /// F: forward.
    pub forward: Seconds,
    /// B: backward; with a split backward, the gradients of inputs.
    pub backward: Seconds,
    /// W: gradients of weights; zero if the backward is not split.
    pub weight: Seconds,
}

/// The step time of equal stages without sends; none where no closed form holds.
///
/// ```text
/// GPipe, 1F1B   (m+p−1)(F+B+W)
/// interleaved   m(F+B+W) + (p−1)(F+B+W)/v          if m is a multiple of p and groups have p micro-batches
/// ZB-H1         (m+p−1)(F+B) + max(m−p+1, 1)·W     if W ≤ min(F, B)
/// ```
///
/// For m ≥ p the last is m(F+B+W) + (p−1)(F+B−W), usually quoted without its conditions (Qi 2023).
pub fn equal_stages(kind: ScheduleKind, sizes: &Sizes, times: &Equal) -> Option<Seconds> {
    let (p, m, v) = (f64::from(sizes.stages), f64::from(sizes.micro_batches), f64::from(sizes.chunks.max(1)));
    let Equal { forward, backward, weight } = *times;
    let all = forward + backward + weight;
    match kind {
        ScheduleKind::Gpipe | ScheduleKind::OneFOneB => Some(all * (m + p - 1.0)),
        ScheduleKind::Interleaved => {
            let whole = sizes.micro_batches.is_multiple_of(sizes.stages);
            let usual = sizes.group.is_none_or(|group| group == sizes.stages);
            (whole && usual).then(|| all * m + all * ((p - 1.0) / v))
        }
        ScheduleKind::ZbH1 => {
            let holds = weight <= forward.min(backward);
            holds.then(|| (forward + backward) * (m + p - 1.0) + weight * (m - p + 1.0).max(1.0))
        }
        ScheduleKind::LoopedBfs | ScheduleKind::InterleavedZeroBubble | ScheduleKind::Zbv => None,
    }
}

/// The step time of GPipe with unequal stages and asynchronous sends:
/// ΣF + (m−1)·max F + ΣB + (m−1)·max B + 2(p−1)·latency.
pub fn gpipe(micro_batches: u32, forward: &[Seconds], backward: &[Seconds], send: Seconds) -> Seconds {
    let sum = |times: &[Seconds]| Seconds::new(times.iter().map(|time| time.get()).sum());
    let most = |times: &[Seconds]| times.iter().copied().fold(Seconds::ZERO, Seconds::max);
    let more = f64::from(micro_batches.saturating_sub(1));
    let hops = 2.0 * forward.len().saturating_sub(1) as f64;
    sum(forward) + most(forward) * more + sum(backward) + most(backward) * more + send * hops
}
