//! The order of operations of a stage under every schedule.

use super::{Operation, Order, PassKind, Sizes};
use std::collections::VecDeque;
use stepcast_core::strategy::ScheduleKind;

pub fn order(kind: ScheduleKind, sizes: &Sizes, stage: u32) -> Order {
    match kind {
        ScheduleKind::Gpipe => gpipe(sizes),
        ScheduleKind::OneFOneB => one_f_one_b(sizes, stage),
        ScheduleKind::Interleaved => interleaved(sizes, stage),
        // Stage r keeps r gradients of weights for the end, where the others wait.
        ScheduleKind::ZbH1 => split_backward(one_f_one_b(sizes, stage), stage),
        ScheduleKind::LoopedBfs => looped_bfs(sizes),
        ScheduleKind::InterleavedZeroBubble => split_backward(interleaved(sizes, stage), stage),
        ScheduleKind::Zbv => zbv(sizes, stage),
        ScheduleKind::DualPipeV | ScheduleKind::DualPipe => dual_pipe_v(sizes, stage),
    }
}

/// GPipe (Huang 2019): all forwards, then all backwards in the same order.
fn gpipe(sizes: &Sizes) -> Order {
    let all = |kind| (0..sizes.micro_batches).map(move |micro_batch| Operation::new(kind, micro_batch, 0));
    all(PassKind::Forward).chain(all(PassKind::Backward)).collect()
}

/// 1F1B (Narayanan 2019): as many forwards as there are stages behind, then one forward and one backward in turn.
fn one_f_one_b(sizes: &Sizes, stage: u32) -> Order {
    let m = sizes.micro_batches;
    let ahead = (sizes.stages - 1 - stage).min(m);
    let forward = |micro_batch| Operation::new(PassKind::Forward, micro_batch, 0);
    let mut order: Order = (0..ahead).map(forward).collect();
    for micro_batch in 0..m {
        order.extend(Some(ahead + micro_batch).filter(|&next| next < m).map(forward));
        order.push(Operation::new(PassKind::Backward, micro_batch, 0));
    }
    order
}

/// Interleaved 1F1B (Narayanan 2021): every stage has several chunks of layers. Forwards go group by group of
/// micro-batches, chunk by chunk, micro-batch by micro-batch; backwards follow the same list with the chunks in reverse.
fn interleaved(sizes: &Sizes, stage: u32) -> Order {
    let (m, group) = (sizes.micro_batches, sizes.group.unwrap_or(sizes.stages).max(1));
    let mut list = Vec::with_capacity(m as usize * sizes.chunks as usize);
    for first in (0..m).step_by(group as usize) {
        let end = first.saturating_add(group).min(m);
        for chunk in 0..sizes.chunks {
            list.extend((first..end).map(|micro_batch| (micro_batch, chunk)));
        }
    }
    let ahead = 2 * (sizes.stages - 1 - stage) + (sizes.chunks - 1) * group;
    let ahead = (ahead as usize).min(list.len());
    let forward = |&(micro_batch, chunk): &(u32, u32)| Operation::new(PassKind::Forward, micro_batch, chunk);
    let (first, rest) = list.split_at(ahead);
    let mut order: Order = first.iter().map(forward).collect();
    let mut rest = rest.iter().map(forward);
    for &(micro_batch, chunk) in &list {
        order.extend(rest.next());
        order.push(Operation::new(PassKind::Backward, micro_batch, sizes.chunks - 1 - chunk));
    }
    order
}

/// A split backward (ZB-H1, Qi 2023; PyTorch's `ScheduleInterleavedZeroBubble`): after a backward, the oldest gradients
/// of weights run if more than `waiting` wait; the rest run at the end.
fn split_backward(order: Order, waiting: u32) -> Order {
    let mut split = Order::with_capacity(order.len() * 3 / 2);
    let mut queue = VecDeque::new();
    for operation in order {
        split.push(operation);
        if operation.kind == PassKind::Backward {
            queue.push_back(Operation { kind: PassKind::Weight, ..operation });
            if queue.len() > waiting as usize {
                split.extend(queue.pop_front());
            }
        }
    }
    split.extend(queue);
    split
}

/// Looped breadth-first (Lamy-Poirier 2022; PyTorch's `ScheduleLoopedBFS`): all forwards chunk by chunk, then all
/// backwards in reverse.
fn looped_bfs(sizes: &Sizes) -> Order {
    let (m, v) = (sizes.micro_batches, sizes.chunks);
    let forwards = (0..v).flat_map(|chunk| (0..m).map(move |i| Operation::new(PassKind::Forward, i, chunk)));
    let mut order: Order = forwards.collect();
    order.extend_from_within(..);
    order[(m * v) as usize..].reverse();
    order[(m * v) as usize..].iter_mut().for_each(|operation| operation.kind = PassKind::Backward);
    order
}

/// ZBV (Qi 2024; PyTorch's `ScheduleZBVZeroBubble`): two chunks on each stage, the first in the order of stages, the
/// second back; the backward is split. The pattern is made for at least 2p−1 micro-batches; with fewer, the operations of
/// the missing ones are left out.
fn zbv(sizes: &Sizes, stage: u32) -> Order {
    use PassKind::{Backward, Forward, Weight};
    let p = sizes.stages;
    let m = sizes.micro_batches.max(2 * p - 1);
    let mut it = Pattern { order: Order::new(), next: [[0; 2]; 3] };
    it.push(2 * (p - stage) - 1, &[(Forward, 0)]);
    it.push(stage, &[(Forward, 1), (Forward, 0)]);
    it.push(p - stage, &[(Forward, 1), (Backward, 1), (Weight, 1)]);
    while it.done(Forward, 1) < it.done(Forward, 0) || it.done(Forward, 0) < m {
        it.push(u32::from(it.done(Forward, 0) < m), &[(Forward, 0)]);
        it.push(1, &[(Backward, 0), (Weight, 0), (Forward, 1), (Backward, 1), (Weight, 1)]);
    }
    it.push(stage, &[(Backward, 0), (Backward, 1)]);
    it.push(p - stage, &[(Backward, 0), (Weight, 0)]);
    for chunk in [1, 0] {
        it.push(it.done(Backward, chunk) - it.done(Weight, chunk), &[(Weight, chunk)]);
    }
    it.order.retain(|operation| operation.micro_batch < sizes.micro_batches);
    it.order
}

/// DualPipeV (PyTorch's `ScheduleDualPipeV`, after DeepSeek's DualPipe): chunks as in ZBV. In its main part, a forward and the
/// whole backward of another micro-batch are one operation; at both ends, gradients of weights fill the bubble. The pattern is
/// made for at least 2p micro-batches; with fewer, the operations of the missing ones are left out.
fn dual_pipe_v(sizes: &Sizes, stage: u32) -> Order {
    use PassKind::{Backward, Forward, Weight};
    let p = sizes.stages;
    let m = sizes.micro_batches.max(2 * p);
    let behind = p - 1 - stage;
    let mut groups = Groups::default();
    let whole = |chunk| [(Backward, chunk), (Weight, chunk)];
    let pair = |forward, backward| [(Forward, forward), (Backward, backward), (Weight, backward)];
    for _ in 0..2 * behind {
        groups.push(&[(Forward, 0)]);
    }
    for _ in 0..=stage {
        groups.push(&[(Forward, 0)]);
        groups.push(&[(Forward, 1)]);
    }
    for _ in 0..behind {
        groups.push(&[(Backward, 1)]);
        groups.push_waiting();
        groups.push(&[(Forward, 1)]);
    }
    for index in 0..=m - 2 * p + stage {
        // The last stage has this backward only from this forward on.
        if index == 0 && behind == 0 {
            groups.push(&[(Forward, 0)]);
            groups.push(&whole(1));
        } else {
            groups.push(&pair(0, 1));
        }
        groups.push(&pair(1, 0));
    }
    for _ in 0..behind {
        groups.push(&whole(1));
        groups.push(&pair(1, 0));
    }
    for index in 0..2 * (stage + 1) {
        let chunk = 1 - index as usize % 2;
        match index > stage {
            true => groups.push(&[(Backward, chunk)]),
            false => groups.push(&whole(chunk)),
        }
    }
    for _ in 0..behind {
        groups.push_waiting();
        groups.push(&[(Backward, 0)]);
    }
    for _ in 0..=stage {
        groups.push_waiting();
    }
    groups.order(sizes.micro_batches)
}

/// Groups of operations that run as one, with the next micro-batch of every kind and chunk.
#[derive(Default)]
struct Groups {
    groups: Vec<Order>,
    next: [[u32; 2]; 2],
    /// Gradients of weights that are put off.
    waiting: VecDeque<Operation>,
}

impl Groups {
    /// Adds one group: of a forward, of a backward without its gradients of weights, which are put off, or of several passes.
    fn push(&mut self, operations: &[(PassKind, usize)]) {
        let mut group = Order::with_capacity(operations.len());
        for &(kind, chunk) in operations {
            if kind == PassKind::Weight {
                // Gradients of weights of the backward before.
                group.extend(self.waiting.pop_back());
                continue;
            }
            let next = &mut self.next[kind as usize][chunk];
            let operation = Operation::new(kind, *next, chunk as u32);
            *next += 1;
            group.push(operation);
            if kind == PassKind::Backward {
                self.waiting.push_back(Operation { kind: PassKind::Weight, ..operation });
            }
        }
        self.groups.push(group);
    }

    /// Adds the gradients of weights that were put off first.
    fn push_waiting(&mut self) {
        self.groups.push(self.waiting.pop_front().into_iter().collect());
    }

    /// The order, without micro-batches that are missing.
    fn order(self, micro_batches: u32) -> Order {
        let mut order = Order::new();
        for mut group in self.groups {
            group.retain(|operation| operation.micro_batch < micro_batches);
            if let Some((_, others)) = group.split_last_mut() {
                others.iter_mut().for_each(|operation| operation.with_next = true);
            }
            order.extend(group);
        }
        order
    }
}

/// An order under construction, with the next micro-batch of every kind and chunk.
struct Pattern {
    order: Order,
    next: [[u32; 2]; 3],
}

impl Pattern {
    /// Adds the next operations of these kinds and chunks, repeated `times` times.
    fn push(&mut self, times: u32, operations: &[(PassKind, usize)]) {
        for _ in 0..times {
            for &(kind, chunk) in operations {
                let next = &mut self.next[kind as usize][chunk];
                self.order.push(Operation::new(kind, *next, chunk as u32));
                *next += 1;
            }
        }
    }

    fn done(&self, kind: PassKind, chunk: usize) -> u32 {
        self.next[kind as usize][chunk]
    }
}
