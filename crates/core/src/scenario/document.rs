//! Parses the text of a scenario file and locates errors in it.
//!
//! The text is parsed into plain structs. Only after an error is it parsed again, with spans, to locate the key path
//! of the error.

use super::documentation::SECTIONS;
use super::{Scenario, ScenarioFile, full_key};
use crate::fault::{Excerpt, Fault, KeyPath, Place, Remedies, Step, shown};
use crate::files::{Files, NoFiles};
use crate::model::LayerFile;
use crate::suggest;
use crate::text::{self, key_parts};
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, Value};

/// A value of a document, with its place.
type Node<'a> = Spanned<DeValue<'a>>;

/// Sections that may be given several times.
const LISTS: [&str; 2] = ["cluster.workers", "plan.offers"];

/// The text of a scenario and its name.
#[derive(Debug, Clone)]
pub struct Document {
    name: String,
    text: String,
}

/// A value set from outside the file: `strategy.batch=64`, or `batch=64` where it is clear whose key is meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    key: String,
    value: Value,
    text: String,
}

impl Edit {
    /// Parses `key=value`. The value is TOML if it parses as such, and otherwise a string: `cluster.network=10gbe`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let remedy = "write key=value, such as strategy.batch=64";
        let (key, value) =
            text.split_once('=').ok_or_else(|| Fault::in_file(shown(text), "there is no \"=\"", remedy))?;
        let key = key.trim();
        key_parts(key).map_err(|fault| Fault { remedy: remedy.into(), ..fault.at(shown(text)) })?;
        let key = full_key(key).map_err(|fault| fault.at(shown(text)))?;
        let parsed = text::parse::<toml::Table>(&format!("value = {value}")).ok();
        let value = parsed
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(value.trim().to_owned()));
        Ok(Self { key, value, text: text.to_owned() })
    }

    /// Sets `key` to a given value.
    pub fn new(key: impl Into<String>, value: Value) -> Self {
        let key = key.into();
        let text = format!("{key}={value}");
        Self { key, value, text }
    }

    /// The key in full.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Where the override is blamed in messages.
    fn origin(&self) -> String {
        shown(&self.text)
    }
}

impl Document {
    /// A document with a `name` for error messages.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The scenario after the overrides.
    pub fn scenario(&self, overrides: &[Edit]) -> Result<Scenario, Fault> {
        self.scenario_with(&NoFiles, overrides)
    }

    /// Like [`scenario`](Self::scenario), with the files that the scenario names taken from `files`.
    pub fn scenario_with(&self, files: &dyn Files, overrides: &[Edit]) -> Result<Scenario, Fault> {
        self.file(overrides)?.resolve_with(files).map_err(|fault| self.located(fault, overrides))
    }

    /// Like [`scenario_with`](Self::scenario_with), without checking whether the values are consistent
    /// ([`Scenario::check_together`]).
    pub fn resolve_unchecked(&self, files: &dyn Files, overrides: &[Edit]) -> Result<Scenario, Fault> {
        let scenario = self.file(overrides)?.resolve_unchecked(files);
        scenario.map_err(|fault| self.located(fault, overrides))
    }

    /// The layers in a file that contains nothing else: `layers = [{ op = "relu" }]`.
    pub fn layers(&self) -> Result<Vec<LayerFile>, Fault> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Layers {
            layers: Vec<LayerFile>,
        }
        let file: Layers = text::parse(&self.text).map_err(|error| self.explain_toml(&error))?;
        Ok(file.layers)
    }

    /// Whether the text itself sets a key such as "strategy.batch".
    pub fn sets(&self, key: &str) -> bool {
        let mut steps = key.split('.');
        let first = text::parse::<toml::Table>(&self.text).ok().map(toml::Value::Table);
        first.is_some_and(|table| steps.try_fold(&table, |value, step| value.get(step)).is_some())
    }

    /// The parsed file after the overrides.
    pub fn file(&self, overrides: &[Edit]) -> Result<ScenarioFile, Fault> {
        let mut root = text::document(&self.text).map_err(|error| self.explain_toml(&error))?;
        self.check_tables(root.get_ref())?;
        let mut file: ScenarioFile = text::read(root.clone()).map_err(|error| self.explain_toml(&error))?;
        let values: Vec<String> =
            overrides.iter().map(|change| format!("value = {}", change.value)).collect();
        for (change, value) in overrides.iter().zip(&values) {
            let wrong = |(reason, remedy): (String, Remedies)| {
                Fault::in_key(change.key.as_str(), reason, remedy).at(change.origin())
            };
            let refused = |error: toml::de::Error| wrong(explain(error.message()));
            let parts = key_parts(&change.key).map_err(|fault| fault.at(change.origin()))?;
            let value = text::document(value).map_err(refused)?.get_mut().remove("value");
            let wrong_place = |reason| wrong((reason, "check the key against the scenario".into()));
            value.map_or(Ok(()), |value| set(root.get_mut(), &parts, &value)).map_err(wrong_place)?;
            file = text::read(root.clone()).map_err(refused)?;
        }
        Ok(file)
    }

    /// Refuses a list where a section is one table: `[[strategy]]`.
    fn check_tables(&self, root: &DeTable<'_>) -> Result<(), Fault> {
        let paths = SECTIONS.iter().map(|section| section.path);
        for path in paths.filter(|path| !LISTS.contains(path)) {
            let mut parts = path.split('.');
            let first = parts.next().and_then(|first| root.get(first));
            let found = parts.try_fold(first, |value, part| match value?.get_ref() {
                DeValue::Table(table) => Some(table.get(part)),
                _ => None,
            });
            if let Some(Some(value)) = found
                && value.get_ref().is_array()
            {
                let reason = format!("`{path}` is one table, and a list of them is given");
                let fault = Fault::in_key(path, reason, format!("write [{path}] once, with single brackets"));
                let span = first_line(&self.text, clamp(&self.text, value.span()));
                return Err(self.placed(fault, Some(span)));
            }
        }
        Ok(())
    }

    fn explain_toml(&self, error: &toml::de::Error) -> Fault {
        let (reason, remedy) = explain(error.message());
        let span = error.span().unwrap_or(0..0);
        self.placed(Fault::new(reason, remedy), Some(clamp(&self.text, span)))
    }

    /// Adds the place to the fault of a value: the override that set it, or its position in the text.
    pub fn located(&self, fault: Fault, overrides: &[Edit]) -> Fault {
        let keys: Vec<&str> = fault.key.steps().iter().filter_map(key_of).collect();
        let blamed = overrides.iter().rev().find(|change| {
            let parts = change.key.split('.').map(str::trim).filter(|part| part.parse::<usize>().is_err());
            parts.zip(&keys).all(|(set, wrong)| set == *wrong)
        });
        match blamed {
            Some(change) => fault.at(change.origin()),
            None => {
                let span = locate(&self.text, &fault.key);
                self.placed(fault, span)
            }
        }
    }

    fn placed(&self, fault: Fault, span: Option<Range<usize>>) -> Fault {
        let excerpt = span.map(|span| Excerpt { text: self.text.as_str().into(), span });
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
            let list = format!("known here: {}", known.join(", "));
            let remedy = suggest::remedy(name, known.iter().map(String::as_str), list);
            return (unknown.to_owned(), remedy);
        }
        return (plain_found(unknown), format!("write {}", plain_expected(expected)).into());
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

/// Sets the key `parts` below `table`. If the path leads through an array of tables, the key is set in all of them;
/// if it leads through the name of a catalog entry, the name becomes a table based on that entry.
fn set<'a>(table: &mut DeTable<'a>, parts: &[&'a str], value: &Node<'a>) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    let key = || unplaced(Cow::Borrowed(*first));
    if rest.is_empty() {
        table.insert(key(), value.clone());
        return Ok(());
    }
    let fresh = || match *first {
        "workers" => DeValue::Array(DeArray::from_iter([unplaced(DeValue::Table(DeTable::new()))])),
        _ => DeValue::Table(DeTable::new()),
    };
    let slot = table.entry(key()).or_insert_with(|| unplaced(fresh())).get_mut();
    if let (DeValue::String(_), "device" | "network") = (&*slot, *first) {
        let name = std::mem::replace(slot, DeValue::Boolean(false));
        *slot = DeValue::Table(DeTable::from_iter([(unplaced(Cow::Borrowed("base")), unplaced(name))]));
    }
    descend(slot, first, rest, value)
}

fn descend<'a>(slot: &mut DeValue<'a>, name: &str, rest: &[&'a str], value: &Node<'a>) -> Result<(), String> {
    match slot {
        DeValue::Table(inner) => set(inner, rest, value),
        DeValue::Array(items) => match rest.split_first().map(|(index, rest)| (index.parse::<usize>(), rest))
        {
            Some((Ok(index), rest)) => {
                let length = items.len();
                let item = items
                    .get_mut(index)
                    .ok_or_else(|| format!("`{name}` has no element {index} of {length}"))?;
                if rest.is_empty() {
                    *item = value.clone();
                    return Ok(());
                }
                descend(item.get_mut(), name, rest, value)
            }
            _ => items.iter_mut().try_for_each(|item| descend(item.get_mut(), name, rest, value)),
        },
        _ => Err(format!("`{name}` is a value and has no `{}` below it", rest.join("."))),
    }
}

/// A key or value that stands nowhere in the text.
fn unplaced<T>(inner: T) -> Spanned<T> {
    Spanned::new(0..0, inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_is_one_table_is_no_list() {
        for (text, path) in [
            ("[[strategy]]\nbatch = 8", "strategy"),
            ("[[cluster.servers]]\ncount = 2", "cluster.servers"),
            ("strategy.plan = [{ tensor = 2 }]", "strategy.plan"),
            ("strategy = []", "strategy"),
        ] {
            let fault =
                Document::new("s.toml", format!("model.zoo = \"vgg16\"\n{text}")).file(&[]).unwrap_err();
            assert_eq!(fault.key.to_string(), path, "{fault}");
            assert!(
                fault.reason.contains("is one table") && fault.remedy.contains(&format!("[{path}]")),
                "{fault}"
            );
        }
        let lists = "model.zoo = \"vgg16\"\n[[cluster.workers]]\ncount = 2\n[[cluster.workers]]\ncount = 1";
        assert_eq!(Document::new("s.toml", lists).scenario(&[]).unwrap().cluster.workers(), 3);
    }
}
