//! The engine, restricted to what has a closed form, gives that closed form.

use proptest::prelude::*;
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::sprint::{Exchange, Figures, Length, Sprint};
use stepcast_sim::{
    Blind, Discipline, End, LaneSpec, Limits, OpSpec, PoolSpec, Program, Station, StepGraph, StepWork, Steps,
    run,
};

fn op(name: &str, lane: u16, after: &[u32]) -> OpSpec {
    OpSpec { name: name.to_owned(), lane, after: after.to_vec(), releases: None }
}

fn link(pool: u32) -> LaneSpec {
    LaneSpec { station: Station::Pool(pool), ..LaneSpec::own(1.0) }
}

fn fixed(graph: &StepGraph, work: &[f64]) -> StepWork {
    StepWork { work: work.to_vec(), sources: graph.sources().to_vec(), rank: vec![], share: 1.0 }
}

/// Pull (shared equally), compute, push (one after the other): Zeng 2023. Pushes take `push`, a pull `pull`, of a
/// link that has it alone.
fn zeng(compute: &[f64], push: f64, pull: f64, coordination: Synchronisation) -> Program {
    let graph =
        StepGraph::new(&[op("pull", 0, &[]), op("compute", 1, &[0]), op("push", 2, &[1])], 3).unwrap();
    let steps = compute.iter().map(|&time| vec![fixed(&graph, &[pull, time, push])]).collect();
    let mut program = Program {
        pools: vec![PoolSpec::equal(1.0)],
        coordination,
        silent_when_local: vec![true, false, true],
        ..Program::new(graph, steps)
    };
    let server = program.add_lane(LaneSpec::own(1.0));
    for kind in 0..compute.len() {
        let downlink = program.add_lane(link(0));
        let own = program.add_lane(LaneSpec::own(1.0));
        program.add_worker(kind, vec![downlink, own, server]);
    }
    program
}

/// Algorithm 1: T = max_i (T_i + (n − i + 1)·push) + n·pull, T sorted.
fn algorithm_1(compute: &[f64], push: f64, pull: f64) -> f64 {
    let mut sorted = compute.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let ends = sorted.iter().enumerate().map(|(i, time)| time + (n - i as f64) * push);
    ends.fold(0.0, f64::max) + n * pull
}

proptest! {
    #[test]
    fn bulk_synchronous_is_algorithm_1(
        compute in prop::collection::vec(0.01..20.0f64, 1..12), push in 0.01..5.0f64, pull in 0.0..5.0f64,
    ) {
        let program = zeng(&compute, push, pull, Synchronisation::Bsp);
        let mut steps = Steps::default();
        let outcome = run(&program, 1, Limits::steps(3), &mut steps).unwrap();
        prop_assert_eq!(outcome.end, End::Completed);
        let expected = algorithm_1(&compute, push, pull);
        prop_assert!((outcome.time / (3.0 * expected) - 1.0).abs() < 1e-9, "{} {}", outcome.time, expected);
    }

    #[test]
    fn equal_workers_are_eq_29(compute in 0.01..20.0f64, push in 0.01..5.0f64, pull in 0.0..5.0f64, n in 1usize..30) {
        let program = zeng(&vec![compute; n], push, pull, Synchronisation::Bsp);
        let outcome = run(&program, 1, Limits::steps(2), &mut Blind).unwrap();
        let expected = compute + n as f64 * (push + pull);
        prop_assert!((outcome.time / (2.0 * expected) - 1.0).abs() < 1e-9);
    }

    /// k − 1 steps of computing alone, then one with everything: the slowest sum decides.
    #[test]
    fn local_sgd_synchronises_every_so_often(
        compute in prop::collection::vec(0.01..20.0f64, 1..8), push in 0.01..5.0f64, pull in 0.0..5.0f64, k in 1u32..6,
    ) {
        let program = zeng(&compute, push, pull, Synchronisation::LocalSgd(k));
        let outcome = run(&program, 1, Limits::steps(u64::from(k) * 2), &mut Blind).unwrap();
        // All pull together only if all come at the same time; otherwise the end lies between these bounds.
        let longest = compute.iter().copied().fold(0.0, f64::max);
        let low = 2.0 * (f64::from(k) * longest + push + pull);
        let total = compute.len() as f64 * (push + pull);
        prop_assert!(outcome.time >= low - 1e-9 && outcome.time <= 2.0 * (f64::from(k) * longest + total) + 1e-9);
    }

    /// Whatever the order, a link that is never idle carries all bytes at its rate.
    #[test]
    fn work_is_conserved(sizes in prop::collection::vec(0.1..10.0f64, 1..20), workers in 1usize..6) {
        let specs: Vec<OpSpec> = (0..sizes.len()).map(|index| op(&format!("send {index}"), 0, &[])).collect();
        let graph = StepGraph::new(&specs, 1).unwrap();
        let steps = vec![vec![fixed(&graph, &sizes)]];
        let mut program =
            Program { pools: vec![PoolSpec::equal(2.0)], ..Program::new(graph, steps) };
        for _ in 0..workers {
            program.add_worker_with_own_lanes(0, [link(0)]);
        }
        let outcome = run(&program, 1, Limits::steps(3), &mut Blind).unwrap();
        let bytes = 3.0 * workers as f64 * sizes.iter().sum::<f64>();
        prop_assert!((outcome.time / (bytes / 2.0) - 1.0).abs() < 1e-9);
        prop_assert!((outcome.pool_used[0] - 1.0).abs() < 1e-9);
    }
}

/// Downlink 4, think 6 + 1, uplink 4: the sequence of errata 3.3 and 3.5.
fn sequence(workers: usize, times: &[[f64; 4]]) -> Program {
    let specs = [op("down", 0, &[]), op("compute", 1, &[0]), op("up", 2, &[1]), op("update", 3, &[2])];
    let graph = StepGraph::new(&specs, 4).unwrap();
    let steps = vec![times.iter().map(|work| fixed(&graph, work)).collect()];
    let mut program = Program { pools: vec![PoolSpec::equal(1.0); 2], ..Program::new(graph, steps) };
    for _ in 0..workers {
        program.add_worker_with_own_lanes(0, [link(0), LaneSpec::own(1.0), link(1), LaneSpec::own(1.0)]);
    }
    program
}

#[test]
fn identical_workers_stay_in_lock_step() {
    // Errata 3.3: throughput W/(15 + 8(W − 1)) for ever.
    for workers in [1usize, 2, 3, 8] {
        let outcome =
            run(&sequence(workers, &[[4.0, 6.0, 4.0, 1.0]]), 1, Limits::steps(100), &mut Blind).unwrap();
        let expected = workers as f64 / (15.0 + 8.0 * (workers as f64 - 1.0));
        assert!((outcome.steps as f64 / outcome.time / expected - 1.0).abs() < 1e-9);
    }
}

#[test]
fn exponential_times_give_mean_value_analysis() {
    // Product form: processor-sharing stations and delays depend on means only when times are exponential.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut exponential = |mean: f64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let uniform = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        -mean * uniform.ln()
    };
    let times: Vec<[f64; 4]> = (0..20_000)
        .map(|_| [exponential(4.0), exponential(6.0), exponential(4.0), exponential(1.0)])
        .collect();
    // Golden values for demands (4, 4) and a delay of 7.
    for (workers, expected) in
        [(1usize, 0.066_667), (2, 0.116_732), (3, 0.152_041), (4, 0.175_879), (8, 0.215_520)]
    {
        let outcome = run(&sequence(workers, &times), 7, Limits::until_slowest(20_000), &mut Blind).unwrap();
        let throughput = outcome.steps as f64 / outcome.time;
        assert!((throughput / expected - 1.0).abs() < 0.02, "{workers}: {throughput} for {expected}");
    }
}

#[test]
fn staleness_counts_the_updates_of_others() {
    let mut steps = Steps::default();
    run(&sequence(4, &[[4.0, 6.0, 4.0, 1.0]]), 1, Limits::steps(50), &mut steps).unwrap();
    // In lock-step every other worker updates once per step, except before the very first update of a round.
    let late: Vec<u64> = steps.records.iter().skip(40).map(|record| record.stale).collect();
    assert!(late.iter().all(|&stale| stale <= 6));
    let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
    assert!((mean - 3.0).abs() < 0.1, "{mean}");
    let mut alone = Steps::default();
    run(&sequence(1, &[[4.0, 6.0, 4.0, 1.0]]), 1, Limits::steps(50), &mut alone).unwrap();
    assert!(alone.records.iter().all(|record| record.stale == 0));
}

#[test]
fn bounded_staleness_keeps_the_fast_from_running_away() {
    let mut program = zeng(&[1.0, 10.0], 0.01, 0.0, Synchronisation::Ssp(3));
    let mut steps = Steps::default();
    run(&program, 1, Limits::until_slowest(20), &mut steps).unwrap();
    let mut done = [0u64; 2];
    for record in &steps.records {
        done[record.worker as usize] += 1;
        assert!(done[0] <= done[1] + 4, "{done:?}");
    }
    program.coordination = Synchronisation::Async;
    let outcome = run(&program, 1, Limits::until_slowest(20), &mut Blind).unwrap();
    assert!(outcome.steps > 200);
}

/// Two workers, two locks, taken in opposite order.
fn locks(first: [u16; 2]) -> Program {
    let mut specs =
        vec![op("take a", 0, &[]), op("work", 2, &[0]), op("take b", 1, &[1]), op("end", 2, &[2])];
    specs[3].releases = Some(0);
    specs.push(OpSpec { releases: Some(1), ..op("done", 2, &[3]) });
    let graph = StepGraph::new(&specs, 3).unwrap();
    let lock = LaneSpec { discipline: Discipline::Lock, ..LaneSpec::own(1.0) };
    let steps = vec![vec![fixed(&graph, &[0.0, 1.0, 0.0, 1.0, 0.0])]];
    Program {
        lanes: vec![lock, lock, LaneSpec::own(1.0), LaneSpec::own(1.0)],
        lane_of: vec![vec![0, 1, 2], vec![u32::from(first[0]), u32::from(first[1]), 3]],
        kind: vec![0; 2],
        ..Program::new(graph, steps)
    }
}

#[test]
fn locks_exclude_and_deadlocks_are_named() {
    let outcome = run(&locks([0, 1]), 1, Limits::steps(5), &mut Blind).unwrap();
    assert_eq!(outcome.end, End::Completed);
    // Two seconds under the first lock, ten times over.
    assert!((outcome.time - 20.0).abs() < 1e-9, "{}", outcome.time);
    let stuck = run(&locks([1, 0]), 1, Limits::steps(5), &mut Blind).unwrap();
    let End::Deadlock(waiting) = stuck.end else { panic!("{:?}", stuck.end) };
    assert!(
        waiting.contains(&(0, "take b".to_owned())) && waiting.contains(&(1, "take b".to_owned())),
        "{waiting:?}"
    );
}

#[test]
fn a_barrier_lets_all_go_together() {
    let graph = StepGraph::new(&[op("work", 0, &[]), op("meet", 1, &[0]), op("rest", 0, &[1])], 2).unwrap();
    let barrier = LaneSpec { discipline: Discipline::Barrier(3), ..LaneSpec::own(1.0) };
    let steps = [1.0, 2.0, 5.0].iter().map(|&time| vec![fixed(&graph, &[time, 0.0, 1.0])]).collect();
    let mut program = Program::new(graph, steps);
    let barrier = program.add_lane(barrier);
    for kind in 0..3 {
        let own = program.add_lane(LaneSpec::own(1.0));
        program.add_worker(kind, vec![own, barrier]);
    }
    let outcome = run(&program, 1, Limits::steps(4), &mut Blind).unwrap();
    assert!((outcome.time - 4.0 * 6.0).abs() < 1e-9);
    // A fourth party that never arrives leaves the others waiting.
    program.lanes[0].discipline = Discipline::Barrier(4);
    let stuck = run(&program, 1, Limits::steps(4), &mut Blind).unwrap();
    assert!(matches!(stuck.end, End::Deadlock(waiting) if waiting.len() == 3));
}

#[test]
fn a_start_up_time_precedes_every_transfer() {
    let mut program = sequence(1, &[[4.0, 6.0, 4.0, 1.0]]);
    for lane in [0, 2] {
        program.lanes[lane].startup = 0.5;
    }
    let outcome = run(&program, 1, Limits::steps(10), &mut Blind).unwrap();
    assert!((outcome.time - 10.0 * 16.0).abs() < 1e-9);
}

#[test]
fn budgets_end_what_would_not() {
    let program = sequence(2, &[[4.0, 6.0, 4.0, 1.0]]);
    let forever = Limits { effort: 1000, ..Limits::steps(u64::MAX) };
    assert_eq!(run(&program, 1, forever, &mut Blind).unwrap().end, End::EffortLimit);
    let hour = Limits { time: 3600.0, ..Limits::steps(u64::MAX) };
    let outcome = run(&program, 1, hour, &mut Blind).unwrap();
    assert_eq!((outcome.end, outcome.time.to_bits()), (End::TimeLimit, 3600f64.to_bits()));
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let times: Vec<[f64; 4]> = (0..50u32).map(|i| [4.0, 5.0 + f64::from(i % 7), 4.0, 1.0]).collect();
    let records = |seed| {
        let mut steps = Steps::default();
        run(&sequence(3, &times), seed, Limits::steps(40), &mut steps).unwrap();
        steps.records
    };
    assert_eq!(records(5), records(5));
    assert_ne!(records(5), records(6));
}

// SPRINT's threads where the answer is known without a model.

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

fn figures(sprint: Sprint) -> Figures {
    sprint.run(7, Length { iterations: 400, warm_up: 20 }).unwrap()
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1e-12)
}

#[test]
fn a_buffer_is_summed_only_when_it_has_something_new() {
    // Four updates for each gradient: y = 0.25 + 0.1·y/x.
    let seen = figures(Sprint { sum_buffer: 0.1, compute: 1.0, ..sprint() });
    assert!(near(seen.sum_gradients, 0.1 * seen.gradients, 1e-9), "{seen:?}");
    assert!(near(seen.update, 0.25 + 0.1 * seen.gradients, 1e-9), "{seen:?}");
    assert!(near(seen.gradients, seen.update / seen.gpu, 1e-2), "{seen:?}");
}

#[test]
fn weights_are_fetched_only_when_they_are_new() {
    // Four gradients for each update.
    let seen = figures(Sprint { fetch_weights: 0.01, compute: 0.06, ..sprint() });
    assert!(near(seen.fetch_weights, 0.01 * seen.gpu / seen.update, 2e-2), "{seen:?}");
    assert!(seen.gradients > 3.0, "{seen:?}");
}

#[test]
fn the_barrier_waits_for_the_slowest_node() {
    // With nothing to sum and nothing locked all nodes are alike: no wait.
    let alike = figures(Sprint { nodes: 4, ..sprint() });
    assert!(alike.update_waits[1] < 1e-9, "{alike:?}");
    let summing = figures(Sprint { nodes: 4, gpus: 4, sum_buffer: 0.02, jitter: 0.2, ..sprint() });
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
        let seen = figures(sprint);
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
