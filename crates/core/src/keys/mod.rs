//! Keys of a scenario file, each declared once.
//!
//! `keys!` declares a struct of resolved values together with the section of a file that gives them. A line of it says
//! what a key is called, what a file may write, what that becomes, what holds where the key is left out, which values
//! are sound and what larger values do to a step. All else follows: parsing and `--set` (serde), the JSON schema, defaults
//! and checks ([`fill`](crate::machine::NetworkSection::fill)), the scenario written back
//! ([`section`](crate::machine::Network::section)), ranges, axes of sweeps and bounds of searches ([`Key`]), and the
//! tables of docs/scenario.md ([`KeyDoc`]).

mod check;
mod declare;
mod given;
mod value;

pub(crate) use check::{Check, not_negative, positive};
pub(crate) use declare::{default_text, document_keys, filled, keys, plain, section_of, used_as, written};
pub use given::{Given, NameOr};
pub(crate) use value::unordered;
pub use value::{Figure, Value};

use schemars::JsonSchema;
use serde::Serialize;

/// What larger values of a key do to a step. Bounds of searches rest on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// More work: more samples, and a step that never gets shorter.
    Load,
    /// Faster computing.
    Computing,
    /// Faster transfers; computing is not touched.
    Transfer,
    /// Slower transfers; computing is not touched.
    Delay,
    /// More servers.
    Servers,
    /// Values without order that may change computing or its price.
    Choice,
    /// Values without order that change the exchange of gradients only.
    Exchange,
    /// Not known: a scenario with another value is resolved from its document.
    Resolved,
}

/// A key of the section `S`, and what it sets in the struct `T`.
pub struct Key<T: 'static, S: 'static> {
    /// The name of the field.
    pub(crate) field: &'static str,
    /// What larger values do.
    pub effect: Effect,
    /// Which values are sound.
    pub(crate) check: Check,
    /// The value in a struct.
    pub get: fn(&T) -> Value,
    /// Sets the value in a struct; a value of another type is left alone.
    pub set: fn(&mut T, &Value),
    /// The ends of the range that a section gives, in base units.
    pub(crate) range: fn(&S) -> Option<[f64; 2]>,
    /// Gives the section a range.
    pub(crate) set_range: fn(&mut S, [f64; 2]),
}

impl<T, S> Key<T, S> {
    /// As it is written in a file: "host-rate".
    pub fn name(&self) -> String {
        kebab(self.field)
    }

    /// Whether it is written so.
    pub fn is(&self, name: &str) -> bool {
        self.field.len() == name.len()
            && self.field.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a == b'_' && b == b'-'))
    }
}

/// A key is what its section calls it.
impl<T, S> PartialEq for Key<T, S> {
    fn eq(&self, other: &Self) -> bool {
        self.field == other.field
    }
}

impl<T, S> std::fmt::Debug for Key<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.field)
    }
}

/// A key as people read about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeyDoc {
    /// "host-rate".
    pub name: String,
    /// What may be written: "memory rate or range".
    pub written: String,
    /// What holds where it is left out.
    pub default: String,
    /// What it means.
    pub meaning: String,
    /// All values, where they are a few names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub choices: Vec<String>,
}

impl KeyDoc {
    /// A line of a declaration.
    pub(crate) fn new(field: &str, written: String, default: impl Into<String>, doc: &str) -> Self {
        let meaning = doc.trim().trim_end_matches('.');
        let mut letters = meaning.chars();
        let first = letters.next().map(|first| match letters.clone().next() {
            // Names such as CPU or TF32 keep their capitals.
            Some(second) if second.is_uppercase() || second.is_ascii_digit() => first.to_string(),
            _ => first.to_lowercase().to_string(),
        });
        let meaning = first.unwrap_or_default() + letters.as_str();
        Self { name: kebab(field), written, default: default.into(), meaning, choices: Vec::new() }
    }

    /// The same with the names that a type has for its values.
    pub(crate) fn chosen_from<T: JsonSchema>(mut self) -> Self {
        self.choices = names_of(schemars::schema_for!(T).as_value());
        self
    }

    /// The same with the bounds that a check sets.
    pub(crate) fn bounded(mut self, check: Check) -> Self {
        self.meaning.push_str(&check.bounds());
        self
    }
}

/// The names in a schema that allows nothing else.
fn names_of(schema: &serde_json::Value) -> Vec<String> {
    let list = |key: &str| schema.get(key).and_then(|list| list.as_array()).into_iter().flatten();
    let named = list("enum").chain(list("oneOf").filter_map(|one| one.get("const")));
    let nested = list("oneOf").filter_map(|one| one.get("enum")?.as_array()).flatten();
    named.chain(nested).filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A field's name as files write it.
pub(crate) fn kebab(field: &str) -> String {
    field.replace('_', "-")
}

/// A default as files write it.
pub(crate) fn shown(default: &impl serde::Serialize) -> String {
    toml::Value::try_from(default).map_or_else(|_| String::new(), |value| format!("`{value}`"))
}

#[cfg(test)]
mod tests {
    use crate::scenario::documentation;

    #[test]
    fn keys_of_a_few_names_offer_them() {
        let choices = |path: &str, name: &str| {
            let sections = documentation();
            let section = sections.iter().find(|section| section.path == path).unwrap();
            section.keys.iter().find(|key| key.name == name).unwrap().choices.clone()
        };
        assert_eq!(choices("strategy", "precision"), ["fp32", "tf32", "fp16", "bf16"]);
        assert_eq!(choices("strategy", "architecture"), ["parameter-server", "all-reduce", "stand-alone"]);
        assert_eq!(choices("cluster.servers", "placement"), ["greedy", "even"]);
        assert!(choices("strategy", "batch").is_empty());
    }
}
