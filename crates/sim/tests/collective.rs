//! Collectives step by step against their closed forms.

#![allow(clippy::unwrap_used)]

use stepcast_analytic::collectives::{AllReduce, Broadcast, Cost, Fabric, all_gather, reduce_scatter};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_sim::{Blind, Collective, End, Limits, Machines, run};

fn fabric() -> Fabric {
    Fabric {
        step: Seconds::new(3e-5),
        bandwidth: BytesPerSec::new(1.1e9),
        reduce: FlopsPerSec::new(7e9),
        element: Bytes::new(4.0),
    }
}

fn machines(workers: usize) -> Machines {
    let fabric = fabric();
    Machines {
        ports: vec![fabric.bandwidth; workers],
        step: fabric.step,
        combine_byte: Seconds::new(1.0 / (fabric.element.get() * fabric.reduce.get())),
    }
}

fn time(collective: Collective, machines: &Machines, size: Bytes) -> f64 {
    let program = collective.program(machines, size).unwrap();
    let outcome = run(&program, 0, Limits::steps(1), &mut Blind).unwrap();
    assert_eq!(outcome.end, End::Completed);
    outcome.time
}

#[test]
fn equal_workers_are_the_closed_forms() {
    let fabric = fabric();
    let size = Bytes::new(3e7);
    let check = |collective, workers: u32, cost: Cost| {
        let found = time(collective, &machines(workers as usize), size);
        let expected = cost.total().get();
        assert!((found - expected).abs() <= 1e-9 * expected, "{collective:?} {workers}: {found} {expected}");
    };
    for workers in [1, 2, 3, 4, 5, 8, 13, 16, 31, 64] {
        check(Collective::Ring, workers, AllReduce::Ring.cost(&fabric, workers, size));
        check(Collective::ReduceScatter, workers, reduce_scatter(&fabric, workers, size));
        check(Collective::AllGather, workers, all_gather(&fabric, workers, size));
    }
    for workers in [2, 4, 8, 32, 64] {
        check(Collective::HalvingDoubling, workers, AllReduce::HalvingDoubling.cost(&fabric, workers, size));
    }
}

#[test]
fn trees_take_a_round_for_every_level() {
    let size = Bytes::new(3e7);
    for workers in [1_u32, 2, 3, 5, 8, 11, 16, 32] {
        let machines = machines(workers as usize);
        for (collective, cost) in [
            (Collective::Broadcast, Broadcast::Tree.cost(&fabric(), workers, size)),
            (Collective::Tree, AllReduce::Tree.cost(&fabric(), workers, size)),
        ] {
            let (found, expected) = (time(collective, &machines, size), cost.total().get());
            let exact = (found - expected).abs() <= 1e-9 * expected;
            // Workers without a partner in a round begin the next one early: all but the bytes may overlap.
            let early = found < expected && found >= cost.transfer.get();
            let sound = exact || (early && !workers.is_power_of_two());
            assert!(sound, "{collective:?} {workers}: {found} {expected}");
        }
    }
}

/// Around a ring everything waits for the slowest port in every round.
#[test]
fn a_slow_port_slows_the_ring() {
    let size = Bytes::new(3e7);
    let mut machines = machines(8);
    machines.ports[3] = BytesPerSec::new(1e8);
    let slow = Fabric { bandwidth: BytesPerSec::new(1e8), ..fabric() };
    let (found, bound) =
        (time(Collective::Ring, &machines, size), AllReduce::Ring.cost(&slow, 8, size).total().get());
    assert!(found <= bound && found > 0.9 * bound, "{found} {bound}");
}

#[test]
fn nothing_to_send_takes_only_the_steps() {
    let found = time(Collective::Ring, &machines(4), Bytes::ZERO);
    assert!((found - 6.0 * 3e-5).abs() < 1e-12);
}
