//! Measured figures in families, each with bounds of its own.

use crate::coverage::Coverage;
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
pub(crate) struct Figure {
    /// What it has in common with others.
    pub(crate) family: String,
    pub(crate) name: String,
    pub(crate) predicted: f64,
    pub(crate) measured: f64,
}

impl Figure {
    fn ratio(&self) -> f64 {
        self.predicted / self.measured
    }

    fn off(&self) -> f64 {
        (self.ratio() - 1.0).abs()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Families {
    pub(crate) figures: Vec<Figure>,
    pub(crate) unit: Unit,
}

impl Families {
    fn by_family(&self) -> IndexMap<&str, Vec<&Figure>> {
        let mut families: IndexMap<&str, Vec<&Figure>> = IndexMap::new();
        for figure in &self.figures {
            families.entry(&figure.family).or_default().push(figure);
        }
        families
    }

    /// What a set found: errors and bounds by family, and the coverage of 90 % intervals.
    pub(crate) fn findings(&self, bounds: &IndexMap<String, ErrorBounds>, coverage: Coverage) -> Findings {
        let families = self.by_family();
        let errors = |family: &str| {
            let own = families.get(family);
            own.map(|own| Errors::from_ratios("predicted", own.iter().map(|figure| figure.ratio())))
        };
        let check = |(family, bounds): (&String, &ErrorBounds)| {
            BoundCheck::errors(family, *bounds, errors(family).as_ref())
        };
        let all = Errors::from_ratios("predicted", self.figures.iter().map(Figure::ratio));
        let figures = json!({
            "figures": self.figures,
            "unit": self.unit,
            "bounds": bounds,
            "_families": self.error_rows(),
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
            checks: bounds.iter().map(check).collect(),
            drawing: Some(self.plot()),
            ..Findings::new(figures, evidence)
        }
    }

    pub(crate) fn error_rows(&self) -> Vec<Value> {
        let row = |(family, own): (&str, Vec<&Figure>)| {
            let errors = Errors::from_ratios("", own.iter().map(|figure| figure.ratio()));
            let mut off: Vec<f64> = own.iter().map(|figure| 100.0 * figure.off()).collect();
            json!({
                "family": family,
                "cases": own.len(),
                "mean": errors.mean,
                "median": stepcast_stats::quantile(&mut off, 0.5),
                "worst": errors.worst,
                "bias": errors.bias,
            })
        };
        self.by_family().into_iter().map(row).collect()
    }

    fn furthest(&self) -> Vec<&Figure> {
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
        let pair = |figure: &&Figure| Pair {
            name: figure.name.clone(),
            measured: of(figure.measured),
            predicted: of(figure.predicted),
        };
        let set = |(family, own): (&str, Vec<&Figure>)| Set {
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
        let mean_square = |own: &Vec<&Figure>| {
            own.iter().map(|figure| figure.ratio().ln().powi(2)).sum::<f64>() / own.len() as f64
        };
        let squares: IndexMap<&str, f64> =
            families.iter().map(|(family, own)| (*family, mean_square(own))).collect();
        let half_width = |family: &str| {
            let others: Vec<f64> =
                squares.iter().filter(|(other, _)| **other != family).map(|(_, square)| *square).collect();
            NORMAL_95 * (others.iter().sum::<f64>() / others.len().max(1) as f64).sqrt()
        };
        let inside = |figure: &&Figure| figure.ratio().ln().abs() <= half_width(&figure.family);
        let (cases, inside) = (self.figures.len(), self.figures.iter().filter(inside).count());
        Coverage { cases, inside, by_group: cases, ..Coverage::default() }
    }
}
