//! Configurations of torchtitan in Python: assignments to fields of a configuration, which nothing is executed for.

use super::keys::Keys;
use serde_json::{Value, json};

/// Whether a text is such a configuration.
pub(super) fn recognises(text: &str) -> bool {
    text.contains("torchtitan")
        && text.lines().any(|line| line.trim_start().starts_with("config.parallelism."))
}

/// The fields that are set, in the words of its TOML files.
pub(super) fn keys(text: &str) -> Keys {
    let mut keys = Keys::default();
    if let Some(family) = text.split("torchtitan.models.").skip(1).map(word).find(|word| *word != "common") {
        keys.set("model.name", family.into());
    }
    // Without a word about it, some operators are computed again.
    let mut policy = "SelectiveAC";
    for line in text.lines() {
        let assigned = line.trim_start().strip_prefix("config.").and_then(|line| line.split_once(" = "));
        let Some((key, value)) = assigned else { continue };
        match key {
            "model_spec" => {
                keys.set("model.flavor", value.split('"').nth(1).unwrap_or_default().into());
                if value.contains("Float8") {
                    keys.set("model.converters", json!(["float8"]));
                }
            }
            "activation_checkpoint" => policy = word(value),
            _ => keys.set(key, literal(value)),
        }
    }
    let mode = match policy {
        "None" => "none",
        "FullAC" => "full",
        "SelectiveAC" => "selective",
        other => other,
    };
    keys.set("activation_checkpoint.mode", mode.into());
    keys.set("activation_checkpoint.selective_ac_option", "op".into());
    if let Some(each) = text.split("--nproc-per-node ").nth(1).map(word) {
        keys.set("nproc", each.into());
    }
    keys
}

/// The letters, digits and underscores at the beginning of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// A literal of Python; anything else as its text.
fn literal(text: &str) -> Value {
    match text.trim() {
        "True" => true.into(),
        "False" => false.into(),
        "None" => Value::Null,
        text => serde_json::from_str(&text.replace('\'', "\"")).unwrap_or_else(|_| text.into()),
    }
}
