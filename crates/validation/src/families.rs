//! Measured figures in families, each with bounds of its own in `validation/bounds.toml`.

use crate::{BoundCheck, ErrorBounds, Errors, Evidence};
use indexmap::IndexMap;
use serde::Serialize;
use stepcast_report::table::{Column, Table};

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

    /// Errors of all figures; the bounds are those of families.
    pub(crate) fn evidence(&self) -> Evidence {
        Evidence::Judged {
            cases: self.figures.len(),
            errors: Errors::of("predicted", self.figures.iter().map(Figure::ratio)),
            bound: format!("mean and worst of {} families", self.bounds.len()),
        }
    }

    /// Errors by family.
    pub(crate) fn table(&self, column: &str) -> Table {
        let mut table = Table::new(
            "By family",
            [
                Column::words(column),
                Column::numbers("cases"),
                Column::numbers("mean error"),
                Column::numbers("worst"),
                Column::numbers("bias"),
            ],
        );
        for (family, (cases, errors)) in self.errors() {
            table.row([
                family.to_owned(),
                cases.to_string(),
                format!("{:.1} %", errors.mean),
                format!("{:.1} %", errors.worst),
                format!("{:+.1} %", errors.bias),
            ]);
        }
        table
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
