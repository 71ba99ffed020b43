//! Exhaustive search on all cores.

use super::tracker::{Goal, Tracker};
use super::{Ended, Follower, Progress};
use crate::explore::sweep::{Variants, Walker, blocks, is_quick};
use crate::predict::MethodChoice;
use std::ops::{ControlFlow, Range};

pub(super) fn search(
    variants: &Variants<'_>,
    choice: MethodChoice,
    goal: &Goal,
    points: u64,
    watch: &mut Follower<'_, '_>,
) -> (Tracker, Ended) {
    let grid = variants.grid();
    let wanted = watch.wanted;
    let block = |walker: &mut Walker<'_>, range: Range<u64>| {
        let mut found = Tracker::new(goal);
        let mut digits = Vec::new();
        for index in range {
            grid.digits(index, &mut digits);
            let ControlFlow::Continue(answer) = walker.figures(&digits, choice, wanted) else { break };
            found.see(goal, index, answer);
        }
        found
    };
    let mut all = Tracker::new(goal);
    let ended = blocks(variants, is_quick(variants, choice), 0..points, block, |range, found| {
        all.merge(goal, found);
        watch.follow(Progress { done: range.end, variants, found: &all })
    });
    match ended {
        ControlFlow::Continue(()) => {
            (all, Ended { why: "every configuration was tried".to_owned(), complete: true, least: None })
        }
        ControlFlow::Break(()) => (all, Ended::interrupted(None)),
    }
}
