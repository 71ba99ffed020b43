//! Zeng 2023 against its golden cases, its closed forms and its limits.

use super::resolved;
use proptest::prelude::*;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::zeng2023::{
    Operations, Transfers, Zeng2023, cpu_rate, equal_workers, gpu_rate, unequal_workers,
};
use stepcast_core::machine::DeviceKind;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, PartKind, Prediction};
use stepcast_core::quantity::{Bits, BitsPerSec, BytesPerSec, Flops, Hertz, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Synchronisation;

fn seconds(times: &[f64]) -> Vec<Seconds> {
    times.iter().map(|&time| Seconds::new(time)).collect()
}

/// Computing times, push, pull, Algorithm 1, eq. 32: all exact in binary.
const CASES: [(&[f64], f64, f64, f64, f64); 5] = [
    (&[1.0, 2.0, 6.0, 7.0], 2.0, 0.5, 12.0, 11.0),
    (&[3.0], 2.0, 1.0, 6.0, 6.0),
    (&[5.0, 5.0, 5.0], 1.0, 2.0, 14.0, 14.0),
    (&[9.0, 1.0, 4.0], 0.5, 0.25, 10.25, 3.25),
    (&[1.0, 1.0, 1.0, 100.0], 3.0, 1.0, 107.0, 17.0),
];

/// Eq. 32: the fastest worker's computing, followed by uninterrupted transfers; and whether it is exact, which it is if, sorted,
/// T_i ≤ T_1 + (i − 1)·T_push for every i. The paper's own condition is sufficient but not necessary (errata 1.5).
fn by_eq_32(times: &[f64], push: f64, pull: f64) -> (f64, bool) {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let exact = sorted.iter().enumerate().all(|(i, &time)| time <= sorted[0] + push * i as f64);
    (sorted[0] + (push + pull) * times.len() as f64, exact)
}

#[test]
fn golden_cases_of_algorithm_1() {
    for (times, push, pull, expected, eq32) in CASES {
        let ready = seconds(times);
        let transfers = Transfers { push: Seconds::new(push), pull: Seconds::new(pull) };
        assert_eq!(unequal_workers(&ready, transfers).get(), expected);
        assert_eq!(by_eq_32(times, push, pull), (eq32, expected == eq32));
    }
}

#[test]
fn eq_28_and_33_and_27() {
    // Table 2, AlexNet on the 2.0 GHz CPU with the authors' simd: 11.59 s.
    let operations =
        Operations { forward: Flops::new(1_720_390_328.0), backward: Flops::new(5_255_360_960.0) };
    let time = operations.iteration(32) / cpu_rate(Hertz::new(2e9), 2.6);
    assert!((time.get() - 11.597_664).abs() < 1e-6);
    let time = operations.iteration(32) / gpu_rate(Hertz::new(1.545e9), 2304, 1.0);
    assert!((time.get() - 0.016_942).abs() < 1e-6);
}

proptest! {
    #[test]
    fn equal_workers_obey_eq_29(compute in 0.0..100.0f64, push in 0.0..10.0f64, pull in 0.0..10.0f64, n in 1u32..40) {
        let transfers = Transfers { push: Seconds::new(push), pull: Seconds::new(pull) };
        let ready = vec![Seconds::new(compute); n as usize];
        let closed = equal_workers(Seconds::new(compute), transfers, n).get();
        prop_assert!((unequal_workers(&ready, transfers).get() - closed).abs() <= 1e-9 * (1.0 + closed));
    }

    #[test]
    fn eq_32_is_exact_under_its_condition_and_only_then(
        // Quarters are exact in binary, so results can be compared for equality.
        times in prop::collection::vec(0u32..40, 1..9), push in 1u32..8, pull in 0u32..8,
    ) {
        let times: Vec<f64> = times.into_iter().map(|n| f64::from(n) / 4.0).collect();
        let [push, pull] = [push, pull].map(|n| f64::from(n) / 4.0);
        let transfers = Transfers { push: Seconds::new(push), pull: Seconds::new(pull) };
        let found = unequal_workers(&seconds(&times), transfers).get();
        let (bound, is_exact) = by_eq_32(&times, push, pull);
        prop_assert!(found >= bound);
        prop_assert_eq!(found == bound, is_exact);
    }
}

/// Unequal workers with one server, in the form of a user's scenario file.
fn scenario(device: &str, batches: &[u32], bandwidth: &str, more: &[&str]) -> Scenario {
    let mut text = String::from("[model]\nzoo = \"zeng2023/vgg11a\"\n");
    for batch in batches {
        text += &format!("[[cluster.workers]]\ncount = 1\ndevice = \"{device}\"\nbatch = {batch}\n");
    }
    text += "[cluster.servers]\nsoftware = \"none\"\n";
    text += &format!("[cluster.network]\nbandwidth = \"{bandwidth}\"\n");
    resolved(text, more)
}

fn sums_up(prediction: &Prediction) -> bool {
    let sum: Seconds = prediction.breakdown.iter().map(|part| part.time).sum();
    (sum.get() - prediction.iteration.get()).abs() <= 1e-9 * prediction.iteration.get()
        && prediction.breakdown.iter().all(|part| part.time.get() >= -1e-9 * prediction.iteration.get())
}

/// The expected result, computed directly from the formulas.
fn by_formulas(scenario: &Scenario) -> Seconds {
    let workload = &scenario.workload;
    let operations = Operations::new(workload.forward, workload.weights, 85.0);
    let ready = scenario.cluster.groups.iter().enumerate().map(|(index, group)| {
        let batch = scenario.batch(index);
        match group.device.kind {
            DeviceKind::Cpu => operations.iteration(batch) / cpu_rate(group.device.clock, 2.0),
            DeviceKind::Gpu => {
                operations.until_first_push(batch, 24) / gpu_rate(group.device.clock, group.device.units, 1.0)
            }
        }
    });
    let ready: Vec<Seconds> = ready.collect();
    let shipped = workload.parameters as f64 * workload.shipped();
    let time = Bits::new(shipped * 32.0) / scenario.cluster.network.bandwidth;
    unequal_workers(&ready, Transfers { push: time, pull: time })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_method_is_the_formulas(
        batches in prop::collection::vec(1u32..200, 1..8),
        gigabits in 1u32..200,
        gpu: bool,
    ) {
        let device = if gpu { "quadro-rtx-4000" } else { "xeon-e5-2660" };
        let scenario = scenario(device, &batches, &format!("{gigabits} Gbit/s"), &["as-published=true"]);
        let prediction = Zeng2023.predict(&scenario).unwrap();
        let expected = by_formulas(&scenario);
        prop_assert!((prediction.iteration / expected - 1.0).abs() < 1e-12);
        prop_assert!(sums_up(&prediction));
    }

    #[test]
    fn more_of_anything_never_hurts(
        batches in prop::collection::vec(1u32..100, 1..5), gigabits in 1u32..50, servers in 1u32..6,
    ) {
        for method in [&Zeng2023 as &dyn Method, &Layerwise] {
            let change = format!("cluster.servers.count={servers}");
            let base = scenario("quadro-rtx-4000", &batches, &format!("{gigabits} Gbit/s"), &[&change]);
            let now = method.predict(&base).unwrap();
            prop_assert!(sums_up(&now), "{now:#?}");
            let mut faster = base.clone();
            faster.cluster.network.bandwidth = base.cluster.network.bandwidth * 1.5;
            prop_assert!(method.predict(&faster).unwrap().iteration <= now.iteration);
            let mut quicker = base.clone();
            for group in &mut quicker.cluster.groups {
                group.speed *= 1.5;
            }
            prop_assert!(method.predict(&quicker).unwrap().iteration <= now.iteration);
            let mut even = base.clone();
            even.cluster.servers.placement = stepcast_core::machine::Placement::Even;
            prop_assert!(method.predict(&even).unwrap().iteration.get() <= now.iteration.get() * (1.0 + 1e-12));
        }
    }
}

#[test]
fn one_local_step_is_bulk_synchronous_and_many_are_free() {
    for method in [&Zeng2023 as &dyn Method, &Layerwise] {
        let mut scenario = scenario("quadro-rtx-4000", &[32, 32], "1 Gbit/s", &[]);
        let bsp = method.predict(&scenario).unwrap();
        scenario.strategy.synchronisation = Synchronisation::LocalSgd(1);
        assert_eq!(method.predict(&scenario).unwrap().iteration, bsp.iteration);
        scenario.strategy.synchronisation = Synchronisation::LocalSgd(1_000_000);
        let local = method.predict(&scenario).unwrap();
        assert!((local.iteration / local.groups[0].compute - 1.0).abs() < 1e-3);
        assert!(local.scaling_factor > 0.999 && local.speedup > 1.998, "{local:#?}");
        assert!(sums_up(&local));
    }
}

#[test]
fn start_up_and_copies_add_what_they_cost() {
    let plain = scenario("quadro-rtx-4000", &[32, 32, 32], "1 Gbit/s", &[]);
    let base = Zeng2023.predict(&plain).unwrap();
    let mut slow = plain.clone();
    slow.cluster.network.startup = Seconds::new(0.5);
    let with = Zeng2023.predict(&slow).unwrap();
    // Three pushes and three pulls, one after the other.
    assert!((with.iteration.get() - base.iteration.get() - 6.0 * 0.5).abs() < 1e-9);
    assert!((with.part(PartKind::StartUp).get() - 3.0).abs() < 1e-12);

    let mut copying = plain.clone();
    copying.methods.zeng2023.host_copy = true;
    for group in &mut copying.cluster.groups {
        group.device.host_link = Some(BytesPerSec::new(1e6));
    }
    let with = Zeng2023.predict(&copying).unwrap();
    let copied = 32.0 * 3.0 * 224.0 * 224.0 * 4.0 / 1e6;
    assert!((with.part(PartKind::HostToDevice).get() - copied).abs() < 1e-9);
}

#[test]
fn the_activation_sets_the_backward_count() {
    let of = |activation: &str| {
        let change = format!("methods.zeng2023.activation=\"{activation}\"");
        scenario("xeon-e5-2620", &[1], "1 Gbit/s", &[&change]).methods.zeng2023.flops_per_weight
    };
    assert_eq!(of("sigmoid"), 85.0);
    assert_eq!(of("relu"), 3.0);
}

#[test]
fn one_layer_leaves_nothing_to_overlap() {
    // With a single layer: computing, then the queue of Algorithm 1.
    let text = include_str!("../scenarios/one-layer.toml");
    let scenario = resolved(text, &[]);
    let prediction = Layerwise.predict(&scenario).unwrap();
    let compute: Vec<f64> = prediction.groups.iter().map(|group| group.compute.get()).collect();
    let ready = seconds(&[compute[0], compute[0], compute[1]]);
    let time = Bits::new(1e6 * 32.0) / BitsPerSec::new(1e8);
    let expected = unequal_workers(&ready, Transfers { push: time, pull: time });
    assert!((prediction.iteration / expected - 1.0).abs() < 1e-12);
    assert_eq!(prediction.bottleneck, Bottleneck::ServerLink);
}

#[test]
fn a_fast_network_leaves_only_computing() {
    for method in [&Zeng2023 as &dyn Method, &Layerwise] {
        let scenario = scenario("xeon-e5-2620", &[4, 4], "1000 Tbit/s", &[]);
        let prediction = method.predict(&scenario).unwrap();
        assert!((prediction.iteration / prediction.groups[0].compute - 1.0).abs() < 1e-4);
        assert_eq!(prediction.bottleneck, Bottleneck::Compute);
        assert!((prediction.speedup - 2.0).abs() < 1e-3);
    }
}

#[test]
fn pushes_overlap_computing_where_computing_is_long() {
    // On slow CPUs the gradients of the fully connected layers, 9/10 of all bytes, are sent early: only the pull
    // remains exposed.
    let scenario = scenario("xeon-e5-2620", &[32, 32], "1 Gbit/s", &[]);
    let layerwise = Layerwise.predict(&scenario).unwrap();
    let transfer = scenario.workload.bytes().to_bits() / BitsPerSec::new(1e9) * scenario.workload.shipped();
    let pull = layerwise.part(PartKind::Pull) / (transfer * 2.0);
    assert!((pull - 1.0).abs() < 1e-9, "{pull} {transfer} {layerwise:#?}");
    assert!(layerwise.part(PartKind::Push) + layerwise.part(PartKind::Queueing) < transfer * 0.01);
}

#[test]
fn a_backward_pass_longer_than_its_push_is_pointed_out() {
    let scenario =
        scenario("quadro-rtx-4000", &[1], "100 Gbit/s", &["methods.zeng2023.flops-per-weight=100000"]);
    let prediction = Zeng2023.predict(&scenario).unwrap();
    assert_eq!(prediction.warnings[0].code, "premature-end");
}

#[test]
fn asynchronous_training_and_all_reduce_are_refused_with_a_remedy() {
    for change in [
        "strategy.synchronisation=async",
        "strategy.synchronisation=ssp(3)",
        "strategy.architecture=all-reduce",
    ] {
        let scenario = scenario("quadro-rtx-4000", &[32], "1 Gbit/s", &[change]);
        for method in [&Zeng2023 as &dyn Method, &Layerwise] {
            let refusal = method.predict(&scenario).unwrap_err();
            assert!(!refusal.remedy.is_empty(), "{refusal}");
        }
    }
}
