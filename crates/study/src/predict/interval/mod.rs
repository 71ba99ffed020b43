//! Error bars: between which figures 90 % of measurements should lie, and why.
//!
//! Three sources are told apart: *sampling*, by which runs of one system differ and simulated ones show it; *inputs*, of
//! which only a range is known (`inputs`); and *model error*, which only measured runs tell ([`residuals`]). All of them
//! are factors, so they are kept as logarithms, and being independent they add up by their squares.

mod case;
mod inputs;
mod reach;
mod regime;
mod residuals;

pub use case::Case;
pub use inputs::InputEffect;
pub use regime::{Limit, Machines, Pace, Regime};
pub use residuals::{Basis, Level, Pool, Residuals, committed, residuals};

use inputs::Varied;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Prediction, Simulation, Warning};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;
use stepcast_stats::student_t_95;

/// Share of measurements that intervals should hold.
pub const LEVEL: f64 = 0.9;

/// What residuals of fitted step times are kept under.
pub const FITTED_STEPS: &str = "fitted steps";

/// Between what measurements should lie. Widths are half-widths of logarithms: 0.1 is about 10 %.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Interval {
    /// Share of measurements that should lie within.
    pub level: f64,
    /// Shortest and longest step.
    #[serde_as(as = "[InBaseUnits; 2]")]
    pub iteration_s: [Seconds; 2],
    /// Lowest and highest throughput.
    #[serde_as(as = "[InBaseUnits; 2]")]
    pub throughput_samples_per_s: [SamplesPerSec; 2],
    /// By which runs differ; none where a single run or a closed form does not tell.
    pub sampling: Option<f64>,
    /// By which inputs may be off, all together.
    pub inputs: [f64; 2],
    /// By which the method may be off.
    pub model: f64,
    /// What each uncertain input does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub by_input: Vec<InputEffect>,
    /// What the model error rests on.
    pub basis: Basis,
}

/// What intervals of one scenario need, whatever the number of workers.
pub(crate) struct Intervals<'a> {
    method: &'a dyn Method,
    varied: Vec<Varied>,
    table: Vec<Residuals>,
}

impl<'a> Intervals<'a> {
    /// For `scenario`, predicted by `method`.
    pub(crate) fn new(scenario: &Scenario, method: &'a dyn Method) -> Self {
        Self { method, varied: inputs::varied(scenario), table: committed() }
    }

    /// The interval of the prediction of `asked`, which `change` makes of the scenario, and what to warn of.
    pub(crate) fn interval(
        &self,
        asked: &Scenario,
        prediction: &Prediction,
        change: &dyn Fn(&Scenario) -> Scenario,
    ) -> Result<Option<(Interval, Vec<Warning>)>, Fault> {
        let regime = Regime::of(asked, prediction.scaling_factor);
        let method = validated_as(asked, prediction.method);
        let Some(pool) = Pool::of(&self.table, method, regime, |_| true) else { return Ok(None) };
        let by_input = inputs::effects(&self.varied, self.method, prediction, change)?;
        let together =
            |of: fn(&InputEffect) -> f64| by_input.iter().fold(0.0, |sum: f64, effect| sum.hypot(of(effect)));
        let inputs = [together(|effect| effect.slower), together(|effect| effect.faster)];
        let sampling = prediction.simulation.as_deref().and_then(sampling);
        let model = pool.half_width();
        let [slower, faster] =
            inputs.map(|input| (input.powi(2) + model.powi(2) + sampling.unwrap_or(0.0).powi(2)).sqrt());
        let (step, rate) = (prediction.iteration, prediction.throughput);
        let interval = Interval {
            level: LEVEL,
            iteration_s: [step * (-faster).exp(), step * slower.exp()],
            throughput_samples_per_s: [rate * (-slower).exp(), rate * faster.exp()],
            sampling,
            inputs,
            model,
            by_input,
            basis: pool.basis(method, regime),
        };
        let mut warnings = reach::warnings(asked, &pool, method);
        warnings.extend((!pool.level().is_own()).then(|| not_validated(method)));
        Ok(Some((interval, warnings)))
    }
}

/// A device's fitted steps are judged by themselves where nothing else takes part.
fn validated_as(scenario: &Scenario, method: &'static str) -> &'static str {
    let fitted = scenario.cluster.groups.iter().all(|group| group.device.fitted.is_some());
    match scenario.strategy.architecture {
        Architecture::StandAlone if fitted => FITTED_STEPS,
        _ => method,
    }
}

fn not_validated(method: &str) -> Warning {
    let message = format!(
        "no measured runs validate {method}: its error is taken to be that of other methods, which is a guess"
    );
    Warning { code: "not-validated", message }
}

/// Half-width of the interval for one more run, from how the simulated ones differ.
fn sampling(simulation: &Simulation) -> Option<f64> {
    let runs = simulation.runs as f64;
    simulation.run_spread.map(|spread| student_t_95(simulation.runs - 1) * spread * (1.0 + 1.0 / runs).sqrt())
}

#[cfg(test)]
mod tests;
