//! `stepcast man`: the manual page.

use super::help::command;
use super::unexpected;
use crate::Answer;
use crate::args::Cli;
use clap::CommandFactory;
use clap_mangen::Man;
use stepcast_core::fault::Fault;

pub(super) fn run(name: Option<&str>) -> Result<Answer, Fault> {
    let described = match name {
        None => Cli::command(),
        Some(name) => {
            command(name)?.bin_name(format!("stepcast {name}")).display_name(format!("stepcast-{name}"))
        }
    };
    let mut page = Vec::new();
    Man::new(described).render(&mut page).map_err(unexpected)?;
    Ok(String::from_utf8(page).map_err(unexpected)?.into())
}
