//! The formats that can be imported, detected from the content of files.
//!
//! To add one: a variant, its name and its importer, and a module with `recognises` and `import`.

use crate::imported::Imported;
use crate::options::Options;
use crate::source::{self, Limits, Reading};
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

/// The two functions that every format has.
struct Importer {
    /// Whether a file that begins like this, after unpacking, is of the format.
    recognises: fn(&[u8]) -> bool,
    /// Imports files, folders or archives of the format.
    import: fn(&[PathBuf], &Options<'_>) -> Result<Imported, Fault>,
}

impl Format {
    /// Every format, in the order in which they are tried: those with the most distinctive beginning first.
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

    /// Its name.
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

    fn importer(self) -> Importer {
        match self {
            Self::Onnx => Importer { recognises: onnx::recognises, import: onnx::import },
            Self::Timeline => Importer { recognises: timeline::recognises, import: timeline::import },
            Self::Kineto => Importer { recognises: kineto::recognises, import: kineto::import },
            Self::RunMetadata => Importer { recognises: tensorflow::recognises, import: tensorflow::import },
            Self::TensorFlowTimeline => Importer {
                recognises: tensorflow::timeline::recognises,
                import: tensorflow::timeline::import,
            },
            Self::Horovod => Importer { recognises: horovod::recognises, import: horovod::import },
            Self::Chakra => Importer { recognises: chakra::recognises, import: chakra::import },
            Self::Layers => Importer { recognises: layers::recognises, import: layers::import },
        }
    }

    /// Imports recordings of this format.
    pub(crate) fn import(self, paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
        (self.importer().import)(paths, options)
    }

    /// The format of a file that begins with `head`.
    pub fn recognise(head: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| (format.importer().recognises)(head))
    }

    /// The format of the file at `path`, or of the first file of a folder or archive that has one.
    pub fn detect(path: &Path) -> Result<Self, Fault> {
        Self::detect_with(path, &Options::default().reading(&[path.to_owned()]))
    }

    pub(crate) fn detect_with(path: &Path, reading: &Reading<'_>) -> Result<Self, Fault> {
        let mut found = None;
        source::visit(path, Limits::STREAMED, reading, &mut |source| {
            found = Self::recognise(source.head());
            if found.is_none() && source.exceeded() {
                return Err(source.fault(&std::io::Error::other("too large")));
            }
            Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
            let remedy = format!("import reads: {}", names.join(", "));
            Fault::in_file(path.display().to_string(), "it has no known format", remedy)
        })
    }
}
