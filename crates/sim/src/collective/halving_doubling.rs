//! Recursive halving and doubling.

use super::build::{Builder, Way};

/// Among the largest power of two of workers, with the one whose number differs in one bit: half of what is left, then
/// everything back. Each of the others first gives all it has to one of them, and gets the sum in the end.
pub(super) fn rounds(builder: &mut Builder<'_>) {
    let workers = builder.workers();
    let bits = workers.max(1).ilog2();
    let core = 1 << bits;
    let with = |worker: u32, other: u32| (worker < core && other < workers).then_some(other);
    let folded = Way::alone((0..workers).map(|worker| (worker >= core).then(|| worker - core)));
    let unfolded = Way::alone((0..workers).map(|worker| with(worker, worker + core)));
    let exchange = |builder: &mut Builder<'_>, bit: u32| {
        builder.way(Way::alone((0..workers).map(|worker| with(worker, worker ^ (1 << bit)))))
    };
    let ways: Vec<_> = (0..bits).map(|bit| (exchange(builder, bit), 0.5_f64.powi(bit as i32 + 1))).collect();
    if core < workers {
        let fold = builder.way(folded);
        builder.round(fold, 1.0, true);
    }
    for &(way, share) in &ways {
        builder.round(way, share, true);
    }
    for &(way, share) in ways.iter().rev() {
        builder.round(way, share, false);
    }
    if core < workers {
        let unfold = builder.way(unfolded);
        builder.round(unfold, 1.0, false);
    }
}
