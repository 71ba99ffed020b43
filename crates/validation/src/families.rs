//! Measured figures in families, each with bounds of its own in `validation/bounds.toml`.

use crate::coverage::Coverage;
use crate::{BoundCheck, CoverageBound, ErrorBounds, Errors, Evidence, Report, ValidationError};
use indexmap::IndexMap;
use serde::Serialize;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_report::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use stepcast_report::table::{Column, Table};
use stepcast_stats::NORMAL_95;

/// The unit of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    Seconds,
    Bytes,
}

/// One figure: predicted and measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// What it has in common with others.
    pub(crate) family: &'static str,
    /// What was measured.
    pub(crate) name: String,
    /// In the unit of the set.
    pub(crate) predicted: f64,
    /// In the same unit.
    pub(crate) measured: f64,
}

impl Figure {
    fn ratio(&self) -> f64 {
        self.predicted / self.measured
    }
}

/// All figures of a set, with the bounds of its families.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Families {
    pub(crate) figures: Vec<Figure>,
    pub(crate) unit: Unit,
    pub(crate) bounds: IndexMap<String, ErrorBounds>,
}

impl Families {
    fn errors(&self) -> IndexMap<&'static str, (usize, Errors)> {
        let mut families: IndexMap<&'static str, Vec<f64>> = IndexMap::new();
        for figure in &self.figures {
            families.entry(figure.family).or_default().push(figure.ratio());
        }
        let errors = |(family, ratios): (&'static str, Vec<f64>)| {
            (family, (ratios.len(), Errors::of(family, ratios.into_iter())))
        };
        families.into_iter().map(errors).collect()
    }

    /// The report of a set: errors by family, `more` tables, and bounds, those of the coverage of 90 % intervals included.
    pub(crate) fn report(
        &self,
        set: &'static str,
        about: &str,
        column: &str,
        more: Vec<Table>,
        (coverage, bound): (Coverage, CoverageBound),
    ) -> Result<Report, ValidationError> {
        let mut checks = self.checks();
        checks.push(coverage.check(bound));
        let holds = checks.iter().all(|check| check.holds);
        let mut report = Report::new(set, holds, about, self.evidence(coverage), self)?;
        report.verdict = BoundCheck::verdict(&checks);
        report.push(self.table("By family", column));
        for table in more {
            report.push(table);
        }
        report.push(self.furthest(3));
        report.push(BoundCheck::table(&checks));
        report.drawing = Some(self.plot());
        Ok(report)
    }

    /// Predicted against measured figures, one set of points for each family.
    fn plot(&self) -> String {
        match self.unit {
            Unit::Seconds => self.points("step time", Seconds::new).svg(),
            Unit::Bytes => self.points("memory", Bytes::new).svg(),
        }
    }

    fn points<Q>(&self, quantity: &str, of: impl Fn(f64) -> Q) -> PredictedMeasured<Q> {
        let pair = |figure: &Figure| Pair {
            name: figure.name.clone(),
            measured: of(figure.measured),
            predicted: of(figure.predicted),
        };
        let set = |family: &&'static str| Set {
            name: (*family).to_owned(),
            pairs: self.figures.iter().filter(|figure| figure.family == *family).map(pair).collect(),
        };
        PredictedMeasured {
            title: format!("Predicted and measured: {quantity}"),
            quantity: quantity.to_owned(),
            sets: self.errors().keys().map(set).collect(),
        }
    }

    /// One check for each bounded family; a family without figures misses its bounds.
    pub(crate) fn checks(&self) -> Vec<BoundCheck> {
        let errors = self.errors();
        let check = |(family, bounds): (&String, &ErrorBounds)| {
            let found = errors.get(family.as_str());
            BoundCheck {
                what: family.clone(),
                bound: bounds.to_string(),
                found: found.map_or("no figures".to_owned(), |(_, errors)| {
                    format!("mean {:.1} %, worst {:.1} %", errors.mean, errors.worst)
                }),
                holds: found.is_some_and(|(_, errors)| bounds.keeps(errors)),
            }
        };
        self.bounds.iter().map(check).collect()
    }

    /// Figures within 90 % intervals made from the errors of the other families.
    pub(crate) fn coverage(&self) -> Coverage {
        let mut squares: IndexMap<&'static str, (f64, f64)> = IndexMap::new();
        for figure in &self.figures {
            let (sum, count) = squares.entry(figure.family).or_default();
            *sum += figure.ratio().ln().powi(2);
            *count += 1.0;
        }
        let half_width = |family: &str| {
            let others = squares.iter().filter(|(other, _)| **other != family);
            let means: Vec<f64> = others.map(|(_, (sum, count))| sum / count).collect();
            NORMAL_95 * (means.iter().sum::<f64>() / means.len().max(1) as f64).sqrt()
        };
        let inside = |figure: &&Figure| figure.ratio().ln().abs() <= half_width(figure.family);
        let (cases, inside) = (self.figures.len(), self.figures.iter().filter(inside).count());
        Coverage { cases, inside, by_group: cases, ..Coverage::default() }
    }

    /// Errors of all figures; the bounds are those of families.
    pub(crate) fn evidence(&self, coverage: Coverage) -> Evidence {
        Evidence::Judged {
            cases: self.figures.len(),
            coverage,
            errors: Errors::of("predicted", self.figures.iter().map(Figure::ratio)),
            bound: format!("mean and worst of {} families", self.bounds.len()),
        }
    }

    /// Errors by family.
    pub(crate) fn table(&self, title: &str, column: &str) -> Table {
        let mut table = Table::new(
            title,
            [
                Column::words(column),
                Column::numbers("cases"),
                Column::numbers("mean error"),
                Column::numbers("median"),
                Column::numbers("worst"),
                Column::numbers("bias"),
            ],
        );
        for (family, (cases, errors)) in self.errors() {
            table.row([
                family.to_owned(),
                cases.to_string(),
                format!("{:.1} %", errors.mean),
                format!("{:.1} %", self.median(family)),
                format!("{:.1} %", errors.worst),
                format!("{:+.1} %", errors.bias),
            ]);
        }
        table
    }

    /// Median of the absolute errors of a family, in percent.
    fn median(&self, family: &str) -> f64 {
        let own = self.figures.iter().filter(|figure| figure.family == family);
        let mut errors: Vec<f64> = own.map(|figure| 100.0 * (figure.ratio() - 1.0).abs()).collect();
        stepcast_stats::quantile(&mut errors, 0.5)
    }

    /// The figures that are furthest off in every family.
    pub(crate) fn furthest(&self, count: usize) -> Table {
        let mut table = Table::new(
            "Furthest off",
            [Column::words("family"), Column::words("case"), Column::numbers("error")],
        );
        let off = |figure: &Figure| (figure.ratio() - 1.0).abs();
        for family in self.errors().keys() {
            let mut own: Vec<&Figure> =
                self.figures.iter().filter(|figure| figure.family == *family).collect();
            own.sort_by(|a, b| off(b).total_cmp(&off(a)));
            for figure in own.into_iter().take(count) {
                let error = crate::errors::signed_error(figure.ratio());
                table.row([(*family).to_owned(), figure.name.clone(), error]);
            }
        }
        table
    }
}
