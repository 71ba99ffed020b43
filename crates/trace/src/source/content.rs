//! A whole file in memory.

use super::bounded::{Bounded, Limits};
use super::stream::unreadable;
use super::unpack::decompress;
use crate::error::system_fault;
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use stepcast_core::fault::Fault;

/// Most bytes that are held of one file, folder or archive after decompression: 2 GiB.
pub const MAX_UNPACKED: u64 = 2 << 30;

/// The content of a file, unpacked if it is compressed, at most [`MAX_UNPACKED`] bytes.
pub fn unpacked(path: &Path) -> Result<Vec<u8>, Fault> {
    let excess = Rc::new(Cell::new(None));
    let file = File::open(path).map_err(|error| system_fault(path, &error, "check the path"))?;
    let mut bytes = Vec::new();
    decompress(Box::new(file))
        .and_then(|reader| {
            Bounded::new(reader, Limits::size(MAX_UNPACKED), Rc::default(), excess.clone())
                .read_to_end(&mut bytes)
        })
        .map_err(|error| unreadable(&path.display().to_string(), &error, excess.get()))?;
    Ok(bytes)
}
