//! Reads recorded training steps into profiles and ONNX files into models, and both from and to files.
//!
//! [`onnx`](mod@onnx) reads the graph of an ONNX file, without its weights. [`tensorflow`] reads the `RunMetadata` of a TensorFlow parameter-server job. What a recording lacks is
//! repaired where that is honest and said in [`Imported::notes`]; what cannot be repaired is a [`TraceError`].
//! Nothing read from a file can make this crate panic, and what it holds in memory is bounded by
//! [`MAX_UNPACKED`].

pub mod chrome;
mod error;
mod json;
mod model;
pub mod onnx;
mod read;
mod tensorflow;
mod write;

pub use error::TraceError;
pub use json::{parse_profile, print_profile, read_profile, write_profile};
pub use model::{print_model, write_model};
pub use read::MAX_UNPACKED;
pub use tensorflow::{from_run_metadata, tensorflow};

use std::path::Path;

use stepcast_core::profile::Profile;

/// A profile, and what had to be done to the recording to get it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The profile; it has passed `Profile::check`.
    pub profile: Profile,
    /// What was repaired, left out or looks odd: one sentence each, for people to read.
    pub notes: Vec<String>,
}

/// The content of a file, unpacked if it is compressed, at most [`MAX_UNPACKED`] bytes.
pub fn unpacked(path: &Path) -> Result<Vec<u8>, TraceError> {
    read::content(path, MAX_UNPACKED)
}
