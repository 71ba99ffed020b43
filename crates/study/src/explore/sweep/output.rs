//! The file of a sweep: complete rows in order. A file belongs to a sweep if its rows have the sweep's values, and its first
//! and last row are predicted again to the same bytes.
//!
//! Rows are written as a whole, so the file is valid whenever the program ends. If a crash of the machine leaves an
//! incomplete last row, it is cut off when the sweep is resumed; any other row that is not the sweep's own is an error.
//! Rows are CSV or JSON lines; equal rows are equal bytes on every machine.

use super::agreement::Agreement;
use super::row::{PointFigures, SweepRow};
use super::rows;
use super::variants::Variants;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::{Fault, Remedies, Remedy, RequestOption};
use stepcast_core::method::never_cancelled;

/// A file that rows are appended to.
#[derive(Debug)]
pub struct Output {
    /// Its path.
    pub path: PathBuf,
    /// The format of its rows.
    pub format: Format,
    /// The writer that appends to it.
    pub writer: Writer,
}

/// Appends rows.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Offset of the end of the last complete row.
    end: u64,
    /// Number of rows in the file.
    pub rows: u64,
}

impl Writer {
    /// Appends complete rows.
    pub fn append(&mut self, lines: &[u8], rows: u64) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines) {
            // A part may have been written. If that cannot be undone either, resuming cuts it off.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += lines.len() as u64;
        self.rows += rows;
        Ok(())
    }
}

impl Output {
    /// Creates a file, or resumes one of the same sweep.
    pub fn open(
        path: &Path,
        format: Format,
        variants: &Variants<'_>,
        agreement: &Agreement,
        (resume, force): (bool, bool),
    ) -> Result<Self, Fault> {
        let wrong = |reason: &str, remedy: Remedies| Fault::new(reason, remedy);
        let force_it = || Remedy::option_to(RequestOption::Force, "to write over it");
        let failed =
            |error: io::Error| wrong(&error.to_string(), "check the path and the room on the disk".into());
        let header = format.header(variants).map_err(failed)?;
        let exists = path.exists();
        if exists && !resume && !force {
            let resume = Remedy::option_to(RequestOption::Resume, "to go on with it");
            let remedy = [Remedy::advice("choose another name"), resume, force_it()];
            return Err(wrong("it exists already", remedy.into()));
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!resume)
            .open(path)
            .map_err(failed)?;
        let begun = if resume {
            Begun::read(&file, &header, format, (variants, agreement)).map_err(failed)?
        } else {
            Begun::Nothing
        };
        let (rows, end) = match begun {
            Begun::Rows(rows, end) => (rows, end),
            Begun::Nothing => {
                file.set_len(0)
                    .and_then(|()| file.seek(SeekFrom::Start(0)))
                    .and_then(|_| file.write_all(&header))
                    .map_err(failed)?;
                (0, header.len() as u64)
            }
            Begun::Other => {
                let reason =
                    "it belongs to another sweep: the scenario, the axes, the method or the version differ";
                return Err(wrong(reason, [Remedy::advice("choose another name"), force_it()].into()));
            }
            Begun::Foreign(row) => {
                let reason = format!("its row {row} is not one that this sweep has written");
                return Err(wrong(
                    &reason,
                    [Remedy::advice("remove what was added to it"), force_it()].into(),
                ));
            }
        };
        file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        Ok(Self { path: path.to_owned(), format, writer: Writer { file, end, rows } })
    }

    /// Number of rows in the file.
    pub fn rows(&self) -> u64 {
        self.writer.rows
    }
}

/// Content of an existing file.
enum Begun {
    Nothing,
    /// Complete rows, and the offset at which they end.
    Rows(u64, u64),
    /// The header of something else.
    Other,
    /// A row that is not the sweep's own, counted from 1.
    Foreign(u64),
}

impl Begun {
    fn read(
        file: &File,
        header: &[u8],
        format: Format,
        (variants, agreement): (&Variants<'_>, &Agreement),
    ) -> io::Result<Self> {
        let mut reader = BufReader::new(file);
        if reader.fill_buf()?.is_empty() {
            return Ok(Self::Nothing);
        }
        let mut start = Vec::with_capacity(header.len());
        reader.by_ref().take(header.len() as u64).read_to_end(&mut start)?;
        if start != header {
            return Ok(Self::Other);
        }
        let points = variants.grid().points();
        let (mut rows, mut end) = (0_u64, header.len() as u64);
        let (mut row, mut first, mut last) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            row.clear();
            let whole = format.next_row(&mut reader, &mut row)?;
            if row.is_empty() {
                break;
            }
            if !whole || u128::from(rows) >= points || !format.is_row(variants, rows, &row) {
                // Only the last row can have been cut short.
                let is_last = !whole || reader.fill_buf()?.is_empty();
                let own = u128::from(rows) < points && !(whole && format.is_complete(variants, &row));
                if is_last && own {
                    break;
                }
                return Ok(Self::Foreign(rows + 1));
            }
            end += row.len() as u64;
            if rows == 0 {
                first.clone_from(&row);
            }
            std::mem::swap(&mut last, &mut row);
            rows += 1;
        }
        for (index, bytes) in [(0, first), (rows.saturating_sub(1), last)] {
            if rows > 0 && predicted(format, variants, agreement, index)? != bytes {
                return Ok(Self::Other);
            }
        }
        Ok(Self::Rows(rows, end))
    }
}

/// The row of one point as it stands in a file.
fn predicted(
    format: Format,
    variants: &Variants<'_>,
    agreement: &Agreement,
    index: u64,
) -> io::Result<Vec<u8>> {
    let mut line = Ok(Vec::new());
    let each = |row: SweepRow| format.line(variants, &row);
    let _ = rows(variants, agreement, index..index + 1, &never_cancelled, each, |lines| {
        line = lines.into_iter().collect::<io::Result<Vec<_>>>().map(|lines| lines.concat());
        ControlFlow::Continue(())
    });
    line
}

/// The format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object on each line.
    JsonLines,
}

const COLUMNS: [&str; 19] = [
    "method",
    "workers",
    "nodes",
    "iteration_s",
    "throughput_samples_per_s",
    "low_samples_per_s",
    "high_samples_per_s",
    "compute_s",
    "update_s",
    "scaling_factor",
    "epoch_s",
    "training_s",
    "cost",
    "staleness",
    "minibatch",
    "fits",
    "bottleneck",
    "warnings",
    "refused",
];

/// Largest row in bytes; rows of sweeps have a few hundred.
const LONGEST_ROW: u64 = 1 << 20;

impl Format {
    /// The format that a file name implies: `.csv` or `.jsonl`.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Some(Self::Csv),
            Some("jsonl") => Some(Self::JsonLines),
            _ => None,
        }
    }

    /// The line before all rows: titles of columns.
    pub fn header(self, variants: &Variants<'_>) -> io::Result<Vec<u8>> {
        match self {
            Self::Csv => record(variants.axes().iter().map(|axis| axis.key.as_str()).chain(COLUMNS)),
            Self::JsonLines => Ok(Vec::new()),
        }
    }

    /// A row as one line, with its line end.
    pub fn line(self, variants: &Variants<'_>, row: &SweepRow) -> io::Result<Vec<u8>> {
        let values = variants.axes().iter().zip(&row.digits).map(|(axis, &digit)| (axis, axis.value(digit)));
        match self {
            Self::Csv => {
                let values = values.map(|(_, value)| value);
                record(values.chain(match &row.answer {
                    Ok(figures) => cells(figures),
                    Err(why) => {
                        let mut cells = vec![String::new(); COLUMNS.len()];
                        cells[COLUMNS.len() - 1].clone_from(&why.refused);
                        cells
                    }
                }))
            }
            Self::JsonLines => {
                let mut object: Map<String, Value> =
                    values.map(|(axis, value)| (axis.key.clone(), typed(value))).collect();
                let answer = match &row.answer {
                    Ok(figures) => object_of(figures)?,
                    Err(why) => object_of(why)?,
                };
                object.extend(answer);
                let mut line = serde_json::to_vec(&object)?;
                line.push(b'\n');
                Ok(line)
            }
        }
    }

    /// Appends the next row, with its line end, to `row`; nothing at the end. False if the row has no end, or none within
    /// [`LONGEST_ROW`].
    fn next_row(self, reader: &mut impl BufRead, row: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let left = LONGEST_ROW.saturating_sub(row.len() as u64);
            let line = row.len();
            Read::take(&mut *reader, left).read_until(b'\n', row)?;
            if !row[line..].ends_with(b"\n") {
                return Ok(false);
            }
            // A cell in quotation marks may contain line ends.
            let quotes = || row.iter().filter(|byte| **byte == b'"').count();
            if self == Self::JsonLines || quotes().is_multiple_of(2) {
                return Ok(true);
            }
        }
    }

    /// Whether a row has all its cells or keys, whatever their values.
    fn is_complete(self, variants: &Variants<'_>, row: &[u8]) -> bool {
        match self {
            Self::Csv => {
                csv_cells(row).is_some_and(|cells| cells.len() == variants.axes().len() + COLUMNS.len())
            }
            Self::JsonLines => serde_json::from_slice::<Map<String, Value>>(row).is_ok(),
        }
    }

    fn is_row(self, variants: &Variants<'_>, index: u64, row: &[u8]) -> bool {
        let mut digits = Vec::new();
        variants.grid().digits(index, &mut digits);
        let mut values = variants.axes().iter().zip(digits).map(|(axis, digit)| (axis, axis.value(digit)));
        match self {
            Self::Csv => csv_cells(row).is_some_and(|cells| {
                cells.len() == variants.axes().len() + COLUMNS.len()
                    && values.zip(&cells).all(|((_, value), cell)| value == cell)
            }),
            Self::JsonLines => serde_json::from_slice::<Map<String, Value>>(row).is_ok_and(|object| {
                let answered = ["method", "refused"].iter().any(|key| object.contains_key(*key));
                answered && values.all(|(axis, value)| object.get(&axis.key) == Some(&typed(value)))
            }),
        }
    }
}

fn csv_cells(row: &[u8]) -> Option<csv::StringRecord> {
    let mut rows =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(row).into_records();
    rows.next()?.ok()
}

fn object_of(value: &impl Serialize) -> io::Result<Map<String, Value>> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        other => Ok(Map::from_iter([("answer".to_owned(), other)])),
    }
}

/// Whole numbers as numbers, everything else as text.
fn typed(value: String) -> Value {
    value.parse::<u64>().map_or(Value::String(value), Value::from)
}

fn cells(figures: &PointFigures) -> Vec<String> {
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let bottleneck = serde_json::to_value(figures.bottleneck).ok();
    vec![
        figures.method.to_owned(),
        figures.workers.to_string(),
        figures.nodes.to_string(),
        figures.iteration.get().to_string(),
        figures.throughput.get().to_string(),
        optional(figures.interval.map(|[low, _]| low.get())),
        optional(figures.interval.map(|[_, high]| high.get())),
        figures.compute.get().to_string(),
        optional(figures.update.map(|time| time.get())),
        figures.scaling_factor.to_string(),
        optional(figures.epoch.map(|time| time.get())),
        optional(figures.training.map(|time| time.get())),
        optional(figures.cost),
        optional(figures.staleness),
        optional(figures.minibatch),
        figures.fits.to_string(),
        bottleneck.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default(),
        figures.warnings.join(" "),
        String::new(),
    ]
}

fn record<T: AsRef<[u8]>>(fields: impl IntoIterator<Item = T>) -> io::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(512).from_writer(Vec::new());
    writer.write_record(fields)?;
    writer.into_inner().map_err(|error| io::Error::other(error.to_string()))
}
