//! Flags of `import`.

use super::numbers::{Memory, Size};
use clap::{Args, value_parser};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast import trace.json.gz -o resnet50.json        a trace of PyTorch's profiler
  stepcast import rank*.json -o resnet50.json           several ranks of one job, and which is late
  stepcast import steps/ --batch 32 -o vgg16.json       TensorFlow: a folder of step_0000.pb, ...
  stepcast import steps.tar.xz --graphs graphs.pb --batch 32 -o vgg16.json.gz
  stepcast import timeline.json --batch 32 -o vgg16.json   timeline of TensorFlow or Horovod
  stepcast import bert.onnx --size sequence=128 -o bert.toml   a model, as a scenario
  stepcast import trace.json.gz --summary               show the contents and write nothing
  stepcast predict resnet50.json                        predict with the profile

Formats, detected from the content, compressed or not:
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
    /// The format is detected from the content
    #[arg(required = true, value_name = "FILE")]
    pub(crate) traces: Vec<PathBuf>,

    /// For TensorFlow: recording with the partition graphs [default: the first step that has them]
    #[arg(long, value_name = "FILE")]
    pub(crate) graphs: Option<PathBuf>,

    /// Samples of one step, if the recording does not contain it
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub(crate) batch: Option<u32>,

    /// For ONNX: size of a dimension that the model leaves open, such as the length of sequences; may be repeated
    #[arg(long = "size", value_name = "NAME=N")]
    pub(crate) sizes: Vec<Size>,

    /// Name of what was trained [default: the name of the folder or file]
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// File to write: a profile (.json, .json.gz), or for a model a scenario (.toml)
    #[arg(short, long, value_name = "PROFILE.json", required_unless_present = "summary")]
    pub(crate) output: Option<PathBuf>,

    /// Most memory to use, such as "2 GiB" [default: 512 MiB, or eight times the size of the files]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_memory: Option<Memory>,

    /// Only show the contents; write nothing
    #[arg(long, conflicts_with = "output")]
    pub(crate) summary: bool,
}
