//! The container of xz files, around the decoder of LZMA2 (The .xz File Format, version 1.2.1).
//!
//! A block declares the size of its dictionary, up to 4 GiB, in a file of 76 bytes, and files may consist of any number
//! of streams. Here a dictionary counts as memory of the import, and nothing recurses.

use super::stream::Memory;
use lzma_rust2::Lzma2Reader;
use sha2::{Digest, Sha256};
use std::io;
use std::io::Read;

const STREAM: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const STREAM_END: &[u8] = b"YZ";
/// The identifier of LZMA2 among filters; all others are for machine code.
const LZMA2: u64 = 0x21;
/// Largest code of a dictionary's size: 4 GiB less one byte.
const LARGEST_DICTIONARY: u8 = 40;
/// The polynomial of ECMA-182, reflected.
const CRC64: u64 = 0xc96c_5795_d787_0f42;

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("xz: {what}"))
}

enum Check {
    None,
    Crc32(flate2::Crc),
    Crc64(u64),
    Sha256(Box<Sha256>),
}

impl Check {
    fn new(kind: u8) -> io::Result<Self> {
        Ok(match kind {
            0x00 => Self::None,
            0x01 => Self::Crc32(flate2::Crc::new()),
            0x04 => Self::Crc64(!0),
            0x0a => Self::Sha256(Box::default()),
            _ => return Err(damaged("unknown kind of check")),
        })
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Crc32(crc) => crc.update(bytes),
            Self::Crc64(crc) => {
                for byte in bytes {
                    *crc = CRC64_TABLE[usize::from(*crc as u8 ^ byte)] ^ (*crc >> 8);
                }
            }
            Self::Sha256(digest) => digest.update(bytes),
        }
    }

    fn result(self) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Crc32(crc) => crc.sum().to_le_bytes().to_vec(),
            Self::Crc64(crc) => (!crc).to_le_bytes().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
        }
    }
}

const CRC64_TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { CRC64 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// Counts the bytes that are read through it.
struct Counted<R> {
    inner: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

enum State<R> {
    /// Before the header of a stream; whether one has been read before.
    Stream(Counted<R>, bool),
    /// Before a block, or the index behind the last one; with the kind of check and the number of blocks.
    Block(Counted<R>, u8, u64),
    /// Within a block: its check, the bytes of its dictionary, where its content begins.
    Within(Box<Lzma2Reader<Counted<R>>>, Check, usize, u64, u8, u64),
    End,
}

/// The content of all streams of a file.
pub(super) struct XzReader<R> {
    state: State<R>,
    memory: Memory,
}

impl<R: Read> XzReader<R> {
    pub(super) fn new(inner: R, memory: Memory) -> Self {
        Self { state: State::Stream(Counted { inner, read: 0 }, false), memory }
    }

    /// One step: content in `buffer`, or none yet.
    fn advance(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.state = match std::mem::replace(&mut self.state, State::End) {
            State::End => return Ok(Some(0)),
            State::Stream(mut reader, again) => match stream(&mut reader, again)? {
                Some(check) => State::Block(reader, check, 0),
                None => return Ok(Some(0)),
            },
            State::Block(mut reader, check, blocks) => match block(&mut reader)? {
                Some(dictionary) => {
                    self.memory.hold(dictionary as usize);
                    if self.memory.excess().is_some() {
                        return Err(damaged("its dictionary is too large"));
                    }
                    let begun = reader.read;
                    let content = Box::new(Lzma2Reader::new(reader, dictionary, None));
                    State::Within(content, Check::new(check)?, dictionary as usize, begun, check, blocks)
                }
                None => {
                    index(&mut reader, blocks)?;
                    State::Stream(reader, true)
                }
            },
            State::Within(mut content, mut own, dictionary, begun, check, blocks) => {
                let count = content.read(buffer)?;
                own.update(&buffer[..count]);
                if count > 0 {
                    self.state = State::Within(content, own, dictionary, begun, check, blocks);
                    return Ok(Some(count));
                }
                let mut reader = content.into_inner();
                self.memory.release(dictionary);
                padding(&mut reader, begun)?;
                let expected = own.result();
                let mut found = vec![0; expected.len()];
                reader.read_exact(&mut found)?;
                if found != expected {
                    return Err(damaged("the check of a block fails"));
                }
                State::Block(reader, check, blocks + 1)
            }
        };
        Ok(None)
    }
}

impl<R: Read> Read for XzReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(count) = self.advance(buffer)? {
                return Ok(count);
            }
        }
    }
}

/// Reads the header of a stream and returns its kind of check. None at the end of the file.
fn stream<R: Read>(reader: &mut Counted<R>, again: bool) -> io::Result<Option<u8>> {
    let mut header = [0; 12];
    loop {
        // Streams may be followed by zeros, four at a time.
        let mut part = Vec::with_capacity(4);
        reader.take(4).read_to_end(&mut part)?;
        match &part[..] {
            [] if again => return Ok(None),
            [0, 0, 0, 0] if again => {}
            [_, _, _, _] => {
                header[..4].copy_from_slice(&part);
                break;
            }
            _ => return Err(damaged("something follows the last stream")),
        }
    }
    reader.read_exact(&mut header[4..])?;
    if &header[..6] != STREAM || crc32(&header[6..8]) != header[8..] {
        return Err(damaged("the header of a stream is damaged"));
    }
    match header[6..8] {
        [0, check] => Ok(Some(check)),
        _ => Err(damaged("unknown flags of a stream")),
    }
}

/// Reads the header of a block and returns the size of its dictionary. None if the index begins instead.
fn block<R: Read>(reader: &mut Counted<R>) -> io::Result<Option<u32>> {
    let mut size = [0];
    reader.read_exact(&mut size)?;
    if size == [0] {
        return Ok(None);
    }
    let mut header = vec![0; 4 * (usize::from(size[0]) + 1)];
    header[0] = size[0];
    reader.read_exact(&mut header[1..])?;
    let (content, check) = header.split_at(header.len() - 4);
    if crc32(content) != *check {
        return Err(damaged("the header of a block is damaged"));
    }
    let (flags, mut rest) = (content[1], &content[2..]);
    for declared in [0x40, 0x80] {
        if flags & declared != 0 {
            number(&mut rest)?;
        }
    }
    if flags & 0x3f != 0 || number(&mut rest)? != LZMA2 || number(&mut rest)? != 1 {
        return Err(damaged("it is packed with a filter for machine code, which is not supported"));
    }
    match rest.first() {
        Some(&LARGEST_DICTIONARY) => Ok(Some(u32::MAX)),
        Some(&code) if code < LARGEST_DICTIONARY => {
            Ok(Some((2 | u32::from(code & 1)) << (u32::from(code) / 2 + 11)))
        }
        _ => Err(damaged("unknown size of a dictionary")),
    }
}

/// Reads the index, after its first byte, and the footer of a stream. Blocks have been checked already, so only their
/// number is compared.
fn index<R: Read>(reader: &mut Counted<R>, blocks: u64) -> io::Result<()> {
    let begun = reader.read - 1;
    let mut crc = flate2::Crc::new();
    crc.update(&[0]);
    let mut byte = || -> io::Result<u8> {
        let mut byte = [0];
        reader.read_exact(&mut byte)?;
        crc.update(&byte);
        Ok(byte[0])
    };
    let records = stream_number(&mut byte)?;
    if records != blocks {
        return Err(damaged("its index has another number of blocks"));
    }
    for _ in 0..records {
        stream_number(&mut byte)?;
        stream_number(&mut byte)?;
    }
    let zeros = padding(reader, begun)?;
    crc.update(&[0; 3][..zeros]);
    let (mut check, mut footer) = ([0; 4], [0; 12]);
    reader.read_exact(&mut check)?;
    reader.read_exact(&mut footer)?;
    if check != crc.sum().to_le_bytes() || crc32(&footer[4..10]) != footer[..4] || footer[10..] != *STREAM_END
    {
        return Err(damaged("the end of a stream is damaged"));
    }
    Ok(())
}

/// Skips zeros to a multiple of four bytes since `begun`, and returns their number.
fn padding<R: Read>(reader: &mut Counted<R>, begun: u64) -> io::Result<usize> {
    let mut zeros = 0;
    while !(reader.read - begun).is_multiple_of(4) {
        let mut byte = [0];
        reader.read_exact(&mut byte)?;
        if byte != [0] {
            return Err(damaged("padding that is not zero"));
        }
        zeros += 1;
    }
    Ok(zeros)
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

fn number(bytes: &mut &[u8]) -> io::Result<u64> {
    stream_number(&mut || {
        let (first, rest) = bytes.split_first().ok_or_else(|| damaged("a header is too short"))?;
        *bytes = rest;
        Ok(*first)
    })
}

fn stream_number(byte: &mut dyn FnMut() -> io::Result<u8>) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let part = byte()?;
        value |= u64::from(part & 0x7f) << shift;
        if part < 0x80 {
            return Ok(value);
        }
    }
    Err(damaged("a number is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lzma_rust2::{CheckType, XzOptions, XzWriter};
    use std::io::Write;

    fn packed(bytes: &[u8], check: CheckType, blocks: Option<u64>) -> Vec<u8> {
        let mut options = XzOptions::with_preset(1);
        options.set_check_sum_type(check);
        options.set_block_size(blocks.and_then(std::num::NonZeroU64::new));
        let mut writer = XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn unpacked(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        XzReader::new(bytes, Memory::new(limit)).read_to_end(&mut content)?;
        Ok(content)
    }

    fn text() -> Vec<u8> {
        (0..10_000_u32).flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 12).to_le_bytes()).collect()
    }

    #[test]
    fn whatever_was_packed_comes_back() {
        for check in [CheckType::None, CheckType::Crc32, CheckType::Crc64, CheckType::Sha256] {
            for content in [Vec::new(), b"a".to_vec(), text()] {
                let one = packed(&content, check, None);
                assert_eq!(unpacked(&one, 64 << 20).unwrap(), content);
                let twice = [&one[..], &[0; 8], &one].concat();
                assert_eq!(unpacked(&twice, 64 << 20).unwrap(), [&content[..], &content].concat());
            }
        }
        // Several blocks: each is as large as the dictionary.
        let content = [vec![7; 2_500_000], text()].concat();
        assert_eq!(unpacked(&packed(&content, CheckType::Crc64, Some(1 << 20)), 64 << 20).unwrap(), content);
    }

    #[test]
    fn any_number_of_empty_streams_is_read_without_recursion() {
        let many = packed(b"", CheckType::Crc32, None).repeat(20_000);
        let small = std::thread::Builder::new().stack_size(128 << 10);
        assert_eq!(small.spawn(move || unpacked(&many, 1 << 20)).unwrap().join().unwrap().unwrap(), b"");
    }

    #[test]
    fn damage_is_noticed() {
        let content = text();
        let whole = packed(&content, CheckType::Crc64, None);
        for place in [2, 7, 9, 13, 20, whole.len() / 2, whole.len() - 30, whole.len() - 5, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            assert!(unpacked(&bytes, 64 << 20).is_err(), "{place}");
        }
        for length in [0, 5, 12, 40, whole.len() / 2, whole.len() - 1] {
            assert!(unpacked(&whole[..length], 64 << 20).is_err(), "{length}");
        }
    }

    #[test]
    fn dictionaries_count() {
        let mut bomb = packed(b"a", CheckType::Crc32, None);
        // The code of the dictionary is the last byte of the only filter.
        let place = 12 + bomb[12..].windows(2).position(|pair| pair == [0x21, 1]).unwrap() + 2;
        bomb[place] = LARGEST_DICTIONARY;
        let header = 4 * (usize::from(bomb[12]) + 1);
        let check = crc32(&bomb[12..12 + header - 4]);
        bomb[12 + header - 4..12 + header].copy_from_slice(&check);
        let error = unpacked(&bomb, 512 << 20).unwrap_err();
        assert!(error.to_string().contains("dictionary"), "{error}");
    }
}
