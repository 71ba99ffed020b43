//! From a scenario with all-reduce to what the engine runs.

use stepcast_analytic::collectives::curve;
use stepcast_analytic::contention::Contention;
use stepcast_analytic::liu2022::{self, Flush, Schedule, passes, plan, schedule};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::{Pass, Recorded};
use stepcast_core::prediction::Warning;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{AllReduce, Bucket, Interference, Messages, jitter_factors, most_steps};

/// The training of a scenario: steps as measured, or spread around the mean one where there are none to draw from.
pub(crate) fn training(scenario: &Scenario) -> Result<AllReduce, Fault> {
    let update = curve(scenario);
    let mean = passes(scenario)?;
    let slowest = Pass::slowest(&mean).unwrap_or_else(|| Pass::new(Vec::new()));
    let rule = schedule(scenario, &scenario.strategy.exchange.fusion, &update);
    let groups = &scenario.cluster.groups;
    let exchange = &scenario.strategy.exchange;
    let recorded = scenario.profile().is_some_and(|profile| profile.steps.len() > 1);
    let mut contention = Contention::from_scenario(scenario);
    if recorded || scenario.methods.simulate.jitter > 0.0 {
        contention = contention.of_varying_steps();
    }
    let period = match scenario.strategy.synchronisation {
        Synchronisation::LocalSgd(steps) => steps,
        _ => 1,
    };
    let slowed = contention.slowed(&slowest);
    // What shows beyond the schedule is the same in every exchange.
    let beyond = contention.beyond(&slowest, &rule, &liu2022::mean(&slowed, &update, &rule))
        / f64::from(period.max(1));
    let contention = contention.once_in(period);
    let beside_others = |pass: Pass| {
        let slowed = contention.slowed(&pass);
        Pass { update: slowed.update + beyond, ..slowed }
    };
    let drawn = |index: usize| -> Result<Vec<Pass>, Fault> {
        Ok(steps(scenario, index, &mean[index])?.into_iter().map(beside_others).collect())
    };
    Ok(AllReduce {
        passes: (0..groups.len()).map(drawn).collect::<Result<_, _>>()?,
        kind: groups
            .iter()
            .enumerate()
            .flat_map(|(index, group)| std::iter::repeat_n(index, group.count as usize))
            .collect(),
        messages: messages(&slowed, &update, &rule),
        startup: update.startup(),
        curve: update,
        channels: exchange.channels,
        interference: Interference {
            slowdown: exchange.interference,
            copy_byte: exchange.copy_rate.map_or(Seconds::ZERO, |rate| Seconds::new(1.0 / rate.get())),
        },
        period,
    })
}

/// The steps that a worker of the group at `index` draws from.
fn steps(scenario: &Scenario, index: usize, mean: &(Seconds, Pass)) -> Result<Vec<Pass>, Fault> {
    match scenario.profile() {
        Some(profile) if profile.steps.len() > 1 => {
            let (batches, share) =
                (scenario.strategy.accumulation, scenario.strategy.exchange.gradients.share());
            let recorded = Recorded::new(profile)?;
            let steps = recorded.steps(scenario.slowness(index));
            Ok(steps.map(|step| step.compressed(share).accumulated(batches)).collect())
        }
        _ => {
            let (delay, pass) = mean;
            let factors = jitter_factors(scenario.methods.simulate.jitter, scenario.methods.simulate.seed);
            let factors =
                factors.take(most_steps(pass.layers.len().saturating_mul(scenario.cluster.groups.len())));
            Ok(factors.map(|factor| pass.scaled(factor, *delay)).collect())
        }
    }
}

/// The messages of a schedule, in the form that the engine needs.
pub(crate) fn messages(pass: &Pass, update: &Curve, schedule: &Schedule) -> Messages {
    if let Schedule::Horovod { threshold, cycle, negotiation } = *schedule {
        return Messages::Cycles { length: cycle, threshold, negotiation, phase: None };
    }
    let bucket = |flush: &Flush| {
        let (after, wait) = flush.leaves(schedule);
        Bucket { first: flush.first, last: flush.last, after, wait }
    };
    Messages::Buckets(plan(pass, update, schedule).flushes.iter().map(bucket).collect())
}

/// Computing time of a mean step in which nothing is exchanged, by group.
pub(super) fn computing(scenario: &Scenario) -> Result<Vec<Seconds>, Fault> {
    let passes = passes(scenario)?;
    Ok(passes.iter().map(|(delay, pass)| *delay + pass.computing() + pass.update).collect())
}

/// Warnings about what is assumed of devices, and about messages of sizes that were not measured.
pub(crate) fn assumptions(scenario: &Scenario) -> Vec<Warning> {
    let update = curve(scenario);
    let slowest = passes(scenario).ok().and_then(|passes| Pass::slowest(&passes));
    let rule = schedule(scenario, &scenario.strategy.exchange.fusion, &update);
    let flushes = slowest.map(|pass| plan(&pass, &update, &rule).flushes).unwrap_or_default();
    liu2022::assumptions(scenario, &update, &flushes)
}
