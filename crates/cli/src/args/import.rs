//! Flags of `import`.

use super::numbers::Size;
use clap::{Args, value_parser};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast import trace.json.gz -o resnet50.json        a trace of PyTorch's profiler
  stepcast import rank*.json -o resnet50.json           several ranks of one job, and who is late
  stepcast import steps/ --batch 32 -o vgg16.json       TensorFlow: a folder of step_0000.pb, ...
  stepcast import steps.tar.xz --graphs graphs.pb --batch 32 -o vgg16.json.gz
  stepcast import timeline.json --batch 32 -o vgg16.json   what TensorFlow or Horovod drew for Chrome
  stepcast import bert.onnx --size sequence=128 -o bert.toml   a model, as a scenario
  stepcast import trace.json.gz --summary               look, and write nothing
  stepcast predict resnet50.json                        then predict with it

Formats, told by content, compressed or not:
  PyTorch profiler (Kineto)   docs/import.md
  TensorFlow RunMetadata      docs/profile.md
  TensorFlow timeline         docs/import/tensorflow-timeline.md
  Horovod timeline            docs/import/horovod.md
  Chakra execution trace      docs/import/chakra.md
  ONNX                        docs/import/onnx.md
  CSV of layers               docs/import/csv.md";

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Recordings: a file, a folder or an archive (.tar, .tar.gz, .tar.xz); several for several ranks of one job.
    /// What they are, their content says
    #[arg(required = true, value_name = "FILE")]
    pub(crate) traces: Vec<PathBuf>,

    /// For TensorFlow: recording with the partition graphs; the first step that has them if left out
    #[arg(long, value_name = "FILE")]
    pub(crate) graphs: Option<PathBuf>,

    /// Samples of one step, where the recording does not tell
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub(crate) batch: Option<u32>,

    /// For ONNX: length of a dimension that the model leaves open, such as a sequence; may be repeated
    #[arg(long = "size", value_name = "NAME=N")]
    pub(crate) sizes: Vec<Size>,

    /// What was trained; the name of the folder or file if left out
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// What to write: a profile (.json, .json.gz), or for a model a scenario (.toml)
    #[arg(short, long, value_name = "PROFILE.json", required_unless_present = "summary")]
    pub(crate) output: Option<PathBuf>,

    /// Only say what was found; write nothing
    #[arg(long, conflicts_with = "output")]
    pub(crate) summary: bool,
}
