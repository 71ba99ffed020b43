//! All-reduce training, simulated.

mod communication;
mod training;

pub(crate) use training::{assumptions, messages, training};

use super::excerpt::NamedProgram;
use super::measure::{Measured, Measurement, Recorder, measure, observe};
use super::summary::{batches, groups, mean, spread};
use super::{Recording, about, broken};
use communication::Exchanges;
use std::ops::ControlFlow;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, Progress, Stopped, Watch};
use stepcast_core::prediction::{
    Bottleneck, Communication, Part, PartKind, Prediction, Resource, Simulation, Spread, Usage,
    samples_per_step,
};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_sim::{AllReduce, Limits, Messages, Program, StepRecord, Timeline, Window, run};
use stepcast_stats::spread_of_logarithms;

/// Phases of Horovod's cycles over which a single step is averaged.
const PHASES: u32 = 8;

fn inapplicable(fault: Fault) -> Fault {
    Fault::in_key("model.profile", fault.reason, fault.remedy)
}

/// The figures of one run.
struct Figures {
    steps: u64,
    lengths: Vec<f64>,
    communication: Communication,
    /// Share of the time during which workers compute, and during which something is exchanged.
    busy: [f64; 2],
}

impl Recorder for Exchanges {
    fn records(&self) -> &[StepRecord] {
        &self.steps.records
    }
}

impl Figures {
    fn of_run(program: &Program, measured: &Measurement<'_, Exchanges>, window: &Window) -> Self {
        let exchanges = measured.run.observer();
        let outcome = measured.run.outcome(measured.end.clone());
        let records = &exchanges.steps.records;
        let busy = |lanes: &mut dyn Iterator<Item = u32>| {
            let shares: Vec<f64> = lanes.map(|lane| outcome.lane_busy[lane as usize]).collect();
            shares.iter().sum::<f64>() / shares.len().max(1) as f64
        };
        let communication = exchanges.mean();
        Self {
            steps: outcome.steps,
            lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            communication,
            busy: [
                busy(&mut program.lane_of.iter().map(|lanes| lanes[0])),
                busy(&mut program.lane_of[0].iter().skip(2).copied()),
            ],
        }
    }
}

pub(super) fn predict(scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
    let training = training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(broken)?;
    let compute = training::computing(scenario).map_err(inapplicable)?;
    let batches = batches(scenario);
    let observer = || Exchanges::new(training.roles(), 0);
    let predicted = |measured: &Measured<'_, Exchanges>| prediction(scenario, &program, &compute, measured);
    let measured =
        measure(&program, &batches, &scenario.methods.simulate, observer, watch, |measured| match measured
            .is_last
        {
            true => ControlFlow::Continue(()),
            false => watch(Progress::Estimate(&predicted(measured))),
        })?;
    Ok(predicted(&measured))
}

fn prediction(
    scenario: &Scenario,
    program: &Program,
    compute: &[Seconds],
    measured: &Measured<'_, Exchanges>,
) -> Prediction {
    let estimate = &measured.estimate;
    let figures = measured.runs.iter().zip(&estimate.windows);
    let runs: Vec<Figures> = figures.map(|(run, window)| Figures::of_run(program, run, window)).collect();
    let runs = &runs[..];
    let throughput = SamplesPerSec::new(estimate.throughput);
    let groups = groups(scenario, compute);
    let samples = samples_per_step(&groups) as f64;
    let iteration = throughput.time_for(samples);
    let communication = mean_communication(runs.iter().map(|figures| &figures.communication));
    let (computing, exchanging) =
        (mean(runs, |figures| figures.busy[0]), mean(runs, |figures| figures.busy[1]));
    let mut lengths: Vec<f64> = runs.iter().flat_map(|figures| figures.lengths.iter().copied()).collect();
    let nothing = Spread { low: 0.0, median: 0.0, high: 0.0 };
    let mut usage = vec![
        Usage { resource: Resource::Workers, share: computing },
        Usage { resource: Resource::AllReduce, share: exchanging },
    ];
    usage.sort_by(|a, b| b.share.total_cmp(&a.share));
    let simulation = Simulation {
        throughput_interval: estimate.interval(),
        run_spread: spread_of_logarithms(&estimate.rates),
        runs: runs.len(),
        steps: runs.iter().map(|figures| figures.steps).sum(),
        step_s: spread(&mut lengths),
        staleness: nothing,
        mean_staleness: 0.0,
        staleness_histogram: vec![1.0],
        effective_minibatch: samples,
        exposed_communication: communication.exposed / iteration,
        usage,
        end: measured.end(),
    };
    let busy = iteration * computing;
    let breakdown = vec![
        Part { kind: PartKind::Compute, time: busy },
        Part { kind: PartKind::Waiting, time: iteration - busy },
    ];
    let bottleneck = if computing >= exchanging { Bottleneck::Compute } else { Bottleneck::WorkerLink };
    let mut warnings = assumptions(scenario);
    warnings.extend(estimate.warning());
    Prediction {
        warnings,
        communication: Some(communication),
        simulation: Some(Box::new(simulation)),
        ..Prediction::new("simulate", iteration, groups, breakdown, bottleneck)
    }
}

fn mean_communication<'a>(all: impl ExactSizeIterator<Item = &'a Communication> + Clone) -> Communication {
    let count = all.len().max(1) as f64;
    let of = |part: fn(&Communication) -> Seconds| all.clone().map(part).sum::<Seconds>() / count;
    Communication {
        negotiate: of(|parts| parts.negotiate),
        wait: of(|parts| parts.wait),
        allreduce: of(|parts| parts.allreduce),
        misc: of(|parts| parts.misc),
        exposed: of(|parts| parts.exposed),
    }
}

/// A single step of a training, the mean over all phases of Horovod's cycles: how long it takes, and where the time of
/// communication goes.
pub(crate) fn mean_step(training: &AllReduce) -> Result<(Seconds, Communication), Fault> {
    let Messages::Cycles { length, threshold, negotiation, .. } = training.messages else {
        return first_step(training);
    };
    let at = |place: u32| {
        let phase = Some((f64::from(place) + 0.5) / f64::from(PHASES));
        let messages = Messages::Cycles { length, threshold, negotiation, phase };
        first_step(&AllReduce { messages, ..training.clone() })
    };
    let steps = (0..PHASES).map(at).collect::<Result<Vec<_>, Fault>>()?;
    let time = steps.iter().map(|step| step.0).sum::<Seconds>() / f64::from(PHASES);
    Ok((time, mean_communication(steps.iter().map(|step| &step.1))))
}

fn first_step(training: &AllReduce) -> Result<(Seconds, Communication), Fault> {
    let program = training.program().map_err(broken)?;
    let mut exchanges = Exchanges::new(training.roles(), 0);
    let outcome = run(&program, 0, Limits::steps(1), &mut exchanges).map_err(broken)?;
    Ok((Seconds::new(outcome.time), exchanges.mean()))
}

/// The program of a scenario.
pub(super) fn named_program(scenario: &Scenario) -> Result<NamedProgram, Fault> {
    let training = training(scenario).map_err(inapplicable)?;
    Ok(NamedProgram { program: training.program().map_err(broken)?, lane_names: training.lane_names() })
}

pub(super) fn timeline(
    scenario: &Scenario,
    steps: u64,
    wanted: &CancelCheck<'_>,
) -> Result<Recording, Stopped> {
    let training = training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(broken)?;
    let mut observed = Timeline::default();
    observe(&program, scenario.methods.simulate.seed, steps, &mut observed, wanted)?;
    let about = about(scenario, training.profile_operations());
    Ok(Recording { lane_names: training.lane_names(), program, observed, about, marks: Vec::new() })
}
