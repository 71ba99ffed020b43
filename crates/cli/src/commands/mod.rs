//! One file for each command, from its flags to its output.

mod busy;
mod check;
mod compare;
mod completions;
mod devices;
mod fit;
mod fuse;
mod help;
mod import;
mod machines;
mod man;
mod map;
mod methods;
mod models;
mod networks;
mod plan;
mod plot;
mod predict;
mod replace;
mod report;
mod request;
mod search;
mod serve;
mod signal;
mod sweep;
mod timeline;
mod validate;

use crate::Answer;
use crate::args::{Cli, Command};
use crate::render::screen::Screen;
use serde::Serialize;
use stepcast_core::fault::Fault;

/// Runs the command of the flags.
pub(crate) fn run(cli: &Cli, screen: &Screen) -> Result<Answer, Fault> {
    match &cli.command {
        Command::Predict(flags) => predict::run(flags, cli.json, screen),
        Command::Compare(flags) => compare::run(flags, cli.json, screen),
        Command::Check(flags) => check::run(flags, cli.json, screen),
        Command::Fuse(flags) => fuse::run(flags, cli.json, screen),
        Command::Map(flags) => map::run(flags, cli.json, screen),
        Command::Sweep(flags) => sweep::run(flags, cli.json, screen),
        Command::Search(flags) => search::run(flags, cli.json, screen),
        Command::Plan(flags) => plan::run(flags, cli.json, screen),
        Command::Replace(flags) => replace::run(flags, cli.json, screen),
        Command::Report(flags) => report::run(flags, cli.json, screen),
        Command::Serve(flags) => serve::run(flags, cli.json),
        Command::Import(flags) => import::run(flags, cli.json, screen),
        Command::Fit { what } => fit::run(what, cli.json, screen),
        Command::Models { command } => models::run(command.as_ref(), cli.json, screen),
        Command::Devices { name } => devices::run(name.as_deref(), cli.json, screen),
        Command::Networks { name } => networks::run(name.as_deref(), cli.json, screen),
        Command::Machines { name } => machines::run(name.as_deref(), cli.json, screen),
        Command::Methods => methods::run(cli.json, screen),
        Command::Help { topic } => help::run(topic.as_deref(), cli.json, screen),
        Command::Completions { shell } => completions::run(*shell),
        Command::Man { command } => man::run(command.as_deref()),
        Command::Validate(flags) => validate::run(flags, cli.json, screen),
    }
}

/// An answer as JSON.
fn json(value: &impl Serialize) -> Result<Answer, Fault> {
    stepcast_report::json::pretty(value).map(Answer::from).map_err(unexpected)
}

/// The fault of what no input can cause.
fn unexpected(error: impl std::fmt::Display) -> Fault {
    Fault::new(error.to_string(), "")
}
