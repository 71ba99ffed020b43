//! Levenberg-Marquardt on the logarithms of constants, with soft-L1 residuals and normal priors.

use super::Observation;
use crate::set::check_cancelled;
use crate::sets::shipped_priors;
use crate::{Observer, ValidationError};
use rayon::prelude::*;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stepcast_core::prior::{Constant, Domain, Priors, SHIFT, constants};
use stepcast_stats::{Cholesky, products};

const ITERATIONS: usize = 20;
/// Iterations on derivatives that are taken once; only the weights of residuals change between them.
const REWEIGHTED: usize = 8;
/// Relative fall of the objective below which the fit has converged.
const CONVERGED: f64 = 1e-5;

/// A fit of the constants of one domain.
#[derive(Debug, Clone, Copy)]
pub struct Refit {
    pub(super) domain: Domain,
    /// Standard deviation of a run's logarithm at which residuals start to count linearly.
    pub(super) spread: f64,
    /// Number of runs as which a large family counts.
    pub(super) most_of_family: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedConstant {
    pub name: String,
    pub shipped: f64,
    pub value: f64,
    /// Standard deviation of its logarithm.
    pub fit_error: f64,
    pub unit: String,
}

/// A step as constants predict it that were refitted without the runs of its group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LeftOut {
    /// Its logarithm.
    pub(crate) predicted: f64,
    /// Standard deviation of that by the errors of the refitted constants.
    pub(crate) fit_error: f64,
}

/// What a fit moves: the constants of a domain that runs were fitted to, from their shipped values.
struct Constants {
    domain: Domain,
    shipped: Arc<Priors>,
    named: Vec<(String, Constant)>,
    spreads: Vec<f64>,
}

impl Constants {
    fn new(domain: Domain) -> Result<Self, ValidationError> {
        let mut named = constants(domain).map_err(|error| ValidationError::Data(error.to_string()))?;
        named.retain(|(_, constant)| constant.rows > 0);
        let spreads = named.iter().map(|(_, constant)| constant.prior.spread).collect();
        Ok(Self { domain, shipped: shipped_priors()?, named, spreads })
    }

    /// Priors with every constant moved by the logarithm of a factor.
    fn moved(&self, shifts: &[f64]) -> Priors {
        let named = self.named.iter().zip(shifts);
        named.fold(Priors::clone(&self.shipped), |priors, ((name, _), shift)| {
            priors.with_moved(self.domain, name, *shift)
        })
    }

    /// Distance of each constant from its prior, in units of the prior's spread.
    fn distances(&self, shifts: &[f64]) -> Vec<f64> {
        let each = self.named.iter().zip(shifts);
        each.map(|((_, own), shift)| ((own.value / own.prior.value).ln() + shift) / own.prior.spread)
            .collect()
    }

    /// Derivatives by each constant of what `values` gives, which is `now` at `priors`.
    fn slopes(
        &self,
        priors: &Priors,
        now: &[f64],
        values: impl Fn(&Priors) -> Result<Vec<f64>, ValidationError>,
    ) -> Result<Vec<Vec<f64>>, ValidationError> {
        let slope = |(name, _): &(String, Constant)| {
            let moved = values(&priors.with_moved(self.domain, name, SHIFT))?;
            Ok(moved.iter().zip(now).map(|(moved, now)| (moved - now) / SHIFT).collect())
        };
        self.named.iter().map(slope).collect()
    }
}

/// The value of every run, unless cancelled.
fn of_each<R: Borrow<Observation> + Sync>(
    runs: &[R],
    observer: &Observer<'_>,
    value: impl Fn(&Observation) -> Result<f64, ValidationError> + Sync,
) -> Result<Vec<f64>, ValidationError> {
    let checked = |run: &R| {
        check_cancelled(observer)?;
        value(run.borrow())
    };
    runs.par_iter().map(checked).collect()
}

impl Refit {
    /// The fitted constants, and priors with them.
    pub(super) fn run(
        &self,
        observations: &[&Observation],
        observer: &Observer<'_>,
    ) -> Result<(Vec<FittedConstant>, Priors), ValidationError> {
        let constants = Constants::new(self.domain)?;
        let runs: Vec<&Observation> = observations.iter().copied().filter(|run| run.is_fitted).collect();
        let weights = self.weights(&runs);
        let residuals = |priors: &Priors| {
            of_each(&runs, observer, |run| Ok((run.measured - (run.predict)(priors)?) / self.spread))
        };
        let objective = |residuals: &[f64], shifts: &[f64]| -> f64 {
            let soft =
                residuals.iter().zip(&weights).map(|(r, w)| w * 2.0 * (r.hypot(1.0) - 1.0)).sum::<f64>();
            soft + constants.distances(shifts).iter().map(|z| z.powi(2)).sum::<f64>()
        };
        let size = constants.named.len();
        let mut shifts = vec![0.0; size];
        let mut damping = 1e-3;
        let mut now = residuals(&constants.moved(&shifts))?;
        let mut best = objective(&now, &shifts);
        let mut normal = vec![0.0; size * size];
        for _ in 0..ITERATIONS {
            let columns = constants.slopes(&constants.moved(&shifts), &now, residuals)?;
            let distances = constants.distances(&shifts);
            let (equations, slope) = equations(&columns, &now, &weights, &distances, &constants.spreads);
            normal = equations;
            let mut improved = false;
            while !improved && damping < 1e6 {
                let mut damped = normal.clone();
                for i in 0..size {
                    damped[i * size + i] *= 1.0 + damping;
                }
                let Some(step) = solve(&damped, &slope) else {
                    damping *= 10.0;
                    continue;
                };
                let next: Vec<f64> = shifts.iter().zip(&step).map(|(shift, step)| shift - step).collect();
                let after = residuals(&constants.moved(&next))?;
                let value = objective(&after, &next);
                if value < best {
                    improved = true;
                    damping *= 0.3;
                    let fall = (best - value) / best;
                    (shifts, now, best) = (next, after, value);
                    if fall < CONVERGED {
                        damping = f64::INFINITY;
                    }
                } else {
                    damping *= 10.0;
                }
            }
            if !improved || damping.is_infinite() {
                break;
            }
        }
        let fitted = constants.named.iter().enumerate().map(|(index, (name, constant))| {
            let mut unit = vec![0.0; size];
            unit[index] = 1.0;
            let variance = solve(&normal, &unit).map_or(f64::NAN, |column| column[index]);
            FittedConstant {
                name: name.clone(),
                shipped: constant.value,
                value: constant.value * shifts[index].exp(),
                fit_error: variance.sqrt(),
                unit: constant.unit.clone(),
            }
        });
        Ok((fitted.collect(), constants.moved(&shifts)))
    }

    /// Every step as constants predict it that were refitted without the runs of its source.
    pub(crate) fn without_each_source(
        &self,
        runs: &[Observation],
        observer: &Observer<'_>,
    ) -> Result<Vec<f64>, ValidationError> {
        let sources: Vec<&str> = runs.iter().map(|run| run.source.as_str()).collect();
        let [left_out] = self.without_each(runs, [&sources], observer)?;
        Ok(left_out.iter().map(|run| run.predicted).collect())
    }

    /// Every step as constants predict it that were refitted without its group, for each of several ways to group runs.
    ///
    /// Derivatives are taken once, at the shipped constants: `run` without a group is the slow twin.
    pub(crate) fn without_each<const N: usize>(
        &self,
        runs: &[Observation],
        groupings: [&[&str]; N],
        observer: &Observer<'_>,
    ) -> Result<[Vec<LeftOut>; N], ValidationError> {
        let constants = Constants::new(self.domain)?;
        let predict = |priors: &Priors| of_each(runs, observer, |run| (run.predict)(priors));
        let now = predict(&constants.shipped)?;
        let slopes = constants.slopes(&constants.shipped, &now, predict)?;
        check_cancelled(observer)?;
        Ok(groupings.map(|groups| self.without_each_group(runs, groups, &constants, &now, &slopes)))
    }

    fn without_each_group(
        &self,
        runs: &[Observation],
        groups: &[&str],
        constants: &Constants,
        now: &[f64],
        slopes: &[Vec<f64>],
    ) -> Vec<LeftOut> {
        let of_run = |run: usize| slopes.iter().map(|slope| slope[run]).collect::<Vec<f64>>();
        let moved = |run: usize, shifts: &[f64]| now[run] + product(&of_run(run), shifts);
        let size = constants.named.len();
        let mut left_out = vec![LeftOut { predicted: 0.0, fit_error: 0.0 }; runs.len()];
        for group in groups.iter().collect::<BTreeSet<_>>() {
            let others: Vec<usize> =
                (0..runs.len()).filter(|&run| runs[run].is_fitted && groups[run] != *group).collect();
            let weights = self.weights(&others.iter().map(|&run| &runs[run]).collect::<Vec<_>>());
            let columns: Vec<Vec<f64>> = slopes
                .iter()
                .map(|slope| others.iter().map(|&run| -slope[run] / self.spread).collect())
                .collect();
            let mut shifts = vec![0.0; size];
            let mut normal = vec![0.0; size * size];
            for _ in 0..REWEIGHTED {
                let residual = |&run: &usize| (runs[run].measured - moved(run, &shifts)) / self.spread;
                let residuals: Vec<f64> = others.iter().map(residual).collect();
                let distances = constants.distances(&shifts);
                let (equations, slope) =
                    equations(&columns, &residuals, &weights, &distances, &constants.spreads);
                normal = equations;
                let Some(step) = solve(&normal, &slope) else { break };
                for (shift, step) in shifts.iter_mut().zip(step) {
                    *shift -= step;
                }
            }
            for run in (0..runs.len()).filter(|&run| groups[run] == *group) {
                let slope = of_run(run);
                let variance = solve(&normal, &slope).map_or(0.0, |column| product(&column, &slope));
                left_out[run] = LeftOut { predicted: moved(run, &shifts), fit_error: variance.sqrt() };
            }
        }
        left_out
    }

    /// Weights of runs: a family counts as a limited number of them.
    fn weights(&self, runs: &[&Observation]) -> Vec<f64> {
        let mut count: BTreeMap<&str, f64> = BTreeMap::new();
        for run in runs {
            *count.entry(&run.family).or_default() += 1.0;
        }
        runs.iter().map(|run| (self.most_of_family / count[run.family.as_str()]).min(1.0)).collect()
    }
}

/// Normal equations of a step: derivatives of `residuals` by every constant in `columns`, the distance of every constant
/// from its prior in units of the prior's spread.
fn equations(
    columns: &[Vec<f64>],
    residuals: &[f64],
    weights: &[f64],
    distance: &[f64],
    spreads: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let size = columns.len();
    let weight: Vec<f64> = residuals.iter().zip(weights).map(|(r, w)| w / r.hypot(1.0)).collect();
    let mut normal = products(columns, &weight);
    let mut slope = vec![0.0; size];
    for i in 0..size {
        let own = columns[i].iter().zip(residuals);
        slope[i] = own.zip(&weight).map(|((a, r), w)| w * a * r).sum::<f64>() + distance[i] / spreads[i];
        normal[i * size + i] += spreads[i].powi(-2);
    }
    (normal, slope)
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves a symmetric, positive definite system; none if it is not definite.
fn solve(matrix: &[f64], right: &[f64]) -> Option<Vec<f64>> {
    Some(Cholesky::new(right.len(), matrix)?.solve(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::test_reports::unwatched;

    const REFIT: Refit = Refit { domain: Domain::AllReduce, spread: 0.01, most_of_family: 40.0 };

    fn truth(priors: &Priors, size: f64) -> f64 {
        (0.1 / priors.all_reduce.rdma + size * priors.all_reduce.hideable_backward).ln()
    }

    /// Steps of a machine whose constants differ by `shifts` from the shipped ones, from three sources.
    fn observations(shifts: [f64; 2]) -> Vec<Observation> {
        let moved = moved(shifts);
        let observation = |index: u32| {
            let size = f64::from(index) * 0.01;
            Observation {
                family: format!("family {}", index % 10),
                source: format!("source {}", index % 3),
                is_fitted: true,
                measured: truth(&moved, size),
                predict: Box::new(move |priors| Ok(truth(priors, size))),
            }
        };
        (1..200).map(observation).collect()
    }

    fn moved([rdma, hides]: [f64; 2]) -> Priors {
        let shipped = Priors::shipped().unwrap();
        shipped.with_moved(Domain::AllReduce, "rdma", rdma).with_moved(Domain::AllReduce, "hides", hides)
    }

    /// The quick refit without a source agrees with the slow one, and both find the truth.
    #[test]
    fn a_source_is_predicted_by_the_others() {
        let runs = observations([0.04, -0.03]);
        let quick = REFIT.without_each_source(&runs, &unwatched).unwrap();
        let others: Vec<&Observation> = runs.iter().filter(|run| run.source != "source 1").collect();
        let (_, slow) = REFIT.run(&others, &unwatched).unwrap();
        for (run, quick) in runs.iter().zip(quick).filter(|(run, _)| run.source == "source 1") {
            let slow = (run.predict)(&slow).unwrap();
            assert!((quick - slow).abs() < 2e-3 && (quick - run.measured).abs() < 4e-3, "{quick} {slow}");
        }
    }

    /// Steps that two constants make are traced back to them.
    #[test]
    fn constants_are_found_again() {
        let (moved, observations) = (moved([0.2, -0.1]), observations([0.2, -0.1]));
        let refit = REFIT;
        let (constants, priors) = refit.run(&observations.iter().collect::<Vec<_>>(), &unwatched).unwrap();
        let found = |name: &str| constants.iter().find(|constant| constant.name == name).unwrap();
        let rdma = found("rdma");
        assert!(
            (rdma.value / rdma.shipped).ln() > 0.19 && (rdma.value / rdma.shipped).ln() < 0.21,
            "{rdma:?}"
        );
        assert!(
            (priors.all_reduce.hideable_backward / moved.all_reduce.hideable_backward - 1.0).abs() < 0.01
        );
    }
}
