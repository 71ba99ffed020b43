//! The rows of the validation and their summary.

use super::super::{BoundCheck, ValidationError};
use super::data::{self, Bounds, Published, Scheme};
use super::predict::{OneGpu, PER_NODE, Testbed};
use serde::Serialize;
use std::collections::BTreeMap;
use stepcast_core::quantity::{BytesPerSec, number};

/// The row that the rate within a node is fitted on.
const FITTED: (&str, Scheme, u32) = ("BERT-Base", Scheme::BspAllReduce, PER_NODE);

/// One published throughput and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Network.
    pub model: String,
    /// How gradients are exchanged.
    pub scheme: Scheme,
    /// Number of GPUs.
    pub gpus: u32,
    /// Samples a second, published.
    pub measured: f64,
    /// Samples a second, predicted.
    pub predicted: f64,
    /// Samples a second by the catalog alone.
    pub by_catalog: f64,
    /// Share of the step in which GPUs compute.
    pub computing_share: f64,
    /// Number of parameters.
    pub parameters: u64,
    /// Whether a figure was fitted on this row.
    pub fitted: bool,
}

impl Row {
    /// Error in percent of the measured throughput.
    pub fn error(&self) -> f64 {
        100.0 * (self.predicted / self.measured - 1.0)
    }
}

/// Errors of one scheme, the fitted row left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorRow {
    /// How gradients are exchanged.
    pub scheme: Scheme,
    /// Whether on several nodes, that is, over Ethernet.
    pub several_nodes: bool,
    /// How many rows.
    pub rows: usize,
    /// Mean size, in percent.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
    /// Mean with its sign.
    pub bias: f64,
    /// Mean size by the catalog alone.
    pub by_catalog: f64,
}

/// The order of the schemes for one network on so many GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// Network.
    pub model: String,
    /// Number of GPUs.
    pub gpus: u32,
    /// The fastest by measurement.
    pub best_measured: Scheme,
    /// The fastest by prediction.
    pub best_predicted: Scheme,
    /// How much slower than the fastest the predicted one was measured to be, in percent.
    pub regret: f64,
    /// Pairs of schemes in the right order.
    pub right: usize,
    /// Pairs that measurement sets apart.
    pub pairs: usize,
}

/// The whole validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Every throughput.
    pub rows: Vec<Row>,
    /// Errors by scheme.
    pub errors: Vec<ErrorRow>,
    /// Order of the schemes.
    pub rankings: Vec<Ranking>,
    /// Rate of an all-reduce within a node, fitted.
    #[serde(rename = "within_bytes_per_s", serialize_with = "number")]
    pub within_rate: BytesPerSec,
    /// As the catalog has it.
    #[serde(rename = "catalog_within_bytes_per_s", serialize_with = "number")]
    pub catalog_rate: BytesPerSec,
    /// The bounds of `validation/bounds.toml`.
    pub bounds: Vec<BoundCheck>,
}

impl Report {
    /// Whether every bound is kept.
    pub fn holds(&self) -> bool {
        self.bounds.iter().all(|bound| bound.holds)
    }
}

pub(super) fn run() -> Result<Report, ValidationError> {
    let published = data::published()?;
    let bounds = super::super::bounds::read()?.hkbu;
    let mut alone: BTreeMap<&str, OneGpu> = BTreeMap::new();
    for row in published.iter().filter(|row| row.gpus == 1) {
        if !alone.contains_key(row.model.as_str()) {
            alone.insert(&row.model, OneGpu::of(row)?);
        }
    }
    let alone = |model: &str| {
        alone.get(model).ok_or_else(|| ValidationError::Data(format!("no throughput of one GPU for {model}")))
    };
    let is_fitted = |row: &Published| (row.model.as_str(), row.method, row.gpus) == FITTED;
    let source = published
        .iter()
        .find(|row| is_fitted(row))
        .ok_or_else(|| ValidationError::Data("the row to fit on is missing".to_owned()))?;
    let catalog = Testbed::of_catalog()?;
    let testbed = catalog.clone().fitted(source, alone(&source.model)?);

    let mut rows = Vec::new();
    for row in published.iter().filter(|row| row.gpus > 1) {
        let alone = alone(&row.model)?;
        rows.push(Row {
            model: row.model.clone(),
            scheme: row.method,
            gpus: row.gpus,
            measured: row.throughput,
            predicted: testbed.throughput(row, alone),
            computing_share: testbed.throughput(row, alone) / (f64::from(row.gpus) * alone.throughput),
            parameters: alone.parameters,
            by_catalog: catalog.throughput(row, alone),
            fitted: is_fitted(row),
        });
    }
    rows.sort_by(|a, b| (&a.model, a.gpus, a.scheme).cmp(&(&b.model, b.gpus, b.scheme)));
    let errors: Vec<ErrorRow> = Scheme::ALL
        .iter()
        .flat_map(|&scheme| [false, true].map(|several| errors(&rows, scheme, several)))
        .collect();
    let alike = |a: &Row, b: &Row| a.model == b.model && a.gpus == b.gpus;
    let rankings: Vec<Ranking> =
        rows.chunk_by(alike).filter_map(|group| ranking(group, bounds.ranking.tie)).collect();
    let bounds = check(&bounds, &errors, &rankings);
    Ok(Report {
        rows,
        errors,
        rankings,
        within_rate: testbed.within_rate,
        catalog_rate: catalog.within_rate,
        bounds,
    })
}

fn errors(rows: &[Row], scheme: Scheme, several_nodes: bool) -> ErrorRow {
    let chosen: Vec<&Row> = rows
        .iter()
        .filter(|row| row.scheme == scheme && (row.gpus > PER_NODE) == several_nodes && !row.fitted)
        .collect();
    let mean =
        |of: &dyn Fn(&Row) -> f64| chosen.iter().map(|row| of(row)).sum::<f64>() / chosen.len().max(1) as f64;
    ErrorRow {
        scheme,
        several_nodes,
        rows: chosen.len(),
        mean: mean(&|row| row.error().abs()),
        worst: chosen.iter().map(|row| row.error().abs()).fold(0.0, f64::max),
        bias: mean(&Row::error),
        by_catalog: mean(&|row| 100.0 * (row.by_catalog / row.measured - 1.0).abs()),
    }
}

fn ranking(rows: &[Row], tie: f64) -> Option<Ranking> {
    let best = |of: fn(&Row) -> f64| rows.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
    let (measured, predicted) = (best(|row| row.measured)?, best(|row| row.predicted)?);
    let (mut right, mut pairs) = (0, 0);
    for (place, a) in rows.iter().enumerate() {
        for b in &rows[place + 1..] {
            if (a.measured / b.measured - 1.0).abs() >= tie {
                pairs += 1;
                right += usize::from((a.measured > b.measured) == (a.predicted > b.predicted));
            }
        }
    }
    Some(Ranking {
        model: measured.model.clone(),
        gpus: measured.gpus,
        best_measured: measured.scheme,
        best_predicted: predicted.scheme,
        regret: 100.0 * (1.0 - predicted.measured / measured.measured),
        right,
        pairs,
    })
}

fn check(bounds: &Bounds, errors: &[ErrorRow], rankings: &[Ranking]) -> Vec<BoundCheck> {
    let mut checks = Vec::new();
    for row in errors {
        let nodes = if row.several_nodes { "several nodes" } else { "one node" };
        let most = bounds.mean_error.get(&row.scheme).map(|pair| pair[usize::from(row.several_nodes)]);
        checks.push(BoundCheck {
            what: format!("mean error, {}, {nodes}", row.scheme),
            bound: most.map_or("missing".to_owned(), |most| format!("at most {most} %")),
            found: format!("{:.1} %", row.mean),
            holds: most.is_some_and(|most| row.mean <= most),
        });
    }
    let sum = |of: fn(&Ranking) -> usize| rankings.iter().map(of).sum::<usize>();
    let (right, pairs) = (sum(|ranking| ranking.right), sum(|ranking| ranking.pairs));
    let share = right as f64 / pairs.max(1) as f64;
    checks.push(BoundCheck {
        what: format!("pairs of schemes in the right order, of {pairs}"),
        bound: format!("at least {:.0} %", 100.0 * bounds.ranking.pairs),
        found: format!("{:.0} %", 100.0 * share),
        holds: share >= bounds.ranking.pairs,
    });
    checks
}
