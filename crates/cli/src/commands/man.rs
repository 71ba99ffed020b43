//! `stepcast man`: the manual page.

use super::help::command;
use crate::Answer;
use crate::args::Cli;
use clap::CommandFactory;
use clap_mangen::Man;

pub(super) fn run(name: Option<&str>) -> anyhow::Result<Answer> {
    let described = match name {
        None => Cli::command(),
        Some(name) => {
            command(name)?.bin_name(format!("stepcast {name}")).display_name(format!("stepcast-{name}"))
        }
    };
    let mut page = Vec::new();
    Man::new(described).render(&mut page)?;
    Ok(String::from_utf8(page)?.into())
}
