//! Costs of collectives against lower bounds and by hand, rates against measured ones, and what all-reduces lose beyond.

use super::resolved;
use proptest::prelude::*;
use stepcast_analytic::collectives::{
    Cost, Fabric, Hierarchy, all_gather, all_reduce, reduce_scatter, ring_update, scenario_cost,
};
use stepcast_analytic::contention::Contention;
use stepcast_analytic::liu2022::{Layer, Mean, Outcome, Pass};
use stepcast_core::fitted::transfer::{Curve, LogLinear};
use stepcast_core::prediction::Communication;
use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use stepcast_core::strategy::{Algorithm, Fusion};

fn fabric() -> impl Strategy<Value = Fabric> {
    (0.0..1e-3f64, 1e6..1e11f64, 1e9..1e14f64).prop_map(|(step, bandwidth, reduce)| Fabric {
        step: Seconds::new(step),
        bandwidth: BytesPerSec::new(bandwidth),
        reduce: FlopsPerSec::new(reduce),
        element: Bytes::new(4.0),
    })
}

fn close(a: Seconds, b: Seconds) -> bool {
    (a.get() - b.get()).abs() <= 1e-12 * a.get().abs().max(b.get().abs())
}

fn no_less(a: Seconds, b: Seconds) -> bool {
    a.get() >= b.get() * (1.0 - 1e-12)
}

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Tree, Algorithm::DoubleTree];

/// Lower bound of any all-reduce (Chan et al. 2007, doi 10.1002/cpe.1206), separately for each cause: ⌈log₂ N⌉ α, 2(N-1)/N D/β
/// and (N-1)/N D/(sπ).
fn lower_bound(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    let workers = f64::from(workers);
    let others = (workers - 1.0) / workers;
    Cost {
        latency: fabric.step * workers.log2().ceil(),
        transfer: size * (2.0 * others) / fabric.bandwidth,
        reduction: Flops::new(size * others / fabric.element) / fabric.reduce,
    }
}

/// The cost of every collective in this module on N workers.
fn all(fabric: &Fabric, workers: u32, size: Bytes) -> Vec<Cost> {
    let mut costs: Vec<Cost> =
        ALGORITHMS.map(|algorithm| all_reduce(algorithm, fabric, workers, size)).into();
    costs.push(reduce_scatter(fabric, workers, size));
    costs.push(all_gather(fabric, workers, size));
    costs
}

const UNIT: Fabric = Fabric {
    step: Seconds::new(1.0),
    bandwidth: BytesPerSec::new(12.0),
    reduce: FlopsPerSec::new(12.0),
    element: Bytes::new(1.0),
};

/// Up a tree and down again: each way, the logarithm rounded up.
#[test]
fn rounds_are_the_logarithm_rounded_up() {
    let rounds = |workers| all_reduce(Algorithm::Tree, &UNIT, workers, Bytes::new(1.0)).latency.get() / 2.0;
    let found: Vec<f64> = (0..10).map(rounds).collect();
    assert_eq!(found, [0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 4.0]);
    assert_eq!(rounds(u32::MAX), 32.0);
}

#[test]
fn by_hand_for_three_and_four_workers() {
    let parts = |cost: Cost| [cost.latency.get(), cost.transfer.get(), cost.reduction.get()];
    let size = Bytes::new(144.0);
    let near = |cost: Cost, expected: [f64; 3]| {
        for (part, expected) in parts(cost).into_iter().zip(expected) {
            assert!((part - expected).abs() < 1e-12, "{cost:?}, not {expected}");
        }
    };
    near(all_reduce(Algorithm::Ring, &UNIT, 4, size), [6.0, 18.0, 9.0]);
    near(all_reduce(Algorithm::Ring, &UNIT, 3, size), [4.0, 16.0, 8.0]);
    near(all_reduce(Algorithm::HalvingDoubling, &UNIT, 4, size), [4.0, 18.0, 9.0]);
    near(all_reduce(Algorithm::HalvingDoubling, &UNIT, 3, size), [4.0, 12.0 + 24.0, 6.0 + 12.0]);
    near(all_reduce(Algorithm::Tree, &UNIT, 3, size), [4.0, 48.0, 24.0]);
    near(all_reduce(Algorithm::DoubleTree, &UNIT, 4, size), [4.0, 24.0, 12.0]);
}

#[test]
fn a_line_through_measured_points_is_found_again() {
    let truth = LogLinear::continuous(
        LogLinear::PAPER_THRESHOLD,
        Seconds::new(3e-6),
        BytesPerSec::new(1.5e9),
        Seconds::new(6e-5),
    );
    let sizes = [64.0, 1e3, 8e3, 3e4, 6e4, 1e6, 3e7];
    let measured: Vec<(Bytes, Seconds)> =
        sizes.iter().map(|&size| (Bytes::new(size), truth.time(Bytes::new(size)))).collect();
    let found = LogLinear::fit(LogLinear::PAPER_THRESHOLD, &measured).unwrap();
    for size in [1.0, 100.0, 44_999.0, 45_000.0, 1e8] {
        let (a, b) = (found.time(Bytes::new(size)).get(), truth.time(Bytes::new(size)).get());
        assert!((a - b).abs() < 1e-9 * b.max(1e-5), "{size}: {a} {b}");
    }
    assert_eq!(LogLinear::fit(LogLinear::PAPER_THRESHOLD, &measured[..4]), None);
    assert_eq!(LogLinear::fit(LogLinear::PAPER_THRESHOLD, &measured[4..]), None);
    assert_eq!(LogLinear::fit(LogLinear::PAPER_THRESHOLD, &[]), None);
}

#[test]
fn the_printed_curve_may_jump_and_the_default_does_not() {
    let curve = LogLinear::continuous(
        Bytes::new(1024.0),
        Seconds::new(1.0),
        BytesPerSec::new(1024.0),
        Seconds::new(20.0),
    );
    let at = |curve: &LogLinear, size: f64| curve.time(Bytes::new(size)).get();
    assert!((at(&curve, 1024.0) - 21.0).abs() < 1e-12);
    assert!((at(&curve, 512.0) - 20.0).abs() < 1e-12);
    assert!((at(&curve, 1.0) - 11.0).abs() < 1e-12);
    // Guards: sizes below one byte count as one byte, zero bytes take no time, and no time is negative.
    assert!((at(&curve, 1e-9) - 11.0).abs() < 1e-12);
    assert!(at(&curve, 0.0).abs() < 1e-300);
    let printed = curve.with_offset_below(Seconds::new(-2.0));
    assert!((at(&printed, 512.0) - 7.0).abs() < 1e-12);
    assert!(at(&printed, 2.0).abs() < 1e-300);
    assert!((at(&printed, 1024.0) - 21.0).abs() < 1e-12);
}

proptest! {
    #[test]
    fn one_worker_or_no_bytes_take_no_time(fabric in fabric(), n in 1u32..200, size in 0.0..1e9f64) {
        for cost in all(&fabric, 1, Bytes::new(size)).into_iter().chain(all(&fabric, n, Bytes::ZERO)) {
            prop_assert_eq!(cost, Cost::default());
        }
        let curve = ring_update(&fabric, 1, Seconds::new(1.0));
        prop_assert_eq!(curve.time(Bytes::new(size)), Seconds::ZERO);
    }

    #[test]
    fn more_bytes_take_no_less_time(
        fabric in fabric(), n in 1u32..200, size in 0.0..1e9f64, more in 0.0..1e9f64, per_doubling in 0.0..1e-5f64,
    ) {
        let (size, larger) = (Bytes::new(size), Bytes::new(size + more));
        for (a, b) in all(&fabric, n, size).into_iter().zip(all(&fabric, n, larger)) {
            prop_assert!(no_less(b.total(), a.total()));
        }
        let piecewise = LogLinear::continuous(
            LogLinear::PAPER_THRESHOLD, Seconds::new(per_doubling), fabric.bandwidth, fabric.step,
        );
        for curve in [
            Curve::AlphaBeta { startup: fabric.step, bandwidth: fabric.bandwidth },
            all_reduce(Algorithm::Ring, &fabric, n, fabric.element).line(fabric.element),
            Curve::Piecewise(piecewise),
        ] {
            prop_assert!(no_less(curve.time(larger), curve.time(size)));
        }
    }

    #[test]
    fn the_ring_carries_its_share_twice(fabric in fabric(), n in 1u32..2000, size in 1.0..1e9f64) {
        let size = Bytes::new(size);
        let ring = all_reduce(Algorithm::Ring, &fabric, n, size);
        let share = 2.0 * f64::from(n - 1) / f64::from(n);
        prop_assert!(close(ring.transfer, size / fabric.bandwidth * share));
        prop_assert!(close(ring.latency, fabric.step * (2.0 * f64::from(n - 1))));
        let halves = reduce_scatter(&fabric, n, size).then(all_gather(&fabric, n, size));
        prop_assert_eq!(ring, halves);
        // Eq. 7 with δ = 2(N-1)α equals the ring.
        prop_assert!(close(ring.line(size).time(size), ring.total()));
    }

    #[test]
    fn nothing_beats_the_lower_bounds(fabric in fabric(), n in 1u32..2000, size in 1.0..1e9f64) {
        let size = Bytes::new(size);
        let bound = lower_bound(&fabric, n, size);
        for algorithm in ALGORITHMS {
            let cost = all_reduce(algorithm, &fabric, n, size);
            prop_assert!(no_less(cost.latency, bound.latency));
            prop_assert!(no_less(cost.transfer, bound.transfer));
            prop_assert!(no_less(cost.reduction, bound.reduction));
        }
    }

    #[test]
    fn a_hierarchy_of_one_level_is_flat(
        intra in fabric(), inter in fabric(), n in 1u32..200, size in 0.0..1e9f64,
    ) {
        let size = Bytes::new(size);
        let one = Hierarchy { per_node: n, on_last: n, nodes: 1, intra, inter };
        prop_assert_eq!(one.cost(size), all_reduce(Algorithm::Ring, &intra, n, size));
        let single = Hierarchy { per_node: 1, on_last: 1, nodes: n, intra, inter };
        prop_assert_eq!(single.cost(size), all_reduce(Algorithm::Ring, &inter, n, size));
    }

    #[test]
    fn a_last_node_that_is_not_full_combines_more_on_each_worker(
        fabric in fabric(), per_node in 2u32..17, nodes in 2u32..65, size in 1.0..1e9f64,
    ) {
        let size = Bytes::new(size);
        let full = Hierarchy { per_node, on_last: per_node, nodes, intra: fabric, inter: fabric };
        let uneven = Hierarchy { on_last: 1, ..full };
        let (full, uneven) = (full.cost(size), uneven.cost(size));
        prop_assert_eq!((full.latency, full.transfer), (uneven.latency, uneven.transfer));
        // (m-1)/m of D is combined by one worker instead of by g.
        let alone = all_reduce(Algorithm::Ring, &fabric, nodes, size).reduction;
        prop_assert!(close(uneven.reduction - full.reduction, alone - alone / f64::from(per_node)));
    }

    #[test]
    fn a_hierarchy_obeys_the_bounds_and_saves_steps(
        fabric in fabric(), per_node in 1u32..17, nodes in 1u32..65, size in 1.0..1e9f64,
    ) {
        let size = Bytes::new(size);
        let cost = Hierarchy { per_node, on_last: per_node, nodes, intra: fabric, inter: fabric }.cost(size);
        let bound = lower_bound(&fabric, per_node * nodes, size);
        prop_assert!(no_less(cost.latency, bound.latency));
        prop_assert!(no_less(cost.transfer, bound.transfer));
        prop_assert!(close(cost.reduction, bound.reduction));
        prop_assert!(no_less(all_reduce(Algorithm::Ring, &fabric, per_node * nodes, size).latency, cost.latency));
    }

    #[test]
    fn powers_of_two_suit_halving_and_doubling(fabric in fabric(), power in 0u32..12, size in 1.0..1e9f64) {
        let (n, size) = (1 << power, Bytes::new(size));
        let (ring, halving) =
            (all_reduce(Algorithm::Ring, &fabric, n, size), all_reduce(Algorithm::HalvingDoubling, &fabric, n, size));
        prop_assert!(close(ring.transfer, halving.transfer));
        prop_assert!(no_less(ring.latency, halving.latency));
    }
}

/// kit/machine.py, PyTorch 2.11, processes of one host with 16 cores: 16 MiB and 1 KiB.
#[test]
fn gloo_takes_what_was_measured() {
    for (workers, measured) in [(2, [8.467e-3, 0.262e-3]), (4, [9.804e-3, 0.703e-3])] {
        let text = format!(
            "model.zoo = \"resnet50\"\nstrategy.architecture = \"all-reduce\"\n[[cluster.workers]]\n\
             count = {workers}\n[cluster.network]\nbandwidth = \"10 Gbit/s\"\ntransport = \"gloo\"\n\
             [cluster.nodes]\nworkers = {workers}\n"
        );
        let scenario = resolved(text, &[]);
        for (bytes, measured) in [16_777_216.0, 1024.0].into_iter().zip(measured) {
            let predicted = scenario_cost(&scenario, Bytes::new(bytes)).total().get();
            assert!((predicted / measured - 1.0).abs() < 0.2, "{predicted} against {measured}");
        }
    }
}

/// Inputs and results of the formula as fitted to published runs (research/priors/vectors.py).
const VECTORS: &str = include_str!("../../../../research/priors/vectors_allreduce.csv");

/// Columns of a line by their titles, from the last to the first number: names of runs have commas.
fn columns<'a>(titles: &'a str, line: &'a str) -> impl Fn(&str) -> &'a str {
    let cells: Vec<(&str, &str)> = titles.rsplit(',').zip(line.rsplit(',')).collect();
    move |title| cells.iter().find(|(own, _)| *own == title).unwrap().1
}

#[test]
fn the_formula_is_the_one_that_was_fitted() {
    let (titles, lines) = VECTORS.split_once('\n').unwrap();
    for line in lines.lines() {
        let text = columns(titles, line);
        let number = |title: &str| -> f64 { text(title).parse().unwrap() };
        let is = |title: &str| text(title) == "True";
        let either = |flag: &str, yes: &'static str, no: &'static str| if is(flag) { yes } else { no };
        let scenario = resolved(
            format!(
                "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\nfusion.rule = \"{}\"\n\
                 [[cluster.workers]]\ncount = {}\ndevice = {{ base = \"{}\", peer-to-peer = {} }}\n\
                 [cluster.network]\nbandwidth = \"{} Gbit/s\"\ntransport = \"{}\"\nrented = {}\n\
                 [cluster.nodes]\nworkers = {}\nnetwork = {{ bandwidth = \"{} GB/s\", transport = \"{}\" }}\n\
                 [input]\ndata = \"{}\"\n",
                either("horovod", "horovod", "none"),
                text("g"),
                either("no_p2p", "rtx-2080-ti", "tesla-v100-sxm2-16gb"),
                !is("no_p2p"),
                text("gbps"),
                either("host_mpi", "host-mpi", either("rdma", "rdma", "tcp")),
                is("rented"),
                text("m"),
                text("inside"),
                either("nvlink", "nvlink", "pcie"),
                either("real", "real", "synthetic"),
            ),
            &[],
        );
        assert_eq!((number("g") / number("m")).ceil(), number("N"), "{line}");
        let all = scenario_cost(&scenario, Bytes::new(number("B") * 1e9));
        let allreduce = all.transfer + all.latency * number("messages");
        let tensors = number("tensors");
        let backward = Seconds::new(number("T1") * 2.0 / 3.0 / tensors);
        let pass = Pass::new(vec![Layer { backward, gradients: Bytes::new(1.0) }; tensors as usize]);
        let schedule = match is("no_overlap") {
            true => Fusion::All,
            false if is("horovod") => Fusion::horovod(Bytes::ZERO, Seconds::ZERO),
            false => Fusion::None,
        };
        // What a schedule exposes by itself: nothing, or all.
        let shown = if is("no_overlap") { allreduce } else { Seconds::ZERO };
        let mean = Mean {
            outcome: Outcome {
                computing: pass.computing(),
                update: shown,
                overlap: Seconds::ZERO,
                after: Seconds::ZERO,
            },
            communication: Communication { allreduce, ..Communication::default() },
        };
        let contention = Contention::from_scenario(&scenario);
        let step = contention.slowed(&pass).computing() + shown + contention.beyond(&pass, &schedule, &mean);
        assert!((step.get() / number("predicted_s") - 1.0).abs() < 1e-3, "{step}: {line}");
    }
}

#[test]
fn nothing_is_lost_on_ideal_networks_and_by_measured_all_reduces() {
    let of = |text: &str| {
        let text = format!("[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\n{text}");
        Contention::from_scenario(&resolved(text, &[]))
    };
    assert_eq!(of("[cluster.network]\nbase = \"10gbe\"\ntransport = \"ideal\""), Contention::NONE);
    let measured = "[strategy.all-reduce]\nmeasured = [[\"1 MB\", \"9 ms\"], [\"64 MB\", \"500 ms\"]]";
    assert_eq!(of(measured), Contention::NONE);
    assert_ne!(of(&format!("{measured}\noverlap = \"usual\"")), Contention::NONE);
    assert_ne!(of(""), Contention::NONE);
    assert_eq!(of("all-reduce.overlap = \"ideal\""), Contention::NONE);
}
