//! Limits on what a file may unpack to.

use super::memory::Memory;
use super::stream::{Progress, Watch};
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;
use stepcast_core::fault::{Remedies, Remedy, RequestOption};

/// The most that is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes after decompression.
    pub(crate) unpacked: u64,
    /// Bytes after decompression for each byte before it.
    pub(crate) ratio: u64,
    /// What unpacks to less than this many bytes may exceed the ratio.
    pub(crate) small: u64,
}

impl Limits {
    /// For formats that are read as a stream. Profilers' traces are compressed 15 to 40 fold, a decompression bomb a
    /// thousand fold.
    pub(crate) const STREAMED: Self = Self { unpacked: 64 << 30, ratio: 250, small: 64 << 20 };

    /// For recordings that are held one at a time: TensorFlow's are packed a hundred fold.
    pub(crate) const PACKED: Self = Self { unpacked: 64 << 30, ratio: 2000, small: 64 << 20 };

    /// At most `unpacked` bytes, however densely they are packed.
    pub(crate) fn size(unpacked: u64) -> Self {
        Self { unpacked, ratio: u64::MAX, small: u64::MAX }
    }
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// More than this many bytes.
    Size(u64),
    /// More than this many bytes for each compressed one.
    Ratio(u64),
    /// More than this many bytes held in memory.
    Memory(u64),
    /// The import is no longer wanted.
    Stopped,
}

impl Excess {
    /// What to do about it.
    pub(crate) fn remedy(self) -> Remedies {
        match self {
            Self::Size(_) | Self::Ratio(_) => "import fewer steps at a time".into(),
            Self::Memory(_) => {
                let more = Remedy::option_to(RequestOption::MaxMemory, "to allow more");
                [Remedy::advice("import fewer steps at a time"), more].into()
            }
            Self::Stopped => "import it again".into(),
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size(bytes) if bytes >= 1 << 30 => {
                write!(f, "it unpacks to more than the {} GiB that are read at once", bytes >> 30)
            }
            Self::Size(bytes) => write!(f, "it unpacks to more than {bytes} bytes"),
            Self::Ratio(ratio) => {
                write!(f, "it unpacks to more than {ratio} times its size: it is not a recording")
            }
            Self::Memory(bytes) => write!(f, "it takes more than {} MiB of memory", bytes >> 20),
            Self::Stopped => write!(f, "it was stopped before it was read"),
        }
    }
}

/// Who follows the reading of a file, and the memory that may be held of it.
#[derive(Clone)]
pub(crate) struct Reading<'a> {
    pub(crate) watch: Watch<'a>,
    pub(crate) memory: Memory,
}

/// Ends in an error, with the limit in `excess`, when `inner` exceeds the limits or is no longer wanted.
pub(crate) struct Bounded<'a, R> {
    inner: R,
    limits: Limits,
    reading: Reading<'a>,
    /// Size of the file on the disk.
    of: u64,
    unpacked: u64,
    /// Compressed bytes that were read to unpack these.
    packed: Rc<Cell<u64>>,
    excess: Rc<Cell<Option<Excess>>>,
}

impl<'a, R> Bounded<'a, R> {
    pub(crate) fn new(
        inner: R,
        limits: Limits,
        (reading, of): (Reading<'a>, u64),
        packed: Rc<Cell<u64>>,
        excess: Rc<Cell<Option<Excess>>>,
    ) -> Self {
        Self { inner, limits, reading, of, unpacked: 0, packed, excess }
    }
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        if (self.reading.watch)(Progress { read: self.packed.get(), of: self.of }).is_break() {
            self.excess.set(Some(Excess::Stopped));
        } else if let Some(excess) = self.reading.memory.excess() {
            self.excess.set(Some(excess));
        }
        let count = read?;
        self.unpacked = self.unpacked.saturating_add(count as u64);
        let Limits { unpacked, ratio, small } = self.limits;
        if self.unpacked > unpacked {
            self.excess.set(Some(Excess::Size(unpacked)));
        } else if self.unpacked > small && self.unpacked / ratio > self.packed.get() {
            self.excess.set(Some(Excess::Ratio(ratio)));
        }
        match self.excess.get() {
            Some(_) => Err(io::Error::other("too large")),
            None => Ok(count),
        }
    }
}
