//! Flags of `validate`.

use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast validate                                  all sets in one table
  stepcast validate --markdown table.md              the same as a document
  stepcast validate --plot runs.svg                  plot of predictions against measurements
  stepcast validate zeng2023                         published tables and measurements
  stepcast validate liu2022                          its equations, networks and tables
  stepcast validate hkbu                             published throughput, predicted from one GPU
  stepcast validate cakelab                          the same; also tf-k80, tf-saturation
  stepcast validate oyama2016                        its equations and Table 10
  stepcast validate li2020                           exact traces of asynchronous training
  stepcast validate tf-ps --data FOLDER              real runs, from one-worker profiles
  stepcast validate tf-ps --data FOLDER --held-out   each with parameters chosen on the others
  stepcast validate ddp-gloo --data FILE             real DDP jobs, from one-worker profiles
  stepcast validate parallel-jobs --data FILE        real pipeline, tensor-parallel and sharded jobs
  stepcast validate transformer-memory               peaks of memory, from shapes
  stepcast validate steps --data FILE                steps, each model by a fit of the others
  stepcast validate steps --data FILE --gemm gemm.toml   the same with fitted matrix products
  stepcast validate zeng2023 --json                  for programs

Exits with 1 when a bound is missed.";

/// Flags of `validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Set of validation data [default: all sets in one table]
    pub(crate) set: Option<String>,

    /// Measured runs: a folder for tf-ps, a file for ddp-gloo, parallel-jobs and steps, the folder of all data for all
    /// sets [default: validation]
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,

    /// Also write the table of all sets as Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    pub(crate) markdown: Option<PathBuf>,

    /// Also write the residuals of all methods by regime, from which intervals are made
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    pub(crate) errors: Option<PathBuf>,

    /// Plot predictions against measurements to this file
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// For tf-ps: also predict each configuration with parameters chosen on the others
    #[arg(long, requires_all = ["set", "data"])]
    pub(crate) held_out: bool,

    /// For steps: fitted matrix products, for layers that consist of them
    #[arg(long, requires = "data", value_name = "GEMM.toml")]
    pub(crate) gemm: Option<PathBuf>,
}
