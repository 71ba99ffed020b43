//! What a set found, in one form for all sets: verdict, evidence, figures for programs, and what its `set.toml` shows of them: tables
//! and paragraphs.

use crate::checks::ExactCheck;
use crate::coverage::Coverage;
use crate::set::Definition;
use crate::template::{fill, find, list};
use crate::{BoundCheck, ErrorBounds, Errors, ValidationError};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use stepcast_core::quantity::SamplesPerSec;
use stepcast_report::plots::predicted_measured::{Pair, PredictedMeasured, Set as PlottedSet};
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::interval::Case;

/// What a set's figures are compared with.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Measured runs; their intervals are made from the errors of all sets.
    Measured {
        /// Each run, predicted by figures that were fitted without it.
        cases: Vec<Case>,
        /// The same runs predicted by other methods.
        other_cases: Vec<Case>,
        bounds: ErrorBounds,
        /// Whether the bounds apply to groups of cases, which the set checks itself, and not to all cases together.
        bounded_by_group: bool,
    },
    /// Measured figures with intervals of their own.
    Judged {
        cases: usize,
        /// How many lie in their 90 % intervals.
        coverage: Coverage,
        errors: Errors,
        bound: String,
    },
    /// Number of cases with printed or exact figures; nothing was measured.
    Exact(usize),
}

impl Evidence {
    /// Measured runs, predicted by one method and bounded together.
    pub(crate) fn measured(cases: Vec<Case>, bounds: ErrorBounds) -> Self {
        Self::Measured { cases, other_cases: Vec::new(), bounds, bounded_by_group: false }
    }
}

/// A part of a report, in reading order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// Paragraphs below a title, which may be empty.
    Text {
        title: String,
        paragraphs: Vec<String>,
    },
    Table(Table),
}

impl From<Table> for Section {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

/// What the code of a set hands to the report.
pub(crate) struct Findings {
    /// What programs get, and what groups, sections and bounds refer to. Fields whose names begin with an underscore are for
    /// these only. Fields `bounds` and `_bounds` that are null become the checked bounds.
    pub(crate) figures: Value,
    pub(crate) evidence: Evidence,
    /// Bounds that are checked by code, before those of the definition.
    pub(crate) checks: Vec<BoundCheck>,
    /// Whether every bound is kept that is not in `checks`.
    pub(crate) holds: bool,
    /// A plot of figures that are no runs with a throughput, as SVG.
    pub(crate) drawing: Option<String>,
}

impl Findings {
    pub(crate) fn exact(checks: &[ExactCheck], figures: Value) -> Self {
        let evidence = Evidence::Exact(checks.iter().map(|check| check.cases).sum());
        Self { holds: checks.iter().all(ExactCheck::holds), ..Self::new(figures, evidence) }
    }

    /// Findings whose bounds are all in the definition.
    pub(crate) fn new(figures: Value, evidence: Evidence) -> Self {
        Self { figures, evidence, checks: Vec::new(), holds: true, drawing: None }
    }
}

/// What a set found. Serialised, it is an object with the set's figures under the set's name.
#[derive(Debug, Clone)]
pub struct Report {
    pub set: &'static str,
    pub holds: bool,
    /// How many bounds are kept, in words.
    pub verdict: String,
    /// Where the figures come from and what they are compared with.
    pub about: String,
    /// Measured runs, or the number of exact cases.
    pub evidence: Evidence,
    pub sections: Vec<Section>,
    drawing: Option<String>,
    figures: Value,
}

impl Report {
    pub(crate) fn new(
        set: &'static str,
        definition: &Definition,
        findings: Findings,
    ) -> Result<Self, ValidationError> {
        let Findings { mut figures, mut evidence, mut checks, mut holds, drawing } = findings;
        for group in &definition.group {
            group.add(&mut figures)?;
        }
        for bound in &definition.bound {
            checks.push(bound.check(&figures)?);
        }
        holds &= checks.iter().all(|check| check.holds);
        let kept = checks.iter().filter(|check| check.holds).count();
        let verdict = match checks.len() {
            count if count > 0 && figures.get("checks").is_none() => format!("{kept} of {count} bounds kept"),
            _ => if holds { "bounds kept" } else { "bounds missed" }.to_owned(),
        };
        if let (Evidence::Judged { bound, .. }, Some(words)) = (&mut evidence, &definition.bounded) {
            *bound = fill(words, &figures)?.unwrap_or_default();
        }
        if let Some(figures) = figures.as_object_mut() {
            if let Some(null) = figures.get_mut("bounds").filter(|bounds| bounds.is_null()) {
                *null = json!(checks);
            }
            figures.insert("_bounds".to_owned(), json!(checks));
        }
        let mut sections = Vec::new();
        for section in &definition.section {
            sections.extend(section.sections(&figures)?);
        }
        strip(&mut figures);
        Ok(Self {
            set,
            holds,
            verdict,
            about: definition.about.clone(),
            evidence,
            sections,
            drawing,
            figures,
        })
    }

    /// The plot of predictions against measurements, as SVG; none where nothing was measured.
    pub fn plot(&self) -> Option<String> {
        let of_cases = || (!self.cases().is_empty()).then(|| predicted_measured(self.cases()).svg());
        self.drawing.clone().or_else(of_cases)
    }

    /// The measured runs; none where nothing was measured.
    pub fn cases(&self) -> &[Case] {
        if let Evidence::Measured { cases, .. } = &self.evidence { cases } else { &[] }
    }
}

/// Removes what only sections and bounds refer to.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.starts_with('_'));
            fields.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.set, &self.figures)])
    }
}

/// The plot of the throughput of measured runs, one set of points for each validation set.
pub fn predicted_measured(cases: &[Case]) -> PredictedMeasured<SamplesPerSec> {
    let mut sets: Vec<PlottedSet<SamplesPerSec>> = Vec::new();
    for case in cases {
        let at = sets.iter().position(|set| set.name == case.set).unwrap_or_else(|| {
            sets.push(PlottedSet { name: case.set.to_owned(), pairs: Vec::new() });
            sets.len() - 1
        });
        sets[at].pairs.push(Pair {
            name: format!("{}, {} workers, by {}", case.group, case.workers, case.method),
            measured: case.measured,
            predicted: case.predicted,
        });
    }
    PredictedMeasured {
        title: "Runs that were not fitted".to_owned(),
        quantity: "throughput".to_owned(),
        sets,
    }
}

/// Sections that several sets show, by name.
const SHARED: &str = include_str!("sections.toml");

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SectionSpec {
    /// A shared section; other keys replace its own.
    shared: Option<String>,
    title: String,
    /// Path of the list of figures that a table shows, one row for each.
    rows: String,
    /// Consecutive rows that agree in these fields share a table.
    by: Vec<String>,
    /// A field that must not be null; with an exclamation mark, that must be.
    only: Option<String>,
    /// Title and field of every column: `model | model:name`. A title that begins with # is that of numbers, with ~ that of
    /// words.
    columns: Vec<String>,
    note: String,
    text: Vec<Paragraphs>,
}

/// One paragraph, or one for each row of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Paragraphs {
    One(String),
    Each { each: String, text: String },
}

impl SectionSpec {
    pub(crate) fn sections(&self, figures: &Value) -> Result<Vec<Section>, ValidationError> {
        let spec = self.resolved()?;
        let filled = |text: &str, row: &Value| Ok::<_, ValidationError>(fill(text, row)?.unwrap_or_default());
        if !spec.text.is_empty() {
            let mut paragraphs = Vec::new();
            for part in &spec.text {
                match part {
                    Paragraphs::One(text) => paragraphs.push(filled(text, figures)?),
                    Paragraphs::Each { each, text } => {
                        for row in list(figures, each)? {
                            paragraphs.push(filled(text, row)?);
                        }
                    }
                }
            }
            return Ok(vec![Section::Text { title: filled(&spec.title, figures)?, paragraphs }]);
        }
        let is_shown = |row: &&Value| match spec.only.as_deref() {
            Some(field) => match field.strip_prefix('!') {
                Some(field) => find(row, field).is_ok_and(Value::is_null),
                None => find(row, field).is_ok_and(|value| !value.is_null()),
            },
            None => true,
        };
        let rows: Vec<&Value> = list(figures, &spec.rows)?.iter().filter(is_shown).collect();
        let alike = |a: &&Value, b: &&Value| spec.by.iter().all(|key| a.get(key) == b.get(key));
        let mut sections = Vec::new();
        for rows in if spec.by.is_empty() { vec![rows.as_slice()] } else { rows.chunk_by(alike).collect() } {
            let titled = if spec.by.is_empty() { figures } else { rows[0] };
            let mut table = Table::new(filled(&spec.title, titled)?, spec.columns()?);
            for row in rows {
                let cell = |column: &String| -> Result<String, ValidationError> {
                    let field = column.split_once('|').map_or("", |(_, field)| field.trim());
                    let template =
                        if field.contains("${") { field.to_owned() } else { format!("${{{field}}}") };
                    Ok(fill(&template, row)?.unwrap_or_else(|| "–".to_owned()))
                };
                table.row(spec.columns.iter().map(cell).collect::<Result<Vec<_>, _>>()?);
            }
            table.note = filled(&spec.note, figures)?;
            sections.push(table.into());
        }
        Ok(sections)
    }

    fn resolved(&self) -> Result<Self, ValidationError> {
        let Some(name) = &self.shared else { return Ok(self.clone()) };
        let damaged = |error: String| ValidationError::Data(format!("sections: {error}"));
        let mut shared: IndexMap<String, Self> =
            stepcast_core::text::parse(SHARED).map_err(|error| damaged(error.to_string()))?;
        let shared = shared.swap_remove(name).ok_or_else(|| damaged(format!("there is no \"{name}\"")))?;
        let either = |own: &String, other: String| if own.is_empty() { other } else { own.clone() };
        Ok(Self {
            title: either(&self.title, shared.title),
            rows: either(&self.rows, shared.rows),
            note: either(&self.note, shared.note),
            columns: if self.columns.is_empty() { shared.columns } else { self.columns.clone() },
            ..self.clone()
        })
    }

    fn columns(&self) -> Result<Vec<Column>, ValidationError> {
        let column = |text: &String| {
            let untitled = || ValidationError::Data(format!("column \"{text}\" has no \"|\""));
            Ok(Column::from(text.split_once('|').ok_or_else(untitled)?.0.trim()))
        };
        self.columns.iter().map(column).collect()
    }
}
