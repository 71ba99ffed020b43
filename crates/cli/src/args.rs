//! The flags of every command, as clap reads them.

use clap::{Args, Parser, Subcommand};
use std::ops::RangeInclusive;
use std::str::FromStr;
use stepcast_core::scenario::MAX_WORKERS;

const EXAMPLES: &str = "\
Examples:
  stepcast predict                             the built-in quick start
  stepcast predict cluster.toml --workers 1..16
  stepcast models show resnet50
  stepcast validate zeng2023

Exit codes: 0 done, 1 a validation bound was missed, 2 bad input.";

const PREDICT_EXAMPLES: &str = "\
Examples:
  stepcast predict                                      the built-in quick start
  stepcast predict cluster.toml --method zeng2023       by the closed form of Zeng 2023
  stepcast predict cluster.toml --workers 1,2,4,8..12   these numbers of workers
  stepcast predict --set strategy.batch=64 --set cluster.network=25gbe
  stepcast predict --set cluster.workers.0.count=8      only the first group of workers
  stepcast predict cluster.toml --json                  everything, for programs
  cat cluster.toml | stepcast predict -                 from standard input

The keys of a scenario file are in docs/scenario.md.";

const MODELS_EXAMPLES: &str = "\
Examples:
  stepcast models                          all models
  stepcast models show vgg16               totals of one model
  stepcast models show resnet50 --layers   layer by layer
  stepcast models --json                   for programs";

const SHOW_EXAMPLES: &str = "\
Examples:
  stepcast models show vgg16               totals
  stepcast models show resnet50 --layers   layer by layer
  stepcast models show zeng2023/vgg16d     as a paper counted it, with reasons
  stepcast models show bert-base --json    for programs";

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

const METHODS_EXAMPLES: &str = "\
Examples:
  stepcast methods
  stepcast methods --json
  stepcast predict --method zeng2023   take one of them";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  stepcast validate                  every set
  stepcast validate zeng2023         the tables of Zeng 2023 and the measurements behind them
  stepcast validate zeng2023 --json  for programs

Exits with 1 when a bound is missed.";

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
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(Predict),
    /// List the models of the zoo, or show one
    #[command(after_help = MODELS_EXAMPLES)]
    Models {
        /// What about them; the list if left out.
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
    /// List the methods of prediction
    #[command(after_help = METHODS_EXAMPLES)]
    Methods,
    /// Check the methods against published tables and measurements
    #[command(after_help = VALIDATE_EXAMPLES)]
    Validate {
        /// A set of validation data; all of them if left out
        set: Option<String>,
    },
}

/// Flags of `predict`.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Scenario file (TOML), or - for standard input; the built-in quick start if left out
    pub(crate) scenario: Option<String>,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,

    /// Numbers of workers for the scaling table: 8, 1..16 or 1,2,4
    #[arg(long)]
    pub(crate) workers: Option<Workers>,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Show one model: parameters, operations, gradients
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Name or alias
        name: String,

        /// One row for each layer
        #[arg(long)]
        layers: bool,
    },
}

/// Most numbers of workers that one scaling table may have.
const MAX_POINTS: usize = 4096;

/// Numbers of workers, ascending and without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workers(pub(crate) Vec<u32>);

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut workers = Vec::new();
        for part in text.split(',') {
            let range = range(part.trim())?;
            let points = (range.end() - range.start()) as usize + 1;
            if workers.len() + points > MAX_POINTS {
                return Err(format!("more than {MAX_POINTS} numbers; give fewer, such as 1,2,4,8"));
            }
            workers.extend(range);
        }
        workers.sort_unstable();
        workers.dedup();
        Ok(Self(workers))
    }
}

/// "8" or "1..16", both ends included.
fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |digits: &str| {
        let wrong = || format!("\"{digits}\" is no number of workers; write 8, 1..16 or 1,2,4");
        let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
        let fits = u32::try_from(number).ok().filter(|_| (1..=MAX_WORKERS).contains(&number));
        fits.ok_or_else(|| {
            format!("{number} workers are outside 1 to {MAX_WORKERS}; write 8, 1..16 or 1,2,4")
        })
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?),
        None => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(format!("the range {text} is empty; write {last}..{first}"));
    }
    Ok(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn workers_are_numbers_ranges_and_lists() {
        let read = |text: &str| text.parse::<Workers>().map(|workers| workers.0);
        assert_eq!(read("8"), Ok(vec![8]));
        assert_eq!(read("1..4"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(read("4, 1..2,2"), Ok(vec![1, 2, 4]));
        assert_eq!(read("1..4096").map(|workers| workers.len()), Ok(4096));
        for text in ["", "0", "0..4", "4..1", "1..", "..4", "1..4097", "1000001", "-1", "1.5", "x", "1,,2"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
