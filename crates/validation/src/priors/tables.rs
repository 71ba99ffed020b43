//! The tables of a refit.

use super::DomainRefit;
use stepcast_report::table::{Column, Table};

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
    table.note = "Mean factors by which predicted steps are off.".to_owned();
    table
}
