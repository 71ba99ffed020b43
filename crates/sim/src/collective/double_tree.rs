//! Along two binary trees at once, half of the data each (Sanders, Speck and Träff 2009, doi 10.1016/j.parco.2009.09.001).
//!
//! The workers stand in a row. In the first tree a worker's height is the number of times that two divides its place, counted
//! from one: odd places are leaves. The second tree is the first one mirrored, or moved on by one place if the number of
//! workers is odd, so that nobody is an inner node of both. Halves are cut into packets, which follow each other up and
//! down; both directions, both trees and both children are under way at once and share the ports.

use super::build::{Builder, Way};
use crate::graph::OpId;

/// Who sends to whom in a tree.
struct Tree {
    /// By worker: its parent, and whether it is the left child of it.
    parent: Vec<Option<(u32, bool)>>,
}

/// The two trees of `workers`.
fn trees(workers: u32) -> [Tree; 2] {
    let second = |worker: u32| match workers.is_multiple_of(2) {
        true => workers - 1 - worker,
        false => (worker + 1) % workers,
    };
    [Tree::of(workers, |worker| worker), Tree::of(workers, second)]
}

impl Tree {
    /// The tree in which each worker has the place that `place` says, counted from nought.
    fn of(workers: u32, place: impl Fn(u32) -> u32) -> Self {
        let mut at = vec![0; workers as usize];
        for worker in 0..workers {
            at[place(worker) as usize] = worker;
        }
        let parent = |worker: u32| {
            let own = place(worker) + 1;
            let above = parent(own, workers)?;
            Some((at[above as usize - 1], own < above))
        };
        Self { parent: (0..workers).map(parent).collect() }
    }

    /// The way from left or right children to their parents.
    fn up(&self, left: bool) -> Vec<Option<u32>> {
        let to =
            |parent: &Option<(u32, bool)>| parent.filter(|(_, is_left)| *is_left == left).map(|(to, _)| to);
        self.parent.iter().map(to).collect()
    }

    /// The way from parents to their left or right children.
    fn down(&self, left: bool) -> Vec<Option<u32>> {
        let mut children = vec![None; self.parent.len()];
        for (child, parent) in (0..).zip(self.up(left)) {
            if let Some(parent) = parent {
                children[parent as usize] = Some(child);
            }
        }
        children
    }
}

/// The parent of a place among `last` places, counted from one: the next place that two divides once more often than this
/// one, before or behind it. Where that is beyond the end of the row, what stands before hangs at the higher place that
/// precedes it; nothing does at the highest place of all.
fn parent(place: u32, last: u32) -> Option<u32> {
    let reach = place & place.wrapping_neg();
    let (before, behind) = (place - reach, place + reach);
    let is_right = place & (reach << 1) != 0;
    let above = if is_right || behind > last { before } else { behind };
    (above > 0).then_some(above)
}

/// All packets of both trees.
pub(super) fn packets(builder: &mut Builder<'_>, packets: u32) {
    let workers = builder.workers();
    if workers < 2 {
        return;
    }
    let share = 0.5 / f64::from(packets);
    for tree in trees(workers) {
        let up = [true, false].map(|left| builder.way(Way::shared(tree.up(left).into_iter())));
        let down = [true, false].map(|left| builder.way(Way::shared(tree.down(left).into_iter())));
        for _ in 0..packets {
            let heard: [OpId; 2] = up.map(|way| builder.arrival(way, share, true));
            for (way, arrival) in up.into_iter().zip(heard) {
                builder.send(way, share, heard.to_vec(), arrival);
            }
            let told: [OpId; 2] = down.map(|way| builder.arrival(way, share, false));
            for (way, arrival) in down.into_iter().zip(told) {
                builder.send(way, share, [heard, told].concat(), arrival);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_workers_by_hand() {
        let parents = |tree: &Tree| -> Vec<Option<u32>> {
            tree.parent.iter().map(|parent| parent.map(|(above, _)| above)).collect()
        };
        let [first, second] = trees(10);
        // Places 1 to 10: 8 above 4 and 10, 4 above 2 and 6, 10 above 9.
        let expected = [1, 3, 1, 7, 5, 3, 5, 10, 9, 7].map(|above| (above < 10).then_some(above));
        assert_eq!(parents(&first), expected);
        let mut mirrored = expected.map(|above| above.map(|above| 9 - above));
        mirrored.reverse();
        assert_eq!(parents(&second), mirrored);
    }

    #[test]
    fn every_worker_is_reached_and_inner_in_one_tree_at_most() {
        for workers in 1..300_u32 {
            let mut inner = vec![0; workers as usize];
            for tree in trees(workers) {
                let depth = |mut worker: u32| {
                    let mut depth = 0;
                    while let Some((above, _)) = tree.parent[worker as usize] {
                        worker = above;
                        depth += 1;
                    }
                    depth
                };
                assert_eq!((0..workers).map(depth).max(), Some(workers.ilog2()), "{workers}");
                assert_eq!((0..workers).filter(|worker| depth(*worker) == 0).count(), 1, "{workers}");
                let mut edges = 0;
                let children = [true, false].map(|left| tree.down(left));
                for worker in 0..workers as usize {
                    let own = children.iter().filter(|side| side[worker].is_some()).count();
                    inner[worker] += u32::from(own > 0);
                    edges += own;
                }
                // No two children of a worker are on the same side of it.
                assert_eq!(edges, workers as usize - 1, "{workers}");
            }
            assert!(inner.iter().all(|&times| times <= 1), "{workers}");
        }
    }
}
