//! Settings of an import.

use crate::source::{Memory, Reading, Watch};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::{Fault, Remedy, RequestOption};

/// The reason of a fault that a batch would remedy.
pub const UNKNOWN_BATCH: &str = "it does not record how many samples a step has";

/// What a recording may leave open, and who follows its progress.
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
    /// What the files at `paths` are read with.
    pub(crate) fn reading(&self, paths: &[PathBuf]) -> Reading<'a> {
        Reading { watch: self.watch, memory: Memory::of(paths, self.max_memory) }
    }

    /// The batch, for a recording at `place` that needs it.
    pub(crate) fn required_batch(&self, place: &str) -> Result<u32, Fault> {
        self.batch
            .ok_or_else(|| Fault::in_file(place, UNKNOWN_BATCH, Remedy::option(RequestOption::Batch, "32")))
    }
}
