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
    Ok(table::section(&tables::methods(&rows), screen).into())
}
