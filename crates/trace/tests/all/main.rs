//! Tests of the public interface, linked as one program.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; some print what they skip"
)]

mod files;
mod kineto;
#[path = "../made/mod.rs"]
mod made;
mod measured;

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder of the repository.
fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
