//! Sets values in the text of a scenario for the form, preserving comments and order.
//!
//! The rules are those of `--set` ([`Edit`](stepcast_core::scenario::Edit)); the tests compare the two. In
//! addition, naming the worker group after the last one adds it.

use crate::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepcast_core::fault::shown;
use stepcast_core::text::{self, key_parts};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// A key and its new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// "cluster.workers.0.count".
    pub(crate) key: String,
    /// The value as after `--set key=`; without it the key is removed.
    pub(crate) value: Option<String>,
}

/// Makes all changes, in order.
pub(crate) fn edited(text: &str, changes: &[Change]) -> Result<String, Problem> {
    changes.iter().try_fold(text.to_owned(), |text, change| {
        edit(&text, &change.key, change.value.as_deref()).ok_or_else(|| {
            let reason = "the text has no place for this key";
            Problem::invalid(&shown(&change.key), reason, "correct the text first")
        })
    })
}

/// Sets `key` in `text`, or removes it without a value; `None` if the key is invalid or the text is not TOML.
fn edit(text: &str, key: &str, value: Option<&str>) -> Option<String> {
    // The editor bounds the levels of a text less than the parser of scenarios does.
    text::parse::<toml::Table>(text).ok()?;
    let mut document: DocumentMut = text.parse().ok()?;
    let parts = key_parts(key).ok()?;
    match value {
        Some(value) => set(document.as_table_mut(), &parts, &parsed(value))?,
        None => remove(document.as_table_mut(), &parts)?,
    }
    Some(document.to_string())
}

/// TOML, or else a string.
fn parsed(value: &str) -> Value {
    let is_toml = text::parse::<toml::Table>(&format!("value = {value}")).is_ok_and(|table| table.len() == 1);
    let parsed = is_toml.then(|| value.parse().ok()).flatten();
    parsed.unwrap_or_else(|| value.trim().into())
}

fn set(table: &mut dyn TableLike, parts: &[&str], value: &Value) -> Option<()> {
    let (first, rest) = parts.split_first().filter(|(first, _)| !first.is_empty())?;
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
                let item = Item::Value(value);
                drop(table.insert(
                    first,
                    item.into_array_of_tables().map_or_else(|item| item, Item::ArrayOfTables),
                ));
            }
        }
        return Some(());
    }
    if !table.contains_key(first) {
        let fresh = match *first {
            "workers" => Item::ArrayOfTables(ArrayOfTables::from_iter([Table::new()])),
            _ => Item::Table(Table::new()),
        };
        table.insert(first, fresh);
    }
    let slot = table.get_mut(first)?;
    if let (Some(name), "device" | "network") = (slot.as_str(), *first) {
        *slot = Item::Value(Value::InlineTable(InlineTable::from_iter([("base", name)])));
    }
    let place = rest.first().and_then(|part| part.parse::<usize>().ok());
    match (slot, place) {
        (Item::ArrayOfTables(tables), Some(place)) => {
            if place == tables.len() && *first == "workers" {
                tables.push(Table::new());
            }
            set(tables.get_mut(place)?, &rest[1..], value)
        }
        (Item::ArrayOfTables(tables), None) => {
            tables.iter_mut().try_for_each(|table| set(table, rest, value))
        }
        (Item::Value(Value::Array(items)), Some(place)) => {
            set(items.get_mut(place)?.as_inline_table_mut()?, &rest[1..], value)
        }
        (Item::Value(Value::Array(items)), None) => {
            items.iter_mut().try_for_each(|item| set(item.as_inline_table_mut()?, rest, value))
        }
        (slot, _) => set(slot.as_table_like_mut()?, rest, value),
    }
}

/// Removing a missing key succeeds.
fn remove(table: &mut dyn TableLike, parts: &[&str]) -> Option<()> {
    let (first, rest) = parts.split_first()?;
    if rest.is_empty() {
        table.remove(first);
        return Some(());
    }
    let Some(slot) = table.get_mut(first) else { return Some(()) };
    let place = rest.first().and_then(|part| part.parse::<usize>().ok());
    match (slot, place, &rest[1..]) {
        (Item::ArrayOfTables(tables), Some(place), []) if place < tables.len() => {
            tables.remove(place);
            Some(())
        }
        (Item::ArrayOfTables(tables), Some(place), rest) => remove(tables.get_mut(place)?, rest),
        (slot, ..) => slot.as_table_like_mut().map_or(Some(()), |table| remove(table, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stepcast_core::scenario::{Document, Edit};

    const TEXTS: [&str; 4] = [
        include_str!("../../../examples/quickstart.toml"),
        include_str!("../../../examples/async.toml"),
        include_str!("../../../examples/several-servers.toml"),
        "[model]\nzoo = \"alexnet\"\n[cluster]\nworkers = [{ count = 2 }, { count = 3 }]\n",
    ];

    const CHANGES: [&str; 12] = [
        "model.zoo=resnet50",
        "strategy.batch=64",
        "strategy.synchronisation=local-sgd(4)",
        "cluster.workers.count=5",
        "cluster.workers.0.count=7",
        "cluster.workers.0.device.efficiency=0.5",
        "cluster.network=25gbe",
        "cluster.network.bandwidth=\"40 Gbit/s\"",
        "cluster.servers.count=3",
        "data.samples=1000",
        "price.worker-hour=2.5",
        "methods.simulate.steps=100",
    ];

    proptest! {
        /// An edited text gives the same scenario as `--set`.
        #[test]
        fn edits_are_overrides(text in 0..TEXTS.len(), changes in prop::collection::vec(0..CHANGES.len(), 1..5)) {
            let text = TEXTS[text];
            let mut edited = text.to_owned();
            let mut overrides = Vec::new();
            for change in changes.iter().map(|change| CHANGES[*change]) {
                let (key, value) = change.split_once('=').unwrap();
                edited = edit(&edited, key, Some(value)).unwrap();
                overrides.push(Edit::parse(change).unwrap());
            }
            let by_edit = Document::new("test", edited.clone()).scenario(&[]);
            let by_override = Document::new("test", text).scenario(&overrides);
            match (by_edit, by_override) {
                (Ok(edited), Ok(set)) => prop_assert_eq!(edited, set),
                (Err(edited), Err(set)) => prop_assert_eq!(edited.reason, set.reason),
                (edited_, set) => prop_assert!(false, "{:?} {:?}\n{}", edited_.err(), set.err(), edited),
            }
        }
    }

    #[test]
    fn comments_stay() {
        let text = "# what\n[strategy]\nbatch = 32 # each\n";
        assert_eq!(
            edit(text, "strategy.batch", Some("64")).unwrap(),
            "# what\n[strategy]\nbatch = 64 # each\n"
        );
    }

    #[test]
    fn groups_come_and_go() {
        let text = "[[cluster.workers]]\ncount = 2\n";
        let two = edit(text, "cluster.workers.1.count", Some("3")).unwrap();
        assert_eq!(two.matches("[[cluster.workers]]").count(), 2, "{two}");
        assert_eq!(edit(&two, "cluster.workers.1", None).unwrap().trim(), text.trim());
        assert_eq!(edit(text, "cluster.workers.5.count", Some("3")), None);
        assert_eq!(edit("[", "a", Some("3")), None);
        assert_eq!(edit("[data]\nsamples = 1\n", "data", None).unwrap().trim(), "");
    }
}
