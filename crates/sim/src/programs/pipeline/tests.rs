use super::*;
use crate::{Limits, run};

/// One forward, one backward on equal stages, without traffic.
fn one_f_one_b(stages: u32, micro_batches: u32, [forward, backward]: [f64; 2]) -> Pipeline {
    let order = |stage: u32| {
        let ahead = (stages - 1 - stage).min(micro_batches);
        let task = |phase, micro_batch| Task { phase, micro_batch, place: stage, with_next: false };
        let mut order: Vec<Task> = (0..ahead).map(|i| task(Phase::Forward, i)).collect();
        for i in 0..micro_batches {
            order.extend((ahead + i < micro_batches).then(|| task(Phase::Forward, ahead + i)));
            order.push(task(Phase::Backward, i));
        }
        order
    };
    let pass = |compute| Pass { work: Work::Compute(compute), host: 0.0 };
    Pipeline {
        stage_of: (0..stages).collect(),
        shares: vec![1.0; stages as usize],
        orders: vec![(0..stages).map(order).collect()],
        costs: vec![Costs {
            passes: vec![[pass(forward), pass(backward), Pass::default()]; stages as usize],
            sends: vec![0.0; stages as usize],
            tails: vec![Tail::default(); stages as usize],
        }],
        replicas: vec![0],
        blocking: false,
        links: Links::Apart,
        between: [true; Traffic::COUNT],
        joint: [true; Traffic::COUNT],
        jitter: 0.0,
        ranks: 1,
    }
}

fn step(pipeline: &Pipeline) -> f64 {
    let built = pipeline.build().unwrap();
    assert_eq!(built.marks.len(), built.program.graph.len());
    run(&built.program, 1, Limits::steps(1), &mut crate::Blind).unwrap().time
}

#[test]
fn equal_stages_take_the_closed_form() {
    for (stages, micro_batches) in [(1, 1), (2, 1), (4, 4), (4, 16), (8, 3)] {
        let time = step(&one_f_one_b(stages, micro_batches, [1.0, 2.0]));
        assert!((time - 3.0 * f64::from(stages + micro_batches - 1)).abs() < 1e-9, "{stages}: {time}");
    }
}

/// Replicas with micro-batches of their own keep to their schedules, and meet for their gradients.
#[test]
fn kinds_of_replicas_have_their_own_micro_batches() {
    for (stages, counts) in [(1, [4, 2]), (3, [7, 4]), (4, [2, 9])] {
        let [one, other] = [(counts[0], 1.0), (counts[1], 2.0)].map(|(micro_batches, slower)| {
            let mut own = one_f_one_b(stages, micro_batches, [slower, 2.0 * slower]);
            for tail in &mut own.costs[0].tails {
                *tail = Tail {
                    buckets: 1.0,
                    gradients: Exchange { time: 0.5, overlapped: false },
                    ..Tail::default()
                };
            }
            own
        });
        let alone = [&one, &other].map(step);
        let both = Pipeline {
            orders: [one.orders, other.orders].concat(),
            costs: [one.costs, other.costs].concat(),
            replicas: vec![0, 0, 1],
            ..one_f_one_b(stages, 1, [1.0; 2])
        };
        assert!((step(&both) - alone[0].max(alone[1])).abs() < 1e-9, "{stages} {alone:?}");
    }
}

#[test]
fn traffic_beside_traffic_shares_a_link() {
    // Tensor and context traffic, 0.4 s each, beside 0.5 s of computing.
    let mut pipeline = one_f_one_b(1, 1, [0.5, 0.0]);
    let sent = |kind| Work::Traffic(kind, 0.4);
    pipeline.costs[0].passes[0][0].work =
        Work::Beside(vec![Work::Compute(0.5), sent(Traffic::Tensor), sent(Traffic::Context)]);
    assert!((step(&pipeline) - 0.5).abs() < 1e-12);
    pipeline.links = Links::Shared { slowdown: 0.0 };
    assert!((step(&pipeline) - 0.8).abs() < 1e-12);
    // On different levels of the network they do not meet.
    pipeline.between[Traffic::Tensor as usize] = false;
    assert!((step(&pipeline) - 0.5).abs() < 1e-12);
}

#[test]
fn computing_beside_traffic_is_slower_by_the_factor() {
    let mut pipeline = one_f_one_b(1, 1, [0.5, 0.0]);
    pipeline.costs[0].passes[0][0].work =
        Work::Beside(vec![Work::Compute(0.5), Work::Traffic(Traffic::Tensor, 0.2)]);
    pipeline.links = Links::Shared { slowdown: 0.25 };
    // 0.2 s of traffic take 0.25 s, in which 0.2 s are computed.
    assert!((step(&pipeline) - 0.55).abs() < 1e-12, "{}", step(&pipeline));
}

/// n buckets of gradients G beside a backward pass B take max(B + G/n, B/n + G): the last is left, or they do not fit.
/// So do weights W beside a forward pass F.
#[test]
fn buckets_are_hidden_as_far_as_they_fit() {
    for time in [0.5, 1.0, 4.0] {
        let mut pipeline = one_f_one_b(1, 3, [1.0, 2.0]);
        let exchange = Exchange { time, overlapped: true };
        pipeline.costs[0].tails[0] = Tail { buckets: 4.0, gradients: exchange, ..Tail::default() };
        let expected = 7.0 + (2.0 + time / 4.0).max(2.0 / 4.0 + time);
        assert!((step(&pipeline) - expected).abs() < 1e-12, "{time}");
        pipeline.costs[0].tails[0] = Tail { buckets: 4.0, weights: exchange, ..Tail::default() };
        let expected = 8.0 + (1.0 + time / 4.0).max(1.0 / 4.0 + time);
        assert!((step(&pipeline) - expected).abs() < 1e-12, "{time}: {}", step(&pipeline));
    }
}

#[test]
fn replicas_wait_for_the_slowest_where_they_exchange() {
    let mut pipeline = one_f_one_b(2, 4, [1.0, 2.0]);
    let mut slow = pipeline.costs[0].clone();
    slow.passes[1][0].work = Work::Compute(1.5);
    pipeline.costs.push(slow);
    for costs in &mut pipeline.costs {
        for tail in &mut costs.tails {
            tail.gradients.time = 0.25;
            tail.update = 0.5;
        }
    }
    let mut alone = pipeline.clone();
    alone.replicas = vec![1];
    pipeline.replicas = vec![0, 1, 0];
    assert!((step(&pipeline) - step(&alone)).abs() < 1e-12);
    alone.replicas = vec![0];
    assert!(step(&pipeline) > step(&alone) + 1.0);
}

#[test]
fn jitter_makes_the_slowest_rank_decide() {
    let mut pipeline = one_f_one_b(1, 1, [1.0, 2.0]);
    pipeline.jitter = 0.1;
    let mean = |pipeline: &Pipeline| {
        let built = pipeline.build().unwrap();
        run(&built.program, 7, Limits::steps(2000), &mut crate::Blind).unwrap().time / 2000.0
    };
    let one = mean(&pipeline);
    assert!((one / 3.0 - 1.0).abs() < 0.02, "{one}");
    pipeline.ranks = 8;
    // The largest of 8 normal numbers is 1.42 standard deviations above the mean.
    let eight = mean(&pipeline);
    assert!((eight / 3.0 - 1.15).abs() < 0.02, "{eight}");
}
