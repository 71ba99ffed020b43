//! Ports of servers and workers that differ: closed forms worked out by hand.

use proptest::prelude::*;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, PartKind};
use stepcast_core::scenario::{Document, Scenario};

/// One layer of 1 Gbit on workers that compute in next to no time.
fn scenario(workers: u32, worker_gigabits: f64, servers: u32, server_gigabits: f64) -> Scenario {
    let text = format!(
        "[model.custom]\ninput = [31250]\nlayers = [{{ op = \"linear\", out = 1000, bias = false }}]\n\
         [[cluster.workers]]\ncount = {workers}\nefficiency = 1.0\nbatch = 1\n\
         device = {{ base = \"h200-sxm\", memory-efficiency = 1.0 }}\n\
         [cluster.network]\nbandwidth = \"{worker_gigabits} Gbit/s\"\n\
         [cluster.servers]\ncount = {servers}\nplacement = \"even\"\nsoftware = \"none\"\nbandwidth = \"{server_gigabits} Gbit/s\"\n\
         [methods.zeng2023]\nflops-per-weight = 3\n"
    );
    Document::new("test", text).scenario(&[]).unwrap()
}

/// Time that pushing and pulling takes.
fn exchange(method: &dyn Method, scenario: &Scenario) -> (f64, Bottleneck) {
    let prediction = method.predict(scenario).unwrap();
    let parts = [PartKind::Push, PartKind::Queueing, PartKind::Pull].map(|part| prediction.part(part).get());
    (parts.iter().sum(), prediction.bottleneck)
}

#[test]
fn the_slower_side_decides() {
    // Workers, their ports, servers, their ports; the time of 1 Gbit each way, in seconds.
    let cases = [
        // A server ten times as fast serves all eight workers at once: 1 Gbit at 10 Gbit/s each way.
        (8, 10.0, 1, 100.0, 0.2, Bottleneck::WorkerLink),
        // Four times as fast it serves four at once, in two rounds.
        (8, 10.0, 1, 40.0, 0.4, Bottleneck::ServerLink),
        // Equally fast: one after the other.
        (8, 10.0, 1, 10.0, 1.6, Bottleneck::ServerLink),
        // A slow server.
        (8, 10.0, 1, 5.0, 3.2, Bottleneck::ServerLink),
        (1, 10.0, 1, 100.0, 0.2, Bottleneck::WorkerLink),
        // A worker draws on both servers at once: half a gigabit from each.
        (1, 10.0, 2, 5.0, 0.2, Bottleneck::ServerLink),
        (2, 10.0, 4, 10.0, 0.2, Bottleneck::WorkerLink),
        (8, 10.0, 4, 10.0, 0.4, Bottleneck::ServerLink),
    ];
    for method in [&Zeng2023 as &dyn Method, &Layerwise] {
        for (workers, port, servers, server_port, expected, limit) in cases {
            let asked = scenario(workers, port, servers, server_port);
            let (found, bottleneck) = exchange(method, &asked);
            let shown = format!("{} {workers} at {port}, {servers} at {server_port}: {found}", method.name());
            assert!((found / expected - 1.0).abs() < 1e-9, "{shown}");
            assert_eq!(bottleneck, limit, "{shown}");
        }
    }
}

proptest! {
    /// The exchange lasts as long as the busier of the two kinds of ports needs, each way.
    #[test]
    fn the_busier_port_decides(
        workers in 1_u32..40, port in 1.0..100.0_f64, servers in 1_u32..6, server_port in 1.0..100.0_f64,
    ) {
        let asked = scenario(workers, port, servers, server_port);
        let expected = 2.0 * (1.0 / port).max(f64::from(workers) / f64::from(servers) / server_port);
        for method in [&Zeng2023 as &dyn Method, &Layerwise] {
            let (found, _) = exchange(method, &asked);
            prop_assert!((found / expected - 1.0).abs() < 1e-9, "{}: {found} {expected}", method.name());
        }
    }
}
