//! Model error: residuals of out-of-sample predictions of measured runs, by regime.
//!
//! Residuals are ln(measured / predicted). Cases of one group (a network or a configuration within a set) share much
//! of their error, so statistics are taken over groups: a pool's variance is the mean over groups of their mean
//! squares about zero, less the variance between simulated runs, and 90 % intervals use Student's t with one degree
//! of freedom for each group. The variance includes bias, since a new set will have its own. The pool is the
//! narrowest that has three groups of two sets: first the method in the same regime, then regimes that differ in more
//! and more properties. If only one set validates a method, its narrowest pool is used; if none does, other methods
//! are.

use super::regime::{Limit, Machines, Pace, Regime, architecture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use stepcast_core::quantity::{BitsPerSec, SamplesPerSec};
use stepcast_core::strategy::Architecture;
use stepcast_stats::student_t_95;

/// Fewest groups from which a variance is estimated.
const FEWEST: usize = 3;

/// Lower limit of the model error: the difference between repeats of one run.
const FLOOR: f64 = 0.02;

/// One measured run and its out-of-sample prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The validation set.
    pub set: &'static str,
    /// The group of similar runs within the set: a network, or a configuration.
    pub group: String,
    /// The method that predicted it.
    pub method: String,
    /// The regime of the training.
    pub regime: Regime,
    /// Number of workers.
    pub workers: u32,
    /// Rate of a worker's link, if known.
    pub bandwidth: Option<BitsPerSec>,
    /// Number of parameters, if known.
    pub parameters: Option<u64>,
    /// The predicted throughput.
    pub predicted: SamplesPerSec,
    /// The measured throughput.
    pub measured: SamplesPerSec,
    /// Spread of simulated runs: standard deviation of the logarithm; zero for closed forms.
    pub run_spread: f64,
}

impl Case {
    /// ln(measured / predicted) of the throughput: positive where the prediction was too slow.
    pub fn residual(&self) -> f64 {
        (self.measured.get() / self.predicted.get()).ln()
    }
}

/// The cases of one group in one regime: a row of `validation/errors.csv`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Residuals {
    /// The method.
    pub method: String,
    /// The architecture that combines the gradients.
    pub architecture: Architecture,
    /// Whether workers wait for each other.
    pub pace: Pace,
    /// The larger part of a step.
    pub limit: Limit,
    /// Number of machines.
    pub machines: Machines,
    /// The validation set.
    pub set: String,
    /// The network or configuration within the set.
    pub group: String,
    /// Number of cases.
    pub cases: usize,
    /// Mean residual.
    pub mean: f64,
    /// Mean square of the residuals, less the variance between simulated runs.
    pub square: f64,
    /// The residual farthest from zero.
    pub worst: f64,
    /// Fewest workers.
    pub workers_least: u32,
    /// Most workers.
    pub workers_most: u32,
    /// Slowest link in Gbit/s.
    pub gbit_least: Option<f64>,
    /// Fastest link in Gbit/s.
    pub gbit_most: Option<f64>,
    /// Fewest parameters.
    pub parameters_least: Option<u64>,
    /// Most parameters.
    pub parameters_most: Option<u64>,
}

/// The residuals of `cases`, by method, regime and group.
pub fn residuals(cases: &[Case]) -> Vec<Residuals> {
    let mut groups: BTreeMap<_, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        let Regime { architecture: by, pace, limit, machines } = case.regime;
        let key =
            (case.method.clone(), architecture(by), pace, limit, machines, case.set, case.group.clone());
        groups.entry(key).or_default().push(case);
    }
    groups.into_values().map(|cases| row(&cases)).collect()
}

/// Rounded to the precision of the file.
fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

fn row(cases: &[&Case]) -> Residuals {
    let count = cases.len() as f64;
    let mean = |of: fn(&Case) -> f64| cases.iter().map(|case| of(case)).sum::<f64>() / count;
    let worst = cases.iter().map(|case| case.residual()).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let gbit = cases.iter().filter_map(|case| case.bandwidth).map(|rate| rate.get() / 1e9);
    let first = cases[0];
    let workers = cases.iter().map(|case| case.workers);
    let parameters = cases.iter().filter_map(|case| case.parameters);
    Residuals {
        method: first.method.clone(),
        architecture: first.regime.architecture,
        pace: first.regime.pace,
        limit: first.regime.limit,
        machines: first.regime.machines,
        set: first.set.to_owned(),
        group: first.group.clone(),
        cases: cases.len(),
        mean: rounded(mean(Case::residual)),
        square: rounded(mean(|case| case.residual().powi(2) - case.run_spread.powi(2)).max(0.0)),
        worst: rounded(worst.unwrap_or_default()),
        workers_least: workers.clone().min().unwrap_or_default(),
        workers_most: workers.max().unwrap_or_default(),
        gbit_least: gbit.clone().min_by(f64::total_cmp).map(rounded),
        gbit_most: gbit.max_by(f64::total_cmp).map(rounded),
        parameters_least: parameters.clone().min(),
        parameters_most: parameters.max(),
    }
}

/// The rows of `validation/errors.csv`. A damaged file counts as empty; a test rules that out.
pub fn committed() -> &'static [Residuals] {
    static TABLE: LazyLock<Vec<Residuals>> = LazyLock::new(|| {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(stepcast_validation_data::ERRORS.as_bytes());
        reader.deserialize().filter_map(Result::ok).collect()
    });
    &TABLE
}

/// How similar cases must be to be pooled, the most similar first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The same method in the same regime.
    Regime,
    /// The same regime on any number of machines.
    AnyMachines,
    /// The same regime with any larger part of a step.
    AnyLimit,
    /// The same regime with or without waits between workers.
    AnyPace,
    /// The same method in any regime.
    Method,
    /// Any method, the same architecture.
    Architecture,
    /// All measured runs.
    All,
    /// Published runs, from which assumed figures and their spread come.
    Published,
}

impl Level {
    const ALL: [Self; 7] = [
        Self::Regime,
        Self::AnyMachines,
        Self::AnyLimit,
        Self::AnyPace,
        Self::Method,
        Self::Architecture,
        Self::All,
    ];

    fn takes(self, row: &Residuals, method: &str, regime: Regime) -> bool {
        let own = row.method == method;
        let built = row.architecture == regime.architecture;
        let paced = built && row.pace == regime.pace;
        let limited = paced && row.limit == regime.limit;
        match self {
            Self::Regime => own && limited && row.machines == regime.machines,
            Self::AnyMachines => own && limited,
            Self::AnyLimit => own && paced,
            Self::AnyPace => own && built,
            Self::Method => own,
            Self::Architecture => built,
            Self::All => true,
            Self::Published => false,
        }
    }

    /// Whether the pool consists of cases of the method itself.
    pub fn is_own(self) -> bool {
        !matches!(self, Self::Architecture | Self::All)
    }
}

/// The evidence for the model error.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Basis {
    /// The similarity of the cases.
    pub level: Level,
    /// The cases in words.
    pub what: String,
    /// The validation sets.
    pub sets: Vec<String>,
    /// Number of networks and configurations.
    pub groups: usize,
    /// Number of measured runs.
    pub cases: usize,
}

impl Basis {
    /// Published runs of several clusters and devices.
    pub(super) fn published(method: &str, families: usize, runs: usize) -> Self {
        Self {
            level: Level::Published,
            what: format!("{method} with assumed figures"),
            sets: vec!["published runs".to_owned()],
            groups: families,
            cases: runs,
        }
    }
}

/// A pool of similar residuals.
#[derive(Debug, Clone)]
pub struct Pool<'a> {
    level: Level,
    rows: Vec<&'a Residuals>,
    squares: Vec<f64>,
}

impl<'a> Pool<'a> {
    /// The narrowest pool for a method in a regime, from the rows that `keep` accepts.
    pub fn of(
        rows: &'a [Residuals],
        method: &str,
        regime: Regime,
        keep: impl Fn(&Residuals) -> bool,
    ) -> Option<Self> {
        let kept: Vec<&Residuals> = rows.iter().filter(|row| keep(row)).collect();
        let at = |&level: &Level| Self::at(&kept, level, method, regime);
        let own = Level::ALL.iter().filter(|level| level.is_own());
        own.filter_map(at).find(Self::has_several_sets).or_else(|| Level::ALL.iter().find_map(at))
    }

    fn at(rows: &[&'a Residuals], level: Level, method: &str, regime: Regime) -> Option<Self> {
        let rows: Vec<&Residuals> =
            rows.iter().copied().filter(|row| level.takes(row, method, regime)).collect();
        let mut groups: BTreeMap<(&str, &str), (f64, usize)> = BTreeMap::new();
        for row in &rows {
            let (sum, cases) = groups.entry((&row.set, &row.group)).or_default();
            *sum += row.square * row.cases as f64;
            *cases += row.cases;
        }
        let squares: Vec<f64> = groups.values().map(|(sum, cases)| sum / *cases as f64).collect();
        (squares.len() >= FEWEST).then_some(Self { level, rows, squares })
    }

    fn has_several_sets(&self) -> bool {
        self.rows.iter().any(|row| row.set != self.rows[0].set)
    }

    /// The similarity of its cases.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Half-width of the 90 % interval of the logarithm of a new measurement.
    pub fn half_width(&self) -> f64 {
        let square = self.squares.iter().sum::<f64>() / self.squares.len() as f64;
        student_t_95(self.squares.len()) * square.sqrt().max(FLOOR)
    }

    /// The evidence, described for `method` in `regime`.
    pub fn basis(&self, method: &str, regime: Regime) -> Basis {
        let Regime { architecture: by, pace, limit, machines } = regime;
        let by = architecture(by);
        let what = match self.level {
            Level::Regime => format!("{method}, {by}, {pace}, {limit}, {machines}"),
            Level::AnyMachines => format!("{method}, {by}, {pace}, {limit}"),
            Level::AnyLimit => format!("{method}, {by}, {pace}"),
            Level::AnyPace => format!("{method}, {by}"),
            Level::Method => method.to_owned(),
            Level::Architecture => format!("other methods, {by}"),
            Level::All | Level::Published => "all methods and regimes".to_owned(),
        };
        let sets: BTreeSet<&str> = self.rows.iter().map(|row| row.set.as_str()).collect();
        Basis {
            level: self.level,
            what,
            sets: sets.into_iter().map(str::to_owned).collect(),
            groups: self.squares.len(),
            cases: self.rows.iter().map(|row| row.cases).sum(),
        }
    }

    pub(super) fn workers(&self) -> Option<(f64, f64)> {
        ends(self.rows.iter().map(|row| (f64::from(row.workers_least), f64::from(row.workers_most))))
    }

    /// Slowest and fastest links.
    pub(super) fn bandwidth(&self) -> Option<(BitsPerSec, BitsPerSec)> {
        let known = self.rows.iter().filter_map(|row| Some((row.gbit_least?, row.gbit_most?)));
        let rate = |gbit: f64| BitsPerSec::new(gbit * 1e9);
        ends(known).map(|(least, most)| (rate(least), rate(most)))
    }

    pub(super) fn parameters(&self) -> Option<(f64, f64)> {
        let known = self.rows.iter().filter_map(|row| Some((row.parameters_least?, row.parameters_most?)));
        ends(known.map(|(least, most)| (least as f64, most as f64)))
    }
}

fn ends(pairs: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    pairs.reduce(|(least, most), (low, high)| (least.min(low), most.max(high)))
}
