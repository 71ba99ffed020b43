//! Coarse models of asynchronous training: their limits and methods. The validation set `li2020` has the golden cases.

use super::resolved;
use stepcast_analytic::baselines::{
    Cynthia2019, Lin2018, Phases, cynthia2019_rate, lin2018_rate, mean_value_analysis,
};
use stepcast_core::method::Method;
use stepcast_core::prediction::Bottleneck;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

const ASYNC: &str = include_str!("../scenarios/asynchronous.toml");

fn scenario(changes: &[&str]) -> Scenario {
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
    let scenario = scenario(&[]);
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
    let scenario = scenario(&[slow]);
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
        let scenario = scenario(changes);
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
        let scenario = scenario(changes);
        assert_eq!(methods().map(|method| method.predict(&scenario).unwrap().bottleneck), [expected; 3]);
    }
}

#[test]
fn many_workers_saturate_the_slowest_station() {
    let rate = mean_value_analysis(&[4.0, 3.0].map(Seconds::new), Seconds::new(7.0), 1000);
    assert!((rate - 0.25).abs() < 1e-3, "{rate}");
}
