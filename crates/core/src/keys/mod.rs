//! Declarations of the keys of a scenario file.
//!
//! `keys!` declares a struct of resolved values together with the section of a file that defines them. Each line
//! declares the name of a key, its type in the file and in the struct, its default, its valid values, and the effect
//! of larger values on a step. Everything else is derived: parsing and `--set` (serde), the JSON schema, defaults and
//! checks (`fill`), the conversion back to a file (`section`), ranges, axes of sweeps and bounds of searches ([`Key`]), and the
//! tables of docs/scenario.md ([`KeyDoc`]). [`Check`] is the condition on a value.
//!
//! The JSON schema also lists aliases, which a parser accepts but no writer uses. A derived schema does not know them, so they
//! are taken from the parser ([`with_aliases`]).

mod declare;
mod value;

pub(crate) use declare::{
    Entries, default_text, document_keys, filled, keys, plain, section_of, used_as, write_entries, written,
};

pub(crate) use value::unordered;
pub use value::{Figure, Given, NameOr, Value};

use crate::fault::Fault;
use schemars::{JsonSchema, Schema};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::json;

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

/// The names in a schema that permits only names, without aliases.
fn names_of(schema: &serde_json::Value) -> Vec<String> {
    let list = |key: &str| schema.get(key).and_then(|list| list.as_array()).into_iter().flatten();
    let written = list("oneOf").filter(|one| one.get(ALIAS_OF).is_none());
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

/// Positive values outside this range, in base units, are taken for typing errors; within it, no product or quotient
/// of a method can overflow or underflow.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-15..=1e24;

/// Condition on a single value; each has an example of a valid one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check {
    Any,
    Positive(&'static str),
    NotNegative(&'static str),
    /// Above zero, and at most one.
    Share(&'static str),
    /// A whole number within bounds, both included.
    Between(u64, u64, &'static str),
}

impl Check {
    /// The bounds of an integer, in the form used by the documentation.
    pub(crate) fn bounds(self) -> String {
        match self {
            Self::Between(_, u64::MAX, _) => String::new(),
            Self::Between(least, most, _) => format!("; {least} to {most}"),
            _ => String::new(),
        }
    }

    /// Checks the value of `field`; an omitted value is always valid.
    pub(crate) fn apply(self, field: &str, value: &Value) -> Result<(), Fault> {
        let Some(number) = value.number() else { return Ok(()) };
        match self {
            Self::Any => Ok(()),
            Self::Positive(example) => positive(&kebab(field), number, example),
            Self::NotNegative(example) => not_negative(&kebab(field), number, example),
            Self::Share(example) => {
                positive(&kebab(field), number, example)?;
                let at_most_one = number <= 1.0;
                bounded(&kebab(field), number, example, at_most_one, "at most 1")
            }
            Self::Between(least, most, example) => {
                let within = (least as f64..=most as f64).contains(&number);
                let wanted = match most {
                    u64::MAX => format!("at least {least}"),
                    _ => format!("between {least} and {most}"),
                };
                bounded(&kebab(field), number, example, within, &wanted)
            }
        }
    }
}

pub(crate) fn positive(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    bounded(key, value, example, value > 0.0, "positive")?;
    plausible(key, value, example)
}

pub(crate) fn not_negative(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    bounded(key, value, example, value >= 0.0, "zero or more")?;
    if value > 0.0 { plausible(key, value, example) } else { Ok(()) }
}

fn plausible(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    if PLAUSIBLE.contains(&value) {
        return Ok(());
    }
    let size = if value > 1.0 { "large" } else { "small" };
    let reason = format!("{value:e} in base units is too {size} to be meant");
    Err(Fault::in_key(key, reason, format!("use {example}")))
}

fn bounded(key: &str, value: f64, example: &str, holds: bool, wanted: &str) -> Result<(), Fault> {
    if holds && value.is_finite() {
        return Ok(());
    }
    let reason = format!("must be {wanted}, but is {value}");
    Err(Fault::in_key(key, reason, format!("use {example}")))
}

/// Marks a key of a schema as an alias and names its target.
const ALIAS_OF: &str = "x-alias-of";

/// Adds the other names of `T` to its schema. For `#[schemars(transform = with_aliases::<T>)]`.
pub(crate) fn with_aliases<T: Serialize + DeserializeOwned>(schema: &mut Schema) {
    let aliases = accepted::<T>().into_iter().filter_map(|name| {
        let written = serde_json::to_value(parsed::<T>(name)?).ok()?;
        let written = written.as_str()?;
        let about = format!("Another name of `{written}`.");
        (written != name)
            .then(|| json!({ "type": "string", "const": name, "description": about, ALIAS_OF: written }))
    });
    if let Some(serde_json::Value::Array(names)) = schema.get_mut("oneOf") {
        names.extend(aliases);
    }
}

fn parsed<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(name)).ok()
}

fn accepted<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    // The parser announces the names before it finds that there is nothing to parse.
    let _ = <T as Deserialize<'_>>::deserialize(Names(&mut names));
    names
}

/// A deserialiser without a value that records the names that a parser would accept.
struct Names<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.extend_from_slice(variants);
        Err(Error::custom("there is no value"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
