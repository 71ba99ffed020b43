//! Rows of a sweep as CSV or JSON lines. Equal rows are equal bytes on every machine.

use super::row::{PointFigures, SweepRow};
use super::variants::Variants;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, BufRead, Read};
use std::path::Path;

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

/// Bytes of the longest row; those of sweeps have a few hundred.
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
    pub(super) fn next_row(self, reader: &mut impl BufRead, row: &mut Vec<u8>) -> io::Result<bool> {
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
    pub(super) fn is_complete(self, variants: &Variants<'_>, row: &[u8]) -> bool {
        match self {
            Self::Csv => {
                csv_cells(row).is_some_and(|cells| cells.len() == variants.axes().len() + COLUMNS.len())
            }
            Self::JsonLines => serde_json::from_slice::<Map<String, Value>>(row).is_ok(),
        }
    }

    pub(super) fn is_row(self, variants: &Variants<'_>, index: u64, row: &[u8]) -> bool {
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
