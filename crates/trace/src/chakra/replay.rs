//! One rank without the others: its nodes one after the other on each thread and stream, each after its
//! predecessors, with exchanges taking no time.
//!
//! Traces have dependency cycles, and dependencies on nodes that they do not contain. Such dependencies are dropped: a
//! cycle is opened at its node with the smallest number. Nodes that could start come in order of their numbers, in which
//! tracers assign them. Cost: edges, and nodes times the logarithm of their number.

use super::nodes::{NodeKind, Nodes};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Replay {
    /// When each node could start, by index; in microseconds.
    pub(super) start: Vec<f64>,
    pub(super) end: f64,
    /// Dependencies on missing nodes, nodes where a cycle was opened, and nodes with the number of another.
    pub(super) unknown: usize,
    pub(super) opened: usize,
    pub(super) twice: usize,
}

pub(super) fn replay(nodes: &Nodes) -> Replay {
    let waits = nodes.waits();
    let nodes = &nodes.nodes;
    let mut found = Replay { start: vec![0.0; nodes.len()], ..Replay::default() };
    let mut index: HashMap<u64, usize> = HashMap::with_capacity(nodes.len());
    for (position, node) in nodes.iter().enumerate() {
        found.twice += usize::from(*index.entry(node.id).or_insert(position) != position);
    }
    let mut waiting = vec![0_u32; nodes.len()];
    let mut followers: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (position, node) in nodes.iter().enumerate() {
        for before in waits(node) {
            match index.get(before) {
                Some(&before) if before == position => {}
                Some(&before) => {
                    waiting[position] += 1;
                    followers[before].push(position as u32);
                }
                None => found.unknown += 1,
            }
        }
    }
    let mut ordered: Vec<usize> = (0..nodes.len()).collect();
    ordered.sort_by_key(|&position| (nodes[position].id, position));
    let mut ready: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for &position in ordered.iter().filter(|&&position| waiting[position] == 0) {
        ready.push(Reverse((nodes[position].id, position)));
    }
    let mut done = vec![false; nodes.len()];
    let mut lanes: HashMap<(bool, u64), f64> = HashMap::new();
    let mut smallest = ordered.iter().copied();
    while let Some(position) = ready.pop().map(|Reverse((_, position))| position).or_else(|| {
        let stuck = smallest.find(|&position| !done[position]);
        found.opened += usize::from(stuck.is_some());
        stuck
    }) {
        if std::mem::replace(&mut done[position], true) {
            continue;
        }
        let node = &nodes[position];
        let mut end = found.start[position];
        if node.kind == NodeKind::Compute && node.micros > 0.0 {
            let lane = lanes.entry((node.host, node.lane)).or_insert(0.0);
            found.start[position] = end.max(*lane);
            end = found.start[position] + node.micros;
            *lane = end;
            found.end = found.end.max(end);
        }
        for &follower in &followers[position] {
            let follower = follower as usize;
            if !done[follower] {
                found.start[follower] = found.start[follower].max(end);
            }
            waiting[follower] = waiting[follower].saturating_sub(1);
            if waiting[follower] == 0 && !done[follower] {
                ready.push(Reverse((nodes[follower].id, follower)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::nodes::{Collective, Node};
    use super::*;

    fn nodes(list: &[(u64, f64, u64, &[u64])]) -> Nodes {
        let mut nodes = Nodes::default();
        for &(id, micros, lane, after) in list {
            let kind =
                if micros > 0.0 { NodeKind::Compute } else { NodeKind::Collective(Collective::AllReduce) };
            nodes.push(Node { id, kind, data: after.to_vec(), micros, lane, ..Node::default() });
        }
        nodes
    }

    #[test]
    fn lanes_compute_one_after_the_other() {
        // Two lanes; node 4 waits for both, an exchange for node 1.
        let found = replay(&nodes(&[
            (4, 1.0, 0, &[2, 3]),
            (1, 2.0, 0, &[]),
            (2, 3.0, 0, &[]),
            (3, 9.0, 1, &[1]),
            (5, 0.0, 0, &[1]),
        ]));
        assert_eq!(found.start, [11.0, 0.0, 2.0, 2.0, 2.0]);
        assert_eq!((found.end, found.unknown, found.opened), (12.0, 0, 0));
    }

    #[test]
    fn circles_and_missing_nodes_do_no_harm() {
        let found = replay(&nodes(&[
            (1, 1.0, 0, &[3, 77]),
            (2, 1.0, 0, &[1]),
            (3, 1.0, 0, &[2]),
            (4, 1.0, 0, &[4, 3]),
            (4, 5.0, 1, &[]),
        ]));
        assert_eq!(found.start[..4], [0.0, 1.0, 2.0, 3.0]);
        assert_eq!((found.end, found.unknown, found.opened, found.twice), (5.0, 1, 1, 1));
    }

    /// A slow twin: starts computed by going over all nodes until nothing changes, on lanes of their own.
    #[test]
    fn without_lanes_it_is_the_longest_way() {
        let mut list: Vec<(u64, f64, u64, Vec<u64>)> = Vec::new();
        let mut seed = 7_u64;
        for id in 0..200_u64 {
            let mut draw = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                seed >> 33
            };
            let after: Vec<u64> = if id == 0 { vec![] } else { (0..3).map(|_| draw() % id).collect() };
            list.push((id, 1.0 + (draw() % 10) as f64, id, after));
        }
        let borrowed: Vec<(u64, f64, u64, &[u64])> =
            list.iter().map(|(id, m, l, a)| (*id, *m, *l, &a[..])).collect();
        let mut start = vec![0.0_f64; list.len()];
        for (id, _, _, after) in &list {
            let ends = after.iter().map(|&before| start[before as usize] + list[before as usize].1);
            start[*id as usize] = ends.fold(0.0, f64::max);
        }
        assert_eq!(replay(&nodes(&borrowed)).start, start);
    }
}
