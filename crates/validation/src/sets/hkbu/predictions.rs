//! Every throughput with its prediction, their errors, and the order of the schemes.

use super::NAME;
use super::data::{self, Bounds, PublishedThroughput, Scheme};
use super::predict::{OneGpu, PER_NODE, Testbed};
use crate::{BoundCheck, ValidationError};
use serde::Serialize;
use serde_with::serde_as;
use std::collections::BTreeMap;
use stepcast_core::quantity::{BytesPerSec, InBaseUnits};

/// The row on which the rate within a node is fitted.
const FITTED: (&str, Scheme, u32) = ("BERT-Base", Scheme::BspAllReduce, PER_NODE);

/// One published throughput and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ThroughputPrediction {
    /// Network.
    pub(super) model: String,
    /// How gradients are exchanged.
    pub(super) scheme: Scheme,
    /// Number of GPUs.
    pub(super) gpus: u32,
    /// Samples a second, published.
    pub(super) measured: f64,
    /// Samples a second, predicted.
    pub(super) predicted: f64,
    /// Samples a second, predicted with the catalog's rate within a node.
    pub(super) by_catalog: f64,
    /// Share of the step in which GPUs compute.
    pub(super) computing_share: f64,
    /// Number of parameters.
    pub(super) parameters: u64,
    /// Whether the rate within a node was fitted on this row.
    pub(super) fitted: bool,
}

impl ThroughputPrediction {
    /// Error in percent of the measured throughput.
    pub(super) fn error(&self) -> f64 {
        100.0 * (self.predicted / self.measured - 1.0)
    }
}

/// Errors of one scheme, the fitted row left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SchemeErrors {
    /// How gradients are exchanged.
    pub(super) scheme: Scheme,
    /// Whether on several nodes, that is, over Ethernet.
    pub(super) several_nodes: bool,
    /// Number of rows.
    pub(super) rows: usize,
    /// Mean absolute error, in percent.
    pub(super) mean: f64,
    /// The largest absolute error.
    pub(super) worst: f64,
    /// Mean signed error.
    pub(super) bias: f64,
    /// Mean absolute error with the catalog's rate within a node.
    pub(super) by_catalog: f64,
}

/// The order of the schemes for one network and number of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ranking {
    /// Network.
    pub(super) model: String,
    /// Number of GPUs.
    pub(super) gpus: u32,
    /// The scheme that was measured to be the fastest.
    pub(super) best_measured: Scheme,
    /// The scheme that is predicted to be the fastest.
    pub(super) best_predicted: Scheme,
    /// How much slower the scheme predicted to be the fastest was measured to be, in percent of the fastest.
    pub(super) regret: f64,
    /// Pairs of schemes in the right order.
    pub(super) right: usize,
    /// Pairs of schemes whose measurements differ by more than a tie.
    pub(super) pairs: usize,
}

/// All predictions.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SchemePredictions {
    /// Every throughput.
    pub(super) rows: Vec<ThroughputPrediction>,
    /// Errors by scheme.
    pub(super) errors: Vec<SchemeErrors>,
    /// Order of the schemes.
    pub(super) rankings: Vec<Ranking>,
    /// Rate of an all-reduce within a node, fitted.
    #[serde(rename = "within_bytes_per_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) within_rate: BytesPerSec,
    /// The same rate in the catalog.
    #[serde(rename = "catalog_within_bytes_per_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) catalog_rate: BytesPerSec,
    /// The bounds, checked.
    pub(super) bounds: Vec<BoundCheck>,
}

impl SchemePredictions {
    /// Whether every bound is kept.
    pub(super) fn holds(&self) -> bool {
        self.bounds.iter().all(|bound| bound.holds)
    }
}

/// Predicts every throughput.
pub(super) fn predict() -> Result<SchemePredictions, ValidationError> {
    let published = data::published()?;
    let bounds: Bounds = crate::bounds::of(NAME)?;
    let mut alone: BTreeMap<&str, OneGpu> = BTreeMap::new();
    for row in published.iter().filter(|row| row.gpus == 1) {
        if !alone.contains_key(row.model.as_str()) {
            alone.insert(&row.model, OneGpu::of(row)?);
        }
    }
    let alone = |model: &str| {
        alone.get(model).ok_or_else(|| ValidationError::Data(format!("no throughput of one GPU for {model}")))
    };
    let is_fitted = |row: &PublishedThroughput| (row.model.as_str(), row.method, row.gpus) == FITTED;
    let source = published
        .iter()
        .find(|row| is_fitted(row))
        .ok_or_else(|| ValidationError::Data("the row to fit on is missing".to_owned()))?;
    let catalog = Testbed::of_catalog()?;
    let testbed = catalog.clone().fitted(source, alone(&source.model)?);

    let mut rows = Vec::new();
    for row in published.iter().filter(|row| row.gpus > 1) {
        let alone = alone(&row.model)?;
        rows.push(ThroughputPrediction {
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
    let errors: Vec<SchemeErrors> = Scheme::ALL
        .iter()
        .flat_map(|&scheme| [false, true].map(|several| errors(&rows, scheme, several)))
        .collect();
    let alike = |a: &ThroughputPrediction, b: &ThroughputPrediction| a.model == b.model && a.gpus == b.gpus;
    let rankings: Vec<Ranking> =
        rows.chunk_by(alike).filter_map(|group| ranking(group, bounds.ranking.tie)).collect();
    let bounds = check(&bounds, &errors, &rankings);
    Ok(SchemePredictions {
        rows,
        errors,
        rankings,
        within_rate: testbed.within_rate,
        catalog_rate: catalog.within_rate,
        bounds,
    })
}

fn errors(rows: &[ThroughputPrediction], scheme: Scheme, several_nodes: bool) -> SchemeErrors {
    let chosen: Vec<&ThroughputPrediction> = rows
        .iter()
        .filter(|row| row.scheme == scheme && (row.gpus > PER_NODE) == several_nodes && !row.fitted)
        .collect();
    let mean = |of: &dyn Fn(&ThroughputPrediction) -> f64| {
        chosen.iter().map(|row| of(row)).sum::<f64>() / chosen.len().max(1) as f64
    };
    SchemeErrors {
        scheme,
        several_nodes,
        rows: chosen.len(),
        mean: mean(&|row| row.error().abs()),
        worst: chosen.iter().map(|row| row.error().abs()).fold(0.0, f64::max),
        bias: mean(&ThroughputPrediction::error),
        by_catalog: mean(&|row| 100.0 * (row.by_catalog / row.measured - 1.0).abs()),
    }
}

fn ranking(rows: &[ThroughputPrediction], tie: f64) -> Option<Ranking> {
    let best = |of: fn(&ThroughputPrediction) -> f64| rows.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
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

fn check(bounds: &Bounds, errors: &[SchemeErrors], rankings: &[Ranking]) -> Vec<BoundCheck> {
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
