//! `stepcast devices`, `networks`, `machines` and `methods`: names that scenarios can use.

use crate::answer::{Answer, Output};
use crate::render::table;
use serde::Serialize;
use stepcast_core::fault::Fault;
use stepcast_core::machine::catalog;
use stepcast_report::table::Table;
use stepcast_report::tables::catalog as tables;

/// What to do with devices.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Devices {
    /// Show every figure of one device, as its name alone does
    Show {
        /// Its name
        name: String,
    },

    /// Print a description to fill in for a device that the catalog does not have
    Describe {
        /// What it is called
        name: String,
    },
}

impl Devices {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let name = match self {
            Self::Show { name } => return devices(Some(name), output),
            Self::Describe { name } => name,
        };
        let (like, device) = catalog::device_like(name)?;
        let described = device.described(name);
        output.answer(&described, |_| {
            let keys = toml::to_string(&described).unwrap_or_default();
            format!(
                "# Filled with {like}; replace its figures by those of the data sheet (dense rates, without sparsity).\n\
                 [[cluster.workers]]\ncount = 8\n\n[cluster.workers.device]\n{keys}"
            )
        })
    }
}

pub(super) fn devices(name: Option<&str>, output: &Output) -> Result<Answer, Fault> {
    let Some(id) = name else { return list(catalog::devices()?, tables::devices, output) };
    let device = catalog::device(id)?;
    show(id, &device.name, &device, tables::device, output)
}

pub(super) fn networks(name: Option<&str>, output: &Output) -> Result<Answer, Fault> {
    let Some(id) = name else { return list(catalog::networks()?, tables::networks, output) };
    let network = catalog::network(id)?;
    show(id, &network.name, &network, tables::network, output)
}

pub(super) fn machines(name: Option<&str>, output: &Output) -> Result<Answer, Fault> {
    let Some(id) = name else { return list(catalog::machines()?, tables::machines, output) };
    let machine = catalog::machine(id)?;
    show(id, &machine.name, &machine, tables::machine, output)
}

pub(super) fn methods(output: &Output) -> Result<Answer, Fault> {
    let methods = stepcast_study::predict::methods::list();
    let mut table = tables::methods(&methods);
    table.note = "`--method auto` takes the first that applies to the scenario.".to_owned();
    output.answer(&methods, |screen| table::section(&table, screen))
}

fn list<T: Serialize>(entries: &T, table: fn(&T) -> Table, output: &Output) -> Result<Answer, Fault> {
    output.answer(entries, |screen| table::section(&table(entries), screen))
}

/// Every figure of one entry.
fn show<T: Serialize>(
    id: &str,
    name: &str,
    entry: &T,
    table: fn(&T) -> Table,
    output: &Output,
) -> Result<Answer, Fault> {
    output.answer(entry, |screen| {
        format!("{}: {name}\n{}", screen.strong(id), table::section(&table(entry), screen))
    })
}
