//! All-reduce training, simulated.

mod communication;
mod training;

pub(crate) use training::{assumptions, messages, training};

use super::replicas::{Length, replicas};
use super::summary::{batches, describe, groups, mean, spread};
use super::{Recording, about, broken};
use communication::Exchanges;
use stepcast_core::fault::Fault;
use stepcast_core::prediction::{
    Bottleneck, Communication, Part, Prediction, Simulation, Spread, Usage, samples_per_step,
};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_sim::{AllReduce, Limits, Program, ProgramError, Timeline, run};
use stepcast_stats::{mean_and_half_width, spread_of_logarithms};

fn inapplicable(fault: Fault) -> Fault {
    Fault::in_key("model.profile", fault.reason, fault.remedy)
}

/// The figures of one run.
struct Figures {
    samples_per_second: f64,
    steps: u64,
    lengths: Vec<f64>,
    communication: Communication,
    /// Share of the time during which workers compute, and during which something is exchanged.
    busy: [f64; 2],
    end: String,
}

impl Figures {
    fn of_run(
        training: &AllReduce,
        program: &Program,
        batches: &[f64],
        seed: u64,
        length: Length,
    ) -> Result<Self, ProgramError> {
        let mut exchanges = Exchanges::new(training.roles(), length.warm_up);
        let outcome = run(program, seed, length.limits(), &mut exchanges)?;
        let records = &exchanges.steps.records;
        let window = length.window(records, program.workers(), outcome.time);
        let busy = |lanes: &mut dyn Iterator<Item = u32>| {
            let shares: Vec<f64> = lanes.map(|lane| outcome.lane_busy[lane as usize]).collect();
            shares.iter().sum::<f64>() / shares.len().max(1) as f64
        };
        let communication = exchanges.mean();
        Ok(Self {
            samples_per_second: window.rate(records, |record| batches[record.worker as usize]),
            steps: outcome.steps,
            lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            communication,
            busy: [
                busy(&mut program.lane_of.iter().map(|lanes| lanes[0])),
                busy(&mut program.lane_of[0].iter().skip(2).copied()),
            ],
            end: describe(&outcome.end),
        })
    }
}

pub(super) fn predict(scenario: &Scenario) -> Result<Prediction, Fault> {
    let training = training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(broken)?;
    let compute = training::computing(scenario).map_err(inapplicable)?;
    let batches = batches(scenario);
    let operations = program.graph.len() as u64 * scenario.cluster.workers();
    let run = |seed, length| Figures::of_run(&training, &program, &batches, seed, length);
    let runs = replicas(scenario, operations, run).map_err(broken)?;
    Ok(prediction(scenario, &compute, &runs))
}

fn prediction(scenario: &Scenario, compute: &[Seconds], runs: &[Figures]) -> Prediction {
    let rates: Vec<f64> = runs.iter().map(|figures| figures.samples_per_second).collect();
    let (throughput, half_width) = mean_and_half_width(&rates);
    let throughput = SamplesPerSec::new(throughput);
    let groups = groups(scenario, compute);
    let samples = samples_per_step(&groups) as f64;
    let iteration = throughput.time_for(samples);
    let communication = mean_communication(runs);
    let (computing, exchanging) =
        (mean(runs, |figures| figures.busy[0]), mean(runs, |figures| figures.busy[1]));
    let mut lengths: Vec<f64> = runs.iter().flat_map(|figures| figures.lengths.iter().copied()).collect();
    let nothing = Spread { low: 0.0, median: 0.0, high: 0.0 };
    let mut usage = vec![
        Usage { resource: "workers".to_owned(), share: computing },
        Usage { resource: "all-reduce".to_owned(), share: exchanging },
    ];
    usage.sort_by(|a, b| b.share.total_cmp(&a.share));
    let simulation = Simulation {
        throughput_interval: [(throughput.get() - half_width).max(0.0), throughput.get() + half_width],
        run_spread: spread_of_logarithms(&rates),
        runs: runs.len(),
        steps: runs.iter().map(|figures| figures.steps).sum(),
        step_s: spread(&mut lengths),
        staleness: nothing,
        mean_staleness: 0.0,
        staleness_histogram: vec![1.0],
        effective_minibatch: samples,
        exposed_communication: communication.exposed / iteration,
        usage,
        end: runs.first().map_or(String::new(), |figures| figures.end.clone()),
    };
    let busy = iteration * computing;
    let breakdown =
        vec![Part { name: "compute", time: busy }, Part { name: "waiting", time: iteration - busy }];
    let bottleneck = if computing >= exchanging { Bottleneck::Compute } else { Bottleneck::WorkerLink };
    Prediction {
        warnings: assumptions(scenario),
        communication: Some(communication),
        simulation: Some(Box::new(simulation)),
        ..Prediction::new("simulate", iteration, groups, breakdown, bottleneck)
    }
}

fn mean_communication(runs: &[Figures]) -> Communication {
    let count = runs.len().max(1) as f64;
    let of = |part: fn(&Communication) -> Seconds| {
        runs.iter().map(|figures| part(&figures.communication)).sum::<Seconds>() / count
    };
    Communication {
        negotiate: of(|parts| parts.negotiate),
        wait: of(|parts| parts.wait),
        allreduce: of(|parts| parts.allreduce),
        misc: of(|parts| parts.misc),
        exposed: of(|parts| parts.exposed),
    }
}

/// The first step of a training: how long it takes, and where the time of communication goes.
pub(crate) fn first_step(training: &AllReduce) -> Result<(Seconds, Communication), Fault> {
    let program = training.program().map_err(broken)?;
    let mut exchanges = Exchanges::new(training.roles(), 0);
    let outcome = run(&program, 0, Limits::steps(1), &mut exchanges).map_err(broken)?;
    Ok((Seconds::new(outcome.time), exchanges.mean()))
}

pub(super) fn timeline(scenario: &Scenario, steps: u64) -> Result<Recording, Fault> {
    let training = training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(broken)?;
    let mut observed = Timeline::default();
    run(&program, scenario.simulate.seed, Limits::steps(steps), &mut observed).map_err(broken)?;
    let about = about(scenario, training.profile_operations());
    Ok(Recording { lane_names: training.lane_names(), program, observed, about })
}
