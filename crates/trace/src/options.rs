//! Settings of an import.

use crate::source::Watch;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;

/// What a recording may leave open, and who follows its progress.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Samples of one step, for recordings that do not have it.
    pub batch: Option<u32>,
    /// TensorFlow's recording with the partition graphs.
    pub graphs: Option<&'a Path>,
    /// Sizes of dimensions that a model leaves open.
    pub sizes: &'a BTreeMap<String, u64>,
    /// Receives how much has been read.
    pub watch: Watch<'a>,
}

static NO_SIZES: BTreeMap<String, u64> = BTreeMap::new();

impl Default for Options<'_> {
    fn default() -> Self {
        Self { batch: None, graphs: None, sizes: &NO_SIZES, watch: &|_| () }
    }
}

impl Options<'_> {
    /// The batch, for a recording at `place` that needs it.
    pub(crate) fn required_batch(&self, place: &str) -> Result<u32, Fault> {
        let reason = "it does not record how many samples a step has";
        self.batch.ok_or_else(|| Fault::in_file(place, reason, "give the number: --batch 32"))
    }
}
