//! What a recording tells beside its times.

use stepcast_core::profile::{Profile, Resource};

/// The computing lane of every worker operation: as many lanes as operations ran at once in the first recorded step, each
/// operation on the first that was free.
pub(super) fn computing_lanes(profile: &Profile) -> Vec<u16> {
    let mut lanes = vec![0; profile.operations.len()];
    let Some(step) = profile.steps.first() else { return lanes };
    let is_worker = |&op: &usize| profile.operations[op].resource == Resource::Worker;
    let mut order: Vec<usize> = (0..profile.operations.len()).filter(is_worker).collect();
    order.sort_by(|&a, &b| step.start[a].total_cmp(&step.start[b]));
    let mut free_at: Vec<f64> = vec![0.0];
    for op in order {
        let free = free_at.iter().position(|free| *free <= step.start[op]);
        let lane = free.unwrap_or(free_at.len());
        if lane == free_at.len() {
            free_at.push(0.0);
        }
        free_at[lane] = step.end[op];
        lanes[op] = lane as u16;
    }
    lanes
}

/// For every operation: the least cost of worker operations that must run before its first use can.
pub(super) fn needed(profile: &Profile, cost: impl Fn(usize) -> f64) -> Vec<f64> {
    let count = profile.operations.len();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waiting: Vec<usize> = Vec::with_capacity(count);
    for (index, operation) in profile.operations.iter().enumerate() {
        waiting.push(operation.after.len());
        for &before in &operation.after {
            followers[before as usize].push(index);
        }
    }
    // Cost of all computing on the longest way to each operation.
    let mut before = vec![0.0f64; count];
    let mut ready: Vec<usize> = (0..count).filter(|&op| waiting[op] == 0).collect();
    while let Some(op) = ready.pop() {
        let own = if profile.operations[op].resource == Resource::Worker { cost(op) } else { 0.0 };
        for &next in &followers[op] {
            before[next] = before[next].max(before[op] + own);
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    let first_use = |op: usize| followers[op].iter().map(|&next| before[next]).fold(f64::INFINITY, f64::min);
    (0..count).map(first_use).collect()
}
