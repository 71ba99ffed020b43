//! Corrects assumed figures by runs that a user has measured.
//!
//! The logarithms of the factors of all groups of priors are normal, and so is the deviation of this machine and its
//! software, which no figure explains ([`learned`](stepcast_core::prior::learned)). Runs measure their sum, up to
//! differences between repeats. The most likely factors are found by Gauss-Newton steps on the prediction itself (`fit`),
//! so that large corrections follow the prediction and not its derivative; the residual is the deviation. One run helps,
//! none is needed.

mod fit;
mod runs;

pub use runs::{Measured, MeasuredRun, read_runs, with_run};

use super::MethodChoice;
use super::budget;
use super::interval::assumed::closed_form;
use super::interval::spreads;
use crate::request::Request;
use fit::{Fit, Observed, check_rate};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::prior::Priors;
use stepcast_core::prior::learned::{Character, Learned, LearnedRun};
use stepcast_core::scenario::Scenario;

/// Name of the unexplained deviation among corrected figures.
pub const DEVIATION: &str = "this machine and software";

/// An assumed figure that runs have corrected.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Correction {
    /// The assumption.
    pub name: String,
    /// Factor on the assumed figures; for the unexplained deviation, on the step itself.
    pub factor: f64,
    /// Standard deviation of the logarithm before the runs.
    pub spread_before: f64,
    /// Standard deviation of the logarithm after them.
    pub spread: f64,
}

/// The priors after measured runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The corrected priors.
    pub priors: Arc<Priors>,
    /// Figures that were corrected by more than a hundredth of their spread.
    pub corrections: Vec<Correction>,
}

/// The character that distinguishes a scenario from others whose runs were measured.
pub(crate) fn character(scenario: &Scenario) -> Character {
    let (cluster, strategy, workload) = (&scenario.cluster, &scenario.strategy, &scenario.workload);
    let plan = strategy.plan.as_ref();
    let samples = if cluster.groups.is_empty() { 0 } else { scenario.samples(0) };
    let sizes = [
        cluster.workers() as f64,
        f64::from(samples),
        plan.map_or(0.0, |plan| plan.micro_batch as f64),
        plan.and_then(|plan| plan.global_batch).unwrap_or(0) as f64,
        workload.parameters as f64,
        workload.forward.get(),
        cluster.network.bandwidth.get(),
    ];
    let mut names = vec![
        format!("{:?}", strategy.architecture),
        format!("{:?}", strategy.precision),
        format!("{:?}", cluster.network.transport),
    ];
    names.push(cluster.groups.first().map_or_else(String::new, |group| group.device.name.clone()));
    let size = |size: f64| if size > 0.0 && size.is_finite() { size.log2() } else { 0.0 };
    Character { sizes: sizes.map(size).to_vec(), names }
}

/// The priors of `request`, which is predicted by the method of `choice`, after `runs`.
pub fn calibrate(
    request: &Request,
    choice: MethodChoice,
    runs: &[MeasuredRun],
) -> Result<Calibration, Fault> {
    let of_runs = runs.iter().map(|run| Ok((run.scenario(request)?, run)));
    calibrate_by(&*request.scenario()?, choice, &of_runs.collect::<Result<Vec<_>, Fault>>()?)
}

/// The priors of the scenario `asked` after runs, each with its scenario.
pub(crate) fn calibrate_by(
    asked: &Scenario,
    choice: MethodChoice,
    runs: &[(Arc<Scenario>, &MeasuredRun)],
) -> Result<Calibration, Fault> {
    let before = Priors::shipped()?;
    let observed: Vec<Observed> = runs
        .iter()
        .map(|(scenario, run)| observe(Arc::clone(scenario), choice, run))
        .collect::<Result<_, _>>()?;
    let variances = spreads(asked).into_iter().map(|spread| spread.powi(2)).collect();
    let Fit { shifts, runs: linear, weights, inverse, unexplained, variances } =
        Fit::new(&before, &observed, variances, &character(asked))?;
    let runs = linear.into_iter().zip(&observed).zip(weights).map(|((slopes, run), weight)| LearnedRun {
        character: run.character.clone(),
        slopes,
        weight,
    });
    let learned = Learned { runs: runs.collect(), inverse, variances, unexplained };
    let mut corrections = Vec::new();
    let mut groups = Vec::new();
    for (index, (group, shift)) in before.groups.iter().zip(&shifts).enumerate() {
        let variance = learned.variances[index];
        let with: Vec<f64> = learned.runs.iter().map(|run| variance * run.slopes[index]).collect();
        let spread = (variance - learned.told(&with)).max(0.0).sqrt();
        groups.push((*shift, spread));
        let name = group.name.clone();
        corrections.push(Correction { name, factor: shift.exp(), spread_before: variance.sqrt(), spread });
    }
    let own = character(asked);
    let spread = unexplained.total().sqrt();
    corrections.push(Correction {
        name: DEVIATION.to_owned(),
        factor: learned.deviation(&own).exp(),
        spread_before: spread,
        spread: spread * learned.unexplained_left(&own).sqrt(),
    });
    corrections.retain(|correction| correction.spread < 0.99 * correction.spread_before);
    Ok(Calibration { priors: Arc::new(before.corrected(&groups, learned)), corrections })
}

fn observe(scenario: Arc<Scenario>, choice: MethodChoice, run: &MeasuredRun) -> Result<Observed, Fault> {
    let at = |fault: Fault| Fault::in_file(run.place.clone(), fault.reason, fault.remedy);
    let method = choice.method(&scenario).map_err(at)?;
    let Some(twin) = closed_form(&scenario, method) else {
        let reason = "no closed form predicts this run";
        return Err(Fault::in_file(run.place.clone(), reason, "leave it out"));
    };
    let closed = twin.predict(&scenario).map_err(at)?;
    let prediction = match method.is_quick() {
        true => closed.clone(),
        false => method.predict(&budget::headline(&scenario)).map_err(at)?,
    };
    let measured = run.measured.step(prediction.samples);
    check_rate(&scenario, &prediction, measured).map_err(at)?;
    let slowness = (measured / prediction.iteration).ln();
    Ok(Observed {
        character: character(&scenario),
        // Factors move the closed form, which differs from a simulation.
        log_step: closed.iteration.get().ln() + slowness,
        log_measured: measured.get().ln(),
        scenario,
        method,
        twin,
        place: run.place.clone(),
    })
}
