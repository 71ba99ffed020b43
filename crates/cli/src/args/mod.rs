//! The flags of every command, as parsed by clap: one file for each.

mod check;
mod compare;
mod fit;
mod fuse;
mod import;
mod map;
mod models;
mod numbers;
mod plan;
mod predict;
mod replace;
mod report;
mod scenario;
mod search;
mod serve;
mod sweep;
mod validate;

pub(crate) use check::Check;
pub(crate) use compare::Compare;
pub(crate) use fit::{Fit, FitArtefact, FitAttention, FitFiles};
pub(crate) use fuse::Fuse;
pub(crate) use import::Import;
pub(crate) use map::Map;
pub(crate) use models::Models;
pub(crate) use numbers::{Memory, Size};
pub(crate) use plan::Plan;
pub(crate) use predict::Predict;
pub(crate) use replace::Replace;
pub(crate) use report::Report;
pub(crate) use scenario::{ScenarioFlags, SimulationFlags};
pub(crate) use search::Search;
pub(crate) use serve::Serve;
pub(crate) use sweep::Sweep;
pub(crate) use validate::Validate;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  stepcast predict                             the built-in quick start
  stepcast predict --model resnet50 --device a100 --workers 8x8 --network 100gbe --batch 256
  stepcast predict --model llama3-8b --machine dgx-h100 --workers 4x8
  stepcast predict cluster.toml --workers 1..16
  stepcast compare cluster.toml                one scenario by every method
  stepcast check cluster.toml --measured train.log   a running job against its forecast
  stepcast sweep cluster.toml --vary batch=16,32,64 --vary workers.count=1..16
  stepcast search cluster.toml --minimize cost --vary workers.count=1..64
  stepcast plan transformer.toml               the best way to split a transformer
  stepcast fuse cluster.toml                   which gradients to send together
  stepcast replace vgg.toml                    layers whose communication cannot be hidden
  stepcast import steps/ --batch 32 -o vgg16.json
  stepcast fit gemm gemm.csv -o gemm.toml
  stepcast models show resnet50
  stepcast report cluster.toml -o report.html  forecast, plots and inputs in one file
  stepcast serve --open                        forecasts in the browser
  stepcast validate zeng2023

Exit codes: 0 done, 1 a validation bound was missed, 2 bad input, 130 interrupted.";

const DEVICES_EXAMPLES: &str = "\
Examples:
  stepcast devices                   all devices
  stepcast devices quadro-rtx-4000   every figure of one device, with its source
  stepcast devices --json            for programs";

const NETWORKS_EXAMPLES: &str = "\
Examples:
  stepcast networks          all networks
  stepcast networks 10gbe    every figure of one network, with its source
  stepcast networks --json   for programs";

const MACHINES_EXAMPLES: &str = "\
Examples:
  stepcast machines            all machines
  stepcast machines dgx-h100   every part of one machine, with its source
  stepcast machines --json     for programs";

const METHODS_EXAMPLES: &str = "\
Examples:
  stepcast methods
  stepcast methods --json
  stepcast predict --method zeng2023   predict by this method";

const HELP_EXAMPLES: &str = "\
Examples:
  stepcast help                 all commands, sections and topics
  stepcast help sweep           a command
  stepcast help cluster.nodes   the keys of a section of a scenario
  stepcast help batch           one key";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  stepcast completions bash > ~/.local/share/bash-completion/completions/stepcast
  stepcast completions zsh > ~/.zfunc/_stepcast
  stepcast completions fish > ~/.config/fish/completions/stepcast.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  stepcast man > ~/.local/share/man/man1/stepcast.1
  stepcast man predict | man -l -";

/// Forecast distributed training of neural networks: step time, throughput, bottleneck
#[derive(Debug, Parser)]
#[command(name = "stepcast", version, after_help = EXAMPLES, arg_required_else_help = true, disable_help_subcommand = true)]
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
    #[command(after_help = predict::EXAMPLES)]
    Predict(Predict),
    /// Predict one scenario by every method, side by side
    #[command(after_help = compare::EXAMPLES)]
    Compare(Compare),
    /// Hold a running job against its forecast, and say which assumption may be off
    #[command(after_help = check::EXAMPLES)]
    Check(Check),
    /// Compare rules that fuse gradients into messages, find the best plan, and show the settings for it
    #[command(after_help = fuse::EXAMPLES)]
    Fuse(Fuse),
    /// Map epoch time and minibatch over numbers of nodes and batch sizes
    #[command(after_help = map::EXAMPLES)]
    Map(Map),
    /// Predict every combination of values of any keys, as a table or a file
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(Sweep),
    /// Find the configuration with the least time or cost within constraints
    #[command(after_help = search::EXAMPLES)]
    Search(Search),
    /// Find the best way to split a transformer over machines, with days, failures and cost
    #[command(after_help = plan::EXAMPLES)]
    Plan(Plan),
    /// Find layers whose communication cannot be hidden, and replace them
    #[command(after_help = replace::EXAMPLES)]
    Replace(Replace),
    /// Write a forecast with its plots, tables and inputs into one HTML file
    #[command(after_help = report::EXAMPLES)]
    Report(Report),
    /// Forecast in the browser: a page and an API on this machine
    #[command(after_help = serve::EXAMPLES)]
    Serve(Serve),
    /// Convert recorded steps to a profile to predict with
    #[command(after_help = import::EXAMPLES)]
    Import(Import),
    /// Fit coefficients to measurements, and show their errors
    #[command(after_help = fit::EXAMPLES)]
    Fit {
        /// What was measured.
        #[command(subcommand)]
        what: Fit,
    },
    /// List the models of the zoo, or show one
    #[command(after_help = models::EXAMPLES)]
    Models {
        /// What to show; the list if left out.
        #[command(subcommand)]
        command: Option<Models>,
    },
    /// List the devices of the catalog, or show one
    #[command(after_help = DEVICES_EXAMPLES)]
    Devices {
        /// A device, to show all its figures
        name: Option<String>,
    },
    /// List the networks of the catalog, or show one
    #[command(after_help = NETWORKS_EXAMPLES)]
    Networks {
        /// A network, to show all its figures
        name: Option<String>,
    },
    /// List the machines of the catalog, or show one
    #[command(after_help = MACHINES_EXAMPLES)]
    Machines {
        /// A machine, to show all its parts
        name: Option<String>,
    },
    /// List the methods of prediction
    #[command(after_help = METHODS_EXAMPLES)]
    Methods,
    /// Check the methods against published tables and measurements
    #[command(after_help = validate::EXAMPLES)]
    Validate(Validate),
    /// Explain a command, or a section or key of a scenario
    #[command(after_help = HELP_EXAMPLES)]
    Help {
        /// A command such as sweep, a section such as cluster.nodes, or a key such as batch
        topic: Option<String>,
    },
    /// Write completions for a shell to standard output
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual page, or that of one command, to standard output
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// A command
        command: Option<String>,
    },
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
