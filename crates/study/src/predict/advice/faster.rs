//! Clusters with faster parts.

use stepcast_core::machine::Cluster;

/// The cluster with the bandwidth of every link multiplied by `factor`.
pub(crate) fn with_bandwidth(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.network.bandwidth = cluster.network.bandwidth * factor;
    cluster.servers.bandwidth = cluster.servers.bandwidth.map(|rate| rate * factor);
    if let Some(nodes) = &mut cluster.nodes {
        nodes.network.bandwidth = nodes.network.bandwidth * factor;
    }
    for group in &mut cluster.groups {
        group.bandwidth = group.bandwidth.map(|rate| rate * factor);
    }
    cluster
}

/// The cluster with the start-up cost of every transfer multiplied by `factor`.
pub(crate) fn with_startup(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    let inner = cluster.nodes.as_mut().map(|nodes| &mut nodes.network);
    for network in std::iter::once(&mut cluster.network).chain(inner) {
        network.latency = network.latency * factor;
        network.startup = network.startup * factor;
    }
    cluster
}

/// The cluster with the speed of every worker multiplied by `factor`.
pub(super) fn with_compute(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    for group in &mut cluster.groups {
        group.speed *= factor;
    }
    cluster
}
