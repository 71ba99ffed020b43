//! Along a binomial tree.

use super::build::{Builder, Way};

/// Whole messages from those who have heard to those who have not, and before that the other way round if everything is
/// summed up first. In round `bit`, of numbers that are multiples of 2^bit, the odd multiples talk with the even ones.
pub(super) fn rounds(builder: &mut Builder<'_>, reduces: bool) {
    let workers = builder.workers();
    let bits = u32::BITS - workers.saturating_sub(1).leading_zeros();
    let way = |bit: u32, up: bool| {
        Way::alone((0..workers).map(move |worker| {
            let sends = worker.is_multiple_of(1 << bit) && ((worker >> bit) & 1 == 1) == up;
            Some(worker ^ (1 << bit)).filter(|&other| sends && other < workers)
        }))
    };
    for bit in (0..bits).filter(|_| reduces) {
        let up = builder.way(way(bit, true));
        builder.round(up, 1.0, true);
    }
    for bit in (0..bits).rev() {
        let down = builder.way(way(bit, false));
        builder.round(down, 1.0, false);
    }
}
