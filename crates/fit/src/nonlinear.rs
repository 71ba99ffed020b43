//! Minima of nonlinear functions: golden section in one variable; robust least squares in several, with soft L1 loss and
//! Levenberg-Marquardt steps.

use crate::{FitError, least_squares};

/// Step of the central differences.
const STEP: f64 = 0.02;
const ROUNDS: usize = 60;
/// Rounds of reweighting in a linear problem with held-out residuals.
const LINEAR_ROUNDS: usize = 10;
/// The search ends after a round that moves every variable by less than this.
const STILL: f64 = 1e-4;
const MOST_DAMPING: f64 = 1e6;

/// A problem: residuals as a function of variables.
pub struct Problem<'a> {
    pub residuals: &'a dyn Fn(&[f64]) -> Vec<f64>,
    pub weights: &'a [f64],
    /// Start of the search, and mean of the prior.
    pub start: &'a [f64],
    /// Weight of the prior, in units of a residual for a unit of the variable: the higher, the more the variable stays at its
    /// start.
    pub hold: &'a [f64],
    /// Residuals beyond this count as their absolute value, not as their square.
    pub scale: f64,
}

impl Problem<'_> {
    /// Half of the squares of small residuals, scale times the absolute values of large ones, and the prior.
    fn cost(&self, at: &[f64], residuals: &[f64]) -> f64 {
        let soft =
            |residual: f64| self.scale.powi(2) * ((1.0 + (residual / self.scale).powi(2)).sqrt() - 1.0);
        let own: f64 = residuals.iter().zip(self.weights).map(|(r, w)| w * w * soft(*r)).sum();
        let held: f64 = self.held(at).map(|held| 0.5 * held * held).sum();
        own + held
    }

    fn held(&self, at: &[f64]) -> impl Iterator<Item = f64> {
        let moved = at.iter().zip(self.start).map(|(at, start)| at - start);
        moved.zip(self.hold).map(|(moved, hold)| hold * moved).collect::<Vec<_>>().into_iter()
    }

    fn slopes(&self, at: &[f64]) -> Vec<Vec<f64>> {
        let columns = (0..at.len()).map(|place| {
            let [up, down] = [STEP, -STEP].map(|step| {
                let mut moved = at.to_vec();
                moved[place] += step;
                (self.residuals)(&moved)
            });
            up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * STEP)).collect::<Vec<_>>()
        });
        columns.collect()
    }

    /// The point of least cost near the start.
    pub fn solve(&self) -> Result<Vec<f64>, FitError> {
        let mut at = self.start.to_vec();
        let mut residuals = (self.residuals)(&at);
        let mut cost = self.cost(&at, &residuals);
        let mut damping = 1e-3;
        for _ in 0..ROUNDS {
            let slopes = self.slopes(&at);
            let moved = loop {
                let step = self.step(&at, &residuals, &slopes, &[], damping)?;
                let next: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at + step).collect();
                let after = (self.residuals)(&next);
                let lower = self.cost(&next, &after);
                if lower < cost {
                    (at, residuals, cost) = (next, after, lower);
                    damping = (damping * 0.3).max(1e-9);
                    break step.iter().fold(0.0, |most: f64, step| most.max(step.abs()));
                }
                damping *= 10.0;
                if damping > MOST_DAMPING {
                    break 0.0;
                }
            };
            if moved < STILL {
                break;
            }
        }
        Ok(at)
    }

    /// Held-out residuals near the solution `at`: each of `folds` lists residuals that are held out together. The solution
    /// without a fold is found by Gauss-Newton steps from `at`, with the slopes there.
    pub fn left_out(&self, at: &[f64], folds: &[Vec<usize>]) -> Result<Vec<Vec<f64>>, FitError> {
        let (residuals, slopes) = ((self.residuals)(at), self.slopes(at));
        let moved = |index: usize, step: &[f64]| -> f64 {
            residuals[index] + slopes.iter().zip(step).map(|(column, step)| column[index] * step).sum::<f64>()
        };
        let predict = |out: &Vec<usize>| {
            let mut total = vec![0.0; at.len()];
            for _ in 0..LINEAR_ROUNDS {
                let now: Vec<f64> = (0..residuals.len()).map(|index| moved(index, &total)).collect();
                let place: Vec<f64> = at.iter().zip(&total).map(|(at, step)| at + step).collect();
                let step = self.step(&place, &now, &slopes, out, 0.0)?;
                total.iter_mut().zip(step).for_each(|(total, step)| *total += step);
            }
            Ok(out.iter().map(|index| moved(*index, &total)).collect())
        };
        folds.iter().map(predict).collect()
    }

    /// Least squares of the linearised problem, with robust weights and held-out rows.
    fn step(
        &self,
        at: &[f64],
        residuals: &[f64],
        slopes: &[Vec<f64>],
        out: &[usize],
        damping: f64,
    ) -> Result<Vec<f64>, FitError> {
        let count = at.len();
        let (mut rows, mut target) = (Vec::new(), Vec::new());
        for (index, (residual, weight)) in residuals.iter().zip(self.weights).enumerate() {
            if out.contains(&index) {
                continue;
            }
            let weight = weight / (1.0 + (residual / self.scale).powi(2)).powf(0.25);
            rows.push(slopes.iter().map(|column| weight * column[index]).collect::<Vec<_>>());
            target.push(-weight * residual);
        }
        let axis =
            |place: usize, value: f64| (0..count).map(move |own| if own == place { value } else { 0.0 });
        for (place, held) in self.held(at).enumerate() {
            rows.push(axis(place, self.hold[place]).collect());
            target.push(-held);
            rows.push(axis(place, damping.sqrt()).collect());
            target.push(0.0);
        }
        Ok(least_squares(&rows, &target)?.coefficients)
    }
}

/// Where `function` is least between `low` and `high`, if it falls and then rises there: golden section, `steps` times.
/// The place is known to 0.618^`steps` of the range.
pub fn golden_section(function: impl Fn(f64) -> f64, low: f64, high: f64, steps: u32) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (low, high);
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (function(left), function(right));
    for _ in 0..steps {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = function(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = function(right);
        }
    }
    if at_left <= at_right { left } else { right }
}
