//! Edits of a scenario's text: edits of the form, edits that turn it into another scenario ("use this"), and the key at a
//! position.

use crate::Shared;
use crate::problem::Problem;
use crate::request::ScenarioBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use stepcast_core::fault::shown;
use stepcast_core::scenario::{Document, Edit, ScenarioFile};
use stepcast_core::text;
use toml_edit::{Item, TableLike};

/// A key and its new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// "cluster.workers.0.count".
    pub(crate) key: String,
    /// The value as after `--set key=`; without it the key is removed.
    pub(crate) value: Option<String>,
}

pub(crate) fn edited(text: &str, changes: &[Change]) -> Result<String, Problem> {
    changes.iter().try_fold(text.to_owned(), |text, Change { key, value }| {
        let edit = Edit::from_form(key, value.as_deref());
        Document::new("scenario", text).edited(&[edit]).map_err(|_| {
            let reason = "the text has no place for this key";
            Problem::invalid(&shown(key), reason, "correct the text first")
        })
    })
}

/// Edits that turn `body` from scenario `from` into `to`; empty if impossible.
pub(crate) fn edits(
    shared: &Arc<Shared>,
    body: &ScenarioBody,
    from: &ScenarioFile,
    to: &ScenarioFile,
) -> Vec<Change> {
    let (Ok(before), Ok(after)) = (serde_json::to_value(from), serde_json::to_value(to)) else {
        return Vec::new();
    };
    let difference = |before: &Value| {
        let mut changes = Vec::new();
        compare("", Some(before), &after, &mut changes);
        changes
    };
    let reaches = |changes: &[Change]| {
        let Ok(text) = edited(&body.scenario, changes) else { return false };
        let changed = ScenarioBody { scenario: text, set: body.set.clone() };
        let reached = changed.request(shared).ok().and_then(|request| request.scenario().ok());
        reached.is_some_and(|reached| reached.to_file() == *to)
    };
    // A machine that the text does not name has to be written in full.
    let ways = [difference(&before), difference(&without_machines(before))];
    ways.into_iter().find(|changes| reaches(changes)).unwrap_or_default()
}

fn without_machines(mut scenario: Value) -> Value {
    if let Some(cluster) = scenario.get_mut("cluster").and_then(Value::as_object_mut) {
        cluster.remove("network");
        cluster.remove("nodes");
        for group in cluster.get_mut("workers").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(group) = group.as_object_mut() {
                group.remove("device");
            }
        }
    }
    scenario
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Adds the differences below `path`.
fn compare(path: &str, before: Option<&Value>, after: &Value, changes: &mut Vec<Change>) {
    if before == Some(after) {
        return;
    }
    match (before, after) {
        (before, Value::Object(after)) => {
            let before = before.and_then(Value::as_object);
            for key in before.into_iter().flat_map(|before| before.keys()) {
                if !after.contains_key(key) {
                    changes.push(Change { key: below(path, key), value: None });
                }
            }
            for (key, value) in after {
                compare(&below(path, key), before.and_then(|before| before.get(key)), value, changes);
            }
        }
        (Some(Value::Array(before)), Value::Array(after))
            if before.iter().chain(after).all(Value::is_object) =>
        {
            for (place, value) in after.iter().enumerate() {
                compare(&below(path, &place.to_string()), before.get(place), value, changes);
            }
            for place in (after.len()..before.len()).rev() {
                changes.push(Change { key: below(path, &place.to_string()), value: None });
            }
        }
        (_, after) => {
            let value = toml::Value::try_from(after).map(|value| value.to_string()).ok();
            changes.push(Change { key: path.to_owned(), value });
        }
    }
}

/// The key or value at a line and column, both from 1: "cluster.workers.0.count".
pub(crate) fn key_at(text: &str, line: usize, column: usize) -> Option<String> {
    // The editor allows deeper nesting than the parser of scenarios.
    text::parse::<toml::Table>(text).ok()?;
    let document = toml_edit::Document::parse(text).ok()?;
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let before = text.get(start..)?.chars().take(column.checked_sub(1)?).map(char::len_utf8);
    find(document.as_table(), start + before.sum::<usize>())
}

fn find(table: &dyn TableLike, offset: usize) -> Option<String> {
    table.iter().find_map(|(name, item)| {
        let nested =
            |(place, table): (usize, &dyn TableLike)| find(table, offset).map(|key| format!("{place}.{key}"));
        let inner = match item {
            Item::ArrayOfTables(tables) => {
                tables.iter().map(|table| table as &dyn TableLike).enumerate().find_map(nested)
            }
            Item::Value(toml_edit::Value::Array(items)) => {
                let tables = items.iter().enumerate().filter_map(|(place, item)| {
                    item.as_inline_table().map(|table| (place, table as &dyn TableLike))
                });
                tables.into_iter().find_map(nested)
            }
            item => item.as_table_like().and_then(|table| find(table, offset)),
        };
        if let Some(inner) = inner {
            return Some(format!("{name}.{inner}"));
        }
        let key = table.get_key_value(name).and_then(|(key, _)| key.span());
        let value = item.as_value().and_then(toml_edit::Value::span);
        let here = [key, value].into_iter().flatten().any(|span| (span.start..=span.end).contains(&offset));
        here.then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, assemble};
    use stepcast_study::predict::changes;
    use tokio_util::sync::CancellationToken;

    #[test]
    fn places_have_keys() {
        let text = "# é\n[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 2\n[[cluster.workers]]\n\
                    device = { base = \"é\", efficiency = 2 }\n[cluster]\nnetwork = { bandwidth = \"fast\" }\n";
        let at = |line, column| key_at(text, line, column).unwrap_or_default();
        assert_eq!(at(3, 7), "model.zoo");
        assert_eq!(at(5, 1), "cluster.workers.0.count");
        assert_eq!(at(7, 37), "cluster.workers.1.device.efficiency");
        assert_eq!(at(9, 25), "cluster.network.bandwidth");
        assert_eq!(key_at(text, 1, 1), None);
        assert_eq!(key_at(text, 100, 100), None);
        assert_eq!(key_at("[", 1, 1), None);
    }

    /// Every change that is offered can be made to the texts of the examples.
    #[test]
    fn what_would_help_can_be_applied() {
        let (_, shared) = assemble(Access::Loopback, None, CancellationToken::new()).unwrap();
        for text in [
            include_str!("../../../examples/quickstart.toml"),
            include_str!("../../../examples/async.toml"),
            include_str!("../../../examples/all-reduce.toml"),
            "[model]\nzoo = \"resnet50\"\n\n[[cluster.workers]]\ncount = 4\n\n[strategy]\nbatch = 32\n",
        ] {
            let body = ScenarioBody { scenario: text.to_owned(), set: Vec::new() };
            let scenario = body.request(&shared).unwrap().scenario().unwrap();
            let (from, resized) = (scenario.to_file(), scenario.on(scenario.cluster.resized(8)).to_file());
            assert!(!edits(&shared, &body, &from, &resized).is_empty(), "{text}");
            let all = changes(&scenario);
            let cannot: Vec<_> = all
                .iter()
                .filter(|change| edits(&shared, &body, &from, &change.scenario.to_file()).is_empty())
                .map(|change| change.name.as_str())
                .collect();
            assert_eq!(cannot, [""; 0], "{text}");
        }
    }
}
