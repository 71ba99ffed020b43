//! Learning from measured runs for scenarios that share causes with them.
//!
//! The logarithm of a step is a function of the constants plus a deviation of this machine and its software that no constant
//! explains. Both have normal priors, so runs and a new scenario have a joint normal distribution, and the remaining
//! uncertainty is its conditional variance (Gaussian process regression; Rasmussen and Williams 2006, equations 2.25 and
//! 2.26).

/// Correlation of two scenarios for each name in which they differ, such as that of their device.
const OTHER_NAME: f64 = 0.5;

/// Properties that distinguish scenarios.
#[derive(Debug, Clone, PartialEq)]
pub struct Character {
    /// Sizes and rates, as logarithms to base 2.
    pub sizes: Vec<f64>,
    /// Names of devices and kinds of training.
    pub names: Vec<String>,
}

impl Character {
    /// The correlation of the deviations of machines with these names.
    pub fn sameness(&self, other: &Self) -> f64 {
        let differing = self.names.iter().zip(&other.names).filter(|(a, b)| a != b).count();
        OTHER_NAME.powi(i32::try_from(differing).unwrap_or(i32::MAX))
    }

    /// The correlation of the deviations of scenarios of these sizes: it falls to 1/e with a doubling of one size.
    fn nearness(&self, other: &Self) -> f64 {
        let pairs = self.sizes.iter().zip(&other.sizes);
        (-pairs.fold(0.0, |sum: f64, (a, b)| sum.hypot(a - b))).exp()
    }
}

/// Variances of the deviation that no constant explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unexplained {
    /// Variance shared by all runs of a machine and its software.
    pub common: f64,
    /// Variance shared only by similar runs.
    pub own: f64,
}

impl Unexplained {
    pub fn total(self) -> f64 {
        self.common + self.own
    }

    /// The covariance of the deviations of two scenarios.
    pub fn covariance(self, a: &Character, b: &Character) -> f64 {
        a.sameness(b) * (self.common + self.own * a.nearness(b))
    }
}

/// A measured run, by its influence on others.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedRun {
    pub character: Character,
    /// Change of the logarithm of its step with the logarithm of each group of constants.
    pub slopes: Vec<f64>,
    /// Its deviation in units of the covariance of deviations.
    pub weight: f64,
}

/// Results of learning from measured runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    pub runs: Vec<LearnedRun>,
    /// The inverse of the covariance of the logarithms of their steps, row by row.
    pub inverse: Vec<f64>,
    /// Variances of the groups of constants before the runs.
    pub variances: Vec<f64>,
    /// Variances of the deviation before the runs.
    pub unexplained: Unexplained,
}

impl Learned {
    /// The logarithm of the factor on the step of a scenario that no constant explains.
    pub fn deviation(&self, character: &Character) -> f64 {
        let runs = self.runs.iter();
        runs.map(|run| run.weight * self.unexplained.covariance(character, &run.character)).sum()
    }

    /// Remaining variance of the logarithm of a step. `unexplained` is the variance of the deviation where nothing was
    /// measured.
    pub fn variance(&self, slopes: &[f64], character: &Character, unexplained: f64) -> f64 {
        let shared = |slopes: &[f64], others: &[f64]| -> f64 {
            let products = slopes.iter().zip(others).zip(&self.variances);
            products.map(|((a, b), variance)| a * b * variance).sum()
        };
        let with: Vec<f64> = self
            .runs
            .iter()
            .map(|run| shared(slopes, &run.slopes) + self.unexplained.covariance(character, &run.character))
            .collect();
        let before = shared(slopes, slopes) + unexplained.max(self.unexplained.total());
        (before - self.told(&with)).max(0.0)
    }

    /// The share of the variance of the deviation that the runs leave open.
    pub fn unexplained_left(&self, character: &Character) -> f64 {
        let before = self.unexplained.total();
        let with: Vec<f64> =
            self.runs.iter().map(|run| self.unexplained.covariance(character, &run.character)).collect();
        if before > 0.0 { (1.0 - self.told(&with) / before).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Variance of a figure explained by the runs, given its covariances with them.
    pub fn told(&self, with: &[f64]) -> f64 {
        let rows = self.inverse.chunks_exact(self.runs.len().max(1));
        let row = |row: &[f64]| -> f64 { row.iter().zip(with).map(|(a, b)| a * b).sum() };
        rows.zip(with).map(|(inverse, with)| row(inverse) * with).sum()
    }
}
