//! `stepcast networks`: what carries bytes, from the catalog.

use super::json;
use crate::Answer;
use crate::render::Screen;
use crate::render::table;
use stepcast_core::machine::Network;
use stepcast_core::machine::catalog;
use stepcast_report::table::{Column, Table};

pub(super) fn run(name: Option<&str>, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    match name {
        None if as_json => json(catalog::networks()?),
        None => list(screen),
        Some(name) => {
            let network = catalog::network(name)?;
            if as_json { json(&network) } else { Ok(show(name, &network, screen).into()) }
        }
    }
}

fn efficiency(network: &Network) -> String {
    format!("{:.1} %", 100.0 * network.efficiency)
}

fn list(screen: &Screen) -> anyhow::Result<Answer> {
    let mut table = Table::new(
        "",
        [
            Column::names("name"),
            Column::numbers("bandwidth"),
            Column::numbers("latency"),
            Column::numbers("payload"),
            Column::words("full name"),
        ],
    );
    for (id, network) in catalog::networks()? {
        table.row([
            id.clone(),
            network.bandwidth.human(),
            network.latency.human(),
            efficiency(network),
            network.name.clone(),
        ]);
    }
    Ok(table::render(&table, screen).into())
}

fn show(id: &str, network: &Network, screen: &Screen) -> String {
    let mut table = Table::new("", [Column::names(""), Column::words("")]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("bandwidth", format!("{}, each direction", network.bandwidth.human()));
    row("latency", network.latency.human());
    row("efficiency", format!("{} of the bandwidth is payload", efficiency(network)));
    row("start-up", format!("{} for each transfer", network.startup.human()));
    row("host rate", network.host_rate.map_or_else(|| "no cost".to_owned(), |rate| rate.human()));
    row("source", network.source.clone());
    format!("{}: {}\n{}", screen.strong(id), network.name, table::render(&table, screen))
}
