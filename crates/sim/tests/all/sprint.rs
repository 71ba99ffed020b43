//! SPRINT's threads where the answer is known without a model.

use proptest::prelude::*;
use stepcast_sim::sprint::{Exchange, Figures, Length, Sprint};

fn sprint() -> Sprint {
    Sprint {
        nodes: 1,
        gpus: 1,
        fetch_weights: 0.0,
        compute: 1.0,
        update_gradient: 0.0,
        sum_buffer: 0.0,
        before_exchange: 0.05,
        exchange: 0.15,
        after_exchange: 0.05,
        update_weights: 0.0,
        jitter: 0.0,
        how: Exchange::AllReduce,
    }
}

fn run(sprint: Sprint) -> Figures {
    sprint.run(7, Length { iterations: 400, warm_up: 20 }).unwrap()
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1e-12)
}

#[test]
fn a_buffer_is_summed_only_when_it_has_something_new() {
    // Four updates for each gradient: y = 0.25 + 0.1·y/x.
    let seen = run(Sprint { sum_buffer: 0.1, compute: 1.0, ..sprint() });
    assert!(near(seen.sum_gradients, 0.1 * seen.gradients, 1e-9), "{seen:?}");
    assert!(near(seen.update, 0.25 + 0.1 * seen.gradients, 1e-9), "{seen:?}");
    assert!(near(seen.gradients, seen.update / seen.gpu, 1e-2), "{seen:?}");
}

#[test]
fn weights_are_fetched_only_when_they_are_new() {
    // Four gradients for each update.
    let seen = run(Sprint { fetch_weights: 0.01, compute: 0.06, ..sprint() });
    assert!(near(seen.fetch_weights, 0.01 * seen.gpu / seen.update, 2e-2), "{seen:?}");
    assert!(seen.gradients > 3.0, "{seen:?}");
}

#[test]
fn the_barrier_waits_for_the_slowest_node() {
    // With nothing to sum and nothing locked all nodes are alike: no wait.
    let alike = run(Sprint { nodes: 4, ..sprint() });
    assert!(alike.update_waits[1] < 1e-9, "{alike:?}");
    let summing = run(Sprint { nodes: 4, gpus: 4, sum_buffer: 0.02, jitter: 0.2, ..sprint() });
    assert!(summing.update_waits[1] > 1e-3, "{summing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Iterations are the sums of what is seen of them, and every gradient enters one update.
    #[test]
    fn nothing_gets_lost(
        nodes in 1..4_u32, gpus in 1..5_u32, times in prop::array::uniform8(0.001..0.1_f64), servers in any::<bool>(),
    ) {
        let how = if servers { Exchange::ParameterServer } else { Exchange::AllReduce };
        let [fetch_weights, compute, update_gradient, sum_buffer, before, exchange, after, update_weights] = times;
        let sprint = Sprint {
            nodes, gpus, fetch_weights, compute: 4.0 * compute, update_gradient, sum_buffer, before_exchange: before,
            exchange, after_exchange: after, update_weights, jitter: 0.1, how,
        };
        let seen = run(sprint);
        let gpu = seen.gpu_waits.iter().sum::<f64>() + seen.fetch_weights + update_gradient + sprint.compute;
        prop_assert!(near(gpu, seen.gpu, 0.03), "{} {}", gpu, seen.gpu);
        let fixed = before + exchange + after + update_weights;
        let update = seen.update_waits.iter().sum::<f64>() + seen.sum_gradients + fixed;
        prop_assert!(near(update, seen.update, 1e-6), "{} {}", update, seen.update);
        let updaters = if servers { 1.0 } else { f64::from(nodes) };
        let made = updaters * f64::from(gpus) * seen.update / seen.gpu;
        prop_assert!(near(seen.gradients, made, 0.05), "{} {}", seen.gradients, made);
    }
}
