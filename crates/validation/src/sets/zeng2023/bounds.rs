//! The bounds of this set.

use super::predictions::{CellPrediction, OperationCount, TableErrors};
use crate::BoundCheck;
use serde::Deserialize;
use std::collections::BTreeMap;
use stepcast_core::quantity::Seconds;

/// `[zeng2023]` of `validation/bounds.toml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) mean: f64,
    pub(super) worst: f64,
    table1: Table1Bound,
    pub(super) cells: CellsBound,
    mean_error: BTreeMap<String, BTreeMap<String, [f64; 2]>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Table1Bound {
    exact_rows: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellsBound {
    pub(super) within: Seconds,
    count: usize,
}

pub(super) fn check(
    bounds: &Bounds,
    table1: &[OperationCount],
    cells: &[CellPrediction],
    errors: &[TableErrors],
) -> Vec<BoundCheck> {
    let exact = table1.iter().filter(|row| row.exact).count();
    // Table 3 is a repetition of Table 2 in print.
    let reproduced = cells.iter().filter(|row| row.table != 3 && row.reproduced).count();
    let mut checks = vec![
        BoundCheck {
            what: "Table 1, rows exact to the integer".to_owned(),
            bound: format!("{}", bounds.table1.exact_rows),
            found: format!("{exact}"),
            holds: exact >= bounds.table1.exact_rows,
        },
        BoundCheck {
            what: format!("Tables 2, 4-7, printed times within {}", bounds.cells.within),
            bound: format!("{}", bounds.cells.count),
            found: format!("{reproduced}"),
            holds: reproduced >= bounds.cells.count,
        },
    ];
    for (model, tables) in &bounds.mean_error {
        for (set, [low, high]) in tables {
            let row = errors.iter().find(|row| row.set == *set);
            let mean = row.and_then(|row| match model.as_str() {
                "printed-formulas" => Some(row.literal[0]),
                "authors-inputs" => row.authors.map(|[mean, _]| mean),
                "calibrated" => Some(row.calibrated[0]),
                _ => None,
            });
            checks.push(BoundCheck {
                what: format!("mean error, {model}, {set}"),
                bound: format!("{low} to {high} %"),
                found: mean.map_or("missing".to_owned(), |mean| format!("{mean:.2} %")),
                holds: mean.is_some_and(|mean| (*low..=*high).contains(&mean)),
            });
        }
    }
    checks
}
