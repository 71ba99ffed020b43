//! Rows of a sweep as CSV or JSON lines. Equal rows are equal bytes on every machine.

use super::row::{PointFigures, SweepRow};
use super::variants::Variants;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;

/// The format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object on each line.
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
    /// The format that a file name implies: `.csv` or `.jsonl`.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Some(Self::Csv),
            Some("jsonl") => Some(Self::JsonLines),
            _ => None,
        }
    }

    /// The lines before all rows.
    pub fn header(self, variants: &Variants<'_>, fingerprint: &str) -> io::Result<Vec<u8>> {
        let version = env!("CARGO_PKG_VERSION");
        let keys = variants.axes().iter().map(|axis| axis.key.as_str());
        Ok(match self {
            Self::Csv => {
                let titles: Vec<&str> = keys.chain(COLUMNS).collect();
                let mut header = format!("# stepcast {version} sweep {fingerprint}\n").into_bytes();
                header.extend(record(titles)?);
                header
            }
            Self::JsonLines => {
                let axes: Vec<&str> = variants.axes().iter().map(|axis| axis.text()).collect();
                let mut header = serde_json::to_vec(
                    &json!({ "sweep": { "version": version, "fingerprint": fingerprint, "vary": axes } }),
                )?;
                header.push(b'\n');
                header
            }
        })
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
                        let mut cells = vec![String::new(); COLUMNS.len() - 1];
                        cells.push(why.refused.clone());
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
