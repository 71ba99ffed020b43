//! Eq. 8: how long update threads wait for the thread that has the most gradients to sum.
//!
//! In one update, the number X of a node's buffers with new gradients is assumed to be binomial, B(G, p). The
//! all-reduce starts when the node with the largest X of all N nodes has finished summing; the others wait.

/// E[max of `nodes` independent B(`gpus`, `p`)]: Σ_{i<G} 1 − F(i)^N. Increases with p and with the number of nodes.
pub fn most_buffers(gpus: u32, p: f64, nodes: u32) -> f64 {
    let all = f64::from(gpus);
    if p >= 1.0 {
        return all;
    }
    if nodes == 1 || p <= 0.0 {
        return all * p.max(0.0);
    }
    tails(gpus, p).map(|above| -(f64::from(nodes) * (-above).ln_1p()).exp_m1()).sum()
}

/// E[X_M − X_1]: number of buffers that the slowest node sums beyond the mean. The waiting time is this number times
/// α' of eq. 8, the time to sum one buffer (errata 2.2).
pub fn buffers_waited_for(gpus: u32, p: f64, nodes: u32) -> f64 {
    (most_buffers(gpus, p, nodes) - f64::from(gpus) * p.clamp(0.0, 1.0)).max(0.0)
}

/// 1 − F(i) of B(G, p) for each i < G, 0 < p < 1, in some order. The sum starts at the more likely end, where the
/// first term is at least 2^-G, so that no term is lost. The tails are summed directly because for small p the
/// difference 1 − F would lose digits.
fn tails(gpus: u32, p: f64) -> impl Iterator<Item = f64> {
    let rare = p <= 0.5;
    let (likely, odds) = if rare { (1.0 - p, p / (1.0 - p)) } else { (p, (1.0 - p) / p) };
    let mut probability = likely.powi(gpus.cast_signed());
    // P(X > i) from below, P(X ≥ G − i) from above.
    let mut tail = if rare { -(f64::from(gpus) * (-p).ln_1p()).exp_m1() } else { probability };
    (0..gpus).map(move |i| {
        let now = tail.clamp(0.0, 1.0);
        probability *= odds * f64::from(gpus - i) / f64::from(i + 1);
        tail += if rare { -probability } else { probability };
        now
    })
}
