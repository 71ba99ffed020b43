//! Reads recorded training steps into profiles and ONNX files into models, and both from and to files.
//!
//! [`import`] detects the format of a file from its content. What a recording lacks is reconstructed where the data
//! allow it, with a sentence in [`Imported::notes`]; anything else is a [`Fault`](stepcast_core::fault::Fault). Nothing
//! read from a file can make this crate panic, and what it holds in memory is bounded.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod chakra;
mod content;
mod draft;
mod error;
mod format;
mod horovod;
mod import;
mod imported;
mod json;
mod kineto;
mod layers;
mod model;
mod objects;
mod onnx;
mod options;
mod overview;
mod source;
mod summary;
mod tensorflow;
pub mod timeline;
mod write;

pub use content::{Content, is_profile, is_scenario, usual_name};
pub use format::Format;
pub use import::import;
pub use imported::Imported;
pub use json::{parse_profile, print_profile, read_profile, write_profile};
pub use model::{print_model, write_model};
pub use onnx::{lean_onnx, read_onnx};
pub use options::{Options, UNKNOWN_BATCH};
pub use overview::{ContentFigures, Overview, ResourceUsage, StepFigures};
pub use source::{MAX_UNPACKED, Progress, Watch, head, unpacked, unpacked_while};
pub use summary::{Summary, SummaryFigure, SummaryTable, SummaryValue};
pub use tensorflow::read_run_metadata;
pub use write::write_text;
