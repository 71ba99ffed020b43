//! Reads recorded training steps into profiles and ONNX files into models, and both from and to files.
//!
//! [`import`] detects the format of a file from its content. Missing data of a recording are reconstructed where
//! possible, with a sentence in [`Imported::notes`]; anything else is a [`Fault`](stepcast_core::fault::Fault). Nothing
//! read from a file can make this crate panic, and what it holds in memory is bounded.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod chakra;
mod draft;
mod files;
mod horovod;
mod import;
mod kineto;
mod layers;
#[cfg(test)]
#[path = "../tests/made/mod.rs"]
mod made;
mod objects;
mod onnx;
mod overview;
mod source;
mod tensorflow;
pub mod timeline;

pub use files::{
    Content, is_profile, is_scenario, json_reason, parse_profile, print_model, print_profile, read_profile,
    usual_name, write_model, write_profile, write_text,
};
pub use import::{Format, Imported, Options, UNKNOWN_BATCH, import};
pub use kineto::{RankSteps, TracedStep, rank_traces};
pub use onnx::{lean_onnx, read_onnx};
pub use overview::{
    ContentFigures, Overview, ResourceUsage, StepFigures, Summary, SummaryFigure, SummaryTable, SummaryValue,
};
pub use source::{MAX_UNPACKED, Progress, Watch, head, unpacked, unpacked_while};
pub use tensorflow::read_run_metadata;
