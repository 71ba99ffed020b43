//! Declarations of the keys of a scenario file.
//!
//! `keys!` declares a struct of resolved values together with the section of a file that defines them. Each line
//! declares the name of a key, its type in the file and in the struct, its default, its valid values, and the effect
//! of larger values on a step. Everything else is derived: parsing and `--set` (serde), the JSON schema, defaults and
//! checks (`fill`), the conversion back to a file (`section`), ranges, axes of sweeps and bounds of searches ([`Key`]), and the
//! tables of docs/scenario.md ([`KeyDoc`]).

mod aliases;
mod check;
mod declare;
mod given;
mod value;

pub(crate) use aliases::with_aliases;
pub(crate) use check::{Check, not_negative, positive};
pub(crate) use declare::{
    Entries, default_text, document_keys, filled, keys, plain, section_of, used_as, write_entries, written,
};
pub use given::{Given, NameOr};
pub(crate) use value::unordered;
pub use value::{Figure, Value};

use schemars::JsonSchema;
use serde::Serialize;

/// Effect of larger values of a key on a step, used to derive bounds in searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// More work: more samples, and a step that never becomes shorter.
    Load,
    /// Faster computing.
    Computing,
    /// Faster transfers; computing is unaffected.
    Transfer,
    /// Slower transfers; computing is unaffected.
    Delay,
    /// More servers.
    Servers,
    /// Unordered values that may change computing or its price.
    Choice,
    /// Unordered values that change only the exchange of gradients.
    Exchange,
    /// Unknown: a scenario with another value is resolved from its document.
    Resolved,
}

/// A key of the section `S`, and the field of the struct `T` that it sets.
pub struct Key<T: 'static, S: 'static> {
    pub(crate) field: &'static str,
    pub effect: Effect,
    pub(crate) check: Check,
    pub get: fn(&T) -> Value,
    /// Sets the value in a struct; a value of another type is ignored.
    pub set: fn(&mut T, &Value),
    /// The ends of the range in a section, in base units.
    pub(crate) range: fn(&S) -> Option<[f64; 2]>,
    pub(crate) set_range: fn(&mut S, [f64; 2]),
}

impl<T, S> Key<T, S> {
    /// The name in files, such as "host-rate".
    pub fn name(&self) -> String {
        kebab(self.field)
    }

    pub fn is(&self, name: &str) -> bool {
        is_name(self.field, name)
    }
}

pub(crate) fn is_name(field: &str, name: &str) -> bool {
    let letters = field.bytes().zip(name.bytes());
    field.len() == name.len() && letters.into_iter().all(|(a, b)| a == b || (a == b'_' && b == b'-'))
}

/// Keys are equal if they have the same name.
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

/// Documentation of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeyDoc {
    /// Name, such as "host-rate".
    pub name: String,
    /// Permitted values, such as "memory rate or range".
    pub written: String,
    /// Value that applies if the key is omitted.
    pub default: String,
    /// Meaning of the key.
    pub meaning: String,
    /// All permitted values, if they are a few names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub choices: Vec<String>,
}

impl KeyDoc {
    /// Documentation from one line of a declaration.
    pub(crate) fn new(field: &str, written: String, default: impl Into<String>, doc: &str) -> Self {
        let meaning = doc.trim().trim_end_matches('.');
        let mut letters = meaning.chars();
        let first = letters.next().map(|first| match letters.clone().next() {
            // Acronyms such as CPU or TF32 keep their capitals.
            Some(second) if second.is_uppercase() || second.is_ascii_digit() => first.to_string(),
            _ => first.to_lowercase().to_string(),
        });
        let meaning = first.unwrap_or_default() + letters.as_str();
        Self { name: kebab(field), written, default: default.into(), meaning, choices: Vec::new() }
    }

    /// Adds the permitted names of a type.
    pub(crate) fn chosen_from<T: JsonSchema>(mut self) -> Self {
        self.choices = names_of(schemars::schema_for!(T).as_value());
        self
    }

    pub(crate) fn bounded(mut self, check: Check) -> Self {
        self.meaning.push_str(&check.bounds());
        self
    }
}

/// The names in a schema that permits only names, without other names of the same.
fn names_of(schema: &serde_json::Value) -> Vec<String> {
    let list = |key: &str| schema.get(key).and_then(|list| list.as_array()).into_iter().flatten();
    let written = list("oneOf").filter(|one| one.get(aliases::ALIAS_OF).is_none());
    let named = list("enum").chain(written.filter_map(|one| one.get("const")));
    let nested = list("oneOf").filter_map(|one| one.get("enum")?.as_array()).flatten();
    named.chain(nested).filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The name of a field in files.
pub(crate) fn kebab(field: &str) -> String {
    field.replace('_', "-")
}

pub(crate) fn shown(default: &impl serde::Serialize) -> String {
    toml::Value::try_from(default).map_or_else(|_| String::new(), |value| format!("`{value}`"))
}
