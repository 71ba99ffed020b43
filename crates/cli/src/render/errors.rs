//! Errors of several ways to predict, side by side.

use super::Screen;
use super::table;
use stepcast_report::table::{Column, Table};
use stepcast_validation::Errors;

/// A row for each of them under `title`, which names what tells them apart.
pub(super) fn table(title: &'static str, errors: &[Errors], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names(title),
            Column::numbers("mean error"),
            Column::numbers("worst"),
            Column::numbers("bias"),
        ],
    );
    for errors in errors {
        table.row([
            errors.method.to_owned(),
            format!("{:.1} %", errors.mean),
            format!("{:.1} %", errors.worst),
            format!("{:+.1} %", errors.bias),
        ]);
    }
    table::render(&table, screen)
}
