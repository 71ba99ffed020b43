//! Fusion rules of frameworks, the optimal plan, and the breakdown of communication time.

use crate::common::{curves, line, pass, passes};
use proptest::prelude::*;
use stepcast_analytic::liu2022::{Outcome, Pass, optimum, osf, plan};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{Fusion, PYTORCH_CAP, PYTORCH_FIRST};

fn sizes(pass: &Pass, curve: &Curve, schedule: &Fusion) -> Vec<f64> {
    plan(pass, curve, schedule).flushes.iter().map(|flush| flush.size.get()).collect()
}

/// Slow reference for `optimum`: tries every way to cut.
fn exhaustive(pass: &Pass, curve: &Curve) -> Outcome {
    let cuts = pass.tensors().saturating_sub(1);
    let outcome = |mask: u32| {
        let mut counts = vec![1];
        for cut in 0..cuts {
            match counts.last_mut() {
                Some(last) if mask & (1 << cut) == 0 => *last += 1,
                _ => counts.push(1),
            }
        }
        osf(pass, curve, &Fusion::Buckets(counts.into()))
    };
    let all = (0..1u32 << cuts).map(outcome);
    all.min_by(|a, b| a.iteration().get().total_cmp(&b.iteration().get())).unwrap()
}

#[test]
fn pytorch_closes_a_bucket_when_it_is_full() {
    let mib = 1024.0 * 1024.0;
    let pass = pass(&[(1.0, 0.5 * mib), (1.0, 0.75 * mib), (1.0, 24.0 * mib), (1.0, 2.0 * mib), (1.0, mib)]);
    let schedule = Fusion::Pytorch { first: PYTORCH_FIRST, cap: PYTORCH_CAP };
    // 0.5 + 0.75 reach the first MiB; 24 + 2 reach 25; the rest comes last.
    assert_eq!(sizes(&pass, &line(0.1, mib), &schedule), [1.25 * mib, 26.0 * mib, mib]);
}

/// The measured DDP job of ResNet-50 has five buckets (25,557,032 parameters).
#[test]
fn pytorch_cuts_resnet50_into_five() {
    let gradients = zoo::build("resnet50").unwrap().gradients();
    let layers: Vec<(f64, f64)> = gradients.iter().map(|g| (1e-3, 4.0 * g.elements as f64)).collect();
    let schedule = Fusion::Pytorch { first: PYTORCH_FIRST, cap: PYTORCH_CAP };
    let found = sizes(&pass(&layers), &line(1e-3, 1e9), &schedule);
    assert_eq!(found.iter().sum::<f64>(), 4.0 * 25_557_032.0);
    assert_eq!(found.len(), 5);
}

#[test]
fn horovod_sends_what_is_ready_when_a_cycle_begins() {
    // Ready at 0, 1, 2, 3; cycles at 1.5, 3.5 (the first message is over at 3.5), then 5.5.
    let pass = pass(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 4.0)]);
    let cycle = Seconds::new(3.0);
    let schedule = Fusion::horovod(Bytes::new(3.0), cycle);
    let plan = plan(&pass, &line(0.0, 1.0), &schedule);
    let found: Vec<(f64, f64, f64)> =
        plan.flushes.iter().map(|flush| (flush.size.get(), flush.start.get(), flush.end.get())).collect();
    // At 1.5 two are ready; at 4.5 the others: 1 and 4 do not fit together.
    assert_eq!(found, [(2.0, 1.5, 3.5), (1.0, 4.5, 5.5), (4.0, 5.5, 9.5)]);
}

#[test]
fn the_parts_of_communication() {
    // Ready at 0 and 4. Sent one by one: 0-2, idle until 4, then 4-7.
    let pass = pass(&[(1.0, 1.0), (4.0, 2.0), (5.0, 0.0)]);
    let parts = plan(&pass, &line(1.0, 1.0), &Fusion::None).communication();
    assert_eq!((parts.allreduce.get(), parts.wait.get(), parts.misc.get()), (5.0, 0.0, 4.0));
    assert_eq!(parts.exposed, Seconds::ZERO);
    // Fused: the first gradient waits for four seconds.
    let parts = plan(&pass, &line(1.0, 1.0), &Fusion::All).communication();
    assert_eq!((parts.allreduce.get(), parts.wait.get(), parts.misc.get()), (4.0, 9.0, 0.0));
    assert_eq!(parts.exposed.get(), 4.0);
    let schedule = Fusion::Horovod {
        threshold: Bytes::new(9.0),
        cycle: Seconds::new(2.0),
        negotiation: Seconds::new(0.25),
    };
    // Cycles begin at 1 and, since the first is over at 3.25, at 5.25.
    let parts = plan(&pass, &line(1.0, 1.0), &schedule).communication();
    assert_eq!((parts.negotiate.get(), parts.allreduce.get(), parts.wait.get()), (0.5, 5.0, 1.0 + 1.25));
}

proptest! {
    #[test]
    fn the_best_plan_is_the_best_of_all(pass in passes(12), curve in curves()) {
        let found = osf(&pass, &curve, &Fusion::Buckets(optimum(&pass, &curve).into()));
        let best = exhaustive(&pass, &curve);
        prop_assert!((found.iteration().get() - best.iteration().get()).abs() < 1e-9);
    }

    #[test]
    fn no_rule_beats_the_best_plan(
        pass in passes(40), curve in curves(), size in 0.1..60.0, cycle in 0.01..5.0,
    ) {
        let counts = optimum(&pass, &curve);
        prop_assert_eq!(counts.iter().sum::<u32>() as usize, pass.tensors());
        let best = osf(&pass, &curve, &Fusion::Buckets(counts.into())).iteration().get();
        for schedule in [
            Fusion::None,
            Fusion::All,
            Fusion::Pytorch { first: Bytes::new(1.0), cap: Bytes::new(size) },
            Fusion::buffer(Bytes::new(size)),
            Fusion::Adaptive,
            Fusion::MgWfbp,
            Fusion::horovod(Bytes::new(size), Seconds::new(cycle)),
        ] {
            let plan = plan(&pass, &curve, &schedule);
            let other = plan.outcome.iteration().get();
            prop_assert!(best <= other * (1.0 + 1e-12), "{:?}: {} against {}", schedule, other, best);
            prop_assert!((plan.sent().get() - pass.gradients().get()).abs() < 1e-9);
            // The parts add up to the whole communication time.
            let parts = plan.communication();
            let all = parts.negotiate + parts.wait + parts.allreduce + parts.misc;
            prop_assert!((all - plan.outcome.update).get().abs() < 1e-9);
            prop_assert!(parts.wait.get() >= -1e-12 && parts.misc.get() >= -1e-12);
        }
    }

    #[test]
    fn horovod_with_short_cycles_is_no_slower_than_the_network(pass in passes(20), startup in 0.0..1.0) {
        let curve = line(startup, 1.0);
        let cycle = Seconds::new(1e-6);
        let fused = Fusion::horovod(Bytes::new(f64::INFINITY), cycle);
        let alone = osf(&pass, &curve, &Fusion::None).iteration().get();
        prop_assert!(osf(&pass, &curve, &fused).iteration().get() <= alone + 1e-4);
    }
}
