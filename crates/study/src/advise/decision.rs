//! The value of measuring before deciding: the mean reduction of the loss by deciding after an experiment.
//!
//! The logarithms of the times of all options, and of the readings of experiments, are jointly normal. An experiment moves the
//! expected loss of every option; its value is the mean, over its outcomes, of the saving of the then best option over the
//! currently best one (Raiffa and Schlaifer 1961; Frazier, Powell and Dayanik 2009 for normal beliefs). All experiments are
//! judged in the same worlds, drawn once, so that their differences are known better than their values.
//!
//! The steps of options are forecasts that share causes: their joint distribution follows from the sensitivity of each to each cause.

use crate::predict::calibrate::character;
use crate::predict::interval::assumed::{Causes, closed_form};
use crate::predict::interval::spreads;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prior::learned::{Character, Unexplained};
use stepcast_core::scenario::Scenario;
use stepcast_stats::{Cholesky, mean_and_half_width, normal_below};

/// Number of antithetic pairs of worlds.
const PAIRS: usize = 4096;

/// An option to choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecisionOption {
    /// Median of the time that it takes, in seconds.
    pub time: f64,
    /// Its price for a second.
    pub price: f64,
}

/// Cost of being late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// The deadline, in seconds.
    pub deadline: f64,
    /// The price of a second after it.
    pub price: f64,
}

/// A choice among options with jointly uncertain times.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    options: Vec<DecisionOption>,
    lateness: Option<Lateness>,
    /// Covariance of the logarithms of the options' times and of all readings, these with their noise, row by row.
    covariance: Vec<f64>,
    size: usize,
}

/// Value of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentValue {
    /// Mean reduction of the loss.
    pub value: f64,
    /// Half-width of the 95 % confidence interval of the value.
    pub error: f64,
    /// Options that would be chosen after it.
    pub choices: Vec<ChoiceAfter>,
}

/// An option that is chosen after some outcomes of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChoiceAfter {
    /// The option.
    pub option: usize,
    /// How likely it is chosen.
    pub chance: f64,
    /// The mean logarithm, over these outcomes, of the factor on the time of the currently best option.
    pub shift: f64,
    /// Its saving over the currently best option.
    pub saving: f64,
}

impl Decision {
    /// A decision among options; the logarithms of their times, followed by readings, have this covariance.
    pub fn new(options: Vec<DecisionOption>, lateness: Option<Lateness>, covariance: Vec<f64>) -> Self {
        let size = covariance.len().isqrt();
        Self { options, lateness, covariance, size }
    }

    /// The options, with medians updated by readings.
    pub fn options(&self) -> &[DecisionOption] {
        &self.options
    }

    /// The expected loss of an option whose logarithm of time has this shift from its median, and this variance. The time has a
    /// lognormal distribution, so being late costs as much as a call option is worth (Black and Scholes 1973).
    fn loss(&self, option: usize, shift: f64, variance: f64) -> f64 {
        let DecisionOption { time, price } = self.options[option];
        let mean = time * (shift + 0.5 * variance).exp();
        let late = self.lateness.map_or(0.0, |Lateness { deadline, price }| {
            let spread = variance.sqrt().max(1e-9);
            let above = ((time / deadline).ln() + shift) / spread;
            price * (mean * normal_below(above + spread) - deadline * normal_below(above))
        });
        price * mean + late
    }

    fn entry(&self, row: usize, column: usize) -> f64 {
        self.covariance[row * self.size + column]
    }

    /// The expected losses of all options without measurements.
    pub fn losses(&self) -> Vec<f64> {
        (0..self.options.len()).map(|option| self.loss(option, 0.0, self.entry(option, option))).collect()
    }

    /// The option with the least expected loss now.
    pub fn best(&self) -> usize {
        least(&self.losses())
    }

    /// The probability that an option is in time, if there is a deadline.
    pub fn in_time(&self, option: usize) -> Option<f64> {
        let deadline = self.lateness?.deadline;
        let spread = self.entry(option, option).sqrt().max(1e-9);
        Some(normal_below((deadline / self.options[option].time).ln() / spread))
    }

    /// Worlds from the joint distribution: logarithms of factors on all times and readings. None if it is not definite.
    pub fn worlds(&self) -> Option<Vec<Vec<f64>>> {
        let factors = Cholesky::new(self.size, &self.covariance)?;
        let mut random = Pcg64Mcg::new(0x5743_1357_9e37_79b9);
        let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        // Box and Muller.
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let mut worlds = Vec::with_capacity(2 * PAIRS);
        for _ in 0..PAIRS {
            let world = factors.times(&(0..self.size).map(|_| normal()).collect::<Vec<_>>());
            worlds.push(world.iter().map(|own| -own).collect());
            worlds.push(world);
        }
        Some(worlds)
    }

    /// The value of knowing all times, which is the mean loss by choosing now.
    pub fn perfect(&self, worlds: &[Vec<f64>]) -> ExperimentValue {
        let known = worlds.iter().map(|world| world[..self.options.len()].to_vec());
        self.compared(known, &vec![0.0; self.options.len()])
    }

    /// The value of an experiment that reads the figures at these places of the covariance.
    pub fn value(&self, readings: &[usize], worlds: &[Vec<f64>]) -> Option<ExperimentValue> {
        let matrix: Vec<f64> = readings
            .iter()
            .flat_map(|&row| readings.iter().map(move |&column| (row, column)))
            .map(|(row, column)| self.entry(row, column))
            .collect();
        let factors = Cholesky::new(readings.len(), &matrix)?;
        // Conditional means are linear in the readings (Rasmussen and Williams 2006, equation A.6).
        let weights: Vec<(Vec<f64>, f64)> = (0..self.options.len())
            .map(|option| {
                let with: Vec<f64> = readings.iter().map(|&reading| self.entry(option, reading)).collect();
                (factors.solve(&with), (self.entry(option, option) - factors.square(&with)).max(0.0))
            })
            .collect();
        let left: Vec<f64> = weights.iter().map(|(_, left)| *left).collect();
        let shifts = worlds.iter().map(|world| {
            let told = |(weights, _): &(Vec<f64>, f64)| {
                weights.iter().zip(readings).map(|(weight, &reading)| weight * world[reading]).sum()
            };
            weights.iter().map(told).collect()
        });
        Some(self.compared(shifts, &left))
    }

    /// The saving of the best option of every outcome, which shifts the logarithms of times, over the currently best option.
    fn compared(&self, outcomes: impl Iterator<Item = Vec<f64>>, left: &[f64]) -> ExperimentValue {
        let now = self.best();
        let mut savings = Vec::new();
        let mut sums = vec![[0.0; 3]; self.options.len()];
        for shifts in outcomes {
            let losses: Vec<f64> = shifts
                .iter()
                .enumerate()
                .map(|(option, shift)| self.loss(option, *shift, left[option]))
                .collect();
            let then = least(&losses);
            let saving = losses[now] - losses[then];
            savings.push(saving);
            for (sum, own) in sums[then].iter_mut().zip([1.0, shifts[now], saving]) {
                *sum += own;
            }
        }
        let (value, error) = mean_and_half_width(&savings);
        let chosen = sums.into_iter().enumerate().filter(|(_, [count, ..])| *count > 0.0);
        let mut choices: Vec<ChoiceAfter> = chosen
            .map(|(option, [count, shift, saving])| ChoiceAfter {
                option,
                chance: count / savings.len() as f64,
                shift: shift / count,
                saving: saving / count,
            })
            .collect();
        choices.sort_by(|a, b| b.chance.total_cmp(&a.chance));
        ExperimentValue { value, error, choices }
    }

    /// The decision after a reading differed this much from its mean; the reading is removed.
    #[must_use]
    pub fn after(&self, reading: usize, logarithm: f64) -> Self {
        let gain = |row: usize| self.entry(row, reading) / self.entry(reading, reading);
        let mut options = self.options.clone();
        for (place, option) in options.iter_mut().enumerate() {
            option.time *= (gain(place) * logarithm).exp();
        }
        let kept = || (0..self.size).filter(move |place| *place != reading);
        let covariance = kept()
            .flat_map(|row| kept().map(move |column| (row, column)))
            .map(|(row, column)| self.entry(row, column) - gain(row) * self.entry(reading, column))
            .collect();
        Self::new(options, self.lateness, covariance)
    }
}

fn least(losses: &[f64]) -> usize {
    (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0)
}

/// The uncertainty of the logarithm of a step, or of an assumed constant of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct UncertainFigure {
    /// Its change with each group of priors, in standard deviations of the group.
    loadings: Vec<f64>,
    /// Variances that no prior explains.
    unexplained: Unexplained,
    character: Character,
}

impl UncertainFigure {
    /// The step of a scenario by `method`.
    pub fn step(scenario: &Scenario, method: &dyn Method) -> Result<Self, Fault> {
        let character = character(scenario);
        let known = Unexplained { common: 0.0, own: 0.0 };
        let nothing =
            Self { loadings: vec![0.0; scenario.priors.groups.len()], unexplained: known, character };
        let Some(twin) = closed_form(scenario, method) else { return Ok(nothing) };
        let Some(causes) = Causes::new(scenario, twin, &twin.predict(scenario)?)? else { return Ok(nothing) };
        // The user's own runs have removed a part of it.
        let left =
            scenario.priors.learned.as_ref().map_or(1.0, |own| own.unexplained_left(&nothing.character));
        let Unexplained { common, own } = causes.unexplained();
        Ok(Self {
            loadings: spreads(scenario)
                .iter()
                .zip(&causes.slopes)
                .map(|(spread, slope)| spread * slope)
                .collect(),
            unexplained: Unexplained { common: common * left, own: own * left },
            ..nothing
        })
    }

    /// The common factor on the constants of a group of priors, on the machines of a scenario whose step this is.
    #[must_use]
    pub fn of_group(&self, scenario: &Scenario, group: usize) -> Self {
        let mut loadings = vec![0.0; self.loadings.len()];
        loadings[group] = spreads(scenario)[group];
        Self {
            loadings,
            unexplained: Unexplained { common: 0.0, own: 0.0 },
            character: self.character.clone(),
        }
    }

    /// Whether the step depends on a group of priors.
    pub fn depends_on(&self, group: usize) -> bool {
        self.loadings[group].abs() > 1e-6
    }

    /// The covariance with another figure: factors of other machines are as correlated as their deviations.
    pub fn covariance(&self, other: &Self) -> f64 {
        let shared: f64 = self.loadings.iter().zip(&other.loadings).map(|(a, b)| a * b).sum();
        let unexplained = Unexplained {
            common: (self.unexplained.common * other.unexplained.common).sqrt(),
            own: (self.unexplained.own * other.unexplained.own).sqrt(),
        };
        let sameness = self.character.sameness(&other.character);
        sameness * shared + unexplained.covariance(&self.character, &other.character)
    }
}

/// The covariance of figures, each with the standard deviation of its independent part, row by row.
pub fn joint(figures: &[(&UncertainFigure, f64)]) -> Vec<f64> {
    let row = |(place, (figure, alone)): (usize, &(&UncertainFigure, f64))| -> Vec<f64> {
        let mut row: Vec<f64> = figures.iter().map(|(other, _)| figure.covariance(other)).collect();
        row[place] += alone.powi(2);
        row
    };
    figures.iter().enumerate().flat_map(row).collect()
}
