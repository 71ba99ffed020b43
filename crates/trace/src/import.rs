//! Imports of recordings and models; the format is detected from the content.
//!
//! To add a format: a variant of [`Format`], its name and its importer, and a module with `recognises` and `import`.

use crate::files::Content;
use crate::overview::Summary;
use crate::source::{Limits, Memory, Reading, Watch};
use crate::{chakra, horovod, kineto, layers, onnx, source, tensorflow, timeline};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::{Fault, Remedy, RequestOption};

/// Imports the recordings at `paths`: files, folders or archives. The format is detected from the content. Several paths
/// are several workers of one job.
pub fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let Some(first) = paths.first() else {
        return Err(Fault::in_file("import", "no file was named", "name a recording"));
    };
    paths.iter().try_for_each(|path| repeatable(path))?;
    let reading = options.reading(paths);
    let format = Format::detect_with(first, &reading)?;
    for path in &paths[1..] {
        let other = Format::detect_with(path, &reading)?;
        if other != format {
            let reason = format!("it is a {}, the first file a {}", other.name(), format.name());
            return Err(Fault::in_file(path.display().to_string(), reason, "import one format at a time"));
        }
    }
    format.import(paths, options)
}

/// Refuses pipes and devices: the format is found by reading the beginning, and some formats are read twice.
fn repeatable(path: &Path) -> Result<(), Fault> {
    let kind = std::fs::metadata(path).map_err(|error| system_fault(path, &error, "check the path"))?;
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    let reason = "it is a pipe or a device, and a recording is read more than once";
    Err(Fault::in_file(path.display().to_string(), reason, "save it to a file first"))
}

/// A kind of recording or model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Onnx,
    Timeline,
    /// Traces of PyTorch's profiler (Kineto): JSON, one file for each rank.
    Kineto,
    /// TensorFlow's `RunMetadata`, one message for each step.
    RunMetadata,
    TensorFlowTimeline,
    Horovod,
    /// Chakra's execution traces, protobuf or JSON.
    Chakra,
    /// Tables of layers: CSV, PipeDream's profiles, waits for gradients, logs of B-Caffe.
    Layers,
}

struct Importer {
    /// Whether a file that begins like this, after unpacking, is of the format.
    recognises: fn(&[u8]) -> bool,
    /// Imports files, folders or archives of the format.
    import: fn(&[PathBuf], &Options<'_>) -> Result<Imported, Fault>,
}

// In the order in which they are tried: those with the most distinctive beginning first.
stepcast_core::variant_names!(Format {
    Onnx = "ONNX",
    Timeline = "Stepcast timeline",
    Kineto = "PyTorch profiler trace (Kineto)",
    RunMetadata = "TensorFlow RunMetadata",
    TensorFlowTimeline = "TensorFlow timeline",
    Horovod = "Horovod timeline",
    Chakra = "Chakra execution trace",
    Layers = "CSV of layers",
});

impl Format {
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

    pub(crate) fn import(self, paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
        (self.importer().import)(paths, options)
    }

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

/// Content of a recording, and notes on its import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported<T = Content> {
    pub content: T,
    /// Figures of the recording that the profile or model does not hold.
    pub summary: Summary,
    /// Notes on repaired, omitted or odd parts, one sentence each.
    pub notes: Vec<String>,
}

impl<T> Imported<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Imported<U> {
        Imported { content: change(self.content), summary: self.summary, notes: self.notes }
    }
}

/// Notes the handling of `count` things, if there are any: "1,006 kernels ignored: part of no complete step".
pub(crate) fn tally<N: Display + From<u8> + PartialEq>(
    notes: &mut Vec<String>,
    count: N,
    noun: &str,
    fate: &str,
) {
    if count != N::from(0) {
        notes.push(format!("{} {fate}", counted(count, noun)));
    }
}

/// "1 kernel" or "1,006 kernels".
pub(crate) fn counted<N: Display + From<u8> + PartialEq>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    let digits = count.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {noun}{plural}")
}

/// The reason of a fault that a batch would remedy.
pub const UNKNOWN_BATCH: &str = "it does not record how many samples a step has";

/// Missing data of a recording, and the observer of its progress.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Samples of one step, for recordings that do not have it.
    pub batch: Option<u32>,
    /// TensorFlow's recording with the partition graphs.
    pub graphs: Option<&'a Path>,
    /// Sizes of dimensions that a model leaves open.
    pub sizes: &'a BTreeMap<String, u64>,
    /// Receives how much has been read, and may end the import.
    pub watch: Watch<'a>,
    /// Most bytes to hold in memory; by default 512 MiB, or eight times what the files have, if that is more.
    pub max_memory: Option<u64>,
}

static NO_SIZES: BTreeMap<String, u64> = BTreeMap::new();

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            batch: None,
            graphs: None,
            sizes: &NO_SIZES,
            watch: &|_| ControlFlow::Continue(()),
            max_memory: None,
        }
    }
}

impl<'a> Options<'a> {
    pub(crate) fn reading(&self, paths: &[PathBuf]) -> Reading<'a> {
        Reading { watch: self.watch, memory: Memory::for_files(paths, self.max_memory) }
    }

    pub(crate) fn required_batch(&self, place: &str) -> Result<u32, Fault> {
        self.batch
            .ok_or_else(|| Fault::in_file(place, UNKNOWN_BATCH, Remedy::option(RequestOption::Batch, "32")))
    }
}

/// The fault that the system refused to read or write `path`.
pub(crate) fn system_fault(path: &Path, error: &std::io::Error, remedy: &str) -> Fault {
    Fault::in_file(path.display().to_string(), error.to_string(), remedy)
}

/// The fault of an unusable profile from `place`.
pub(crate) fn profile_fault(place: &str, fault: Fault) -> Fault {
    let inner = format!("{place}, {}", fault.origin());
    fault.at(inner)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::io::Write;
    use stepcast_core::profile::Profile;

    /// The import of a file with this content, in batches of 32.
    pub(crate) fn imported(name: &str, bytes: &(impl AsRef<[u8]> + ?Sized)) -> Result<Imported, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        import(&[path], &Options { batch: Some(32), ..Options::default() })
    }

    pub(crate) fn imported_profile(
        name: &str,
        bytes: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<Imported<Profile>, Fault> {
        imported(name, bytes).map(|imported| imported.map(|content| content.into_profile().unwrap()))
    }

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in members {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, name, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }
}
