//! Eq. 8: how long update threads wait for the one that has the most gradients to sum.
//!
//! In one update, the number X of a node's buffers with new gradients is taken to be binomial, B(G, p). The all-reduce
//! begins when the node with the largest X of all N has summed; the others wait.

/// E[max of `nodes` independent B(`gpus`, `p`)]: G − Σ_{i<G} F(i)^N. Grows with p and with the nodes.
pub fn most_buffers(gpus: u32, p: f64, nodes: u32) -> f64 {
    let all = f64::from(gpus);
    if p >= 1.0 {
        return all;
    }
    if nodes == 1 || p <= 0.0 {
        return all * p.max(0.0);
    }
    all - distribution(gpus, p).map(|below| below.powf(f64::from(nodes))).sum::<f64>()
}

/// E[X_M − X_1]: what the slowest node sums beyond the mean. The time is this many buffers (α' of eq. 8 is the time to
/// sum one, errata 2.2).
pub fn buffers_waited_for(gpus: u32, p: f64, nodes: u32) -> f64 {
    (most_buffers(gpus, p, nodes) - f64::from(gpus) * p.clamp(0.0, 1.0)).max(0.0)
}

/// F(i) of B(G, p) for i = 0 … G−1, 0 < p < 1. The likelier end is where the sum begins, so that no term is lost: the
/// first is at least 2^-G.
fn distribution(gpus: u32, p: f64) -> impl Iterator<Item = f64> {
    let rare = p <= 0.5;
    let (likely, odds) = if rare { (1.0 - p, p / (1.0 - p)) } else { (p, (1.0 - p) / p) };
    let mut probability = likely.powi(gpus.cast_signed());
    let mut sum = 0.0;
    (0..gpus).map(move |i| {
        sum += probability;
        probability *= odds * f64::from(gpus - i) / f64::from(i + 1);
        // From above: P(X ≥ G − i), and the complement is F(G − i − 1).
        if rare { sum.min(1.0) } else { (1.0 - sum).max(0.0) }
    })
}
