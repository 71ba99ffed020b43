//! Predicted beside measured figures, in families: errors, bounds by family, 90 % intervals.

use crate::coverage::Coverage;
use crate::groups::grouped;
use crate::report::Findings;
use crate::{BoundCheck, ErrorBounds, Errors, Evidence};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Value, json};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_report::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use stepcast_stats::NORMAL_95;

/// Figures that are furthest off, shown of every family.
const FURTHEST: usize = 3;

/// The unit of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    Seconds,
    Bytes,
}

/// One figure: predicted and measured, in the unit of the set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Judged {
    /// Figures of a family are judged together.
    pub(crate) family: String,
    pub(crate) name: String,
    pub(crate) predicted: f64,
    pub(crate) measured: f64,
    /// Half-width of its own 90 % interval, as a logarithm.
    #[serde(skip)]
    pub(crate) half_width: Option<f64>,
}

impl Judged {
    pub(crate) fn new(
        family: impl Into<String>,
        name: impl Into<String>,
        predicted: f64,
        measured: f64,
    ) -> Self {
        Self { family: family.into(), name: name.into(), predicted, measured, half_width: None }
    }

    /// The same figure with another prediction.
    pub(crate) fn predicted(&self, predicted: f64) -> Self {
        Self { predicted, ..self.clone() }
    }

    fn ratio(&self) -> f64 {
        self.predicted / self.measured
    }

    fn off(&self) -> f64 {
        (self.ratio() - 1.0).abs()
    }

    /// The figure as an object, with other columns and with what groups are made from.
    pub(crate) fn row(&self, mut columns: Value) -> Value {
        columns["family"] = json!(self.family);
        columns["predicted"] = json!(self.predicted);
        columns["measured"] = json!(self.measured);
        judge(&mut columns, self.ratio(), self.half_width);
        columns
    }
}

/// Adds what groups are made from: whether the measured value lies in the 90 % interval, given the ratio of predicted to measured and the
/// half-width of the interval as a logarithm, and the score of the interval: its width, and twenty times what lies outside
/// (Gneiting and Raftery 2007).
pub(crate) fn judge(row: &mut Value, ratio: f64, half_width: Option<f64>) {
    let log = ratio.ln();
    row["_log"] = json!(log);
    row["_off"] = json!(log.abs());
    if let Some(half_width) = half_width {
        row["_half_width"] = json!(half_width);
        row["_inside"] = json!(log.abs() <= half_width);
        row["_score"] = json!(2.0 * half_width + 20.0 * (log.abs() - half_width).max(0.0));
    }
}

/// How many rows lie in their intervals, of those that have one.
pub(crate) fn coverage(rows: &[Value]) -> Coverage {
    let inside: Vec<bool> = rows.iter().filter_map(|row| row.get("_inside")?.as_bool()).collect();
    let count = inside.iter().filter(|inside| **inside).count();
    Coverage { cases: inside.len(), inside: count, ..Coverage::default() }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Families {
    pub(crate) figures: Vec<Judged>,
    pub(crate) unit: Unit,
}

impl Families {
    fn by_family(&self) -> IndexMap<&str, Vec<&Judged>> {
        grouped(&self.figures, |figure| figure.family.as_str())
    }

    pub(crate) fn rows(&self) -> Vec<Value> {
        self.figures.iter().map(|figure| figure.row(Value::Null)).collect()
    }

    /// The bounds of every family.
    pub(crate) fn checks(&self, bounds: &IndexMap<String, ErrorBounds>) -> Vec<BoundCheck> {
        let families = self.by_family();
        let errors = |own: &Vec<&Judged>| Errors::from_ratios("", own.iter().map(|figure| figure.ratio()));
        let check = |(family, bounds): (&String, &ErrorBounds)| {
            BoundCheck::errors(family, *bounds, families.get(family.as_str()).map(errors).as_ref())
        };
        bounds.iter().map(check).collect()
    }

    /// What a set found: errors and bounds by family, and the coverage of 90 % intervals.
    pub(crate) fn findings(&self, bounds: &IndexMap<String, ErrorBounds>, coverage: Coverage) -> Findings {
        let all = Errors::from_ratios("predicted", self.figures.iter().map(Judged::ratio));
        let figures = json!({
            "figures": self.figures,
            "unit": self.unit,
            "bounds": bounds,
            "_rows": self.rows(),
            "_furthest": self.furthest(),
            "_coverage": coverage.share().unwrap_or(0.0),
            "_mean": all.mean,
        });
        let evidence = Evidence::Judged {
            cases: self.figures.len(),
            coverage,
            errors: all,
            bound: match bounds.len() {
                0 => "mean of all, coverage of every family".to_owned(),
                families => format!("mean and worst of {families} families"),
            },
        };
        Findings {
            checks: self.checks(bounds),
            drawing: Some(self.plot()),
            ..Findings::new(figures, evidence)
        }
    }

    fn furthest(&self) -> Vec<&Judged> {
        let mut furthest = Vec::new();
        for mut own in self.by_family().into_values() {
            own.sort_by(|a, b| b.off().total_cmp(&a.off()));
            furthest.extend(own.into_iter().take(FURTHEST));
        }
        furthest
    }

    /// Predicted against measured figures, one set of points for each family.
    fn plot(&self) -> String {
        match self.unit {
            Unit::Seconds => self.points("step time", Seconds::new).svg(),
            Unit::Bytes => self.points("memory", Bytes::new).svg(),
        }
    }

    fn points<Q>(&self, quantity: &str, of: impl Fn(f64) -> Q) -> PredictedMeasured<Q> {
        let pair = |figure: &&Judged| Pair {
            name: figure.name.clone(),
            measured: of(figure.measured),
            predicted: of(figure.predicted),
        };
        let set = |(family, own): (&str, Vec<&Judged>)| Set {
            name: family.to_owned(),
            pairs: own.iter().map(pair).collect(),
        };
        PredictedMeasured {
            title: format!("Predicted and measured: {quantity}"),
            quantity: quantity.to_owned(),
            sets: self.by_family().into_iter().map(set).collect(),
        }
    }

    /// Figures within 90 % intervals made from the errors of the other families.
    pub(crate) fn coverage(&self) -> Coverage {
        let families = self.by_family();
        let mean_square = |own: &Vec<&Judged>| {
            own.iter().map(|figure| figure.ratio().ln().powi(2)).sum::<f64>() / own.len() as f64
        };
        let squares: IndexMap<&str, f64> =
            families.iter().map(|(family, own)| (*family, mean_square(own))).collect();
        let half_width = |family: &str| {
            let others: Vec<f64> =
                squares.iter().filter(|(other, _)| **other != family).map(|(_, square)| *square).collect();
            NORMAL_95 * (others.iter().sum::<f64>() / others.len().max(1) as f64).sqrt()
        };
        let inside = |figure: &&Judged| figure.ratio().ln().abs() <= half_width(&figure.family);
        let (cases, inside) = (self.figures.len(), self.figures.iter().filter(inside).count());
        Coverage { cases, inside, by_group: cases, ..Coverage::default() }
    }
}
