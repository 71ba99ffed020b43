//! The flags of every command, as clap reads them.

use clap::{Args, Parser, Subcommand, value_parser};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use stepcast_core::scenario::MAX_WORKERS;

const EXAMPLES: &str = "\
Examples:
  stepcast predict                             the built-in quick start
  stepcast predict cluster.toml --workers 1..16
  stepcast compare cluster.toml                every method on one scenario
  stepcast fuse cluster.toml                   which gradients should travel together
  stepcast replace vgg.toml                    layers that the network cannot hide
  stepcast import steps/ --batch 32 -o vgg16.json
  stepcast fit gemm gemm.csv -o gemm.toml
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
  stepcast predict vgg16.json                           a profile alone, asynchronous
  stepcast predict async.toml --timeline steps.json     what happened when, for Perfetto
  stepcast predict cluster.toml --json                  everything, for programs
  cat cluster.toml | stepcast predict -                 from standard input

The keys of a scenario file are in docs/scenario.md.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  stepcast compare                                      the built-in quick start
  stepcast compare async.toml                           methods side by side
  stepcast compare async.toml --workers 16              with 16 workers
  stepcast compare --set strategy.synchronisation=async
  stepcast compare async.toml --json                    for programs";

const FUSE_EXAMPLES: &str = "\
Examples:
  stepcast fuse cluster.toml                            every rule, the best plan, what to set
  stepcast fuse cluster.toml --plan                     with every message of the best plan
  stepcast fuse one-worker.json --set cluster.workers.0.count=8
  stepcast fuse cluster.toml --set strategy.all-reduce.channels=2
  stepcast fuse cluster.toml --json                     with the names of all gradients

The keys about fusion and all-reduce are in docs/scenario.md.";

const MAP_EXAMPLES: &str = "\
Examples:
  stepcast map sprint.toml                              up to the cluster's nodes and the device's memory
  stepcast map sprint.toml --minibatch 104..172         the fastest with such a minibatch
  stepcast map sprint.toml --nodes 1..64 --batches 1..16 --minibatch 104..172 --plot map.svg
  stepcast map sprint.toml --json                       every cell, for programs";

const REPLACE_EXAMPLES: &str = "\
Examples:
  stepcast replace vgg.toml                        convolutions for the fully connected layers
  stepcast replace vgg.toml --from features.30     from this layer on
  stepcast replace vgg.toml --with head.toml       own layers, as in [model.custom]
  stepcast replace vgg.toml --json                 for programs

Training has to be all-reduce. The keys of a layer are in docs/scenario.md.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  stepcast import steps/ --batch 32 -o vgg16.json       a folder of step_0000.pb, step_0001.pb, ...
  stepcast import steps.tar.xz --graphs graphs.pb --batch 32 -o vgg16.json.gz
  stepcast import steps/ --batch 32 --summary           look, and write nothing
  stepcast predict vgg16.json                           then predict with it

How to record steps is in docs/profile.md.";

const FIT_EXAMPLES: &str = "\
Examples:
  stepcast fit gemm gemm.csv.gz -o h200-gemm.toml          matrix products: dtype, trans, m, n, k, mean_us
  stepcast fit kernels kernels.csv -o h200-kernels.toml    kernels: kernel, elements, time_us
  stepcast fit transfer nccl.csv -o nccl.toml              transfers: bytes, time_us
  stepcast fit steps steps.jsonl.gz -o h200-steps.toml     training steps: one JSON object each
  stepcast fit steps steps.jsonl.gz -o h200-steps.toml --gemm h200-gemm.toml   linear layers from products
  stepcast fit efficiency steps.jsonl.gz --device h200-sxm -o h200-shares.toml   also CSV: model, batch, time_ms
  stepcast fit gemm gemm.csv -o gemm.toml --test other.csv   errors on another file

A column `set` with fit and held splits a file. docs/fit.md describes the files.";

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
  stepcast validate                                  every set whose data are at hand
  stepcast validate zeng2023                         published tables and measurements
  stepcast validate liu2022                          its equations, networks and tables
  stepcast validate hkbu                             published throughput, from that of one GPU
  stepcast validate tf-ps --data FOLDER              real runs, from one-worker profiles
  stepcast validate tf-ps --data FOLDER --held-out   each by what fits the others
  stepcast validate ddp-gloo --data FILE             real DDP jobs, from one-worker profiles
  stepcast validate steps --data FILE                steps, each model by what fits the others
  stepcast validate steps --data FILE --gemm gemm.toml   the same with fitted matrix products
  stepcast validate zeng2023 --json                  for programs

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
    /// Predict one scenario by every method, side by side
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// Compare how gradients are fused into messages, find the best plan, and say what to set
    #[command(after_help = FUSE_EXAMPLES)]
    Fuse(Fuse),
    /// Map epoch time and minibatch over numbers of nodes and batches
    #[command(after_help = MAP_EXAMPLES)]
    Map(Map),
    /// Find layers whose gradients cannot be hidden, and put others in their place
    #[command(after_help = REPLACE_EXAMPLES)]
    Replace(Replace),
    /// Make a profile of recorded TensorFlow steps (RunMetadata), to predict with
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(Import),
    /// Fit coefficients to measurements, and say how well they do
    #[command(after_help = FIT_EXAMPLES)]
    Fit {
        /// What was measured.
        #[command(subcommand)]
        what: Fit,
    },
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
        /// A set of validation data; all that can run if left out
        set: Option<String>,

        /// Measured runs: a folder for tf-ps, a file for ddp-gloo and steps
        #[arg(long, value_name = "PATH")]
        data: Option<PathBuf>,

        /// For tf-ps: also predict each configuration by figures chosen on others
        #[arg(long, requires = "data")]
        held_out: bool,

        /// For steps: fitted matrix products, for layers that are made of them
        #[arg(long, requires = "data", value_name = "GEMM.toml")]
        gemm: Option<PathBuf>,
    },
}

/// Flags of `predict`.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Scenario (TOML), profile (.json, .json.gz), or - for a scenario from standard input; the
    /// built-in quick start if left out
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

    /// Write what happens when to this file, for Perfetto and chrome://tracing; only with method
    /// simulate
    #[arg(long, value_name = "OUT.json")]
    pub(crate) timeline: Option<PathBuf>,

    /// Steps of every worker in the timeline
    #[arg(long, value_name = "N", default_value_t = 5, requires = "timeline", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) timeline_steps: u32,
}

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Scenario (TOML), profile (.json, .json.gz), or - for a scenario from standard input; the
    /// built-in quick start if left out
    pub(crate) scenario: Option<String>,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,

    /// Number of workers, groups keeping their proportions
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MAX_WORKERS as i64))]
    pub(crate) workers: Option<u32>,
}

/// Flags of `fuse`.
#[derive(Debug, Args)]
pub(crate) struct Fuse {
    /// Scenario (TOML), profile (.json, .json.gz), or - for a scenario from standard input; the
    /// built-in quick start with all-reduce if left out
    pub(crate) scenario: Option<String>,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,

    /// Show every message of the best plan
    #[arg(long)]
    pub(crate) plan: bool,
}

/// Flags of `map`.
#[derive(Debug, Args)]
pub(crate) struct Map {
    /// Scenario (TOML), or - for a scenario from standard input; the built-in quick start if left out
    pub(crate) scenario: Option<String>,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,

    /// Numbers of nodes: 1..16 or 1,2,4; up to those of the cluster if left out
    #[arg(long)]
    pub(crate) nodes: Option<Numbers>,

    /// Batches of a worker: 1..11 or 1,4,8; up to what fits into the device if left out
    #[arg(long)]
    pub(crate) batches: Option<Numbers>,

    /// Minibatches to admit, as 104..172; all if left out
    #[arg(long, value_name = "LOW..HIGH")]
    pub(crate) minibatch: Option<Minibatch>,

    /// Draw the map into this file
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,
}

/// Flags of `replace`.
#[derive(Debug, Args)]
pub(crate) struct Replace {
    /// Scenario (TOML), or - for standard input
    pub(crate) scenario: String,

    /// First layer to replace; where the fully connected layers begin if left out
    #[arg(long, value_name = "LAYER")]
    pub(crate) from: Option<String>,

    /// Layers to put in place (TOML); 1×1 convolutions and global average pooling if left out
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) with: Option<PathBuf>,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
}

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Recorded steps: a file, a folder of step*.pb files, or an archive (.tar, .tar.gz, .tar.xz)
    pub(crate) trace: PathBuf,

    /// Recording with the partition graphs; the first step that has them if left out
    #[arg(long, value_name = "FILE")]
    pub(crate) graphs: Option<PathBuf>,

    /// Samples of one step, which a recording does not tell
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub(crate) batch: u32,

    /// What was trained; the name of the folder or file if left out
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// The profile to write, .json or .json.gz
    #[arg(short, long, value_name = "PROFILE.json", required_unless_present = "summary")]
    pub(crate) output: Option<PathBuf>,

    /// Only say what was found; write nothing
    #[arg(long, conflicts_with = "output")]
    pub(crate) summary: bool,
}

/// What to fit.
#[derive(Debug, Subcommand)]
pub(crate) enum Fit {
    /// Times of matrix products
    #[command(after_help = FIT_EXAMPLES)]
    Gemm {
        #[command(flatten)]
        files: FitFiles,

        /// Multiprocessors of the device; the number that fits best if left out
        #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
        multiprocessors: Option<u32>,
    },
    /// Shares of a device's peak and memory rates that training reaches
    #[command(after_help = FIT_EXAMPLES)]
    Efficiency {
        #[command(flatten)]
        files: FitFiles,

        /// The device of the catalog that the steps were measured on
        #[arg(long, value_name = "NAME")]
        device: String,
    },
    /// Times of kernels, linear in the elements they touch
    #[command(after_help = FIT_EXAMPLES)]
    Kernels {
        #[command(flatten)]
        files: FitFiles,
    },
    /// Times of whole training steps, layer by layer
    #[command(after_help = FIT_EXAMPLES)]
    Steps {
        #[command(flatten)]
        files: FitFiles,

        /// Fitted matrix products, for layers that are made of them
        #[arg(long, value_name = "GEMM.toml")]
        gemm: Option<PathBuf>,
    },
    /// Times of transfers by their size
    #[command(after_help = FIT_EXAMPLES)]
    Transfer {
        #[command(flatten)]
        files: FitFiles,
    },
}

/// Files of a fit.
#[derive(Debug, Args)]
pub(crate) struct FitFiles {
    /// Measurements (CSV, for steps JSON lines; plain or compressed)
    pub(crate) data: PathBuf,

    /// The artefact to write
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: PathBuf,

    /// Measurements to test with, instead of the held rows of the data
    #[arg(long, value_name = "HELD_OUT")]
    pub(crate) test: Option<PathBuf>,

    /// Write over an artefact that exists
    #[arg(long)]
    pub(crate) force: bool,
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
        numbers(text, " of workers").map(Self)
    }
}

/// Numbers of nodes or samples, ascending and without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u32>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        numbers(text, "").map(Self)
    }
}

/// Minibatches from one size to another, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Minibatch(pub(crate) f64, pub(crate) f64);

impl FromStr for Minibatch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no range of minibatches; write 104..172");
        let (low, high) = text.split_once("..").ok_or_else(wrong)?;
        let number = |digits: &str| {
            let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
            if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(wrong()) }
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(format!("the range {text} is empty; write {high}..{low}"));
        }
        Ok(Self(low, high))
    }
}

/// Lists and ranges, as "1,2,4..8"; `of` says what is counted.
fn numbers(text: &str, of: &str) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let range = range(part.trim(), of)?;
        let points = (range.end() - range.start()) as usize + 1;
        if numbers.len() + points > MAX_POINTS {
            return Err(format!("more than {MAX_POINTS} numbers; give fewer, such as 1,2,4,8"));
        }
        numbers.extend(range);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// "8" or "1..16", both ends included.
fn range(text: &str, of: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |digits: &str| {
        let wrong = || format!("\"{digits}\" is no number{of}; write 8, 1..16 or 1,2,4");
        let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
        let fits = u32::try_from(number).ok().filter(|_| (1..=MAX_WORKERS).contains(&number));
        fits.ok_or_else(|| {
            format!("a number{of} is from 1 to {MAX_WORKERS}, not {number}; write 8, 1..16 or 1,2,4")
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

    #[test]
    fn minibatches_are_ranges() {
        assert_eq!("103.5..172.5".parse(), Ok(Minibatch(103.5, 172.5)));
        assert_eq!("64 .. 64".parse(), Ok(Minibatch(64.0, 64.0)));
        for text in ["", "64", "..", "1..", "2..1", "-1..5", "nan..1", "1..inf", "a..b"] {
            assert!(text.parse::<Minibatch>().is_err(), "{text}");
        }
    }
}
