//! A whole file in memory.

use super::bounded::{Limits, Reading};
use super::memory::Memory;
use super::stream::Progress;
use super::walk::one;
use std::ops::ControlFlow;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, Stopped};

/// Most bytes of a file that is held as a whole, after decompression: 128 MiB.
pub const MAX_UNPACKED: u64 = 128 << 20;

/// The first bytes of a file, unpacked if it is compressed, as many as formats are recognised by.
pub fn head(path: &Path) -> Result<Vec<u8>, Fault> {
    one(path, &reading(), |source| Ok(source.head().to_vec()))
}

/// The content of a file, unpacked if it is compressed, at most [`MAX_UNPACKED`] bytes.
pub fn unpacked(path: &Path) -> Result<Vec<u8>, Fault> {
    one(path, &reading(), |source| source.read_within(Limits::size(MAX_UNPACKED)))
}

/// The same, as long as it is wanted.
pub fn unpacked_while(path: &Path, wanted: &CancelCheck<'_>) -> Result<Vec<u8>, Stopped> {
    let watch = |_: Progress| wanted();
    let reading = Reading { watch: &watch, ..reading() };
    let content = one(path, &reading, |source| source.read_within(Limits::size(MAX_UNPACKED)));
    if wanted().is_break() { Err(Stopped::Cancelled) } else { Ok(content?) }
}

fn reading<'a>() -> Reading<'a> {
    Reading { watch: &|_| ControlFlow::Continue(()), memory: Memory::new(4 * MAX_UNPACKED) }
}
