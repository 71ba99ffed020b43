//! All-reduce training, simulated.

use super::communication::Exchanges;
use super::figures::describe;
use super::replicas::{Length, replicas};
use super::{Recording, about, broken};
use crate::simulate::exchange;
use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::prediction::{
    Bottleneck, Communication, GroupReport, Part, Prediction, Simulation, Spread, Usage, samples_per_step,
};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_sim::measure::{Window, mean_and_half_width, quantile, spread_of_logarithms};
use stepcast_sim::{AllReduce, GraphError, Limits, Program, ProgramError, Timeline, run};

fn inapplicable(fault: Fault) -> Fault {
    Fault::in_key("model.profile", fault.reason, fault.remedy)
}

fn cyclic(error: GraphError) -> Fault {
    Fault::in_key("model", error.to_string(), "check the profile")
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
        let all = Window { since: 0.0, until: outcome.time };
        let window = Window::after(records, program.workers(), length.warm_up).unwrap_or(all);
        let mean = |lanes: &mut dyn Iterator<Item = u32>| {
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
                mean(&mut program.lane_of.iter().map(|lanes| lanes[0])),
                mean(&mut program.lane_of[0].iter().skip(2).copied()),
            ],
            end: describe(&outcome.end),
        })
    }
}

pub(super) fn predict(scenario: &Scenario) -> Result<Prediction, Fault> {
    let training = exchange::training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(cyclic)?;
    let compute = exchange::computing(scenario).map_err(inapplicable)?;
    let mut batches = Vec::with_capacity(program.workers());
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        batches.extend(std::iter::repeat_n(f64::from(scenario.batch(index)), group.count as usize));
    }
    let operations = program.graph.len() as u64 * scenario.cluster.workers();
    let run = |seed, length| Figures::of_run(&training, &program, &batches, seed, length);
    let runs = replicas(scenario, operations, run).map_err(broken)?;
    Ok(prediction(scenario, &compute, &runs))
}

fn prediction(scenario: &Scenario, compute: &[Seconds], runs: &[Figures]) -> Prediction {
    let rates: Vec<f64> = runs.iter().map(|figures| figures.samples_per_second).collect();
    let (throughput, half_width) = mean_and_half_width(&rates);
    let throughput = SamplesPerSec::new(throughput);
    let report = |(index, group): (usize, &WorkerGroup)| GroupReport {
        group: index,
        count: group.count,
        batch: scenario.batch(index),
        compute: compute[index],
        ready: Seconds::ZERO,
        slack: None,
    };
    let groups: Vec<GroupReport> = scenario.cluster.groups.iter().enumerate().map(report).collect();
    let samples = samples_per_step(&groups) as f64;
    let iteration = throughput.time_for(samples);
    let communication = mean(runs);
    let average = |of: fn(&Figures) -> f64| runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64;
    let (computing, exchanging) = (average(|figures| figures.busy[0]), average(|figures| figures.busy[1]));
    let mut lengths: Vec<f64> = runs.iter().flat_map(|figures| figures.lengths.iter().copied()).collect();
    let mut spread = |share| quantile(&mut lengths, share);
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
        step_s: Spread { low: spread(0.05), median: spread(0.5), high: spread(0.95) },
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
        warnings: exchange::assumptions(scenario),
        communication: Some(communication),
        simulation: Some(Box::new(simulation)),
        ..Prediction::new("simulate", iteration, groups, breakdown, bottleneck)
    }
}

fn mean(runs: &[Figures]) -> Communication {
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

/// The first step of a training: its time, and where that of communication goes.
pub(super) fn first_step(training: &AllReduce) -> Result<(Seconds, Communication), Fault> {
    let program = training.program().map_err(cyclic)?;
    let mut exchanges = Exchanges::new(training.roles(), 0);
    let outcome = run(&program, 0, Limits::steps(1), &mut exchanges).map_err(broken)?;
    Ok((Seconds::new(outcome.time), exchanges.mean()))
}

pub(super) fn timeline(scenario: &Scenario, steps: u64) -> Result<Recording, Fault> {
    let training = exchange::training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(cyclic)?;
    let mut observed = Timeline::default();
    run(&program, scenario.simulate.seed, Limits::steps(steps), &mut observed).map_err(broken)?;
    let about = about(scenario, training.alone());
    Ok(Recording { lane_names: training.lane_names(), program, observed, about })
}
