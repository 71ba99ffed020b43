//! Flags of `fit`.

use clap::{Args, Subcommand, value_parser};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast fit gemm gemm.csv.gz -o h200-gemm.toml          matrix products: dtype, trans, m, n, k, mean_us
  stepcast fit kernels kernels.csv -o h200-kernels.toml    kernels: kernel, elements, time_us
  stepcast fit transfer nccl.csv -o nccl.toml              transfers: bytes, time_us
  stepcast fit steps steps.jsonl.gz -o h200-steps.toml     training steps: one JSON object each
  stepcast fit steps steps.jsonl.gz -o h200-steps.toml --gemm h200-gemm.toml   linear layers from products
  stepcast fit efficiency steps.jsonl.gz --device h200-sxm -o h200-shares.toml   also CSV: model, batch, time_ms
  stepcast fit gemm gemm.csv -o gemm.toml --test other.csv   errors on another file

A column `set` with fit and held splits a file. docs/fit.md describes the files.";

/// What to fit.
#[derive(Debug, Subcommand)]
pub(crate) enum Fit {
    /// Times of matrix products
    #[command(after_help = EXAMPLES)]
    Gemm {
        #[command(flatten)]
        files: FitFiles,

        /// Multiprocessors of the device; the number that fits best if left out
        #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
        multiprocessors: Option<u32>,
    },
    /// Shares of a device's peak and memory rates that training reaches
    #[command(after_help = EXAMPLES)]
    Efficiency {
        #[command(flatten)]
        files: FitFiles,

        /// The device of the catalog that the steps were measured on
        #[arg(long, value_name = "NAME")]
        device: String,
    },
    /// Times of kernels, linear in the elements they touch
    #[command(after_help = EXAMPLES)]
    Kernels {
        #[command(flatten)]
        files: FitFiles,
    },
    /// Times of whole training steps, layer by layer
    #[command(after_help = EXAMPLES)]
    Steps {
        #[command(flatten)]
        files: FitFiles,

        /// Fitted matrix products, for layers that are made of them
        #[arg(long, value_name = "GEMM.toml")]
        gemm: Option<PathBuf>,
    },
    /// Times of transfers by their size
    #[command(after_help = EXAMPLES)]
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
