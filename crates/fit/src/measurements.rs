//! Tables of measurements: CSV with a line of titles, plain or compressed.
//!
//! A column of times is called after its unit: `mean_us`, `time_ms`. A column `set` splits the rows: `fit` rows
//! are fitted, `held` rows only tested; without it all are fitted.

use std::collections::BTreeSet;
use std::path::Path;
use stepcast_core::fault::{Fault, Remedies};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;
use stepcast_core::suggest;

/// Rows between two checks for cancellation: some milliseconds of work.
pub(crate) const OFTEN: usize = 4096;

const UNITS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];
/// Names of columns of times, the better estimate first.
const TIMES: [&str; 2] = ["mean", "time"];

const PRECISIONS: [(&str, Precision); 9] = [
    ("f32", Precision::Fp32),
    ("fp32", Precision::Fp32),
    ("float32", Precision::Fp32),
    ("tf32", Precision::Tf32),
    ("f16", Precision::Fp16),
    ("fp16", Precision::Fp16),
    ("float16", Precision::Fp16),
    ("bf16", Precision::Bf16),
    ("bfloat16", Precision::Bf16),
];

const MOST_ROWS: usize = 1_000_000;

/// The text of a file of JSON objects, plain or compressed, read with cancellation.
pub(crate) fn read_text(path: &Path, remedy: &str, wanted: &CancelCheck<'_>) -> Result<String, Stopped> {
    let text = String::from_utf8(stepcast_trace::unpacked_while(path, wanted)?);
    Ok(text.map_err(|_| Fault::in_file(path.display().to_string(), "it is not UTF-8 text", remedy))?)
}

pub(crate) struct MeasurementFile {
    name: String,
    titles: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct MeasurementRow<'a> {
    file: &'a MeasurementFile,
    cells: &'a csv::StringRecord,
}

/// Measurements to fit, and held-out measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Split<T> {
    pub fit: Vec<T>,
    /// Only tested.
    pub held: Vec<T>,
}

impl<T> Default for Split<T> {
    fn default() -> Self {
        Self { fit: Vec::new(), held: Vec::new() }
    }
}

impl<T> Split<T> {
    /// Replaces the held-out measurements by those of `other`, if given.
    pub(crate) fn tested_with(mut self, other: Option<Self>) -> Self {
        if let Some(other) = other {
            self.held = other.fit.into_iter().chain(other.held).collect();
        }
        self
    }
}

/// A column of times.
#[derive(Clone, Copy)]
pub(crate) struct TimeColumn {
    column: usize,
    unit: f64,
}

impl MeasurementFile {
    pub(crate) fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Self, Stopped> {
        let name = path.display().to_string();
        let bytes = stepcast_trace::unpacked_while(path, wanted)?;
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes.as_slice());
        let bad = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            let reason = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("this line has {len} cells, the titles {expected_len}")
                }
                csv::ErrorKind::Utf8 { .. } => "this line is not UTF-8 text".to_owned(),
                _ => "this is not CSV".to_owned(),
            };
            Fault::in_file(format!("{name}:{line}"), reason, "give every line one cell for each title")
        };
        let titles = reader.headers().map_err(bad)?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            if rows.len() % OFTEN == 0 && wanted().is_break() {
                return Err(Stopped::Cancelled);
            }
            if rows.len() == MOST_ROWS {
                let reason = format!("it holds more than {MOST_ROWS} measurements");
                return Err(Fault::in_file(name, reason, "give fewer, such as every tenth line").into());
            }
            rows.push(record.map_err(bad)?);
        }
        if rows.is_empty() {
            let remedy = "give a CSV file with a line of titles and a line for each measurement";
            return Err(Fault::in_file(name, "it holds no measurements", remedy).into());
        }
        Ok(Self { name, titles, rows })
    }

    fn rows<'a>(
        &'a self,
        wanted: &'a CancelCheck<'_>,
    ) -> impl Iterator<Item = Result<MeasurementRow<'a>, Stopped>> {
        self.rows.iter().enumerate().map(move |(place, cells)| {
            match place % OFTEN == 0 && wanted().is_break() {
                true => Err(Stopped::Cancelled),
                false => Ok(MeasurementRow { file: self, cells }),
            }
        })
    }

    /// One measurement a row, read by `read` together with a name that no other row of its set may have.
    pub(crate) fn split<T>(
        &self,
        wanted: &CancelCheck<'_>,
        read: impl Fn(MeasurementRow<'_>) -> Result<(String, T), Fault>,
    ) -> Result<Split<T>, Stopped> {
        let set = self.optional_column("set");
        let (mut split, mut seen) = (Split::default(), BTreeSet::new());
        for row in self.rows(wanted) {
            let row = row?;
            let (name, measurement) = read(row)?;
            let held = row.is_held(set)?;
            if !seen.insert((held, name.clone())) {
                return Err(row.duplicate(&name).into());
            }
            if held { split.held.push(measurement) } else { split.fit.push(measurement) }
        }
        Ok(split)
    }

    pub(crate) fn column(&self, title: &str) -> Result<usize, Fault> {
        self.optional_column(title).ok_or_else(|| self.missing(&format!("there is no column {title}"), title))
    }

    pub(crate) fn optional_column(&self, title: &str) -> Option<usize> {
        self.titles.iter().position(|other| other == title)
    }

    pub(crate) fn time_column(&self) -> Result<TimeColumn, Fault> {
        for kind in TIMES {
            if let Some(column) = self.named_times(kind)? {
                return Ok(column);
            }
        }
        Err(self.missing("there is no column of times with its unit", "mean_us or time_us"))
    }

    /// The first column of times whose title is this name and a unit.
    pub(crate) fn named_times(&self, name: &str) -> Result<Option<TimeColumn>, Fault> {
        let unit_of = |title: &'_ str| {
            title.strip_prefix(name).and_then(|rest| rest.strip_prefix('_')).map(str::to_owned)
        };
        let found =
            self.titles.iter().enumerate().find_map(|(column, title)| Some((column, unit_of(title)?)));
        let Some((column, unit)) = found else { return Ok(None) };
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        known.map(|(_, factor)| Some(TimeColumn { column, unit: *factor })).ok_or_else(|| {
            let reason = format!("the column {} has the unknown unit \"{unit}\"", self.titles[column]);
            Fault::in_file(self.head(), reason, "call it _s, _ms, _us or _ns")
        })
    }

    fn missing(&self, reason: &str, title: &str) -> Fault {
        let list = format!("the columns are {}; add {title}", self.titles.join(", "));
        let remedy = suggest::remedy(title, self.titles.iter().map(String::as_str), list);
        Fault::in_file(self.head(), reason, remedy)
    }

    fn head(&self) -> String {
        format!("{}:1", self.name)
    }
}

impl MeasurementRow<'_> {
    pub(crate) fn text(&self, column: usize) -> &str {
        self.cells.get(column).unwrap_or("")
    }

    pub(crate) fn count(&self, column: usize) -> Result<u32, Fault> {
        let parsed = self.text(column).parse().ok().filter(|count| *count > 0);
        parsed.ok_or_else(|| self.fault(column, "is not a size", "use a whole number from 1 on"))
    }

    pub(crate) fn amount(&self, column: usize) -> Result<f64, Fault> {
        let parsed = self.text(column).parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
        parsed.ok_or_else(|| self.fault(column, "is not an amount", "use a positive number"))
    }

    pub(crate) fn precision(&self, column: usize) -> Result<Precision, Fault> {
        let known = PRECISIONS.iter().find(|(name, _)| *name == self.text(column));
        known
            .map(|(_, precision)| *precision)
            .or_else(|| serde_json::from_value(self.text(column).into()).ok())
            .ok_or_else(|| self.fault(column, "is not a number format", "use f32, tf32, f16 or bf16"))
    }

    pub(crate) fn time(&self, times: TimeColumn) -> Result<Seconds, Fault> {
        let parsed =
            self.text(times.column).parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
        let time = parsed.map(|value| Seconds::new(value * times.unit));
        time.ok_or_else(|| {
            self.fault(times.column, "is not a time", "use a positive number, or leave the line out")
        })
    }

    fn is_held(&self, set: Option<usize>) -> Result<bool, Fault> {
        match set.map(|column| (column, self.text(column))) {
            None | Some((_, "fit")) => Ok(false),
            Some((_, "held" | "test")) => Ok(true),
            Some((column, _)) => Err(self.fault(column, "is not a set", "use fit or held")),
        }
    }

    pub(crate) fn fault(&self, column: usize, what: &str, remedy: impl Into<Remedies>) -> Fault {
        let reason = format!("{} \"{}\" {what}", self.file.titles[column], self.text(column));
        Fault::in_file(self.place(), reason, remedy)
    }

    /// The fault of a measurement that an earlier line has too.
    fn duplicate(&self, what: &str) -> Fault {
        let reason = format!("{what} was measured before");
        Fault::in_file(self.place(), reason, "keep one line, with the mean time")
    }

    fn place(&self) -> String {
        format!("{}:{}", self.file.name, self.cells.position().map_or(0, csv::Position::line))
    }
}
