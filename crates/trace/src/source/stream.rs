//! One file or archive member as a stream with a known beginning.

use super::bounded::{Excess, Limits};
use super::memory::Memory;
use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::rc::Rc;
use stepcast_core::fault::Fault;

/// Bytes that a format is recognised by.
const HEAD: u64 = 64 << 10;

/// How much of a file has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read of the file on disk, before unpacking.
    pub read: u64,
    /// Size of that file.
    pub of: u64,
}

/// A callback that receives progress every few milliseconds, and may end the import.
pub type Watch<'a> = &'a dyn Fn(Progress) -> ControlFlow<()>;

/// One file or member of an archive, unpacked as it is read.
pub(crate) struct Source<'a> {
    name: String,
    head: Cursor<Vec<u8>>,
    rest: Box<dyn Read + 'a>,
    /// The error that ended reading the head; returned by the read that follows the head.
    failed: Option<io::Error>,
    excess: Rc<Cell<Option<Excess>>>,
    memory: Memory,
}

impl<'a> Source<'a> {
    pub(super) fn new(
        name: String,
        mut rest: Box<dyn Read + 'a>,
        excess: Rc<Cell<Option<Excess>>>,
        memory: Memory,
    ) -> Self {
        let mut head = Vec::new();
        let failed = (&mut rest).take(HEAD).read_to_end(&mut head).err();
        Self { name, head: Cursor::new(head), rest, failed, excess, memory }
    }

    /// What may be held of it, together with all else that is imported.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// Whether what is held is within the limit.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self.memory.excess() {
            Some(excess) => Err(Fault::in_file(&self.name, excess.to_string(), excess.remedy())),
            None => Ok(()),
        }
    }

    /// The file, or the archive and its member ("steps.tar, step_0.pb").
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes, whether read or not.
    pub(crate) fn head(&self) -> &[u8] {
        self.head.get_ref()
    }

    /// Whether reading has failed because a limit was exceeded.
    pub(crate) fn exceeded(&self) -> bool {
        self.excess.get().is_some()
    }

    /// The rest of the stream, at most `limits.unpacked` bytes and what memory is left.
    pub(crate) fn read_within(&mut self, limits: Limits) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        // A list that grows holds its old content for a moment.
        let room = self.memory.left() / 3;
        let most = limits.unpacked.min(room);
        let read = self.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| self.fault(&error))?;
        if bytes.len() as u64 > most {
            let excess =
                if room < limits.unpacked { Excess::Memory(self.memory.limit()) } else { Excess::Size(most) };
            return Err(Fault::in_file(&self.name, excess.to_string(), excess.remedy()));
        }
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    /// The fault of a read that failed.
    pub(crate) fn fault(&self, error: &io::Error) -> Fault {
        unreadable(&self.name, error, self.excess.get())
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.read(buffer)? {
            0 => match self.failed.take() {
                Some(error) => Err(error),
                None => self.rest.read(buffer),
            },
            count => Ok(count),
        }
    }
}

/// The fault of a file or archive member that could not be read to its end.
pub(super) fn unreadable(place: &str, error: &io::Error, excess: Option<Excess>) -> Fault {
    match excess {
        Some(excess) => Fault::in_file(place, excess.to_string(), excess.remedy()),
        None => Fault::in_file(
            place,
            format!("it cannot be unpacked: {error}"),
            "copy the file again; it may be cut short",
        ),
    }
}

/// Counts the bytes that are read through it.
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}
