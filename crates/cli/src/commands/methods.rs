//! `stepcast methods`: the methods of prediction.

use super::json;
use crate::Answer;
use crate::render::screen::Screen;
use crate::render::table;
use stepcast_core::fault::Fault;
use stepcast_report::tables::catalog as tables;
use stepcast_study::predict::methods;

pub(super) fn run(as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let rows = methods::list();
    if as_json {
        return json(&rows);
    }
    let mut table = tables::methods(&rows);
    table.note = "`--method auto` takes the first that applies to the scenario.".to_owned();
    Ok(table::section(&table, screen).into())
}
