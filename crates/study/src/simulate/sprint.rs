//! Asynchronous all-reduce: SPRINT's threads as events, with the closed form's times of their tasks.

use super::excerpt::NamedProgram;
use super::measure::{EXCESS, go_on, histogram, spread};
use super::{MAX_WORKERS, broken};
use rayon::prelude::*;
use stepcast_analytic::oyama2016::{GPU_PARTS, Oyama2016, Threads, UPDATE_PARTS, threads};
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::method::{Method, Progress, Stopped, Watch};
use stepcast_core::prediction::{
    Bottleneck, GroupReport, Part, Prediction, Resource, Simulation, Updating, Usage,
};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};
use stepcast_sim::sprint::{self, Exchange, Figures, Sprint};
use stepcast_sim::{Limits, Run};
use stepcast_stats::{mean_and_half_width, spread_of_logarithms};

/// Whether a scenario is trained as by SPRINT: asynchronously, by all-reduce.
pub(crate) fn is_sprint(scenario: &Scenario) -> bool {
    let strategy = &scenario.strategy;
    strategy.architecture == Architecture::AllReduce && strategy.synchronisation == Synchronisation::Async
}

pub(super) fn applies(scenario: &Scenario) -> Result<(), Fault> {
    if scenario.cluster.workers() > MAX_WORKERS {
        return Err(Fault::in_key(
            "cluster.workers",
            format!("more than {MAX_WORKERS} workers are too many to simulate"),
            [Remedy::method("oyama2016"), Remedy::advice("use fewer workers")],
        ));
    }
    Oyama2016.applies(&as_published(scenario))
}

/// The scenario with the all-reduce of the paper, even where servers replace it.
fn as_published(scenario: &Scenario) -> Scenario {
    let mut published = scenario.clone();
    published.methods.oyama2016.through_servers = false;
    published
}

/// Sending all gradients to the servers, equally spread, and all weights back.
fn serving(scenario: &Scenario) -> Seconds {
    let (network, servers) = (&scenario.cluster.network, &scenario.cluster.servers);
    let port = servers.bandwidth.unwrap_or(network.bandwidth).to_bytes_per_sec() * network.efficiency;
    let one_way =
        network.latency + network.startup + scenario.workload.bytes() / (port * f64::from(servers.count));
    one_way * 2.0
}

/// The threads of the closed form as a program of the engine.
pub fn simulated_threads(threads: &Threads, jitter: f64) -> Sprint {
    let own = threads.load_images + threads.deform_images + threads.compute + threads.scale_gradient;
    Sprint {
        nodes: threads.nodes,
        gpus: threads.gpus,
        fetch_weights: threads.fetch_weights.get(),
        compute: own.get(),
        update_gradient: threads.update_gradient.get(),
        sum_buffer: threads.sum_buffer.get(),
        before_exchange: (threads.keep_old_weights + threads.add_momentum).get(),
        exchange: threads.all_reduce.get(),
        after_exchange: threads.update_momentum.get(),
        update_weights: threads.update_weights.get(),
        jitter,
        how: Exchange::AllReduce,
    }
}

fn sprint(threads: &Threads, scenario: &Scenario) -> Sprint {
    let own = simulated_threads(threads, scenario.methods.simulate.varied());
    match scenario.methods.oyama2016.through_servers {
        true => Sprint { exchange: serving(scenario).get(), how: Exchange::ParameterServer, ..own },
        false => own,
    }
}

/// Steps of a run if the budget pays for them.
const STEPS: u64 = 1000;

/// Least number of steps.
const FEWEST_STEPS: u64 = 20;

/// One step in this many is left out at the beginning of a run.
const WARM_UP: u64 = 20;

/// The figures of independent runs, which share the budget.
fn runs(sprint: &Sprint, scenario: &Scenario, watch: &Watch<'_>) -> Result<Vec<Figures>, Stopped> {
    let options = scenario.methods.simulate;
    let budget = options.budget / u64::from(options.runs);
    let operations = sprint.program(options.seed).map_err(broken)?.graph.len() as u64;
    let affordable = budget / (operations * u64::from(sprint.threads())).max(1);
    let steps = u64::from(options.steps).min(affordable.clamp(FEWEST_STEPS, STEPS));
    let warm_up = options.warm_up.map_or(steps / WARM_UP, u64::from).min(steps - 1);
    let run = |seed: u64| {
        let program = sprint.program(seed).map_err(broken)?;
        let observer = sprint::Watch::new(sprint, warm_up);
        let mut run = Run::new(&program, seed, observer).map_err(broken)?;
        let limits = Limits { effort: budget.saturating_mul(EXCESS), ..Limits::until_slowest(steps) };
        go_on(&mut run, limits, &|| watch(Progress::Working))?;
        run.observer().figures().ok_or_else(|| Stopped::Fault(endless()))
    };
    let seeds: Vec<u64> = (0..u64::from(options.runs)).map(|run| options.seed.wrapping_add(run)).collect();
    seeds.into_par_iter().map(run).collect()
}

/// The fault that the slowest thread has not ended an iteration that counts.
fn endless() -> Fault {
    Fault::in_key(
        "methods.simulate.budget",
        "some threads are so much slower than others that the budget ends before their first iterations",
        [Remedy::method("oyama2016"), Remedy::advice("use a larger `methods.simulate.budget`")],
    )
}

pub(super) fn predict(scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
    let closed_form = Oyama2016.predict(&as_published(scenario))?;
    let (threads, _) = threads(scenario)?;
    let sprint = sprint(&threads, scenario);
    let samples = f64::from(threads.nodes * threads.gpus) * f64::from(threads.batch);
    let runs = runs(&sprint, scenario, watch)?;
    let mean = |of: &dyn Fn(&Figures) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let (gpu, update) = (mean(&|figures| figures.gpu), mean(&|figures| figures.update));
    let rates: Vec<f64> = runs.iter().map(|figures| samples / figures.gpu).collect();
    let (throughput, half_width) = mean_and_half_width(&rates);
    let minibatch = mean(&|figures| figures.gradients) * f64::from(threads.batch);
    let mut stale: Vec<f64> =
        runs.iter().flat_map(|figures| figures.staleness.iter().map(|&updates| f64::from(updates))).collect();
    let batch = f64::from(threads.batch);
    let mut minibatches: Vec<f64> = runs
        .iter()
        .flat_map(|figures| figures.entered.iter().map(|&count| batch * f64::from(count)))
        .collect();
    let mean_staleness = stale.iter().sum::<f64>() / stale.len().max(1) as f64;
    let mut lengths: Vec<f64> = runs.iter().flat_map(|figures| figures.lengths.iter().copied()).collect();
    let idle = mean(&|figures| figures.update_waits.iter().sum());
    let simulation = Simulation {
        throughput_interval: [(throughput - half_width).max(0.0), throughput + half_width],
        run_spread: spread_of_logarithms(&rates),
        runs: runs.len(),
        steps: lengths.len() as u64,
        step_s: spread(&mut lengths),
        staleness: spread(&mut stale),
        mean_staleness,
        staleness_histogram: histogram(&stale),
        effective_minibatch: minibatch,
        exposed_communication: 1.0 - sprint.compute / gpu,
        usage: vec![
            Usage { resource: Resource::GpuThreads, share: sprint.compute / gpu },
            Usage { resource: Resource::UpdateThreads, share: 1.0 - idle / update },
        ],
        end: "all steps were done".to_owned(),
    };
    let iteration = SamplesPerSec::new(throughput).time_for(samples);
    let groups: Vec<GroupReport> = closed_form.groups;
    let updating = Updating {
        iteration: Seconds::new(update),
        breakdown: update_parts(&threads, Seconds::new(sprint.exchange), &mean),
        minibatch,
        minibatch_spread: spread(&mut minibatches),
        staleness: mean_staleness,
        kernels: closed_form.updating.map(|updating| updating.kernels).unwrap_or_default(),
    };
    let bottleneck =
        if groups[0].compute * 2.0 >= iteration { Bottleneck::Compute } else { Bottleneck::HostCopy };
    // Waits for locks are simulated: warnings about how the closed form models them do not apply.
    let modelled = ["several-steady-states", "long-critical-section"];
    let warnings = closed_form.warnings.into_iter().filter(|warning| !modelled.contains(&warning.code));
    Ok(Prediction {
        warnings: warnings.collect(),
        updating: Some(Box::new(updating)),
        simulation: Some(Box::new(simulation)),
        ..Prediction::new("simulate", iteration, groups, gpu_parts(&threads, iteration, &mean), bottleneck)
    })
}

type Mean<'a> = dyn Fn(&dyn Fn(&Figures) -> f64) -> f64 + 'a;

/// Times in the order of Algorithm 1; the time that a thread computes by itself is divided in proportion to its tasks.
fn gpu_parts(threads: &Threads, iteration: Seconds, mean: &Mean<'_>) -> Vec<Part> {
    let waits = [0, 1].map(|lock: usize| Seconds::new(mean(&|figures| figures.gpu_waits[lock])));
    let fetch = Seconds::new(mean(&|figures| figures.fetch_weights));
    let own = [threads.load_images, threads.deform_images, threads.compute, threads.scale_gradient];
    let rest = iteration - waits[0] - waits[1] - fetch - threads.update_gradient;
    let factor = rest / own.iter().copied().sum::<Seconds>();
    let [load, deform, compute, scale] = own.map(|time| time * factor);
    let times = [waits[0], fetch, load, deform, compute, scale, waits[1], threads.update_gradient];
    GPU_PARTS.iter().zip(times).map(|((kind, _), time)| Part { kind: *kind, time }).collect()
}

/// Times in the order of Algorithm 2.
fn update_parts(threads: &Threads, exchange: Seconds, mean: &Mean<'_>) -> Vec<Part> {
    let waits = [0, 1, 2].map(|wait: usize| Seconds::new(mean(&|figures| figures.update_waits[wait])));
    let times = [
        waits[0],
        Seconds::new(mean(&|figures| figures.sum_gradients)),
        threads.keep_old_weights,
        threads.add_momentum,
        waits[1] + exchange,
        threads.update_momentum,
        waits[2],
        threads.update_weights,
    ];
    UPDATE_PARTS.iter().zip(times).map(|((kind, _), time)| Part { kind: *kind, time }).collect()
}

pub(super) fn named_program(scenario: &Scenario) -> Result<NamedProgram, Fault> {
    let (threads, _) = threads(scenario)?;
    let program = sprint(&threads, scenario).program(scenario.methods.simulate.seed).map_err(broken)?;
    let shared = ["thread", "weights", "own buffer", "barrier", "exchange", "weights to publish"];
    let mut lane_names: Vec<String> = shared.map(str::to_owned).into();
    lane_names.extend((0..threads.gpus).map(|gpu| format!("buffer {gpu}")));
    // A profile has no threads: none can be made of this run.
    Ok(NamedProgram { program, lane_names, operations: Vec::new() })
}
