//! Reads recorded training steps into profiles and ONNX files into models, and both from and to files.
//!
//! [`import`] recognises what a file is. [`tensorflow()`] reads the `RunMetadata` of a TensorFlow parameter-server
//! job, [`read_onnx`] the graph of an ONNX file, without its weights. What a recording lacks is repaired where that
//! is honest and said in [`Imported::notes`]; what cannot be repaired is a [`Fault`]. Nothing read from a file can
//! make this crate panic, and what it holds in memory is bounded.

mod chakra;
mod draft;
mod error;
mod format;
mod found;
mod horovod;
mod import;
mod json;
mod kineto;
mod layers;
mod model;
mod objects;
mod onnx;
mod overview;
mod read;
mod source;
mod summary;
mod tensorflow;
pub mod timeline;
mod write;

pub use format::Format;
pub use found::{is_profile, is_scenario, usual_name};
pub use import::{Found, Imported, Options, import};
pub use json::{parse_profile, print_profile, read_profile, write_profile};
pub use model::{print_model, write_model};
pub use onnx::read_onnx;
pub use overview::{Contents, Overview, Steps, Usage};
pub use read::MAX_UNPACKED;
pub use source::{Progress, Watch};
pub use summary::{Figure, Summary, Table, Value};
pub use tensorflow::{from_run_metadata, tensorflow};
pub use write::write_text;

use std::path::Path;
use stepcast_core::fault::Fault;

/// The content of a file, unpacked if it is compressed, at most [`MAX_UNPACKED`] bytes.
pub fn unpacked(path: &Path) -> Result<Vec<u8>, Fault> {
    read::content(path, MAX_UNPACKED)
}
