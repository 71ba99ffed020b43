//! `stepcast methods`: the ways to predict.

use super::json;
use crate::Answer;
use crate::render::Screen;
use crate::render::table;
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::methods;

pub(super) fn run(as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let rows = methods::list();
    if as_json {
        return json(&rows);
    }
    let mut table =
        Table::new("", [Column::names("method"), Column::words("models"), Column::words("source")]);
    for row in rows {
        table.row([row.name.to_owned(), row.summary.to_owned(), row.source.to_owned()]);
    }
    let note = "`--method auto` takes the first that applies to the scenario.";
    Ok(format!("{}\n{}", table::render(&table, screen), screen.paragraph(2, note)).into())
}
