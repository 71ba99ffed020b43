//! SPRINT's threads as events against the closed form of Oyama 2016: where they agree, and where they part.

use crate::{example, predicted_by, scenario};
use stepcast_analytic::oyama2016::Threads;
use stepcast_core::quantity::Seconds;
use stepcast_sim::sprint::{Exchange, Figures, Length, Sprint};
use stepcast_study::simulate::simulated_threads;

/// The synthetic machine of the errata, 16.1 million parameters.
fn machine(nodes: u32, gpus: u32, batch: u32) -> Threads {
    let (parameters, samples) = (16.1e6, f64::from(batch));
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

fn simulated(threads: &Threads, jitter: f64) -> Figures {
    simulated_threads(threads, jitter).run(1, Length { iterations: 1500, warm_up: 300 }).unwrap()
}

/// Minibatches of all updates, by the engine and by the closed form: same middle, and ends that are no farther apart than real
/// turns make them.
#[test]
fn minibatches_spread_as_predicted() {
    for (nodes, gpus, batch) in [(1, 8, 1), (1, 8, 4), (4, 8, 4)] {
        let threads = machine(nodes, gpus, batch);
        let steady = threads.steady().unwrap();
        let model = steady.minibatch_spread(&threads);
        assert!(model.low <= steady.minibatch && steady.minibatch <= model.high, "{model:?}");
        let seen = simulated(&threads, 0.1);
        let mut counts: Vec<f64> = seen.entered.iter().map(|&count| f64::from(count * batch)).collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        assert!(off(mean, seen.gradients * f64::from(batch)).abs() < 0.02, "{mean}");
        counts.sort_by(f64::total_cmp);
        let at = |share: f64| counts[(share * (counts.len() - 1) as f64) as usize];
        assert!(
            (at(0.5) - model.median).abs() <= 0.25 * model.median + f64::from(batch),
            "{} {model:?}",
            at(0.5)
        );
        assert!(at(0.05) <= at(0.95));
    }
}

fn mean_staleness(seen: &Figures) -> f64 {
    seen.staleness.iter().map(|&updates| f64::from(updates)).sum::<f64>() / seen.staleness.len() as f64
}

fn off(closed_form: f64, seen: f64) -> f64 {
    closed_form / seen - 1.0
}

/// The premise of the closed form: threads meet at random moments, critical sections are short against iterations, and
/// summing all buffers of a node is short against computing, so that buffers fill independently of it.
fn within_the_premise(nodes: u32, gpus: u32, batch: u32) -> Threads {
    let threads = machine(nodes, gpus, batch);
    let short = |time: Seconds| time * 0.2;
    Threads {
        fetch_weights: short(threads.fetch_weights),
        update_gradient: short(threads.update_gradient),
        update_weights: short(threads.update_weights),
        sum_buffer: threads.compute * (0.1 / f64::from(gpus)),
        ..threads
    }
}

#[test]
fn within_its_premise_the_closed_form_agrees() {
    for (nodes, gpus) in [(1, 1), (1, 8), (2, 4), (4, 8), (8, 8), (16, 3)] {
        for batch in [1, 4, 11] {
            let threads = within_the_premise(nodes, gpus, batch);
            let (steady, seen) = (threads.steady().unwrap(), simulated(&threads, 0.1));
            let minibatch = seen.gradients * f64::from(batch);
            let label =
                format!("{nodes} nodes of {gpus}, batch {batch}: {steady:?} against {:?}", seen.update);
            assert!(off(steady.gpu.get(), seen.gpu).abs() < 0.01, "{label}");
            assert!(off(steady.update.get(), seen.update).abs() < 0.05, "{label}");
            assert!(off(steady.minibatch, minibatch).abs() < 0.05, "{label}");
            assert!(off(steady.staleness, mean_staleness(&seen)).abs() < 0.05, "{label}");
        }
    }
}

/// On one node all of it agrees at the size of the paper's machine too; the validation set `oyama2016` has T_GPU of several.
#[test]
fn on_one_node_as_the_papers_steps_and_updates_agree() {
    for batch in [1, 4, 8, 11] {
        let threads = machine(1, 8, batch);
        let (steady, seen) = (threads.steady().unwrap(), simulated(&threads, 0.1));
        assert!(off(steady.update.get(), seen.update).abs() < 0.05, "batch {batch}");
        assert!(off(steady.minibatch, seen.gradients * f64::from(batch)).abs() < 0.05, "batch {batch}");
    }
}

/// Where summing takes long, buffers fill meanwhile: the node that has most sums even more, and the others wait longer
/// than for a binomial maximum. The closed form is too low then, and never by more than this.
#[test]
fn where_summing_is_long_the_barrier_is_longer_than_eq_8() {
    for batch in [4, 8, 11] {
        let threads = machine(8, 8, batch);
        let (steady, seen) = (threads.steady().unwrap(), simulated(&threads, 0.1));
        assert!(seen.update_waits[1] > 1.2 * steady.times.barrier.get(), "batch {batch}");
        let off = off(steady.update.get(), seen.update);
        assert!((-0.15..-0.03).contains(&off), "batch {batch}: {off}");
    }
}

/// Threads that do not vary fall in step: the closed form's random meetings do not take place.
#[test]
fn threads_that_never_vary_fall_in_step() {
    let seen = simulated(&machine(16, 3, 1), 0.0);
    assert!((seen.gpu / seen.update - 1.0).abs() < 1e-6, "{} {}", seen.gpu, seen.update);
}

/// Without critical sections and with one node nobody waits: exact.
#[test]
fn without_locks_the_closed_form_is_exact() {
    let threads = Threads {
        fetch_weights: Seconds::ZERO,
        update_gradient: Seconds::ZERO,
        sum_buffer: Seconds::ZERO,
        update_weights: Seconds::ZERO,
        ..machine(4, 8, 4)
    };
    let (steady, seen) = (threads.steady().unwrap(), simulated(&threads, 0.0));
    assert!(off(steady.gpu.get(), seen.gpu).abs() < 1e-9);
    assert!(off(steady.update.get(), seen.update).abs() < 1e-9);
    assert!(
        off(steady.minibatch, 4.0 * seen.gradients).abs() < 2e-3,
        "{} {}",
        steady.minibatch,
        seen.gradients
    );
}

#[test]
fn parameter_servers_spare_the_barrier_until_they_are_busy() {
    let threads = machine(8, 8, 8);
    let length = Length { iterations: 600, warm_up: 100 };
    let with =
        |how, exchange| Sprint { how, exchange, ..simulated_threads(&threads, 0.1) }.run(1, length).unwrap();
    let exchange = threads.all_reduce.get();
    let reduced = with(Exchange::AllReduce, exchange);
    // Idle servers: no node waits for another, and updates are quicker than behind a barrier.
    let idle = with(Exchange::ParameterServer, exchange / 100.0);
    assert!(idle.update + exchange < reduced.update, "{} {}", idle.update, reduced.update);
    // Busy servers: one node after the other.
    let busy = with(Exchange::ParameterServer, exchange);
    assert!((busy.update / (8.0 * exchange) - 1.0).abs() < 0.01, "{} {exchange}", busy.update);
    // Each of eight nodes updates by itself, so that a gradient is staler in updates than with one for all.
    assert!(mean_staleness(&busy) > 2.0 * mean_staleness(&reduced));
    // A node alone has nobody to share servers with.
    let alone = |how| Sprint { nodes: 1, how, ..simulated_threads(&threads, 0.1) }.run(1, length).unwrap();
    assert_eq!(alone(Exchange::AllReduce), alone(Exchange::ParameterServer));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (threads, length) = (machine(4, 4, 4), Length { iterations: 100, warm_up: 10 });
    let run = |seed| simulated_threads(&threads, 0.1).run(seed, length).unwrap();
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Through parameter servers no node waits for another: more updates, of one node each, and staler gradients.
#[test]
fn servers_in_place_of_the_all_reduce() {
    let predicted = |changes: &[&str]| predicted_by("simulate", &scenario(&example("sprint.toml"), changes));
    let short = ["methods.simulate.steps=60", "methods.simulate.warm-up=10", "methods.simulate.runs=2"];
    let together = predicted(&short).updating.unwrap();
    let servers =
        [&short[..], &["methods.oyama2016.through-servers=true", "cluster.network=100gbe"]].concat();
    let apart = predicted(&servers).updating.unwrap();
    assert!(apart.minibatch < together.minibatch, "{} {}", apart.minibatch, together.minibatch);
    assert!(apart.staleness > together.staleness, "{} {}", apart.staleness, together.staleness);
}
