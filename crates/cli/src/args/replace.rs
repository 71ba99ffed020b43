//! Flags of `replace`.

use super::scenario::ScenarioFlags;
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast replace vgg.toml                        convolutions in place of fully connected layers
  stepcast replace vgg.toml --from features.30     from this layer on
  stepcast replace vgg.toml --with head.toml       with these layers, as in [model.custom]
  stepcast replace vgg.toml --json                 for programs

The strategy has to be all-reduce. The keys of a layer are in docs/scenario.md.";

/// Flags of `replace`.
#[derive(Debug, Args)]
pub(crate) struct Replace {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// First layer to replace [default: the first fully connected layer]
    #[arg(long, value_name = "LAYER")]
    pub(crate) from: Option<String>,

    /// New layers (TOML) [default: 1×1 convolutions and global average pooling]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) with: Option<PathBuf>,
}
