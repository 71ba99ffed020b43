//! `stepcast machines`: the machines of the catalog.

use super::json;
use crate::Answer;
use crate::render::screen::Screen;
use crate::render::table;
use stepcast_core::fault::Fault;
use stepcast_core::machine::Machine;
use stepcast_core::machine::catalog;
use stepcast_report::tables::catalog as tables;

pub(super) fn run(name: Option<&str>, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    match name {
        None if as_json => json(catalog::machines()?),
        None => list(screen),
        Some(name) => {
            let machine = catalog::machine(name)?;
            if as_json { json(&machine) } else { Ok(show(name, &machine, screen).into()) }
        }
    }
}

fn list(screen: &Screen) -> Result<Answer, Fault> {
    Ok(table::section(&tables::machines(catalog::machines()?), screen).into())
}

fn show(id: &str, machine: &Machine, screen: &Screen) -> String {
    format!("{}: {}\n{}", screen.strong(id), machine.name, table::section(&tables::machine(machine), screen))
}
