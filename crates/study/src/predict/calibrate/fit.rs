//! The most likely factors of all groups of priors, given measured runs.

use crate::predict::budget;
use crate::predict::interval::assumed::{Causes, slopes};
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::prior::learned::{Character, Unexplained};
use stepcast_core::prior::{Priors, REPEATS};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_stats::Cholesky;

const MOST_STEPS: usize = 20;
/// A step changes no factor by more than this, in standard deviations: predictions are not linear further out.
const LONGEST_STEP: f64 = 1.0;
/// Steps below this, in standard deviations, end the search.
const SHORTEST_STEP: f64 = 1e-4;
/// Halvings of a step that makes the factors less likely.
const HALVINGS: usize = 8;
const BISECTIONS: usize = 24;
/// The independent part of a run's deviation, as a share of the variance that all runs of a machine and its software have in
/// common. Steps of llm-foundry on H100 (18 runs) are e^0.24 longer than predicted together, and differ by e^0.09 from that.
const OWN: f64 = 0.15;

pub(super) struct Observed {
    pub(super) scenario: Arc<Scenario>,
    pub(super) method: &'static dyn Method,
    /// A closed form in its place.
    pub(super) twin: &'static dyn Method,
    pub(super) character: Character,
    /// The logarithm of its step that the closed form should predict.
    pub(super) log_step: f64,
    pub(super) log_measured: f64,
    pub(super) place: String,
}

impl Observed {
    /// The log residual of the method by given priors, where the closed form's is `missing`: factors may move a simulation by less.
    fn missing_of_method(&self, priors: &Arc<Priors>, missing: f64) -> Result<f64, Fault> {
        if self.method.is_quick() {
            return Ok(missing);
        }
        let scenario = Scenario { priors: Arc::clone(priors), ..self.scenario.as_ref().clone() };
        let predicted = self.method.predict(&budget::headline(&scenario))?;
        Ok(self.log_measured - predicted.iteration.get().ln())
    }
}

/// Factors, and the data for the remaining uncertainty.
pub(super) struct Fit {
    /// Logarithms of the factors of the groups.
    pub(super) shifts: Vec<f64>,
    pub(super) runs: Vec<Vec<f64>>,
    /// Deviations of the runs in units of their covariance.
    pub(super) weights: Vec<f64>,
    /// The inverse of the covariance of the runs.
    pub(super) inverse: Vec<f64>,
    pub(super) unexplained: Unexplained,
    pub(super) variances: Vec<f64>,
}

impl Fit {
    /// The fit of `observed` runs, to predict a scenario of the character `asked`. `variances` are the
    /// variances of the groups of `before`.
    pub(super) fn new(
        before: &Priors,
        observed: &[Observed],
        variances: Vec<f64>,
        asked: &Character,
    ) -> Result<Self, Fault> {
        let mut shifts = vec![0.0; variances.len()];
        let mut at = Linear::new(before, observed, &shifts)?;
        let mut model = Model { unexplained: unexplained(observed)?, variances, observed, asked };
        model.check(&at)?;
        let noise = model.noise(&at);
        model.widen(&model.covariance(&at, &noise), &at.missing)?;
        for _ in 0..MOST_STEPS {
            let step = model.step(&at, &shifts, &noise)?;
            let size = |steps: &[f64]| {
                let pairs = steps.iter().zip(&model.variances).filter(|(_, variance)| **variance > 0.0);
                pairs.map(|(step, variance)| step.abs() / variance.sqrt()).fold(0.0, f64::max)
            };
            if size(&step) < SHORTEST_STEP {
                break;
            }
            let now = model.unlikeliness(&shifts, &at.missing, &noise)?;
            let mut factor = (LONGEST_STEP / size(&step)).min(1.0);
            let mut found = None;
            for _ in 0..HALVINGS {
                let moved: Vec<f64> = shifts.iter().zip(&step).map(|(own, by)| own + factor * by).collect();
                let missing = missing(&corrected(before, &moved), observed)?;
                if model.unlikeliness(&moved, &missing, &noise)? < now {
                    found = Some(moved);
                    break;
                }
                factor *= 0.5;
            }
            let Some(moved) = found else { break };
            shifts = moved;
            at = Linear::new(before, observed, &shifts)?;
        }
        let priors = corrected(before, &shifts);
        let left = observed.iter().zip(&at.missing);
        let missing: Vec<f64> =
            left.map(|(run, missing)| run.missing_of_method(&priors, *missing)).collect::<Result<_, _>>()?;
        model.widen(&model.deviations(&noise), &missing)?;
        let weights = model.factors(&model.deviations(&noise))?.solve(&missing);
        let inverse = model.factors(&model.covariance(&at, &noise))?.inverse();
        let Model { unexplained, variances, .. } = model;
        Ok(Self { shifts, runs: at.slopes, weights, inverse, unexplained, variances })
    }
}

fn corrected(before: &Priors, shifts: &[f64]) -> Arc<Priors> {
    let mut priors = before.clone();
    for (index, shift) in shifts.iter().enumerate().filter(|(_, shift)| **shift != 0.0) {
        priors = priors.moved(index, *shift);
    }
    Arc::new(priors)
}

/// The log residual of each run by given priors.
fn missing(priors: &Arc<Priors>, observed: &[Observed]) -> Result<Vec<f64>, Fault> {
    let missing = |run: &Observed| {
        let scenario = Scenario { priors: Arc::clone(priors), ..run.scenario.as_ref().clone() };
        let at = |fault: Fault| Fault::in_file(run.place.clone(), fault.reason, fault.remedy);
        Ok(run.log_step - run.twin.predict(&scenario).map_err(at)?.iteration.get().ln())
    };
    observed.iter().map(missing).collect()
}

/// Predictions near some factors.
struct Linear {
    missing: Vec<f64>,
    slopes: Vec<Vec<f64>>,
}

impl Linear {
    fn new(before: &Priors, observed: &[Observed], shifts: &[f64]) -> Result<Self, Fault> {
        let priors = corrected(before, shifts);
        let slopes = |run: &Observed| {
            let scenario = Scenario { priors: Arc::clone(&priors), ..run.scenario.as_ref().clone() };
            slopes(&scenario, run.twin)
        };
        Ok(Self {
            missing: missing(&priors, observed)?,
            slopes: observed.iter().map(slopes).collect::<Result<_, _>>()?,
        })
    }
}

/// The mean unexplained variances of runs.
fn unexplained(observed: &[Observed]) -> Result<Unexplained, Fault> {
    let mut mean = Unexplained { common: 0.0, own: 0.0 };
    for run in observed {
        let prediction = run.twin.predict(&run.scenario)?;
        if let Some(causes) = Causes::new(&run.scenario, run.twin, &prediction)? {
            let own = causes.unexplained();
            mean.common += own.common / observed.len() as f64;
            mean.own += own.own / observed.len() as f64;
        }
    }
    Ok(mean)
}

/// The joint distribution of runs.
struct Model<'a> {
    unexplained: Unexplained,
    variances: Vec<f64>,
    observed: &'a [Observed],
    asked: &'a Character,
}

impl Model<'_> {
    /// The covariance of two runs due to groups of priors.
    fn shared(&self, a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).zip(&self.variances).map(|((a, b), variance)| a * b * variance).sum()
    }

    /// The noise variances of the runs: repeats differ, and so do the factors of machines other than the requested
    /// scenario's.
    fn noise(&self, at: &Linear) -> Vec<f64> {
        let runs = self.observed.iter().zip(&at.slopes);
        runs.map(|(run, slopes)| {
            let other = 1.0 - run.character.sameness(self.asked);
            REPEATS.powi(2) + other * self.shared(slopes, slopes)
        })
        .collect()
    }

    /// A matrix with a row and a column for each run, row by row.
    fn matrix(&self, of: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let size = self.observed.len();
        (0..size).flat_map(|i| (0..size).map(move |j| (i, j))).map(|(i, j)| of(i, j)).collect()
    }

    /// The Cholesky factors of such a matrix. Repeats differ, so it is definite unless a figure is not finite.
    fn factors(&self, matrix: &[f64]) -> Result<Cholesky, Fault> {
        Cholesky::new(self.observed.len(), matrix).ok_or_else(|| {
            Fault::new("what was measured cannot be weighed against the forecast", "leave out extreme runs")
        })
    }

    fn deviations(&self, noise: &[f64]) -> Vec<f64> {
        self.matrix(|i, j| {
            let [a, b] = [i, j].map(|run| &self.observed[run].character);
            self.unexplained.covariance(a, b) + if i == j { noise[i] } else { 0.0 }
        })
    }

    fn covariance(&self, at: &Linear, noise: &[f64]) -> Vec<f64> {
        let (size, deviations) = (self.observed.len(), self.deviations(noise));
        self.matrix(|i, j| deviations[i * size + j] + self.shared(&at.slopes[i], &at.slopes[j]))
    }

    /// Refuses runs that cannot belong to their scenarios.
    fn check(&self, at: &Linear) -> Result<(), Fault> {
        for ((run, slopes), missing) in self.observed.iter().zip(&at.slopes).zip(&at.missing) {
            let spread = (self.shared(slopes, slopes) + self.unexplained.total()).sqrt();
            check_distance(*missing, spread)
                .map_err(|fault| Fault::in_file(run.place.clone(), fault.reason, fault.remedy))?;
        }
        Ok(())
    }

    /// Adapts the spread to the data: where runs are further from their predictions than `covariance` makes likely, the
    /// deviation of the machine and its software is widened until the runs are as likely as on average.
    fn widen(&mut self, covariance: &[f64], missing: &[f64]) -> Result<(), Fault> {
        let (size, expected) = (missing.len(), missing.len() as f64);
        let wider = |by: f64| {
            let of = |i: usize, j: usize| {
                let [a, b] = [i, j].map(|run| &self.observed[run].character);
                covariance[i * size + j] + added(by).covariance(a, b)
            };
            Ok::<_, Fault>(self.factors(&self.matrix(of))?.square(missing))
        };
        if wider(0.0)? <= expected {
            return Ok(());
        }
        let (mut low, mut high) = (0.0, missing.iter().map(|own| own.powi(2)).sum());
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if wider(middle)? > expected { low = middle } else { high = middle }
        }
        self.unexplained.common += added(high).common;
        self.unexplained.own += added(high).own;
        Ok(())
    }

    /// The Gauss-Newton step from `shifts` (iterated Kalman update; Bell and Cathey 1993, equation 13).
    fn step(&self, at: &Linear, shifts: &[f64], noise: &[f64]) -> Result<Vec<f64>, Fault> {
        let told = at.slopes.iter().zip(&at.missing).map(|(slopes, missing)| {
            missing + slopes.iter().zip(shifts).map(|(slope, shift)| slope * shift).sum::<f64>()
        });
        let solved = self.factors(&self.covariance(at, noise))?.solve(&told.collect::<Vec<_>>());
        let groups = self.variances.iter().zip(shifts).enumerate();
        let step = groups.map(|(index, (variance, shift))| {
            let moved: f64 = at.slopes.iter().zip(&solved).map(|(slopes, own)| slopes[index] * own).sum();
            variance * moved - shift
        });
        Ok(step.collect())
    }

    /// Minus twice the logarithm of the likelihood of factors and of the residuals, up to a constant.
    fn unlikeliness(&self, shifts: &[f64], missing: &[f64], noise: &[f64]) -> Result<f64, Fault> {
        let groups = shifts.iter().zip(&self.variances).filter(|(_, variance)| **variance > 0.0);
        let of_factors: f64 = groups.map(|(shift, variance)| shift.powi(2) / variance).sum();
        Ok(of_factors + self.factors(&self.deviations(noise))?.square(missing))
    }
}

/// Additional deviation of a machine.
fn added(variance: f64) -> Unexplained {
    Unexplained { common: variance, own: OWN * variance }
}

/// Convolutions by Winograd's F(2×2, 3×3) do fewer multiplications than are counted, by this factor. Measured networks stay
/// below it (VGG-16 on a V100 in FP32: 1.13 to 1.47).
const FAST_CONVOLUTIONS: f64 = 2.25;
/// A step takes three forward passes' operations.
const PASSES: f64 = 3.0;
/// Ratio of measured to forecast step beyond which a run counts as another one, unless the forecast is that uncertain.
const LARGEST_FACTOR: f64 = 20.0;
/// Number of standard deviations within which any ratio is accepted.
const DEVIATIONS: f64 = 4.0;

const OTHER: &str = "this run is not the scenario's";
const REMEDY: &str = "check its unit and its keys: model, devices, workers and batch";

/// Refuses steps in which devices would compute faster than they can.
pub(super) fn check_rate(
    scenario: &Scenario,
    prediction: &Prediction,
    measured: Seconds,
) -> Result<(), Fault> {
    let (share, most) = match &prediction.transformer {
        Some(split) => (split.mfu.max(split.hfu) * (prediction.iteration / measured), 1.0),
        None => {
            let peak = |group: &WorkerGroup| {
                let peak = group.device.peak(scenario.strategy.precision);
                let devices = f64::from(group.count) * f64::from(group.gpus);
                peak.unwrap_or_else(|| group.device.fp32_peak()).get() * devices * group.speed.max(1.0)
            };
            let peak: f64 = scenario.cluster.groups.iter().map(peak).sum();
            let operations = PASSES * scenario.workload.forward.get() * prediction.samples as f64;
            (operations / measured.get() / peak, FAST_CONVOLUTIONS)
        }
    };
    match share.is_nan() || share <= most {
        true => Ok(()),
        false => {
            let step = measured.human();
            let reason =
                format!("a step of {step} takes {share:.3} times the peak rate of the devices: {OTHER}");
            Err(Fault::new(reason, REMEDY))
        }
    }
}

/// Refuses a step that differs from the forecast by more than all assumptions allow; logarithms.
fn check_distance(difference: f64, spread: f64) -> Result<(), Fault> {
    if difference.abs() <= LARGEST_FACTOR.ln().max(DEVIATIONS * spread) {
        return Ok(());
    }
    let (factor, word) = match difference > 0.0 {
        true => (difference.exp(), "longer"),
        false => ((-difference).exp(), "shorter"),
    };
    let factor = if factor < 1e4 { format!("{factor:.0}") } else { format!("{factor:.0e}") };
    let reason = format!("its step is {factor} times {word} than forecast: {OTHER}");
    Err(Fault::new(reason, REMEDY))
}
