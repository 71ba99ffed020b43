//! The commands: their flags, what they do and the text that they print. Commands that share flags share a file.

mod catalog;
mod check;
mod contract;
mod fit;
mod fuse;
mod help;
mod import;
mod map;
mod models;
mod plan;
mod predict;
mod replace;
mod report;
mod search;
mod serve;
mod sweep;
mod validate;

use crate::answer::{Answer, Output};
use clap::{Parser, Subcommand};
use stepcast_core::fault::Fault;

/// Forecast distributed training of neural networks: step time, throughput, bottleneck
#[derive(Debug, Parser)]
#[command(name = "stepcast", version, after_help = include_str!("examples/stepcast.txt"))]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Write JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Predict a training step: time, throughput, scaling, bottleneck, and what would help
    #[command(after_help = include_str!("examples/predict.txt"))]
    Predict(predict::Predict),
    /// Predict one scenario by every method, side by side
    #[command(after_help = include_str!("examples/compare.txt"))]
    Compare(predict::Compare),
    /// Hold a running job against its forecast, and say which assumption may be off
    #[command(after_help = include_str!("examples/check.txt"))]
    Check(check::Check),
    /// Write an acceptance test: what a forecast promises, and when a cluster is below specification
    #[command(after_help = include_str!("examples/contract.txt"))]
    Contract(contract::Contract),
    /// Compare rules that fuse gradients into messages, find the best plan, and show the settings for it
    #[command(after_help = include_str!("examples/fuse.txt"))]
    Fuse(fuse::Fuse),
    /// Map epoch time and minibatch over numbers of nodes and batch sizes
    #[command(after_help = include_str!("examples/map.txt"))]
    Map(map::Map),
    /// Predict every combination of values of any keys, as a table or a file
    #[command(after_help = include_str!("examples/sweep.txt"))]
    Sweep(sweep::Sweep),
    /// Find the configuration with the least time or cost within constraints
    #[command(after_help = include_str!("examples/search.txt"))]
    Search(search::Search),
    /// Find the best way to split a transformer over machines, with days, failures and cost
    #[command(after_help = include_str!("examples/plan.txt"))]
    Plan(plan::Plan),
    /// Say what to measure before one of several offers is taken, and what that is worth
    #[command(after_help = include_str!("examples/advise.txt"))]
    Advise(plan::Advise),
    /// Find layers whose communication cannot be hidden, and replace them
    #[command(after_help = include_str!("examples/replace.txt"))]
    Replace(replace::Replace),
    /// Write a forecast with its plots, tables and inputs into one HTML file
    #[command(after_help = include_str!("examples/report.txt"))]
    Report(report::Report),
    /// Forecast in the browser: a page and an API on this machine
    #[command(after_help = include_str!("examples/serve.txt"))]
    Serve(serve::Serve),
    /// Convert recorded steps to a profile to predict with
    #[command(after_help = include_str!("examples/import.txt"))]
    Import(import::Import),
    /// Fit coefficients to measurements, and show their errors
    #[command(after_help = fit::EXAMPLES)]
    Fit {
        /// Kind of measurement.
        #[command(subcommand)]
        what: fit::Fit,
    },
    /// List the models of the zoo, or show one
    #[command(after_help = include_str!("examples/models.txt"), args_conflicts_with_subcommands = true)]
    Models {
        /// List only models whose name has this in it, such as llama3
        name: Option<String>,

        /// What to show; the list if left out.
        #[command(subcommand)]
        command: Option<models::Models>,
    },
    /// List the devices of the catalog, or show one
    #[command(after_help = include_str!("examples/devices.txt"), args_conflicts_with_subcommands = true)]
    Devices {
        /// A device, to show all its figures
        name: Option<String>,

        /// What to do beside it.
        #[command(subcommand)]
        command: Option<catalog::Devices>,
    },
    /// List the networks of the catalog, or show one
    #[command(after_help = include_str!("examples/networks.txt"))]
    Networks {
        /// A network, to show all its figures
        name: Option<String>,
    },
    /// List the machines of the catalog, or show one
    #[command(after_help = include_str!("examples/machines.txt"))]
    Machines {
        /// A machine, to show all its parts
        name: Option<String>,
    },
    /// List the methods of prediction
    #[command(after_help = include_str!("examples/methods.txt"))]
    Methods,
    /// Check the methods against published tables and measurements
    #[command(after_help = include_str!("examples/validate.txt"))]
    Validate(validate::Validate),
    /// Explain a command, or a section or key of a scenario
    #[command(after_help = include_str!("examples/help.txt"))]
    Help {
        /// A command such as sweep, a section such as cluster.nodes, or a key such as batch
        topic: Option<String>,
    },
    /// Write completions for a shell to standard output
    #[command(after_help = include_str!("examples/completions.txt"))]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual page, or that of one command, to standard output
    #[command(after_help = include_str!("examples/man.txt"))]
    Man {
        /// A command
        command: Option<String>,
    },
}

impl Command {
    pub(crate) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        match self {
            Self::Predict(flags) => flags.run(output),
            Self::Compare(flags) => flags.run(output),
            Self::Check(flags) => flags.run(output),
            Self::Contract(flags) => flags.run(output),
            Self::Fuse(flags) => flags.run(output),
            Self::Map(flags) => flags.run(output),
            Self::Sweep(flags) => flags.run(output),
            Self::Search(flags) => flags.run(output),
            Self::Plan(flags) => flags.run(output),
            Self::Advise(flags) => flags.run(output),
            Self::Replace(flags) => flags.run(output),
            Self::Report(flags) => flags.run(output),
            Self::Serve(flags) => flags.run(output),
            Self::Import(flags) => flags.run(output),
            Self::Fit { what } => what.run(output),
            Self::Models { name, command: None } => models::list(name.as_deref(), output),
            Self::Models { command: Some(models::Models::Show { name, layers }), .. } => {
                models::show(name, *layers, output)
            }
            Self::Devices { command: Some(command), .. } => command.run(output),
            Self::Devices { name, command: None } => catalog::devices(name.as_deref(), output),
            Self::Networks { name } => catalog::networks(name.as_deref(), output),
            Self::Machines { name } => catalog::machines(name.as_deref(), output),
            Self::Methods => catalog::methods(output),
            Self::Help { topic } => help::run(topic.as_deref(), output),
            Self::Completions { shell } => help::completions(*shell),
            Self::Man { command } => help::manual(command.as_deref()),
            Self::Validate(flags) => flags.run(output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
