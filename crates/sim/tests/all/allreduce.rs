//! All-reduce training: the engine against the closed form of Liu 2022, and against small cases by hand.

#[path = "../../../analytic/tests/common/mod.rs"]
mod common;

use common::{curves, line, pass, passes};
use proptest::prelude::*;
use stepcast_analytic::liu2022::{Flush, plan};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::{Layer, Pass};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{BufferReading, Fusion};
use stepcast_sim::{AllReduce, Bucket, End, Interference, Limits, Messages, Steps, run};

fn training(passes: Vec<Pass>, workers: usize, messages: Messages, curve: Curve) -> AllReduce {
    AllReduce {
        kind: (0..workers).map(|worker| worker % passes.len()).collect(),
        passes: passes.into_iter().map(|pass| vec![pass]).collect(),
        messages,
        startup: curve.startup(),
        curve,
        channels: 1,
        interference: Interference::default(),
        period: 1,
    }
}

fn messages(pass: &Pass, curve: &Curve, schedule: &Fusion) -> Messages {
    if let Fusion::Horovod { threshold, cycle, negotiation } = *schedule {
        return Messages::Cycles { length: cycle, threshold, negotiation, phase: Some(0.5) };
    }
    let bucket = |flush: &Flush| {
        let (after, wait) = flush.leaves(schedule);
        Bucket { first: flush.first, last: flush.last, after, wait }
    };
    Messages::Buckets(plan(pass, curve, schedule).flushes.iter().map(bucket).collect())
}

/// When the last worker ended each of the first steps.
fn ends(training: &AllReduce, steps: u64) -> Vec<f64> {
    let program = training.program().unwrap();
    let mut records = Steps::default();
    let outcome = run(&program, 1, Limits::steps(steps), &mut records).unwrap();
    assert_eq!(outcome.end, End::Completed);
    let mut ends = vec![0.0f64; steps as usize];
    let mut done = vec![0; program.workers()];
    for record in &records.records {
        let step = &mut done[record.worker as usize];
        ends[*step] = ends[*step].max(record.until);
        *step += 1;
    }
    ends
}

proptest! {
    /// Restricted to the paper's assumptions, the engine is OSF.
    #[test]
    fn equal_workers_are_the_closed_form(
        pass in passes(20), curve in curves(), workers in 1usize..6, size in 0.1..60.0, timeout in 0.1..5.0,
        cycle in 0.01..5.0, negotiation in 0.0..0.5, update in 0.0..2.0,
    ) {
        let mut pass = pass;
        pass.update = Seconds::new(update);
        for schedule in [
            Fusion::None,
            Fusion::All,
            Fusion::Pytorch { first: Bytes::new(1.0), cap: Bytes::new(size) },
            Fusion::buffer(Bytes::new(size)),
            Fusion::Buffer {
                size: Bytes::new(size),
                timeout: Some(Seconds::new(timeout)),
                reading: BufferReading::Concurrent,
            },
            Fusion::Adaptive,
            Fusion::MgWfbp,
        ] {
            let expected = plan(&pass, &curve, &schedule).outcome.iteration().get();
            let messages = messages(&pass, &curve, &schedule);
            let found = ends(&training(vec![pass.clone()], workers, messages, curve.clone()), 3);
            for (step, end) in found.iter().enumerate() {
                let expected = expected * (step + 1) as f64;
                prop_assert!((end - expected).abs() <= 1e-9 * expected.max(1.0), "{schedule:?}: {end} {expected}");
            }
        }
        // Horovod's cycles do not begin anew with every step: the closed form is about the first one, whose first gradients
        // must be there when a cycle begins anyway.
        (pass.forward, pass.update) = (Seconds::ZERO, Seconds::ZERO);
        pass.layers[0].backward = Seconds::ZERO;
        let schedule = Fusion::Horovod {
            threshold: Bytes::new(size), cycle: Seconds::new(cycle), negotiation: Seconds::new(negotiation),
        };
        let expected = plan(&pass, &curve, &schedule).outcome.iteration().get();
        let messages = messages(&pass, &curve, &schedule);
        let found = ends(&training(vec![pass.clone()], workers, messages, curve.clone()), 1);
        prop_assert!((found[0] - expected).abs() <= 1e-9 * expected.max(1.0), "{} {}", found[0], expected);
    }

    /// Every message waits for the slowest: of two kinds, layer by layer whoever is later.
    #[test]
    fn unequal_workers_wait_for_the_slowest(pass in passes(20), curve in curves(), slower in 1.0..4.0) {
        let slow = Pass {
            forward: pass.forward * slower,
            layers: pass.layers.iter().map(|l| Layer { backward: l.backward * slower, ..*l }).collect(),
            update: pass.update * slower,
        };
        let both = vec![pass.clone(), slow.clone()];
        let messages = messages(&pass, &curve, &Fusion::None);
        let slowest = Pass::slowest(&[(Seconds::ZERO, pass), (Seconds::ZERO, slow)]).unwrap();
        let expected = plan(&slowest, &curve, &Fusion::None).outcome.iteration().get();
        let found = ends(&training(both, 4, messages, curve), 1);
        prop_assert!((found[0] - expected).abs() <= 1e-9 * expected.max(1.0));
    }
}

fn every_layer(pass: &Pass) -> Messages {
    let bucket = |layer| Bucket { first: layer, last: layer, after: layer, wait: Seconds::ZERO };
    Messages::Buckets((0..pass.layers.len()).map(bucket).collect())
}

#[test]
fn computing_and_communication_slow_each_other_down() {
    // Forward 3 s, then 2 s and 4 s of backward; the first message of 4 s meets the second layer: with a factor of 1.5
    // each has done 4 s of work after 6 s, at 11 s. The last message of 1 s is alone.
    let pass = pass(&[(2.0, 4.0), (4.0, 1.0)]);
    let mut training = training(vec![pass.clone()], 3, every_layer(&pass), line(0.0, 1.0));
    training.interference.slowdown = 0.5;
    assert!((ends(&training, 2)[0] - 12.0).abs() < 1e-12);
    assert!((ends(&training, 2)[1] - 24.0).abs() < 1e-12);
    // A message of 1 s takes 1.5 s; computing loses half a second.
    let pass = self::pass(&[(2.0, 1.0), (4.0, 1.0)]);
    let mut training = self::training(vec![pass.clone()], 3, every_layer(&pass), line(0.0, 1.0));
    training.interference.slowdown = 0.5;
    assert!((ends(&training, 1)[0] - (3.0 + 2.0 + 4.5 + 1.0)).abs() < 1e-12);
}

#[test]
fn cycles_are_slowed_down_too() {
    // A cycle begins at 5.5 s, half a second after the first gradients; its message of 4 s meets what is left of the second
    // layer, 3.5 s: 5.25 s later computing is over, at 10.75 s, and the rest of the message takes half a second.
    let pass = pass(&[(2.0, 4.0), (4.0, 0.0)]);
    let seconds = Seconds::new;
    let cycles = Messages::Cycles {
        length: seconds(1.0),
        threshold: Bytes::new(9.0),
        negotiation: Seconds::ZERO,
        phase: Some(0.5),
    };
    let mut training = training(vec![pass], 3, cycles, line(0.0, 1.0));
    training.interference.slowdown = 0.5;
    assert!((ends(&training, 1)[0] - 11.25).abs() < 1e-12);
}

#[test]
fn messages_under_way_at_once_share_the_wire() {
    // Two messages of 2 s are ready at 3 s and 3 s, behind start-ups of 1 s: one after the other 3 + 2 · 3 = 9; at
    // once the start-ups overlap, 3 + 1 + 4 = 8; unless the host is so busy that they do not.
    let pass = pass(&[(2.0, 2.0), (0.0, 2.0)]);
    let mut training = training(vec![pass.clone()], 2, every_layer(&pass), line(1.0, 1.0));
    assert!((ends(&training, 1)[0] - 9.0).abs() < 1e-12);
    training.channels = 2;
    assert!((ends(&training, 1)[0] - 8.0).abs() < 1e-12);
    training.interference.slowdown = 0.5;
    assert!((ends(&training, 1)[0] - 9.0).abs() < 1e-12);
}

#[test]
fn gradients_are_copied_in_and_out() {
    // Forward 3 s; 2 s, copy 1 s; 4 s, copy 1 s. Messages of 1 s: 6-7 and 11-12. Copies out: 11-12, 12-13.
    let pass = pass(&[(2.0, 1.0), (4.0, 1.0)]);
    let mut training = training(vec![pass.clone()], 2, every_layer(&pass), line(0.0, 1.0));
    training.interference.copy_byte = Seconds::new(1.0);
    assert!((ends(&training, 1)[0] - 13.0).abs() < 1e-12);
}

#[test]
fn local_steps_exchange_nothing() {
    let pass = pass(&[(2.0, 10.0)]);
    let mut training = training(vec![pass.clone()], 3, every_layer(&pass), line(0.0, 1.0));
    training.period = 3;
    assert_eq!(ends(&training, 6), [3.0, 6.0, 19.0, 22.0, 25.0, 38.0]);
}

/// Cycles know nothing of steps: over many runs, the first one begins at any moment of a cycle alike.
#[test]
fn every_run_has_its_own_phase() {
    let pass = pass(&[(2.0, 4.0)]);
    let cycles = |phase| Messages::Cycles {
        length: Seconds::new(1.0),
        threshold: Bytes::new(9.0),
        negotiation: Seconds::ZERO,
        phase,
    };
    let end = |phase, seed| {
        let training = training(vec![pass.clone()], 2, cycles(phase), line(0.0, 1.0));
        run(&training.program().unwrap(), seed, Limits::steps(1), &mut Steps::default()).unwrap().time
    };
    // Ready at 3 s: forward 1 s, backward 2 s.
    let waits: Vec<f64> = (0..400).map(|seed| end(None, seed) - 7.0).collect();
    assert!(waits.iter().all(|wait| (0.0..=1.0).contains(wait)), "{waits:?}");
    let mean = waits.iter().sum::<f64>() / 400.0;
    // The standard error of the mean of 400 uniform numbers is 0.0144.
    assert!((mean - 0.5).abs() < 0.05, "{mean}");
    for phase in [0.1, 0.5, 0.9] {
        assert!((end(Some(phase), 7) - 7.0 - phase).abs() < 1e-12, "{phase}");
    }
}
