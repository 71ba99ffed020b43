//! Edits of a scenario's text that turn it into another scenario: what "use this" does on the page.

use crate::Shared;
use crate::edit::{Change, edited};
use crate::request::ScenarioBody;
use serde_json::Value;
use std::sync::Arc;
use stepcast_core::scenario::ScenarioFile;

/// The edits that make `body`, which describes `from`, describe `to`; none if edits of its text cannot.
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

/// Adds what differs below `path`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, assemble};
    use stepcast_study::predict::changes;
    use tokio_util::sync::CancellationToken;

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
