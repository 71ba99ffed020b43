//! Flags of `fit`.

use clap::{Args, Subcommand, ValueEnum, value_parser};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast fit gemm gemm.csv.gz -o h200-gemm.toml         products: dtype, trans, m, n, k, mean_us
  stepcast fit kernels kernels.csv -o h200-kernels.toml   kernels: kernel, elements, time_us
  stepcast fit transfer nccl.csv -o nccl.toml             transfers: bytes, time_us
  stepcast fit steps steps.jsonl.gz -o h200-steps.toml    training steps: one JSON object each
  stepcast fit steps steps.jsonl.gz -o h200-steps.toml --gemm h200-gemm.toml
  stepcast fit efficiency steps.csv --device h200-sxm -o h200.toml   steps: model, batch, time_ms
  stepcast fit gemm gemm.csv -o gemm.toml --test other.csv   test on another file
  stepcast fit machine machine.jsonl -o machine.toml      all that kit/machine.py measures of a GPU
  stepcast fit priors --left-out                          what published runs tell, and how well it carries over

A column `set` splits a file into measurements to fit (fit) and to test with (held).
docs/fit.md describes the files.";

/// What to fit.
#[derive(Debug, Subcommand)]
pub(crate) enum Fit {
    #[command(flatten)]
    Artefact(FitArtefact),
    /// What machines reach where nothing was measured: refits the constants of the catalog to published runs
    #[command(after_help = EXAMPLES)]
    Priors {
        /// Also refit without each source in turn, and predict it: some minutes
        #[arg(long)]
        left_out: bool,
    },
}

/// What to fit to measurements of one's own.
#[derive(Debug, Subcommand)]
pub(crate) enum FitArtefact {
    /// Times of matrix products
    #[command(after_help = EXAMPLES)]
    Gemm {
        #[command(flatten)]
        files: FitFiles,

        /// Multiprocessors of the device [default: the number that fits best]
        #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
        multiprocessors: Option<u32>,
    },
    /// Shares of a device's peak and memory rates that training achieves
    #[command(after_help = EXAMPLES)]
    Efficiency {
        #[command(flatten)]
        files: FitFiles,

        /// The device of the catalog that the steps were measured on
        #[arg(long, value_name = "NAME")]
        device: String,
    },
    /// Times of kernels, linear in the number of elements
    #[command(after_help = EXAMPLES)]
    Kernels {
        #[command(flatten)]
        files: FitFiles,
    },
    /// A whole machine: what transformers reach on its device, other networks, collectives
    #[command(after_help = EXAMPLES)]
    Machine {
        #[command(flatten)]
        files: FitFiles,

        /// The device of the catalog that was measured [default: the one that the file names]
        #[arg(long, value_name = "NAME")]
        device: Option<String>,

        /// Attention that jobs use: what PyTorch chooses, or flash attention
        #[arg(long, value_enum, default_value = "default")]
        attention: FitAttention,
    },
    /// Times of whole training steps, layer by layer
    #[command(after_help = EXAMPLES)]
    Steps {
        #[command(flatten)]
        files: FitFiles,

        /// Fitted matrix products, for linear layers
        #[arg(long, value_name = "GEMM.toml")]
        gemm: Option<PathBuf>,
    },
    /// Times of transfers by size
    #[command(after_help = EXAMPLES)]
    Transfer {
        #[command(flatten)]
        files: FitFiles,
    },
}

/// Implementations of attention that the kit times.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FitAttention {
    /// What PyTorch chooses
    Default,
    /// Flash attention
    Flash,
}

/// Files of a fit.
#[derive(Debug, Args)]
pub(crate) struct FitFiles {
    /// Measurements: CSV, or JSON lines for steps and machines; plain or compressed
    pub(crate) data: PathBuf,

    /// The artefact to write
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: PathBuf,

    /// Measurements to test with, instead of the rows of the data marked held
    #[arg(long, value_name = "HELD_OUT")]
    pub(crate) test: Option<PathBuf>,

    /// Overwrite an existing artefact
    #[arg(long)]
    pub(crate) force: bool,
}
