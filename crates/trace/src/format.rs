//! The formats that can be imported, told apart by content.
//!
//! To add one: a variant, its lines in the three matches, and a module with `recognises` and an import.

use crate::import::{Found, Imported, Options};
use crate::source::{self, Limits};
use crate::{chakra, horovod, kineto, layers, onnx, tensorflow, timeline};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;

/// A kind of recording or model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Models in ONNX.
    Onnx,
    /// Timelines that Stepcast wrote.
    Timeline,
    /// Traces of PyTorch's profiler (Kineto): JSON, one file for each rank.
    Kineto,
    /// TensorFlow's `RunMetadata`, one message for each step.
    RunMetadata,
    /// TensorFlow's timelines for Chrome's viewer.
    TensorFlowTimeline,
    /// Horovod's timelines.
    Horovod,
    /// Chakra's execution traces, protobuf or JSON.
    Chakra,
    /// Tables of layers: CSV, PipeDream's profiles, waits for gradients, logs of B-Caffe.
    Layers,
}

impl Format {
    /// Every format, the one that is easiest to tell first.
    pub const ALL: &[Self] = &[
        Self::Onnx,
        Self::Timeline,
        Self::Kineto,
        Self::RunMetadata,
        Self::TensorFlowTimeline,
        Self::Horovod,
        Self::Chakra,
        Self::Layers,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Onnx => "ONNX",
            Self::Timeline => "Stepcast timeline",
            Self::Kineto => "PyTorch profiler trace (Kineto)",
            Self::RunMetadata => "TensorFlow RunMetadata",
            Self::TensorFlowTimeline => "TensorFlow timeline",
            Self::Horovod => "Horovod timeline",
            Self::Chakra => "Chakra execution trace",
            Self::Layers => "CSV of layers",
        }
    }

    /// Whether a file that begins like this, after unpacking, is of this format.
    fn recognises(self, head: &[u8]) -> bool {
        match self {
            Self::Onnx => onnx::recognises(head),
            Self::Timeline => timeline::recognises(head),
            Self::Kineto => kineto::recognises(head),
            Self::RunMetadata => tensorflow::recognises(head),
            Self::TensorFlowTimeline => tensorflow::timeline::recognises(head),
            Self::Horovod => horovod::recognises(head),
            Self::Chakra => chakra::recognises(head),
            Self::Layers => layers::recognises(head),
        }
    }

    /// Imports recordings of this format.
    pub(crate) fn import(self, paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
        match self {
            Self::Onnx => Ok(onnx::of_paths(paths, options)?.map(|model| Found::Model(Box::new(model)))),
            Self::Timeline => Ok(timeline::of_paths(paths, options)?.map(Found::Profile)),
            Self::Kineto => Ok(kineto::import(paths, options)?.map(Found::Profile)),
            Self::RunMetadata => Ok(tensorflow::of_paths(paths, options)?.map(Found::Profile)),
            Self::TensorFlowTimeline => {
                Ok(tensorflow::timeline::of_paths(paths, options)?.map(Found::Profile))
            }
            Self::Horovod => Ok(horovod::of_paths(paths, options)?.map(Found::Profile)),
            Self::Chakra => chakra::of_paths(paths, options),
            Self::Layers => Ok(layers::of_paths(paths, options)?.map(Found::Profile)),
        }
    }

    /// The format of a file that begins with `head`.
    pub fn of(head: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.recognises(head))
    }

    /// The format of the file at `path`, or of the first file of a folder or archive that has one.
    pub fn detect(path: &Path) -> Result<Self, Fault> {
        let mut found = None;
        source::visit(path, Limits::STREAMED, &|_| (), &mut |source| {
            found = Self::of(source.head());
            Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
            let remedy = format!("import reads: {}", names.join(", "));
            Fault::in_file(path.display().to_string(), "it is in no format that is known here", remedy)
        })
    }
}
