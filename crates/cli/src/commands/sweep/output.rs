//! The file of a sweep: a line that says whose it is, then complete rows in order.
//!
//! A row is written as a whole, so the file is sound whenever the program ends; what a crash of the machine leaves of a
//! last line is cut off when the sweep goes on.

use crate::render::error::Complaint;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use stepcast_study::sweep::{Figures, Row, Variants};

/// What rows are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    JsonLines,
}

/// The columns after those of the axes.
const COLUMNS: [&str; 15] = [
    "method",
    "workers",
    "nodes",
    "iteration_s",
    "throughput_samples_per_s",
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

impl Format {
    pub(super) fn of(path: &Path) -> Result<Self, Complaint> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("jsonl") => Ok(Self::JsonLines),
            _ => {
                let remedy = "use a name such as sweep.csv or sweep.jsonl";
                let place = format!("-o {}", path.display());
                Err(Complaint::new("rows are written as .csv or .jsonl", remedy).at(place))
            }
        }
    }
}

/// A file that rows are appended to.
pub(super) struct Output {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) writer: Writer,
}

pub(super) struct Writer {
    file: File,
    /// Rows that the file has.
    pub(super) rows: u64,
}

impl Writer {
    /// Appends whole rows.
    pub(super) fn append(&mut self, lines: &[Vec<u8>]) -> io::Result<()> {
        self.file.write_all(&lines.concat())?;
        self.rows += lines.len() as u64;
        Ok(())
    }
}

impl Output {
    /// Begins a file, or goes on with one of the same sweep.
    pub(super) fn open(
        path: &Path,
        format: Format,
        variants: &Variants<'_>,
        fingerprint: &str,
        (resume, force): (bool, bool),
    ) -> anyhow::Result<Self> {
        let wrong = |reason: String, remedy: &str| {
            Complaint::new(reason, remedy).at(format!("-o {}", path.display()))
        };
        let header = header(format, variants, fingerprint)?;
        let exists = path.exists();
        if exists && !resume && !force {
            let remedy = "choose another name, --resume to go on with it, or --force to write over it";
            return Err(wrong("it exists already".to_owned(), remedy).into());
        }
        let failed = |error: io::Error| wrong(error.to_string(), "check the path and the room on the disk");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!resume)
            .open(path)
            .map_err(failed)?;
        let mut rows = 0;
        let begun = if resume { complete(&file, header.len(), &mut rows).map_err(failed)? } else { None };
        match begun {
            Some((found, end)) if found == header => {
                file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
            }
            Some(_) => {
                let reason =
                    "it belongs to another sweep: the scenario, the axes, the method or the version differ";
                return Err(
                    wrong(reason.to_owned(), "choose another name, or --force to write over it").into()
                );
            }
            None => {
                file.set_len(0)
                    .and_then(|()| file.seek(SeekFrom::Start(0)))
                    .and_then(|_| file.write_all(&header))
                    .map_err(failed)?;
                rows = 0;
            }
        }
        Ok(Self { path: path.to_owned(), format, writer: Writer { file, rows } })
    }

    /// Rows that the file has.
    pub(super) fn rows(&self) -> u64 {
        self.writer.rows
    }
}

/// The first bytes of a file and where its complete lines end; none if it is empty.
fn complete(file: &File, header: usize, rows: &mut u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut reader = BufReader::new(file);
    let mut start = Vec::with_capacity(header);
    reader.by_ref().take(header as u64).read_to_end(&mut start)?;
    if start.is_empty() {
        return Ok(None);
    }
    let mut end = start.len() as u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        if !line.ends_with(b"\n") {
            return Ok(Some((start, end)));
        }
        end += read;
        *rows += 1;
    }
}

/// The lines that stand before all rows.
fn header(format: Format, variants: &Variants<'_>, fingerprint: &str) -> anyhow::Result<Vec<u8>> {
    let version = env!("CARGO_PKG_VERSION");
    let keys = variants.axes().iter().map(|axis| axis.key.as_str());
    Ok(match format {
        Format::Csv => {
            let titles: Vec<&str> = keys.chain(COLUMNS).collect();
            let mut header = format!("# stepcast {version} sweep {fingerprint}\n").into_bytes();
            header.extend(record(titles)?);
            header
        }
        Format::JsonLines => {
            let axes: Vec<&str> = variants.axes().iter().map(|axis| axis.text()).collect();
            let mut header = serde_json::to_vec(
                &json!({ "sweep": { "version": version, "fingerprint": fingerprint, "vary": axes } }),
            )?;
            header.push(b'\n');
            header
        }
    })
}

/// A row, its line ended.
pub(super) fn line(format: Format, variants: &Variants<'_>, row: &Row) -> io::Result<Vec<u8>> {
    let values = variants.axes().iter().zip(&row.digits).map(|(axis, &digit)| (axis, axis.value(digit)));
    match format {
        Format::Csv => {
            let values = values.map(|(_, value)| value);
            record(values.chain(match &row.answer {
                Ok(figures) => cells(figures),
                Err(why) => {
                    let mut cells = vec![String::new(); COLUMNS.len() - 1];
                    cells.push(why.refused.clone());
                    cells
                }
            }))
        }
        Format::JsonLines => {
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

fn object_of(value: &impl Serialize) -> io::Result<Map<String, Value>> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        other => Ok(Map::from_iter([("answer".to_owned(), other)])),
    }
}

/// Whole numbers as numbers, all else as it was written.
fn typed(value: String) -> Value {
    value.parse::<u64>().map_or(Value::String(value), Value::from)
}

fn cells(figures: &Figures) -> Vec<String> {
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let bottleneck = serde_json::to_value(figures.bottleneck).ok();
    vec![
        figures.method.to_owned(),
        figures.workers.to_string(),
        figures.nodes.to_string(),
        figures.iteration.get().to_string(),
        figures.throughput.get().to_string(),
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
