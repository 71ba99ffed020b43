//! `stepcast completions`: completions of commands and flags for a shell.

use super::unexpected;
use crate::Answer;
use crate::args::Cli;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use stepcast_core::fault::Fault;

pub(super) fn run(shell: Shell) -> Result<Answer, Fault> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "stepcast", &mut script);
    Ok(String::from_utf8(script).map_err(unexpected)?.into())
}
