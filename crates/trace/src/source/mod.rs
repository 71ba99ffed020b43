//! From a path to streams of bytes: plain or compressed files, members of archives, files of folders.
//!
//! Compression and archives are recognised by their first bytes, not by names. Every stream is bounded: a small file that
//! unpacks to a huge one ends in an error, not in hours of work or exhausted memory.

mod bounded;
mod content;
mod memory;
mod stream;
mod unpack;
mod walk;
mod xz;

pub(crate) use bounded::{Excess, Limits, Reading};
pub use content::{MAX_UNPACKED, head, unpacked, unpacked_while};
pub(crate) use memory::Memory;
pub(crate) use stream::Source;
pub use stream::{Progress, Watch};
pub(crate) use walk::{files, first, one, only, short_name, visit};
