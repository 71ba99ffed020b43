//! Around a ring.

use super::build::{Builder, Way};

/// One way around the ring of all workers for each of `combines`: a share of the data in every round.
pub(super) fn rounds(builder: &mut Builder<'_>, combines: &[bool]) {
    let workers = builder.workers();
    let next = builder.way(Way::alone((0..workers).map(|worker| Some((worker + 1) % workers))));
    for &combines in combines {
        builder.around(next, workers, 1.0, combines);
    }
}
