//! Flags of `models`.

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
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
