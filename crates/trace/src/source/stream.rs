//! One file or archive member as a stream with a known beginning and limits on its unpacked size and on the memory for its data.
//! Importers count the memory that they keep, generously: growing lists hold old and new content for a moment. Once the count exceeds
//! the limit, every stream that they read from ends in an error.

use std::cell::Cell;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::{fmt, io};
use stepcast_core::fault::{Fault, Remedies, Remedy, RequestOption};

/// Bytes that a format is recognised by.
const HEAD: u64 = 64 << 10;

/// How much of a file has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read of the file on disk, before unpacking.
    pub read: u64,
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

    /// Memory that may be held, shared with the rest of the import.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// Checks that the held memory is within the limit.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.memory.check(&self.name)
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

    /// The rest of the stream, at most `limits.unpacked` bytes and the remaining memory.
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
            return Err(excess.fault(&self.name));
        }
        bytes.shrink_to_fit();
        Ok(bytes)
    }

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
        Some(excess) => excess.fault(place),
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

/// Limits on unpacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes after decompression.
    pub(crate) unpacked: u64,
    /// Bytes after decompression for each byte before it.
    pub(crate) ratio: u64,
    /// Content that unpacks to less than this many bytes may exceed the ratio.
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
    /// The import was cancelled.
    Stopped,
}

impl Excess {
    pub(crate) fn fault(self, place: &str) -> Fault {
        Fault::in_file(place, self.to_string(), self.remedy())
    }

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

/// The observer of reading a file, and its memory.
#[derive(Clone)]
pub(crate) struct Reading<'a> {
    pub(crate) watch: Watch<'a>,
    pub(crate) memory: Memory,
}

/// Ends in an error, with the limit in `excess`, when `inner` exceeds the limits or is cancelled.
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

/// Bytes that any import may hold.
const USUAL: u64 = 512 << 20;

/// Bytes that an import may hold for each byte of its files on the disk, if that is more.
const EACH: u64 = 8;

/// Memory held by an import, and its limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    limit: u64,
    held: Rc<Cell<u64>>,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, held: Rc::default() }
    }

    /// The given limit, or the default for files of that size.
    pub(crate) fn for_files(paths: &[PathBuf], given: Option<u64>) -> Self {
        let size = |path: &PathBuf| path.metadata().map_or(0, |about| about.len());
        let within = |path: &PathBuf| match path.is_dir() {
            true => super::files(path).unwrap_or_default().iter().map(size).sum(),
            false => size(path),
        };
        let proportional = paths.iter().map(within).sum::<u64>().saturating_mul(EACH);
        Self::new(given.unwrap_or(USUAL.max(proportional)))
    }

    /// Counts bytes that are kept from now on.
    pub(crate) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_add(bytes as u64));
    }

    /// Counts bytes that are no longer kept.
    pub(crate) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes as u64));
    }

    /// The limit.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The remaining memory.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.held.get())
    }

    /// Refuses `place`, because too much of it is held.
    pub(crate) fn check(&self, place: &str) -> Result<(), Fault> {
        self.excess().map_or(Ok(()), |excess| Err(excess.fault(place)))
    }

    /// The excess, if more is held than allowed.
    pub(crate) fn excess(&self) -> Option<Excess> {
        (self.held.get() > self.limit).then_some(Excess::Memory(self.limit))
    }
}
