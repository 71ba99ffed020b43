//! What a report shows, as `set.toml` describes it: tables of a set's figures, and paragraphs with some of them.

use crate::template::{fill, find};
use crate::{Section, ValidationError};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use stepcast_report::table::{Column, Table};

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

fn list<'a>(figures: &'a Value, path: &str) -> Result<&'a [Value], ValidationError> {
    find(figures, path)?
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| ValidationError::Data(format!("\"{path}\" is no list")))
}
