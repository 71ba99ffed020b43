//! The formats that can be imported, told apart by content.
//!
//! To add one: a variant, its lines in the three matches, and a module with `recognises` and an import.

use crate::import::{Found, Imported, Options};
use crate::source::{self, Limits};
use crate::{TraceError, kineto, onnx, tensorflow, timeline};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

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
}

impl Format {
    /// Every format, the one that is easiest to tell first.
    pub const ALL: &[Self] = &[Self::Onnx, Self::Timeline, Self::Kineto, Self::RunMetadata];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Onnx => "ONNX",
            Self::Timeline => "Stepcast timeline",
            Self::Kineto => "PyTorch profiler trace (Kineto)",
            Self::RunMetadata => "TensorFlow RunMetadata",
        }
    }

    /// Whether a file that begins like this, after unpacking, is of this format.
    fn recognises(self, head: &[u8]) -> bool {
        match self {
            Self::Onnx => onnx::recognises(head),
            Self::Timeline => timeline::recognises(head),
            Self::Kineto => kineto::recognises(head),
            Self::RunMetadata => tensorflow::recognises(head),
        }
    }

    /// Imports recordings of this format.
    pub(crate) fn import(self, paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, TraceError> {
        match self {
            Self::Onnx => Ok(onnx::of_paths(paths, options)?.map(|model| Found::Model(Box::new(model)))),
            Self::Timeline => Ok(timeline::of_paths(paths, options)?.map(Found::Profile)),
            Self::Kineto => Ok(kineto::import(paths, options)?.map(Found::Profile)),
            Self::RunMetadata => Ok(tensorflow::of_paths(paths, options)?.map(Found::Profile)),
        }
    }

    /// The format of a file that begins with `head`.
    pub fn of(head: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.recognises(head))
    }

    /// The format of the file at `path`, or of the first file of a folder or archive that has one.
    pub fn detect(path: &Path) -> Result<Self, TraceError> {
        let mut found = None;
        source::visit(path, Limits::STREAMED, &|_| (), &mut |source| {
            found = Self::of(source.head());
            Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
            let remedy = format!("import reads: {}", names.join(", "));
            TraceError::new(path.display().to_string(), "it is in no format that is known here", remedy)
        })
    }
}
