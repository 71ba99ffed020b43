//! Compression and archives, recognised by their first bytes.

use super::memory::Memory;
use super::xz::XzReader;
use std::io::{self, Cursor, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// Where a tar header has its magic word.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Packed bytes that are fetched at once.
const FETCH: usize = 128 << 10;

/// Whether this is the beginning of an archive.
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(TAR.0..TAR.0 + TAR.1.len()) == Some(TAR.1)
}

/// The decompressed content, if the first bytes are those of gzip or xz; otherwise the content as it is.
pub(crate) fn decompress<'a>(
    mut reader: Box<dyn Read + 'a>,
    memory: Memory,
) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = Vec::with_capacity(XZ.len());
    (&mut reader).take(XZ.len() as u64).read_to_end(&mut head)?;
    let (gzip, xz) = (head.starts_with(GZIP), head == XZ);
    let whole = Cursor::new(head).chain(reader);
    Ok(if gzip {
        Box::new(flate2::bufread::MultiGzDecoder::new(io::BufReader::with_capacity(FETCH, whole)))
    } else if xz {
        Box::new(XzReader::new(io::BufReader::with_capacity(FETCH, whole), memory))
    } else {
        Box::new(whole)
    })
}
