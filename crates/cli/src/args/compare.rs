//! Flags of `compare`.

use super::scenario::ScenarioFlags;
use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast compare                                      the built-in quick start
  stepcast compare async.toml                           methods side by side
  stepcast compare async.toml --workers 16              with 16 workers
  stepcast compare --set strategy.synchronisation=async
  stepcast compare async.toml --json                    for programs";

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,
}
