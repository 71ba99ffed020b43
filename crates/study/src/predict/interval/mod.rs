//! Prediction intervals: the range in which 90 % of measurements should lie, and its sources.
//!
//! There are three sources: *sampling*, the differences between runs of one system, which simulations show; *inputs*
//! that are only known as ranges (`inputs`); and *model error*, which only measured runs reveal. Where figures of
//! machines and software are assumed, the model error follows from their spread (`assumed`), which is smaller where the kit
//! has measured the machine; where everything was measured, from the errors of the method on measured runs ([`residuals`]).
//! All of them are factors, so they are kept as logarithms; they are independent and are added in quadrature.

pub(crate) mod assumed;
mod inputs;
mod regime;
mod residuals;

pub(crate) use assumed::spreads;
pub use assumed::{AssumedFigure, Assumption};
pub use inputs::InputEffect;
pub use regime::{Limit, Machines, Pace, Regime};
pub use residuals::{Basis, Case, Level, Pool, Residuals, committed, residuals};

use inputs::Varied;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::compute::SpeedSource;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Prediction, Simulation, Warning};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// Share of measurements that intervals should contain.
pub const LEVEL: f64 = 0.9;

/// The method name under which residuals of fitted step times are kept.
pub const FITTED_STEPS: &str = "fitted steps";

/// The interval in which measurements should lie. Widths are half-widths of logarithms: 0.1 is about 10 %.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Interval {
    /// Share of measurements that should lie in the interval.
    pub level: f64,
    /// Shortest and longest step.
    #[serde_as(as = "[InBaseUnits; 2]")]
    pub iteration_s: [Seconds; 2],
    /// Lowest and highest throughput.
    #[serde_as(as = "[InBaseUnits; 2]")]
    pub throughput_samples_per_s: [SamplesPerSec; 2],
    /// Width due to differences between runs; none for a single run or a closed form.
    pub sampling: Option<f64>,
    /// Width due to all uncertain inputs together.
    pub inputs: [f64; 2],
    /// Width due to the error of the method.
    pub model: f64,
    /// The effect of each uncertain input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub by_input: Vec<InputEffect>,
    /// Assumptions, each with its share of the model error, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub by_assumption: Vec<Assumption>,
    /// The evidence for the model error.
    pub basis: Basis,
}

/// Data that the intervals of one scenario share for all numbers of workers.
pub(crate) struct Intervals<'a> {
    method: &'a dyn Method,
    varied: Vec<Varied>,
    table: &'static [Residuals],
}

impl<'a> Intervals<'a> {
    pub(crate) fn new(scenario: &Scenario, method: &'a dyn Method) -> Self {
        Self { method, varied: inputs::varied(scenario), table: committed() }
    }

    /// Number of predictions for an interval: both sides of every assumed or uncertain figure.
    pub(crate) fn predictions(&self, scenario: &Scenario) -> u64 {
        2 * (scenario.priors.groups.len() + 1 + self.varied.len()) as u64
    }

    /// The interval of the prediction of `asked`, which is the scenario after `change`, and its warnings. With `explained`,
    /// it names every assumed figure.
    pub(crate) fn interval(
        &self,
        asked: &Scenario,
        prediction: &Prediction,
        change: &dyn Fn(&Scenario) -> Scenario,
        explained: bool,
    ) -> Result<Option<(Interval, Vec<Warning>)>, Fault> {
        let regime = Regime::of(asked, prediction.scaling_factor);
        let method = validated_as(asked, prediction.method);
        let Some(pool) = Pool::of(self.table, method, regime, |_| true) else { return Ok(None) };
        let assumed = assumed::assumed(asked, self.method, prediction, explained)?;
        let mut by_input = inputs::effects(&self.varied, self.method, prediction, change)?;
        if assumed.as_ref().is_some_and(|assumed| assumed.of_devices) {
            by_input.retain(|effect| effect.key != inputs::ASSUMED_SHARE);
        }
        let together =
            |of: fn(&InputEffect) -> f64| by_input.iter().fold(0.0, |sum: f64, effect| sum.hypot(of(effect)));
        let inputs = [together(|effect| effect.slower), together(|effect| effect.faster)];
        let sampling = prediction.simulation.as_deref().map(sampling);
        let model = assumed.as_ref().map_or_else(|| pool.half_width(), |assumed| assumed.half_width);
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
            basis: match &assumed {
                Some(assumed) => Basis::published(method, assumed.families, assumed.runs),
                None => pool.basis(method, regime),
            },
            by_assumption: assumed.as_ref().map_or_else(Vec::new, |assumed| assumed.by_assumption.clone()),
        };
        let mut warnings = Vec::new();
        if assumed.is_none() {
            warnings.extend(regime::warnings(asked, &pool, method));
            warnings.extend((!pool.level().is_own()).then(|| not_validated(method)));
        }
        Ok(Some((interval, warnings)))
    }
}

/// The interval of a prediction of `scenario` by `method`; none without measured runs that show its error.
pub fn of(
    scenario: &Scenario,
    method: &dyn Method,
    prediction: &Prediction,
) -> Result<Option<Interval>, Fault> {
    let found = Intervals::new(scenario, method).interval(scenario, prediction, &Scenario::clone, false)?;
    Ok(found.map(|(interval, _)| interval))
}

/// The name under which a scenario is validated: fitted steps of a device have a separate name if nothing else
/// contributes.
fn validated_as(scenario: &Scenario, method: &'static str) -> &'static str {
    let groups = &scenario.cluster.groups;
    let is_fitted = |group| matches!(SpeedSource::new(scenario, group), SpeedSource::FittedSteps(_));
    let fitted = groups.iter().all(is_fitted);
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

/// Half-width of the interval of the simulation itself.
fn sampling(simulation: &Simulation) -> f64 {
    let [low, high] = simulation.throughput_interval;
    if low > 0.0 { 0.5 * (high / low).ln() } else { f64::INFINITY }
}

/// The 90 % interval of a product of independent factors, each given by its interval.
pub(crate) fn of_product(value: f64, factors: &[[f64; 2]]) -> [f64; 2] {
    let width = |side: usize| factors.iter().fold(0.0, |sum: f64, ends| sum.hypot(ends[side].ln()));
    [value * (-width(0)).exp(), value * width(1).exp()]
}
