//! `stepcast networks`: the networks of the catalog.

use super::json;
use crate::Answer;
use crate::render::screen::Screen;
use crate::render::table;
use stepcast_core::fault::Fault;
use stepcast_core::machine::Network;
use stepcast_core::machine::catalog;
use stepcast_report::tables::catalog as tables;

pub(super) fn run(name: Option<&str>, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    match name {
        None if as_json => json(catalog::networks()?),
        None => list(screen),
        Some(name) => {
            let network = catalog::network(name)?;
            if as_json { json(&network) } else { Ok(show(name, &network, screen).into()) }
        }
    }
}

fn list(screen: &Screen) -> Result<Answer, Fault> {
    Ok(table::section(&tables::networks(catalog::networks()?), screen).into())
}

fn show(id: &str, network: &Network, screen: &Screen) -> String {
    format!("{}: {}\n{}", screen.strong(id), network.name, table::section(&tables::network(network), screen))
}
