//! `stepcast completions`: completions of commands and flags for a shell.

use crate::Answer;
use crate::args::Cli;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

pub(super) fn run(shell: Shell) -> anyhow::Result<Answer> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "stepcast", &mut script);
    Ok(String::from_utf8(script)?.into())
}
