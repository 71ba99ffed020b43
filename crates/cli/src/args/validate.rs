//! Flags of `validate`.

use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
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

/// Flags of `validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// A set of validation data; all that can run if left out
    pub(crate) set: Option<String>,

    /// Measured runs: a folder for tf-ps, a file for ddp-gloo and steps
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,

    /// For tf-ps: also predict each configuration by figures chosen on others
    #[arg(long, requires = "data")]
    pub(crate) held_out: bool,

    /// For steps: fitted matrix products, for layers that are made of them
    #[arg(long, requires = "data", value_name = "GEMM.toml")]
    pub(crate) gemm: Option<PathBuf>,
}
