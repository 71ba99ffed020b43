//! `stepcast devices`: the devices of the catalog.

use super::json;
use crate::Answer;
use crate::render::screen::Screen;
use crate::render::table;
use stepcast_core::fault::Fault;
use stepcast_core::machine::Device;
use stepcast_core::machine::catalog;
use stepcast_report::tables::catalog as tables;

pub(super) fn run(name: Option<&str>, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    match name {
        None if as_json => json(catalog::devices()?),
        None => list(screen),
        Some(name) => {
            let device = catalog::device(name)?;
            if as_json { json(&device) } else { Ok(show(name, &device, screen).into()) }
        }
    }
}

fn list(screen: &Screen) -> Result<Answer, Fault> {
    Ok(table::section(&tables::devices(catalog::devices()?), screen).into())
}

fn show(id: &str, device: &Device, screen: &Screen) -> String {
    format!("{}: {}\n{}", screen.strong(id), device.name, table::section(&tables::device(device), screen))
}
