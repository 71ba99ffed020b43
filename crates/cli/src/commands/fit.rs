//! `stepcast fit`: fits an artefact to measurements and reports its errors.

use crate::answer::{Answer, Output, unexpected};
use crate::render::{answers, table};
use crate::signal::{self, busy};
use clap::{Args, Subcommand, ValueEnum, value_parser};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::method::Stopped;
use stepcast_core::quantity::Bytes;
use stepcast_fit::machine::AttentionChoice;
use stepcast_fit::{efficiency, gemm, kernels, machine, sprint, steps, today, transfer};
use stepcast_validation::ValidationError;
use stepcast_validation::priors::{self, refit};

/// Message if Ctrl-C comes before a fit is done.
const STOPPED: &str = "Stopped before the fit was done; nothing was written.";

pub(super) const EXAMPLES: &str = include_str!("examples/fit.txt");

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

/// What to fit to the user's measurements.
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
    /// Threads of SPRINT (Oyama 2016, Tables 3 and 4), component by component
    #[command(after_help = EXAMPLES)]
    Sprint {
        #[command(flatten)]
        files: FitFiles,
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

        /// Size from which on transfers are large: a link's bandwidth-delay product [default: what fits best]
        #[arg(long, value_name = "SIZE")]
        threshold: Option<Bytes>,
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
    data: PathBuf,

    /// The artefact to write
    #[arg(short, long, value_name = "FILE.toml")]
    output: PathBuf,

    /// Measurements to test with, instead of the rows of the data marked held
    #[arg(long, value_name = "HELD_OUT")]
    test: Option<PathBuf>,

    /// Overwrite an existing artefact
    #[arg(long)]
    force: bool,
}

impl Fit {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        match self {
            Self::Artefact(what) => what.run(output),
            Self::Priors { left_out } => refit_priors(*left_out, output),
        }
    }
}

impl FitArtefact {
    fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let (Self::Efficiency { files, .. }
        | Self::Gemm { files, .. }
        | Self::Kernels { files }
        | Self::Machine { files, .. }
        | Self::Sprint { files }
        | Self::Steps { files, .. }
        | Self::Transfer { files, .. }) = self;
        let FitFiles { data, output: artefact, test, force } = files;
        let written = artefact.display().to_string();
        if artefact.exists() && !force {
            let remedy = "choose another name, or add --force to overwrite it";
            return Err(Fault::new("the file exists already", remedy).at(format!("-o {written}")));
        }
        let (test, date, check) = (test.as_deref(), today(), &signal::check);
        signal::listen(STOPPED);
        let fitted = busy("fitting", || match self {
            Self::Efficiency { device, .. } => efficiency::run(data, test, device, date, check),
            Self::Gemm { multiprocessors, .. } => gemm::run(data, test, *multiprocessors, date, check),
            Self::Kernels { .. } => kernels::run(data, test, date, check),
            Self::Machine { device, attention, .. } => {
                let attention = match attention {
                    FitAttention::Default => AttentionChoice::Default,
                    FitAttention::Flash => AttentionChoice::Flash,
                };
                machine::run(data, test, device.as_deref(), attention, date, check)
            }
            Self::Sprint { .. } => sprint::run(data, test, date, check),
            Self::Steps { gemm, .. } => steps::run(data, test, gemm.as_deref(), date, check),
            Self::Transfer { threshold, .. } => transfer::run(data, test, *threshold, date, check),
        });
        let fitted = match fitted {
            Ok(fitted) => fitted,
            Err(Stopped::Cancelled) => return Ok(signal::stopped(STOPPED)),
            Err(Stopped::Fault(fault)) => return Err(fault),
        };
        signal::whole(|| fitted.write(artefact)).map_err(|fault| fault.at(format!("-o {written}")))?;
        output.answer(&fitted.summary(Some(&written)), |screen| answers::fit(&fitted, &written, screen))
    }
}

/// Refits the priors to the published runs that come with the program.
fn refit_priors(left_out: bool, output: &Output) -> Result<Answer, Fault> {
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    signal::listen(STOPPED);
    let refits = refit(left_out, &|what| spinner.set_message(format!("fitting {what}")), &signal::check);
    spinner.finish_and_clear();
    let refits = match refits {
        Err(ValidationError::Cancelled) => return Ok(signal::stopped(STOPPED)),
        refits => refits.map_err(unexpected)?,
    };
    output.answer(&refits, |screen| {
        let tables = refits.iter().flat_map(priors::tables);
        tables.map(|table| table::section(&table, screen)).collect::<Vec<_>>().join("\n")
    })
}
