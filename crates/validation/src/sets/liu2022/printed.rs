//! Eqs. 12-16 as they are printed, letter by letter. They lose bytes (errata 4.2): nothing but this check uses them.

use super::data::FusionCase;

/// B, F, t_wait and τ by layer from the input on, and T_update.
pub(super) struct Printed {
    pub(super) buffered: Vec<f64>,
    pub(super) flushed: Vec<f64>,
    pub(super) wait: Vec<f64>,
    pub(super) tau: Vec<f64>,
    pub(super) update: f64,
}

/// Solves the equations; the paper's layer i stands at place i - 1.
pub(super) fn solve(case: &FusionCase) -> Printed {
    let backward: Vec<f64> = case.t_backward_layer1_to_n.iter().map(|time| time.get()).collect();
    let sizes: Vec<f64> = case.sizes.iter().map(|size| size.get()).collect();
    let (buffer, timeout) = (case.buffer.get(), case.timeout.get());
    let transfer = |bytes: f64| case.sec_per_byte.get() * bytes + case.delta.get();
    let n = sizes.len();
    let overlap: f64 = backward.iter().take(n.saturating_sub(1)).sum();

    let mut buffered = vec![0.0; n];
    for i in (0..n).rev() {
        let before = buffered.get(i + 1).copied().filter(|_| backward[i] < timeout);
        let joined = before.map(|before| before + sizes[i]).filter(|joined| *joined <= buffer);
        buffered[i] = joined.unwrap_or(sizes[i]);
    }
    let overflows = |i: usize| i > 0 && buffered[i] + sizes[i - 1] > buffer;
    let flushes = |i: usize| i == 0 || backward[i] > timeout || overflows(i);
    let flushed: Vec<f64> = (0..n).map(|i| if flushes(i) { buffered[i] } else { 0.0 }).collect();
    let waits = |i: usize| match i.checked_sub(1).map(|next| backward[next]) {
        Some(next) if next > timeout => timeout,
        Some(next) if overflows(i) => next,
        _ => 0.0,
    };
    let wait: Vec<f64> = (0..n).map(waits).collect();
    let mut tau = vec![0.0_f64; n];
    for i in (0..n.saturating_sub(1)).rev() {
        tau[i] = (tau[i + 1] + wait[i + 1] + transfer(flushed[i + 1])).max(overlap);
    }
    let update = tau.first().copied().unwrap_or(0.0) + transfer(flushed.first().copied().unwrap_or(0.0));
    Printed { buffered, flushed, wait, tau, update }
}
