//! Collectives send by send against their closed forms.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use stepcast_analytic::collectives::{
    AllReduce, Broadcast, Cost, Fabric, Hierarchy, all_gather, reduce_scatter,
};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_sim::{Blind, Collective, End, Limits, Machines, Nodes, Outcome, run};

fn fabric() -> Fabric {
    Fabric {
        step: Seconds::new(3e-5),
        bandwidth: BytesPerSec::new(1.1e9),
        reduce: FlopsPerSec::new(7e9),
        element: Bytes::new(4.0),
    }
}

/// Between nodes.
fn wide_area() -> Fabric {
    Fabric { step: Seconds::new(2e-4), bandwidth: BytesPerSec::new(3e8), ..fabric() }
}

fn machines(fabric: &Fabric, workers: u32) -> Machines {
    Machines {
        ports: vec![fabric.bandwidth; workers as usize],
        step: fabric.step,
        combine_byte: Seconds::new(1.0 / (fabric.element.get() * fabric.reduce.get())),
        nodes: None,
    }
}

fn outcome(collective: Collective, machines: &Machines, size: Bytes) -> Outcome {
    let program = collective.program(machines, size).unwrap();
    let outcome = run(&program, 0, Limits::steps(1), &mut Blind).unwrap();
    assert_eq!(outcome.end, End::Completed);
    outcome
}

fn time(collective: Collective, machines: &Machines, size: Bytes) -> f64 {
    outcome(collective, machines, size).time
}

/// Collectives whose closed form is exact, with it.
fn exact(fabric: &Fabric, workers: u32, size: Bytes) -> [(Collective, Cost); 6] {
    [
        (Collective::Ring, AllReduce::Ring.cost(fabric, workers, size)),
        (Collective::ReduceScatter, reduce_scatter(fabric, workers, size)),
        (Collective::AllGather, all_gather(fabric, workers, size)),
        (Collective::HalvingDoubling, AllReduce::HalvingDoubling.cost(fabric, workers, size)),
        (Collective::Tree, AllReduce::Tree.cost(fabric, workers, size)),
        (Collective::Broadcast, Broadcast::Tree.cost(fabric, workers, size)),
    ]
}

fn is_close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected
}

#[test]
fn equal_workers_are_the_closed_forms() {
    let size = Bytes::new(3e7);
    for workers in (1..=17).chain([31, 64, 100]) {
        for (collective, cost) in exact(&fabric(), workers, size) {
            let (found, expected) =
                (time(collective, &machines(&fabric(), workers), size), cost.total().get());
            assert!(is_close(found, expected), "{collective:?} {workers}: {found} {expected}");
        }
    }
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    (0.0..1e-3, 1e6..1e11, 1e9..1e14).prop_map(|(step, bandwidth, reduce)| Fabric {
        step: Seconds::new(step),
        bandwidth: BytesPerSec::new(bandwidth),
        reduce: FlopsPerSec::new(reduce),
        element: Bytes::new(4.0),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_machines_are_the_closed_forms(fabric in fabrics(), workers in 1..=17u32, size in 1.0..1e9) {
        let size = Bytes::new(size);
        for (collective, cost) in exact(&fabric, workers, size) {
            let (found, expected) = (time(collective, &machines(&fabric, workers), size), cost.total().get());
            prop_assert!(is_close(found, expected), "{:?} {}: {} {}", collective, workers, found, expected);
        }
    }

    #[test]
    fn two_levels_are_the_closed_form(
        intra in fabrics(), step in 0.0..1e-2, bandwidth in 1e6..1e11,
        per_node in 1..=6u32, nodes in 1..=6u32, size in 1.0..1e9,
    ) {
        let inter = Fabric { step: Seconds::new(step), bandwidth: BytesPerSec::new(bandwidth), ..intra };
        let found = time(Collective::Hierarchical, &on_nodes(&intra, &inter, per_node, nodes), Bytes::new(size));
        let expected = Hierarchy { per_node, nodes, intra, inter }.time(Bytes::new(size)).get();
        prop_assert!(is_close(found, expected), "{} on {}: {} {}", per_node, nodes, found, expected);
    }
}

fn on_nodes(intra: &Fabric, inter: &Fabric, per_node: u32, nodes: u32) -> Machines {
    Machines {
        nodes: Some(Nodes { workers: per_node, port: inter.bandwidth, step: inter.step }),
        ..machines(intra, per_node * nodes)
    }
}

#[test]
fn two_levels_without_nodes_are_the_ring() {
    let size = Bytes::new(3e7);
    for workers in 1..=9 {
        let machines = machines(&fabric(), workers);
        let (found, ring) =
            (time(Collective::Hierarchical, &machines, size), time(Collective::Ring, &machines, size));
        assert!(is_close(found, ring), "{workers}: {found} {ring}");
    }
}

#[test]
fn nodes_that_are_not_full_are_refused() {
    let mut machines = on_nodes(&fabric(), &wide_area(), 4, 2);
    machines.ports.pop();
    let refused = Collective::Hierarchical.program(&machines, Bytes::new(1e6)).unwrap_err();
    assert_eq!(refused.to_string(), "7 workers do not fill nodes of 4");
    // One node that is not full is none the less one node.
    machines.ports.truncate(3);
    let expected = AllReduce::Ring.time(&fabric(), 3, Bytes::new(1e6)).get();
    assert!(is_close(time(Collective::Hierarchical, &machines, Bytes::new(1e6)), expected));
}

/// A ring of all workers leaves every node once, and pays for every round there.
#[test]
fn between_slow_nodes_two_levels_beat_the_ring() {
    let size = Bytes::new(3e7);
    let machines = on_nodes(&fabric(), &wide_area(), 4, 3);
    let ring = time(Collective::Ring, &machines, size);
    let slow = AllReduce::Ring.time(&wide_area(), 12, size).get();
    assert!(ring <= slow && ring > 0.9 * slow, "{ring} {slow}");
    assert!(time(Collective::Hierarchical, &machines, size) < ring);
}

/// The most bytes of any port, of one byte that is summed: children's and the parent's halves.
fn busiest_port(workers: u32) -> f64 {
    match workers {
        1 => 0.0,
        2 => 1.0,
        3 => 1.5,
        _ => 2.0,
    }
}

/// What goes through ports does not depend on how it is cut, and is what the closed form says from four workers on.
#[test]
fn two_trees_carry_two_bytes_for_each_byte_through_the_busiest_port() {
    let (fabric, size) = (fabric(), Bytes::new(1e7));
    for workers in 1..=17 {
        for packets in [1, 3, 8] {
            let found = outcome(Collective::DoubleTree { packets }, &machines(&fabric, workers), size);
            let carried = found.port_used.iter().map(|used| used * found.time * fabric.bandwidth.get());
            let most = carried.fold(0.0, f64::max);
            let expected = busiest_port(workers) * size.get();
            assert!((most - expected).abs() <= 1e-6 * size.get(), "{workers} {packets}: {most} {expected}");
        }
    }
}

#[test]
fn two_trees_by_hand() {
    let (fabric, size) = (fabric(), Bytes::new(1e7));
    let transfer = |share: f64| (size * share / fabric.bandwidth).get();
    let combine = |share: f64| (size * share).get() / (fabric.element.get() * fabric.reduce.get());
    let step = fabric.step.get();
    let found =
        |workers, packets| time(Collective::DoubleTree { packets }, &machines(&fabric, workers), size);
    assert!(found(1, 4).abs() < f64::EPSILON);
    // Each of two gives the other half of its data, combines, and gives back.
    assert!(is_close(found(2, 1), 2.0 * (step + transfer(0.5)) + combine(0.5)));
    // Of three, one root hears from both others at once and combines one after the other; so does the other root, which
    // sends to the first all the while.
    assert!(is_close(found(3, 1), 2.0 * (step + transfer(1.0)) + 2.0 * combine(0.5)));
}

proptest! {
    /// The closed form is the limit of many packets that cost nothing by themselves: without fixed costs no cut is faster than
    /// its bytes on the busiest port, or than the busiest worker combines, and none slower than both after one another by
    /// more than the first packet's way up and down.
    #[test]
    fn two_trees_of_small_packets_are_the_closed_form(
        fabric in fabrics(), workers in 2..=20u32, packets in 1..=128u32, size in 1e3..1e9,
    ) {
        let fabric = Fabric { step: Seconds::ZERO, ..fabric };
        let size = Bytes::new(size);
        let found = time(Collective::DoubleTree { packets }, &machines(&fabric, workers), size);
        let cost = AllReduce::DoubleTree.cost(&fabric, workers, size);
        let bytes = cost.transfer.get() * busiest_port(workers) / 2.0;
        let fill = f64::from(workers.ilog2()) / f64::from(packets) * cost.total().get();
        prop_assert!(found >= bytes * (1.0 - 1e-9), "{workers} {packets}: {found} {cost:?}");
        prop_assert!(found <= cost.total().get() + fill, "{workers} {packets}: {found} {cost:?}");
    }
}

/// Many packets hide the depth, and cost their steps.
#[test]
fn the_best_number_of_packets_lies_between() {
    let (fabric, size) = (fabric(), Bytes::new(1e7));
    let machines = machines(&fabric, 16);
    let with = |packets| time(Collective::DoubleTree { packets }, &machines, size);
    assert!(with(16) < with(1) && with(16) < with(1024));
    let closed = AllReduce::DoubleTree.time(&fabric, 16, size).get();
    assert!(with(16) > closed, "{} {closed}", with(16));
}

/// Around a ring everything waits for the slowest port in every round.
#[test]
fn a_slow_port_slows_the_ring() {
    let size = Bytes::new(3e7);
    let mut machines = machines(&fabric(), 8);
    machines.ports[3] = BytesPerSec::new(1e8);
    let slow = Fabric { bandwidth: BytesPerSec::new(1e8), ..fabric() };
    let (found, bound) =
        (time(Collective::Ring, &machines, size), AllReduce::Ring.cost(&slow, 8, size).total().get());
    assert!(found <= bound && found > 0.9 * bound, "{found} {bound}");
}

#[test]
fn nothing_to_send_takes_only_the_steps() {
    let found = time(Collective::Ring, &machines(&fabric(), 4), Bytes::ZERO);
    assert!((found - 6.0 * 3e-5).abs() < 1e-12);
}

#[test]
fn nobody_cannot_take_part() {
    let machines = machines(&fabric(), 0);
    let packets = 1;
    for collective in [
        Collective::Ring,
        Collective::HalvingDoubling,
        Collective::Tree,
        Collective::DoubleTree { packets },
        Collective::Hierarchical,
    ] {
        let program = collective.program(&machines, Bytes::new(1.0)).unwrap();
        assert!(run(&program, 0, Limits::steps(1), &mut Blind).is_err());
    }
}
