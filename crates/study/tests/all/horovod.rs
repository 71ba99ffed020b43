//! Horovod's cycles: they know nothing of steps, so no number of workers may gain or lose by the phase in which it meets them.

use crate::example;
use stepcast_core::method::Method;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::methods;
use stepcast_study::simulate::Simulate;

fn scenario(workers: u32, changes: &[&str]) -> Scenario {
    let count = format!("cluster.workers.count={workers}");
    crate::scenario(
        &example("all-reduce.toml"),
        &[&["strategy.fusion.rule=horovod", &count], changes].concat(),
    )
}

#[test]
fn the_scaling_factor_falls_with_every_doubling() {
    let liu2022 = methods::find("liu2022").unwrap();
    for rate in ["1 Gbit/s", "10 Gbit/s", "25 Gbit/s", "100 Gbit/s"] {
        for cycle in ["1 ms", "5 ms", "20 ms"] {
            let changes = [
                format!("cluster.network.bandwidth=\"{rate}\""),
                format!("strategy.fusion.cycle=\"{cycle}\""),
            ];
            let changes = changes.each_ref().map(String::as_str);
            let factor = |workers| liu2022.predict(&scenario(workers, &changes)).unwrap().scaling_factor;
            let factors = [8, 16, 32].map(factor);
            assert!(factors.is_sorted_by(|fewer, more| fewer >= more), "{rate} {cycle}: {factors:?}");
        }
    }
}

/// Every simulated run draws its phase, and no phase costs a step more than a cycle.
#[test]
fn no_phase_costs_more_than_a_cycle() {
    let step = |workers, cycle: &str, seed: u32| {
        let changes = [
            format!("methods.simulate.seed={seed}"),
            format!("strategy.fusion.cycle=\"{cycle}\""),
            "methods.simulate.jitter=0".to_owned(),
            "methods.simulate.budget=100000".to_owned(),
        ];
        let changes = changes.each_ref().map(String::as_str);
        Simulate.predict(&scenario(workers, &changes)).unwrap().iteration.get()
    };
    for workers in [8, 16, 32] {
        let steps: Vec<f64> = (1..6).map(|seed| step(workers, "20 ms", seed)).collect();
        let (least, most) = steps.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), s| (l.min(*s), m.max(*s)));
        assert!(most - least <= 0.02, "{workers}: {steps:?}");
    }
}
