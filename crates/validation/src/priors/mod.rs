//! Refits the priors of what machines reach to published runs, and judges them on sources that were left out.
//!
//! Robust least squares on the logarithm of the step, with the figures that were known before any run as priors
//! (docs/priors.md): the sum over runs of w² ρ(ln(measured / predicted) / sd), ρ soft L1, plus the squared distance of
//! each constant's logarithm from its prior in units of the prior's spread. A large family counts as a limited number of runs.

mod fit;

pub(crate) use fit::LeftOut;
pub use fit::{FittedConstant, Refit};

use crate::records::Fields;
use crate::set::check_cancelled;
use crate::sets::{published, shipped_priors, transformer_steps};
use crate::{Observer, Progress, ValidationError};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use stepcast_core::method::CancelCheck;
use stepcast_core::prior::{Domain, Priors};
use stepcast_report::table::{Column, Table};

/// Predicts the logarithm of a step by given priors.
pub(crate) type LogStep = Box<dyn Fn(&Priors) -> Result<f64, ValidationError> + Send + Sync>;

/// A published run as the fit sees it.
pub(crate) struct Observation {
    /// Source, cluster and network.
    pub(crate) family: String,
    /// Who published it, or what else is left out together, such as all runs of one model.
    pub(crate) source: String,
    /// Whether constants are fitted to it; the others are only predicted.
    pub(crate) is_fitted: bool,
    /// Logarithm of the measured step in seconds.
    pub(crate) measured: f64,
    pub(crate) predict: LogStep,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyErrors {
    pub family: String,
    pub runs: usize,
    /// Mean absolute logarithm of measured over predicted steps, with the shipped constants.
    pub shipped: f64,
    pub fitted: f64,
    /// With constants fitted without the runs of its source.
    pub left_out: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainRefit {
    pub of: &'static str,
    pub constants: Vec<FittedConstant>,
    pub families: Vec<FamilyErrors>,
}

impl DomainRefit {
    pub fn mean(&self, of: impl Fn(&FamilyErrors) -> Option<f64>) -> Option<f64> {
        let errors: Option<Vec<f64>> = self.families.iter().map(of).collect();
        errors.map(|errors| errors.iter().sum::<f64>() / errors.len().max(1) as f64)
    }
}

pub(crate) const TRANSFORMER: Refit =
    Refit { domain: Domain::Transformer, spread: 0.05, most_of_family: 60.0 };

/// Refits all domains, unless cancelled; `left_out` also refits without each source in turn. `announce` is called before each
/// fit.
pub fn refit(
    left_out: bool,
    announce: &dyn Fn(&str),
    cancelled: &CancelCheck<'_>,
) -> Result<Vec<DomainRefit>, ValidationError> {
    let observer = |_: Progress| cancelled();
    let has_servers = |run: &Value| run.text("place").starts_with("servers");
    let all_reduce = published::observations("published-scaling", |run| !has_servers(run))?;
    let servers = published::observations("published-scaling", has_servers)?;
    let domains = [
        ("all-reduce", Refit { domain: Domain::AllReduce, spread: 0.12, most_of_family: 40.0 }, all_reduce),
        ("servers", Refit { domain: Domain::Servers, spread: 0.12, most_of_family: 15.0 }, servers),
        (
            "one-gpu",
            Refit { domain: Domain::OneGpu, spread: 0.25, most_of_family: 40.0 },
            published::observations("single-gpu", |_| true)?,
        ),
        ("transformer", TRANSFORMER, transformer_steps::observations()?),
    ];
    domains
        .into_iter()
        .map(|(of, refit, observations)| one_domain(of, &refit, &observations, left_out, announce, &observer))
        .collect()
}

fn one_domain(
    of: &'static str,
    refit: &Refit,
    observations: &[Observation],
    left_out: bool,
    announce: &dyn Fn(&str),
    observer: &Observer<'_>,
) -> Result<DomainRefit, ValidationError> {
    let shipped = shipped_priors()?;
    announce(of);
    let everything: Vec<&Observation> = observations.iter().collect();
    let (constants, fitted) = refit.run(&everything, observer)?;
    let mut errors: BTreeMap<&str, (usize, [f64; 3])> = BTreeMap::new();
    let mut without: BTreeMap<&str, Priors> = BTreeMap::new();
    if left_out {
        let sources: std::collections::BTreeSet<&str> =
            observations.iter().map(|run| run.source.as_str()).collect();
        for source in sources {
            announce(&format!("{of} without {source}"));
            let others: Vec<&Observation> = observations.iter().filter(|run| run.source != source).collect();
            without.insert(source, refit.run(&others, observer)?.1);
        }
    }
    for run in observations {
        check_cancelled(observer)?;
        let error = |priors: &Priors| -> Result<f64, ValidationError> {
            Ok((run.measured - (run.predict)(priors)?).abs())
        };
        let held = without.get(run.source.as_str()).map_or(Ok(0.0), &error)?;
        let sums = errors.entry(run.family.as_str()).or_default();
        sums.0 += 1;
        for (sum, error) in sums.1.iter_mut().zip([error(&shipped)?, error(&fitted)?, held]) {
            *sum += error;
        }
    }
    let families = errors.into_iter().map(|(family, (runs, sums))| {
        let [shipped, fitted, held] = sums.map(|sum| sum / runs as f64);
        FamilyErrors { family: family.to_owned(), runs, shipped, fitted, left_out: left_out.then_some(held) }
    });
    Ok(DomainRefit { of, constants, families: families.collect() })
}

/// The constants of a domain, and how well families of runs are predicted.
pub fn tables(refit: &DomainRefit) -> [Table; 2] {
    [constants(refit), families(refit)]
}

fn constants(refit: &DomainRefit) -> Table {
    let mut table = Table::new(
        format!("Constants of {}", refit.of),
        [
            Column::names("constant"),
            Column::numbers("fitted"),
            Column::numbers("±"),
            Column::numbers("shipped"),
            Column::names("unit"),
        ],
    );
    for constant in &refit.constants {
        table.row([
            constant.name.clone(),
            figure(constant.value),
            format!("{:.0} %", 100.0 * constant.fit_error),
            figure(constant.shipped),
            constant.unit.clone(),
        ]);
    }
    table
}

/// A constant with four digits; small ones, such as times in seconds, with their power of ten.
fn figure(value: f64) -> String {
    if value < 0.01 { format!("{value:.3e}") } else { format!("{value:.4}") }
}

fn families(refit: &DomainRefit) -> Table {
    let mut table = Table::new(
        format!("Errors of {}", refit.of),
        [
            Column::names("family"),
            Column::numbers("runs"),
            Column::numbers("shipped"),
            Column::numbers("fitted"),
            Column::numbers("source left out"),
        ],
    );
    let factor = |error: f64| format!("{:.3}", error.exp());
    let maybe = |error: Option<f64>| error.map_or_else(|| "–".to_owned(), factor);
    for family in &refit.families {
        table.row([
            family.family.clone(),
            family.runs.to_string(),
            factor(family.shipped),
            factor(family.fitted),
            maybe(family.left_out),
        ]);
    }
    table.row([
        "mean over families".to_owned(),
        refit.families.iter().map(|family| family.runs).sum::<usize>().to_string(),
        maybe(refit.mean(|family| Some(family.shipped))),
        maybe(refit.mean(|family| Some(family.fitted))),
        maybe(refit.mean(|family| family.left_out)),
    ]);
    table.note = "Mean factors between predicted and measured steps.".to_owned();
    table
}
