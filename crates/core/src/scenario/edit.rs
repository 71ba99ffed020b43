//! Edits of a scenario: keys that are set or removed from outside its file, by flags, sweeps and forms.
//!
//! Edits change a document that keeps its comments and order, so the same rules hold for `--set` and for a text that
//! is shown again. A key below an array of tables is set in all of them; a key below the name of a catalog entry makes
//! a table based on that entry, and one below the name of a model a table with that name; the worker group after the last one
//! is added.

use super::full_key;
use super::sections::key_of_name;
use crate::fault::{Fault, Remedies, shown};
use crate::text::{self, key_parts};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// A key to set or to remove: `strategy.batch=64`, or `batch=64` where it is clear whose key is meant.
#[derive(Debug, Clone)]
pub struct Edit {
    key: String,
    value: Option<Value>,
    text: String,
}

/// The text determines the value.
impl PartialEq for Edit {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.text) == (&other.key, &other.text)
    }
}

impl Edit {
    /// Parses `key=value`. The value is TOML if it parses as such, and otherwise a string: `cluster.network=10gbe`.
    /// A number of `workers` is the count of every group.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let remedy = "write key=value, such as strategy.batch=64";
        let (key, value) =
            text.split_once('=').ok_or_else(|| Fault::in_file(shown(text), "there is no \"=\"", remedy))?;
        let key = key.trim();
        key_parts(key).map_err(|fault| Fault { remedy: remedy.into(), ..fault.at(shown(text)) })?;
        let key = full_key(key).map_err(|fault| fault.at(shown(text)))?;
        let value = parse_value(value);
        let key = if key == "cluster.workers" && value.is_integer() { format!("{key}.count") } else { key };
        Ok(Self { key, value: Some(value), text: text.to_owned() })
    }

    pub fn parse_all(texts: &[impl AsRef<str>]) -> Result<Vec<Self>, Fault> {
        texts.iter().map(|text| Self::parse(text.as_ref())).collect()
    }

    pub fn set(key: impl Into<String>, value: impl Into<toml::Value>) -> Self {
        let (key, value) = (key.into(), value.into());
        let text = format!("{key}={value}");
        let value = value.to_string();
        Self { key, value: Some(value.parse().unwrap_or_else(|_| value.into())), text }
    }

    /// Sets `key`, given in full, to a value as after `--set key=`; removes it without a value.
    pub fn from_form(key: &str, value: Option<&str>) -> Self {
        let text = format!("{key}={}", value.unwrap_or_default());
        Self { key: key.to_owned(), value: value.map(parse_value), text }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value; none if the key is removed.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn fault(&self, reason: impl Into<String>, remedy: impl Into<Remedies>) -> Fault {
        Fault::in_key(self.key.as_str(), reason, remedy).at(shown(&self.text))
    }

    pub(super) fn apply(&self, document: &mut DocumentMut) -> Result<(), Fault> {
        let mut parts = key_parts(&self.key).map_err(|fault| fault.at(shown(&self.text)))?;
        if let (["model"], Some(name)) = (&parts[..], self.value.as_ref().and_then(Value::as_str)) {
            parts.push(key_of_name(name));
        }
        let table = document.as_table_mut();
        match &self.value {
            Some(value) => set(table, &parts, value),
            None => remove(table, &parts),
        }
        .map_err(|reason| self.fault(reason, "check the key against the scenario"))
    }
}

/// TOML, or else a string.
fn parse_value(text: &str) -> Value {
    let is_toml = text::parse::<toml::Table>(&format!("value = {text}")).is_ok_and(|table| table.len() == 1);
    let value = is_toml.then(|| text.parse().ok()).flatten();
    value.unwrap_or_else(|| text.trim().into())
}

fn set(table: &mut dyn TableLike, parts: &[&str], value: &Value) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    if rest.is_empty() {
        let mut value = value.clone();
        match table.get_mut(first) {
            // Keeps the whitespace and comments around the old value.
            Some(Item::Value(old)) => {
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            // A list of tables reads better as sections.
            _ => {
                let item = Item::Value(value).into_array_of_tables();
                drop(table.insert(first, item.map_or_else(|item| item, Item::ArrayOfTables)));
            }
        }
        return Ok(());
    }
    let slot = table.entry(first).or_insert_with(|| match *first {
        "workers" | "offers" => Item::ArrayOfTables(ArrayOfTables::from_iter([Table::new()])),
        _ => Item::Table(Table::new()),
    });
    if let (Some(name), "device" | "network") = (slot.as_str(), *first) {
        *slot = Item::Value(InlineTable::from_iter([("base", name)]).into());
    }
    if let (Some(name), "model") = (slot.as_str(), *first) {
        *slot = Item::Value(InlineTable::from_iter([(key_of_name(name), name)]).into());
    }
    let no_element = |index: usize, length: usize| format!("`{first}` has no element {index} of {length}");
    match (slot, rest[0].parse::<usize>()) {
        (Item::ArrayOfTables(tables), Ok(index)) => {
            if index == tables.len() && matches!(*first, "workers" | "offers") {
                tables.push(Table::new());
            }
            let length = tables.len();
            let table = tables.get_mut(index).ok_or_else(|| no_element(index, length))?;
            match (&rest[1..], value) {
                ([], Value::InlineTable(fields)) => *table = fields.clone().into_table(),
                ([], _) => return Err(format!("`{first}` is a list of tables")),
                (rest, value) => set(table, rest, value)?,
            }
            Ok(())
        }
        (Item::ArrayOfTables(tables), Err(_)) => {
            tables.iter_mut().try_for_each(|table| set(table, rest, value))
        }
        (Item::Value(inner), _) => set_below(inner, first, rest, value),
        (slot, _) => slot.as_table_like_mut().map_or(Ok(()), |table| set(table, rest, value)),
    }
}

/// Sets a key below the value called `name`.
fn set_below(slot: &mut Value, name: &str, rest: &[&str], value: &Value) -> Result<(), String> {
    match (slot, rest[0].parse::<usize>()) {
        (Value::InlineTable(table), _) => set(table, rest, value),
        (Value::Array(items), Ok(index)) => {
            let length = items.len();
            let item = items.get_mut(index);
            let item = item.ok_or_else(|| format!("`{name}` has no element {index} of {length}"))?;
            if rest.len() == 1 {
                *item = value.clone();
                return Ok(());
            }
            set_below(item, name, &rest[1..], value)
        }
        (Value::Array(items), Err(_)) => {
            items.iter_mut().try_for_each(|item| set_below(item, name, rest, value))
        }
        _ => Err(format!("`{name}` is a value and has no `{}` below it", rest.join("."))),
    }
}

fn remove(table: &mut dyn TableLike, parts: &[&str]) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    if rest.is_empty() {
        table.remove(first);
        return Ok(());
    }
    match (table.get_mut(first), rest[0].parse::<usize>(), &rest[1..]) {
        (Some(Item::ArrayOfTables(tables)), Ok(index), []) if index < tables.len() => {
            tables.remove(index);
            Ok(())
        }
        (Some(Item::ArrayOfTables(tables)), Ok(index), rest) => {
            let table = tables.get_mut(index).ok_or_else(|| format!("`{first}` has no element {index}"))?;
            remove(table, rest)
        }
        (slot, ..) => match slot.and_then(Item::as_table_like_mut) {
            Some(table) => remove(table, rest),
            None => Ok(()),
        },
    }
}
