//! Oyama 2016: its limits, its steady states and its method. The validation set `oyama2016` has the golden cases.

use super::resolved;
use proptest::prelude::*;
use stepcast_analytic::oyama2016::{Oyama2016, Steady, Structure, Threads, most_buffers, steady_states};
use stepcast_core::method::Method;
use stepcast_core::model::zoo;
use stepcast_core::prediction::{PartKind, Prediction};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

fn near(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    let scale = theirs.abs().max(1e-300);
    assert!((ours - theirs).abs() <= tolerance * scale, "{what}: {ours} against {theirs}");
}

/// A synthetic machine of the size of the paper's.
fn machine(nodes: u32, gpus: u32, batch: u32, parameters: f64) -> Threads {
    let samples = f64::from(batch);
    let slice = parameters / f64::from(nodes);
    Threads {
        nodes,
        gpus,
        batch,
        fetch_weights: Seconds::new(1.2e-9 * parameters),
        load_images: Seconds::new(0.001 * samples + 0.004),
        deform_images: Seconds::new(0.0008 * samples + 0.002),
        compute: Seconds::new(0.0655 * samples + 0.08),
        scale_gradient: Seconds::new(4e-10 * parameters),
        update_gradient: Seconds::new(1.3e-9 * parameters),
        sum_buffer: Seconds::new(1.5e-9 * parameters),
        keep_old_weights: Seconds::new(8e-10 * slice),
        add_momentum: Seconds::new(1.2e-9 * slice),
        all_reduce: Seconds::new((1.1e-9 * f64::from(nodes).log2() + 3e-9) * parameters),
        update_momentum: Seconds::new(1e-9 * slice),
        update_weights: Seconds::new(7e-10 * parameters),
    }
}

// ---------------------------------------------------------------- limits and properties

/// Slow reference: every change of sign on the grid that the errata recommends.
fn scanned(threads: &Threads) -> Vec<f64> {
    const POINTS: usize = 2000;
    let excess = |ratio: f64| {
        // x by bisection of its own equation at y = r·x, independent of the quadratic.
        let (mut low, mut high) = (1e-6, 1e6);
        for _ in 0..56 {
            let x: f64 = f64::sqrt(low * high);
            let times = threads.times(Seconds::new(x), Seconds::new(ratio * x));
            if times.gpu.into_iter().sum::<Seconds>().get() > x { low = x } else { high = x }
        }
        let x = high;
        let times = threads.times(Seconds::new(x), Seconds::new(ratio * x));
        times.update.into_iter().sum::<Seconds>().get() - ratio * x
    };
    let at = |point: usize| 10f64.powf(-4.0 + 8.0 * point as f64 / POINTS as f64);
    let values: Vec<f64> = (0..=POINTS).map(|point| excess(at(point))).collect();
    let changes = (0..POINTS).filter(|&point| values[point] * values[point + 1] < 0.0);
    changes.map(|point| f64::sqrt(at(point) * at(point + 1))).collect()
}

fn seconds(low: f64, high: f64) -> impl Strategy<Value = Seconds> {
    (low.ln()..high.ln()).prop_map(|log: f64| Seconds::new(log.exp()))
}

prop_compose! {
    /// Threads with times up to `10^decades` above and below a centre.
    fn any_threads(decades: i32)(
        nodes in prop_oneof![Just(1_u32), 1..128_u32],
        gpus in 1..17_u32,
        batch in 1..64_u32,
        gpu in prop::array::uniform5(seconds(0.1_f64.powi(decades), 10_f64.powi(decades))),
        update in prop::array::uniform5(seconds(0.1_f64.powi(decades), 10_f64.powi(decades))),
        locked in prop::array::uniform3(seconds(0.1_f64.powi(decades), 10_f64.powi(decades))),
    ) -> Threads {
        Threads {
            nodes, gpus, batch,
            fetch_weights: locked[0] * 0.02,
            load_images: gpu[0] * 0.02,
            deform_images: gpu[1] * 0.02,
            compute: gpu[2],
            scale_gradient: gpu[3] * 0.02,
            update_gradient: gpu[4] * 0.02,
            sum_buffer: locked[1] * 0.02,
            keep_old_weights: update[0] * 0.02,
            add_momentum: update[1] * 0.02,
            all_reduce: update[2] * 0.2,
            update_momentum: update[3] * 0.02,
            update_weights: locked[2] * 0.02,
        }
    }
}

/// If gradients are rare, no two of them coincide: the largest number is N·G·p.
#[test]
fn rare_gradients_lose_no_digits() {
    for p in [1e-9, 1e-12, 1e-15] {
        let most = most_buffers(5, p, 101);
        assert!((most / (505.0 * p) - 1.0).abs() < 1e-6, "{p}: {most}");
    }
}

fn residual(threads: &Threads, steady: &Steady) -> f64 {
    let times = threads.times(steady.gpu, steady.update);
    let gpu = times.gpu.into_iter().sum::<Seconds>() / steady.gpu - 1.0;
    let update = times.update.into_iter().sum::<Seconds>() / steady.update - 1.0;
    gpu.abs().max(update.abs())
}

proptest! {
    #[test]
    fn the_fixed_point_is_one(threads in any_threads(3)) {
        let steady = threads.steady().unwrap();
        prop_assert!(residual(&threads, &steady) < 1e-12, "{threads:?} {steady:?}");
    }

    #[test]
    fn the_largest_of_many_grows_with_each(gpus in 1..65_u32, p in 0.0..1.0_f64, nodes in 1..2000_u32) {
        let most = most_buffers(gpus, p, nodes);
        let all = f64::from(gpus);
        let rounding = 1e-12 * all;
        prop_assert!(most >= all * p - rounding && most <= all);
        prop_assert!(most_buffers(gpus, p, nodes + 1) >= most - rounding);
        prop_assert!(most_buffers(gpus, (p + 1e-3).min(1.0), nodes) >= most - rounding);
        prop_assert!(most_buffers(gpus + 1, p, nodes) >= most - rounding);
    }

    /// More work for the GPU threads makes updates smaller: φ decreases everywhere.
    #[test]
    fn more_computing_means_smaller_minibatches(threads in any_threads(1), more in 1.01..3.0_f64) {
        let slower = Threads { compute: threads.compute * more, ..threads };
        let (before, after) = (threads.steady().unwrap(), slower.steady().unwrap());
        prop_assume!(before.states == 1 && after.states == 1);
        prop_assert!(after.minibatch < before.minibatch);
    }

    /// A slower all-reduce makes minibatches larger: φ increases everywhere.
    #[test]
    fn slower_all_reduce_means_larger_minibatches(threads in any_threads(1), more in 1.01..3.0_f64) {
        let slower = Threads { all_reduce: threads.all_reduce * more, ..threads };
        let (before, after) = (threads.steady().unwrap(), slower.steady().unwrap());
        prop_assume!(before.states == 1 && after.states == 1);
        prop_assert!(after.minibatch > before.minibatch);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn all_steady_states_are_those_of_a_scan(threads in any_threads(2)) {
        let (found, scanned) = (steady_states(&threads), scanned(&threads));
        prop_assert_eq!(found.len(), scanned.len(), "{:?} {:?} {:?}", &threads, &found, &scanned);
        for (a, b) in found.iter().zip(&scanned) {
            prop_assert!((a / b - 1.0).abs() < 5e-3, "{:?} {:?}", found, scanned);
        }
    }
}

/// If critical sections fill the iterations, the model has three steady states; the one with the shortest is chosen.
#[test]
fn several_steady_states_are_all_found() {
    let threads = Threads {
        nodes: 128,
        gpus: 29,
        batch: 1,
        fetch_weights: Seconds::new(0.0713),
        load_images: Seconds::ZERO,
        deform_images: Seconds::ZERO,
        compute: Seconds::new(0.000382),
        scale_gradient: Seconds::ZERO,
        update_gradient: Seconds::new(0.05445),
        sum_buffer: Seconds::new(0.00086),
        keep_old_weights: Seconds::ZERO,
        add_momentum: Seconds::ZERO,
        all_reduce: Seconds::new(0.000173),
        update_momentum: Seconds::ZERO,
        update_weights: Seconds::new(0.0164),
    };
    let (found, scanned) = (steady_states(&threads), scanned(&threads));
    assert_eq!((found.len(), scanned.len()), (3, 3), "{found:?} {scanned:?}");
    for (a, b) in found.iter().zip(&scanned) {
        assert!((a / b - 1.0).abs() < 5e-3, "{found:?} {scanned:?}");
    }
    let steady = threads.steady().unwrap();
    assert_eq!(steady.states, 3);
    assert!(residual(&threads, &steady) < 1e-12);
    assert!(steady.premise_holds());
}

#[test]
fn one_gpu_alone_waits_for_its_update_thread_only() {
    let threads = machine(1, 1, 4, 16.1e6);
    let steady = threads.steady().unwrap();
    assert_eq!(steady.times.barrier, Seconds::ZERO);
    let [lock, ..] = steady.times.gpu;
    let expected = threads.update_weights * (threads.update_weights / (steady.update * 2.0));
    near(lock.get(), expected.get(), 1e-12, "only the update thread competes");
    // Without critical sections no thread waits: both times are sums of their own parts.
    let free = Threads {
        fetch_weights: Seconds::ZERO,
        update_gradient: Seconds::ZERO,
        sum_buffer: Seconds::ZERO,
        update_weights: Seconds::ZERO,
        ..threads
    };
    let steady = free.steady().unwrap();
    let own = free.load_images + free.deform_images + free.compute + free.scale_gradient;
    near(steady.gpu.get(), own.get(), 1e-12, "T_GPU");
    let own = free.keep_old_weights + free.add_momentum + free.all_reduce + free.update_momentum;
    near(steady.update.get(), own.get(), 1e-12, "T_Update");
}

/// Two GPU threads, each with a gradient in three quarters of the updates: 0, 1 or 2 with 1/16, 6/16 and 9/16.
#[test]
fn minibatches_are_binomial() {
    let threads = machine(1, 2, 5, 1e6);
    let steady = Steady { gpu: Seconds::new(4.0), update: Seconds::new(3.0), ..threads.steady().unwrap() };
    let spread = steady.minibatch_spread(&threads);
    assert_eq!([spread.low, spread.median, spread.high], [0.0, 10.0, 10.0]);
    // Where an update takes two and a quarter iterations, two gradients of each are certain.
    let longer = Steady { update: Seconds::new(9.0), ..steady }.minibatch_spread(&threads);
    assert_eq!([longer.low, longer.median, longer.high], [20.0, 20.0, 30.0]);
}

#[test]
fn shapes_that_do_not_divide_are_refused() {
    assert!(Structure::new((3, 44), 3, &[(16, 1), (32, 2)], &[10]).is_ok());
    for wrong in [
        Structure::new((3, 45), 3, &[(16, 2)], &[10]),
        Structure::new((3, 2), 3, &[(16, 1)], &[10]),
        Structure::new((3, 44), 0, &[(16, 1)], &[10]),
        Structure::new((3, 44), 3, &[(16, 0)], &[10]),
        Structure::new((3, 44), 3, &[], &[10]),
        Structure::new((3, 44), 3, &[(0, 1)], &[10]),
        Structure::new((3, u64::MAX), 3, &[(16, 1)], &[10]),
    ] {
        assert!(wrong.is_err(), "{wrong:?}");
    }
}

/// Table 5: CNN-A and CNN-B have 8 placements of 5 pooling layers among 15 layers that divide exactly and end with a
/// side of 1; CNN-C has 46 among 17 (errata 2.1).
#[test]
fn networks_of_table_5_can_be_built() {
    let placements = |side: u64, layers: usize| {
        let with_five = (0_u32..1 << layers).filter(|mask| mask.count_ones() == 5);
        let fitting = with_five.filter(|mask| {
            let convolutions: Vec<(u64, u64)> =
                (0..layers).map(|layer| (1, 1 + u64::from(mask >> layer & 1))).collect();
            let structure = Structure::new((3, side), 3, &convolutions, &[]);
            structure.is_ok_and(|structure| structure.layers()[layers - 1].side == 1)
        });
        fitting.count()
    };
    assert_eq!(placements(396, 15), 8);
    assert_eq!(placements(346, 17), 46);
}

#[test]
fn vgg_is_a_chain_and_residual_networks_are_not() {
    let vgg = zoo::build("vgg16").unwrap();
    let structure = Structure::from_model(&vgg).unwrap();
    assert_eq!((structure.layers().len(), structure.convolutions()), (16, 13));
    assert_eq!(structure.parameters(), vgg.parameters());
    assert!(Structure::from_model(&zoo::build("resnet50").unwrap()).is_err());
    assert!(Structure::from_model(&zoo::build("bert-base").unwrap()).is_err());
}

// ---------------------------------------------------------------- the method

const SCENARIO: &str = include_str!("../scenarios/sprint.toml");

fn scenario(changes: &[&str]) -> Scenario {
    resolved(SCENARIO, changes)
}

fn predict(changes: &[&str]) -> Prediction {
    Oyama2016.predict(&scenario(changes)).unwrap()
}

#[test]
fn a_scenario_gives_the_threads_of_its_coefficients() {
    let prediction = predict(&[]);
    let parameters = zoo::build("vgg16").unwrap().parameters() as f64;
    let threads = machine(8, 8, 4, parameters);
    let steady = threads.steady().unwrap();
    near(prediction.iteration.get(), steady.gpu.get(), 1e-12, "T_GPU");
    let updating = prediction.updating.as_ref().unwrap();
    near(updating.iteration.get(), steady.update.get(), 1e-12, "T_Update");
    near(updating.minibatch, steady.minibatch, 1e-12, "minibatch");
    assert_eq!((prediction.breakdown.len(), updating.breakdown.len()), (8, 8));
    let sum = |parts: &[stepcast_core::prediction::Part]| parts.iter().map(|part| part.time).sum::<Seconds>();
    near(sum(&prediction.breakdown).get(), prediction.iteration.get(), 1e-12, "parts");
    near(sum(&updating.breakdown).get(), updating.iteration.get(), 1e-12, "parts");
    let codes: Vec<&str> = prediction.warnings.iter().map(|warning| warning.code).collect();
    assert!(!codes.contains(&"assumed-coefficients"), "{codes:?}");
}

#[test]
fn what_is_not_measured_is_estimated_and_said() {
    let text = SCENARIO.split("[methods.oyama2016]").next().unwrap();
    let scenario = resolved(text, &[]);
    let prediction = Oyama2016.predict(&scenario).unwrap();
    let warning = prediction.warnings.iter().find(|warning| warning.code == "assumed-coefficients").unwrap();
    for key in ["fetch-weights", "sum-gradient", "all-reduce", "load-image"] {
        assert!(warning.message.contains(key), "{warning:?}");
    }
    assert!(prediction.iteration.get() > 0.0 && prediction.updating.unwrap().minibatch > 0.0);
}

#[test]
fn fewer_workers_than_a_node_holds_are_one_node() {
    let few = predict(&["cluster.workers.0.count=3"]);
    let exact = predict(&["cluster.workers.0.count=3", "cluster.nodes.workers=3"]);
    assert_eq!(few, exact);
    let why = Oyama2016.predict(&scenario(&["cluster.workers.0.count=12"])).unwrap_err();
    assert_eq!(why.key, "cluster.nodes.workers");
}

#[test]
fn only_asynchronous_all_reduce_of_equal_workers_is_modelled() {
    let refused = |change: &str| Oyama2016.predict(&scenario(&[change])).unwrap_err().key;
    assert_eq!(refused("strategy.synchronisation=bsp"), "strategy.synchronisation");
    assert_eq!(refused("strategy.architecture=parameter-server"), "strategy.architecture");
    let text = format!("{SCENARIO}\n").replace("[cluster]", "[[cluster.workers]]\ncount = 8\n[cluster]");
    let two = resolved(text, &[]);
    assert_eq!(Oyama2016.predict(&two).unwrap_err().key, "cluster.workers");
}

#[test]
fn threads_that_take_no_time_are_refused() {
    let keys = ["update-old-weights", "add-momentum", "update-momentum", "update-weights"];
    let mut changes: Vec<String> =
        keys.iter().map(|key| format!("methods.oyama2016.per-parameter.{key}=\"0 s\"")).collect();
    changes.push("methods.oyama2016.per-parameter.all-reduce.each=\"0 s\"".to_owned());
    changes.push("methods.oyama2016.per-parameter.all-reduce.fixed=\"0 s\"".to_owned());
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    assert_eq!(Oyama2016.predict(&scenario(&changes)).unwrap_err().key, "methods.oyama2016");
}

/// With a table of times m·n·k at a constant rate, the time is that of all products' operations at this rate, for any
/// sizes.
#[test]
fn kernels_make_up_the_gradient() {
    let sizes = [1_u64, 64, 4096, 262_144];
    let mut times = String::new();
    for m in sizes {
        for n in sizes {
            for k in sizes {
                times.push_str(&format!("\"{} s\", ", (m * n * k) as f64 * 1e-12));
            }
        }
    }
    let kernels = format!(
        "[methods.oyama2016.kernels]\nsoftmax = {{ each = \"1 ns\", fixed = \"1 us\" }}\n\
         [methods.oyama2016.kernels.sgemm]\nsizes = {sizes:?}\nnn = [{times}]\ntn = [{times}]\nnt = [{times}]\n"
    );
    let text =
        SCENARIO.replace("compute-gradient = { each = \"65.5 ms\", fixed = \"80 ms\" }", "") + &kernels;
    let read = |text: &str| resolved(text, &[]);
    let prediction = Oyama2016.predict(&read(&text)).unwrap();
    let structure = Structure::from_model(&zoo::build("vgg16").unwrap()).unwrap();
    let products: f64 =
        structure.products(4).iter().map(|product| product.size.iter().product::<f64>()).sum();
    let expected = products * 1e-12 + 4000.0 * 1e-9 + 1e-6;
    near(prediction.part(PartKind::Compute).get(), expected, 1e-9, "compute");
    let kernels = &prediction.updating.as_ref().unwrap().kernels;
    assert_eq!(kernels.len(), 7, "{kernels:?}");
    near(kernels.iter().map(|kernel| kernel.time.get()).sum(), expected, 1e-9, "kernels");
    let why = Oyama2016.predict(&read(&text.replace("vgg16", "resnet50"))).unwrap_err();
    assert_eq!(why.key, "methods.oyama2016.kernels");
}
