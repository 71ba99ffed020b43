//! Flags of `sweep`.

use super::scenario::ScenarioFlags;
use clap::{Args, value_parser};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast sweep job.toml --vary strategy.batch=16,32,64 --vary cluster.workers.count=1..16
  stepcast sweep job.toml --vary network.bandwidth=1Gbit/s,10Gbit/s --vary batch=1..64:x2
  stepcast sweep job.toml --vary workers.count=1..64 --vary batch=1..512 -o sweep.csv
  stepcast sweep job.toml --vary workers.count=1..64 --vary batch=1..512 -o sweep.csv --resume
  stepcast sweep job.toml --vary workers.count=1..16 --vary batch=8..128:x2 --plot sweep.svg
  stepcast sweep job.toml --vary synchronisation=bsp,async --method simulate -o sweep.jsonl
  stepcast sweep job.toml --vary workers.0.count=0..4 --vary workers.1.count=0..4   mixed groups
  stepcast sweep job.toml --vary batch=16,32 --json                                 JSON lines

Values: 16,32,64 or 1..64 (both ends), 1..64:4 (every fourth), 1..64:x2 (doubling). After
Ctrl-C, --resume completes the file. Keys are in docs/scenario.md, files in docs/sweep.md.";

/// Flags of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// A key and its values; may be repeated, the last changes fastest
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub(crate) vary: Vec<String>,

    /// Method of prediction; auto takes the first that applies, at every point
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// File for all rows: .csv or .jsonl [default: a table on the screen]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Continue where the file of the same sweep ends
    #[arg(long, requires = "output", conflicts_with = "force")]
    pub(crate) resume: bool,

    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Plot throughput to this file: a line over one key, a heat map over two
    #[arg(long, value_name = "OUT.svg", conflicts_with = "resume")]
    pub(crate) plot: Option<PathBuf>,

    /// Only the first N points
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
