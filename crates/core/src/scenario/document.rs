//! A scenario as given: its text or its source, the edits to it, and the places of errors.
//!
//! The text is parsed into plain structs. Only after an error is it parsed again, with spans, to locate the key path
//! of the error.

use super::documentation::{SECTIONS, elsewhere};
use super::{Edit, Scenario, ScenarioFile};
use crate::fault::{Excerpt, Fault, KeyPath, Place, Remedies, Step, shown};
use crate::files::{Files, NoFiles};
use crate::model::LayerFile;
use crate::strategy::Recipe;
use crate::suggest;
use crate::text;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, TomlError};

/// Sections that may be given several times.
const LISTS: [&str; 2] = ["cluster.workers", "plan.offers"];

#[derive(Debug, Clone)]
enum Source {
    Text(String),
    /// Made from a profile, a model or a launch file: there is no text.
    File(Box<ScenarioFile>),
}

/// A scenario as its user gave it, and its name.
#[derive(Debug, Clone)]
pub struct Document {
    name: String,
    source: Source,
}

impl Document {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), source: Source::Text(text.into()) }
    }

    /// A scenario that was made from something else, such as a profile; errors show no text.
    pub fn from_file(name: impl Into<String>, file: ScenarioFile) -> Self {
        Self { name: name.into(), source: Source::File(Box::new(file)) }
    }

    /// Whether a user wrote the text.
    pub fn is_written(&self) -> bool {
        matches!(self.source, Source::Text(_))
    }

    fn text(&self) -> &str {
        match &self.source {
            Source::Text(text) => text,
            Source::File(_) => "",
        }
    }

    pub fn scenario(&self, edits: &[Edit]) -> Result<Scenario, Fault> {
        self.scenario_with(&NoFiles, edits)
    }

    /// Like [`scenario`](Self::scenario), with the files that the scenario names taken from `files`.
    pub fn scenario_with(&self, files: &dyn Files, edits: &[Edit]) -> Result<Scenario, Fault> {
        self.file(edits)?.resolve_with(files).map_err(|fault| self.located(fault, edits))
    }

    /// Like [`scenario_with`](Self::scenario_with), without checking whether the values are consistent
    /// ([`Scenario::check_together`]).
    pub fn resolve_unchecked(&self, files: &dyn Files, edits: &[Edit]) -> Result<Scenario, Fault> {
        self.file(edits)?.resolve_unchecked(files).map_err(|fault| self.located(fault, edits))
    }

    /// The layers in a file that contains nothing else: `layers = [{ op = "relu" }]`.
    pub fn layers(&self) -> Result<Vec<LayerFile>, Fault> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Layers {
            layers: Vec<LayerFile>,
        }
        let file: Layers = text::parse(self.text()).map_err(|error| self.explain_toml(&error))?;
        Ok(file.layers)
    }

    /// Whether the document itself sets a key such as "strategy.batch".
    pub fn sets(&self, key: &str) -> bool {
        let table = self.tree(&[]).map(DocumentMut::into_item).ok();
        table.is_some_and(|table| key.split('.').try_fold(&table, |item, step| item.get(step)).is_some())
    }

    /// The scenario as written, after the edits: they are made one after the other, and the result is read once.
    pub fn file(&self, edits: &[Edit]) -> Result<ScenarioFile, Fault> {
        match (&self.source, edits) {
            (Source::Text(text), []) => {
                let root = text::document(text).map_err(|error| self.explain_toml(&error))?;
                self.check_tables(root.get_ref())?;
                text::read(root).map_err(|error| self.explain_toml(&error))
            }
            (Source::File(file), []) => Ok((**file).clone()),
            _ => text::parse(&self.edited(edits)?).or_else(|_| self.file_or_blame(edits)),
        }
    }

    /// Reads the document after every edit, to find the one to blame.
    fn file_or_blame(&self, edits: &[Edit]) -> Result<ScenarioFile, Fault> {
        let mut file = self.file(&[])?;
        let mut tree = self.tree(&[])?;
        for edit in edits {
            edit.apply(&mut tree)?;
            file = text::parse(&tree.to_string()).map_err(|error| {
                let (reason, remedy) = explain(error.message());
                edit.fault(reason, remedy)
            })?;
        }
        Ok(file)
    }

    /// The text after the edits, with its comments.
    pub fn edited(&self, edits: &[Edit]) -> Result<String, Fault> {
        Ok(self.tree(edits)?.to_string())
    }

    fn tree(&self, edits: &[Edit]) -> Result<DocumentMut, Fault> {
        let text = match &self.source {
            Source::Text(text) => Cow::from(text),
            Source::File(file) => toml::to_string(file)
                .map_err(|error| Fault::in_file(&*self.name, error.to_string(), "give it another name"))?
                .into(),
        };
        // Unlike the parser of scenarios, the editor does not limit nesting.
        text::document(&text).map_err(|error| self.explain_toml(&error))?;
        let mut tree: DocumentMut =
            text.parse().map_err(|error: TomlError| self.explained(error.message(), error.span()))?;
        edits.iter().try_for_each(|edit| edit.apply(&mut tree))?;
        Ok(tree)
    }

    /// Refuses a list where a section is one table, `[[strategy]]`, and one table where it is a list, `[cluster.workers]`.
    fn check_tables(&self, root: &DeTable<'_>) -> Result<(), Fault> {
        let paths = SECTIONS.iter().map(|section| section.path);
        for path in paths {
            let mut parts = path.split('.');
            let first = parts.next().and_then(|first| root.get(first));
            let found = parts.try_fold(first, |value, part| match value?.get_ref() {
                DeValue::Table(table) => Some(table.get(part)),
                _ => None,
            });
            let Some(Some(value)) = found else { continue };
            let (reason, remedy) = match (LISTS.contains(&path), value.get_ref()) {
                (false, DeValue::Array(_)) => (
                    format!("`{path}` is one table, and a list of them is given"),
                    format!("write [{path}] once, with single brackets"),
                ),
                (true, DeValue::Table(_)) => (
                    format!("`{path}` is a list of tables, and one table is given"),
                    format!("write [[{path}]], with double brackets"),
                ),
                _ => continue,
            };
            let span = first_line(self.text(), clamp(self.text(), value.span()));
            return Err(self.placed(Fault::in_key(path, reason, remedy), Some(span)));
        }
        Ok(())
    }

    fn explain_toml(&self, error: &text::TextError) -> Fault {
        self.explained(error.message(), error.span())
    }

    fn explained(&self, message: &str, span: Option<Range<usize>>) -> Fault {
        let (reason, remedy) = explain(message);
        self.placed(Fault::new(reason, remedy), Some(clamp(self.text(), span.unwrap_or(0..0))))
    }

    /// Adds the place to the fault of a value: the edit that set it, or its position in the text.
    pub fn located(&self, fault: Fault, edits: &[Edit]) -> Fault {
        let keys: Vec<&str> = fault.key.steps().iter().filter_map(key_of).collect();
        let blamed = edits.iter().rev().find(|edit| {
            let parts = edit.key().split('.').map(str::trim).filter(|part| part.parse::<usize>().is_err());
            parts.zip(&keys).all(|(set, wrong)| set == *wrong)
        });
        match blamed {
            Some(edit) => fault.at(shown(edit.text())),
            None => {
                let span = locate(self.text(), &fault.key);
                self.placed(fault, span)
            }
        }
    }

    fn placed(&self, fault: Fault, span: Option<Range<usize>>) -> Fault {
        let span = span.filter(|_| self.is_written());
        let excerpt = span.map(|span| Excerpt { text: self.text().into(), span });
        Fault { place: Some(Place { origin: self.name.clone(), excerpt }), ..fault }
    }
}

fn key_of(step: &Step) -> Option<&str> {
    match step {
        Step::Key(key) => Some(key),
        Step::Index(_) => None,
    }
}

/// The span of a value, or of the innermost table that contains it.
fn locate(source: &str, path: &KeyPath) -> Option<Range<usize>> {
    let root = text::document(source).ok()?;
    let mut span = None;
    let mut tables = Some(root.get_ref());
    let mut array = None;
    for step in path.steps() {
        let value = match step {
            Step::Key(key) => {
                let entry =
                    tables.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key.as_str()));
                entry.map(|(name, value)| (name.span(), value))
            }
            Step::Index(index) => array
                .and_then(|array: &toml::de::DeArray<'_>| array.get(*index))
                .map(|value| (value.span(), value)),
        };
        let Some((name, value)) = value else { break };
        (tables, array) = (None, None);
        span = Some(value.span());
        match value.get_ref() {
            DeValue::Table(table) => {
                tables = Some(table);
                span = Some(name);
            }
            DeValue::Array(inner) => array = Some(inner),
            _ => {}
        }
    }
    span.map(|span| clamp(source, span)).map(|span| first_line(source, span))
}

/// Shortens a span over several lines to its first line, because a longer one is not helpful.
fn first_line(text: &str, span: Range<usize>) -> Range<usize> {
    let end = text[span.clone()].find('\n').map_or(span.end, |offset| span.start + offset);
    span.start..end.max(span.start)
}

fn clamp(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    start..end
}

/// Splits a deserialiser's message into reason and remedy, and adds the most similar known name.
fn explain(message: &str) -> (String, Remedies) {
    let message = message.trim();
    if let Some((unknown, expected)) = message.split_once(", expected ") {
        let quoted = |text: &str| -> Vec<String> {
            text.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let (wrong, known) = (quoted(unknown), quoted(expected));
        if let (Some(name), false) = (wrong.first(), known.is_empty()) {
            if Recipe::from_name(name).is_some() {
                return (
                    unknown.to_owned(),
                    format!("write `strategy.plan.recipe = \"{name}\"`; `precision` sets all other formats")
                        .into(),
                );
            }
            let mut list = format!("known here: {}", known.join(", "));
            let sections = elsewhere(name);
            if !sections.is_empty() {
                list = format!("`{name}` stands in [{}]; {list}", sections.join("] and ["));
            }
            let remedy = suggest::remedy(name, known.iter().map(String::as_str), list);
            return (unknown.to_owned(), remedy);
        }
        let found = unknown
            .trim_start_matches("invalid type: ")
            .split_once(' ')
            .map(|(_, value)| value.trim_matches('`'));
        let remedy = match found {
            Some(value) if expected == "a sequence" => format!("write an array such as `[{value}]`"),
            _ => format!("write {}", plain_expected(expected)),
        };
        return (plain_found(unknown), remedy.into());
    }
    let known = [
        ("duplicate key", "the key stands here twice", "keep one of the two"),
        ("recurs", "it is nested too deeply", "a scenario has only a few levels"),
        ("overflowed", "the number is too large", "use a smaller one"),
        ("missing field", message, "add it; docs/scenario.md has the format"),
    ];
    if let Some((_, reason, remedy)) = known.iter().find(|(word, ..)| message.contains(word)) {
        return ((*reason).to_owned(), (*remedy).into());
    }
    match message.split_once("; ") {
        Some((reason, remedy)) => (reason.to_owned(), remedy.into()),
        None => (message.to_owned(), "see docs/scenario.md for the format".into()),
    }
}

/// The found value, without the deserialiser's terms.
fn plain_found(found: &str) -> String {
    let words =
        [("invalid type: map", "invalid type: table"), ("invalid type: sequence", "invalid type: array")];
    let found = words.iter().find(|(serde, _)| *serde == found).map_or(found, |(_, plain)| plain);
    found.trim_end_matches(" as i128").trim_end_matches(" as u128").to_owned()
}

/// The expected value, without the deserialiser's terms.
fn plain_expected(expected: &str) -> &str {
    match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number that is not negative",
        "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "a table",
        "key" => "lines such as `zoo = \"vgg16\"` below [model]",
        "literal string" => "a value after the `=`",
        "max recursion depth met" => "fewer levels",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}
