//! Parameter servers: which holds which layer, the queue of pushes, and ports that differ; closed forms worked out by hand;
//! coarse models of asynchronous training.

use super::resolved;
use proptest::prelude::*;
use stepcast_analytic::baselines::{
    Cynthia2019, Lin2018, Phases, cynthia2019_rate, lin2018_rate, mean_value_analysis,
};
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::placement::{greedy, largest_share};
use stepcast_analytic::queue::{Arrival, Drained, drain, latest, sort};
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::machine::Placement;
use stepcast_core::method::Method;
use stepcast_core::model::{Counting, zoo};
use stepcast_core::prediction::{Bottleneck, PartKind};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::workload::{LayerWork, Workload};

fn workload(model: &str) -> Workload {
    Workload::from_model(&zoo::build(model).unwrap(), Counting::default())
}

#[test]
fn vgg11_on_two_servers_as_in_li_2020() {
    // Errata 3.4: 406.65 and 100.18 MiB; fc1 shares a server with convolutions 1, 3, 5 and 7.
    let workload = workload("vgg11");
    let assignment = greedy(&workload.layers, 2);
    let mut mebibytes = [0.0; 2];
    for (layer, server) in workload.layers.iter().zip(&assignment) {
        mebibytes[*server as usize] += layer.bytes().get() / f64::from(1 << 20);
    }
    assert!((mebibytes[0] - 406.65).abs() < 0.01, "{mebibytes:?}");
    assert!((mebibytes[1] - 100.18).abs() < 0.01, "{mebibytes:?}");
    assert_eq!(&assignment[..9], [0, 1, 0, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn more_servers_than_layers_leave_some_empty() {
    let workload = workload("alexnet");
    let share = |placement| {
        let mut servers = scenario(1, 10.0, 1000, 10.0).cluster.servers;
        servers.placement = placement;
        largest_share(&workload, &servers, LayerWork::bytes)
    };
    let largest = workload.layers.iter().map(LayerWork::bytes).fold(Bytes::ZERO, Bytes::max);
    assert_eq!(share(Placement::Greedy), largest);
    assert_eq!(share(Placement::Even), workload.bytes() / 1000.0);
}

fn arrivals(list: &[(f64, f64, u32)]) -> Vec<Arrival> {
    let each = |(owner, &(ready, service, count)): (usize, &(f64, f64, u32))| Arrival {
        ready: Seconds::new(ready),
        service: Seconds::new(service),
        count,
        owner: owner as u32,
    };
    let mut all: Vec<Arrival> = list.iter().enumerate().map(each).collect();
    sort(&mut all);
    all
}

/// Slow reference: every customer separately, with the end computed as the maximum of errata 1.5.
fn end_by_maximum(arrivals: &[Arrival]) -> f64 {
    let mut each: Vec<(f64, f64)> = Vec::new();
    for arrival in arrivals {
        each.extend((0..arrival.count).map(|_| (arrival.ready.get(), arrival.service.get())));
    }
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let from = |i: usize| each[i].0 + each[i..].iter().map(|(_, service)| service).sum::<f64>();
    (0..each.len()).map(from).fold(0.0, f64::max)
}

/// Slow reference for `latest`: move one customer and drain the queue again.
fn end_if_moved(sorted: &[Arrival], index: usize, ready: f64) -> f64 {
    let mut moved = sorted.to_vec();
    moved[index].count -= 1;
    moved.push(Arrival { ready: Seconds::new(ready), count: 1, ..sorted[index] });
    moved.retain(|arrival| arrival.count > 0);
    sort(&mut moved);
    drain(&moved).end.get()
}

#[test]
fn the_queue_of_figure_4() {
    // T = [1, 2, 6, 7], push 2: 1→3→5, then 6→8→10.
    let sorted = arrivals(&[(1.0, 2.0, 1), (2.0, 2.0, 1), (6.0, 2.0, 1), (7.0, 2.0, 1)]);
    let drained = drain(&sorted);
    assert_eq!(drained, Drained { end: Seconds::new(10.0), first: 2 });
    let latest: Vec<f64> = latest(&sorted, drained.end).iter().map(|time| time.get()).collect();
    // The first may arrive at 4 (its successor is served 2→4, then it 4→6), and so may the second; the third
    // determines the end; the fourth may arrive as late as 8.
    assert_eq!(latest, [4.0, 4.0, 6.0, 8.0]);
}

proptest! {
    #[test]
    fn drain_is_the_maximum(list in prop::collection::vec((0.0..50.0f64, 0.0..5.0f64, 1u32..4), 1..20)) {
        let sorted = arrivals(&list);
        let end = drain(&sorted).end.get();
        prop_assert!((end - end_by_maximum(&sorted)).abs() < 1e-9);
    }

    #[test]
    fn latest_is_tight(list in prop::collection::vec((0.0..50.0f64, 0.01..5.0f64, 1u32..4), 1..20)) {
        let sorted = arrivals(&list);
        let end = drain(&sorted).end;
        for (index, time) in latest(&sorted, end).iter().enumerate() {
            prop_assert!(time.get() >= sorted[index].ready.get());
            prop_assert!(end_if_moved(&sorted, index, time.get() - 1e-9) <= end.get() + 1e-9);
            prop_assert!(end_if_moved(&sorted, index, time.get() + 1e-6) > end.get());
        }
    }
}

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
    resolved(text, &[])
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

// Coarse models of asynchronous training: their limits and methods. The validation set `li2020` has the golden cases.

const ASYNC: &str = include_str!("../scenarios/asynchronous.toml");

fn asynchronous(changes: &[&str]) -> Scenario {
    resolved(ASYNC, changes)
}

fn methods() -> [&'static dyn Method; 3] {
    [&Cynthia2019 { half: false }, &Cynthia2019 { half: true }, &Lin2018]
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} instead of {expected}");
}

#[test]
fn rates_are_those_of_the_formulas() {
    let scenario = asynchronous(&[]);
    let phases = Phases::from_scenario(&scenario);
    let expected =
        [cynthia2019_rate(&phases, 4, false), cynthia2019_rate(&phases, 4, true), lin2018_rate(&phases, 4)];
    for (method, expected) in methods().iter().zip(expected) {
        let prediction = method.predict(&scenario).unwrap();
        assert_eq!(prediction.method, method.name());
        near(prediction.throughput.get() / 32.0, expected);
        let parts: Seconds = prediction.breakdown.iter().map(|part| part.time).sum();
        near(parts.get(), prediction.iteration.get());
        near(prediction.throughput.get() * prediction.iteration.get(), 128.0);
        assert!(prediction.scaling_factor > 0.0 && prediction.scaling_factor <= 1.0);
    }
}

#[test]
fn groups_are_told_apart() {
    let slow = "cluster.workers=[{ count = 4, device = \"tesla-t4\" }, \
                { count = 1, device = \"tesla-t4\", speed = 0.5, batch = 16 }]";
    let scenario = asynchronous(&[slow]);
    for method in methods() {
        let prediction = method.predict(&scenario).unwrap();
        assert_eq!(prediction.samples, 4 * 32 + 16);
        assert_eq!(prediction.groups.len(), 2);
        assert_eq!((prediction.groups[1].group, prediction.groups[1].batch), (1, 16));
        assert!(prediction.groups[1].compute > prediction.groups[0].compute * 0.9);
        assert!(prediction.speedup > 0.0 && prediction.scaling_factor <= 1.0);
    }
}

#[test]
fn only_asynchronous_training_with_one_server_is_modelled() {
    let bsp = ["strategy.synchronisation=bsp", "strategy.architecture=parameter-server"];
    for (changes, key) in [
        (&bsp[..], "strategy.synchronisation"),
        (&["strategy.synchronisation=ssp(3)"], "strategy.synchronisation"),
        (&["strategy.architecture=all-reduce"], "strategy.architecture"),
        (&["cluster.servers.count=2"], "cluster.servers.count"),
    ] {
        let scenario = asynchronous(changes);
        assert_eq!(methods().map(|method| method.predict(&scenario).unwrap_err().key), [key; 3]);
    }
}

#[test]
fn the_bottleneck_moves_with_the_network() {
    let [fast, slow, late] = ["bandwidth=10 Tbit/s", "bandwidth=10 Mbit/s", "startup=100 s"]
        .map(|change| format!("cluster.network.{change}"));
    for (changes, expected) in [
        (&[fast.as_str()][..], Bottleneck::Compute),
        (&[&slow], Bottleneck::ServerLink),
        (&[&fast, &late], Bottleneck::FixedCost),
    ] {
        let scenario = asynchronous(changes);
        assert_eq!(methods().map(|method| method.predict(&scenario).unwrap().bottleneck), [expected; 3]);
    }
}

#[test]
fn many_workers_saturate_the_slowest_station() {
    let rate = mean_value_analysis(&[4.0, 3.0].map(Seconds::new), Seconds::new(7.0), 1000);
    assert!((rate - 0.25).abs() < 1e-3, "{rate}");
}
