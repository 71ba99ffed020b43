//! TOML from outside, with bounded nesting.
//!
//! The parser bounds the parts of one key and the brackets around a value, but not their product: 80 inline tables, each
//! below a key of 80 parts, are 6,400 levels, and everything that walks such a tree recurses as often. Documents are
//! therefore measured, and taken apart without recursion, before anything else sees them.
//!
//! The parser also has deserialisers, but they compile each type of a scenario three times, for dates and positions that no
//! scenario has: a third of this crate's code.

use crate::fault::{Fault, shown};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt::{self, Display};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeString, DeTable, DeValue};
use toml::map::Iter;

/// Most levels of a document, and most parts of a key. A scenario has eight.
pub const MAX_DEPTH: usize = 32;

/// Parses a document of at most [`MAX_DEPTH`] levels.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TextError> {
    read(document(text)?)
}

pub(crate) fn read<T: DeserializeOwned>(document: Spanned<DeTable<'_>>) -> Result<T, TextError> {
    table(document)
}

/// The document with the places of its values, at most [`MAX_DEPTH`] levels.
pub(crate) fn document(text: &str) -> Result<Spanned<DeTable<'_>>, TextError> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let error = match errors.into_iter().next() {
        Some(error) => error.into(),
        None if is_shallow(root.get_ref()) => return Ok(root),
        None => TextError::custom("it is nested too deeply; a scenario has only a few levels"),
    };
    dismantle(root.into_inner());
    Err(error)
}

fn is_shallow(root: &DeTable<'_>) -> bool {
    let mut left: Vec<(&DeValue<'_>, usize)> = root.values().map(|value| (value.get_ref(), 1)).collect();
    while let Some((value, depth)) = left.pop() {
        if depth > MAX_DEPTH {
            return false;
        }
        match value {
            DeValue::Table(inner) => left.extend(inner.values().map(|value| (value.get_ref(), depth + 1))),
            DeValue::Array(inner) => left.extend(inner.iter().map(|value| (value.get_ref(), depth + 1))),
            _ => {}
        }
    }
    true
}

/// Drops a tree level by level: dropping its root would recurse.
fn dismantle(root: DeTable<'_>) {
    let mut left: Vec<DeValue<'_>> = vec![DeValue::Table(root)];
    while let Some(value) = left.pop() {
        match value {
            DeValue::Table(inner) => left.extend(inner.into_iter().map(|(_, value)| value.into_inner())),
            DeValue::Array(inner) => left.extend(inner.into_iter().map(Spanned::into_inner)),
            _ => {}
        }
    }
}

/// The parts of a key such as `cluster.workers.0.count`: at least one, none empty, at most [`MAX_DEPTH`].
pub fn key_parts(key: &str) -> Result<Vec<&str>, Fault> {
    let wrong = |reason: String, remedy: &str| Fault::in_file(shown(key), reason, remedy);
    let parts: Vec<&str> = key.split('.').take(MAX_DEPTH + 1).map(str::trim).collect();
    if parts.len() > MAX_DEPTH {
        let reason = format!("the key has more than {MAX_DEPTH} parts");
        return Err(wrong(reason, "a scenario has only a few levels"));
    }
    if parts.iter().any(|part| part.is_empty()) {
        let reason = "the key is empty or has an empty part".to_owned();
        return Err(wrong(reason, "write a key such as strategy.batch"));
    }
    Ok(parts)
}

/// Error in a document, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    message: String,
    span: Option<Range<usize>>,
}

impl TextError {
    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The bytes of the document that it is about.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// Keeps the innermost place.
    fn within(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TextError {}

impl serde::de::Error for TextError {
    fn custom<T: Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None }
    }
}

impl From<toml::de::Error> for TextError {
    fn from(error: toml::de::Error) -> Self {
        Self { message: error.message().to_owned(), span: error.span() }
    }
}

/// Reads a whole document.
pub(super) fn table<T: DeserializeOwned>(document: Spanned<DeTable<'_>>) -> Result<T, TextError> {
    let span = document.span();
    T::deserialize(Reader { value: &DeValue::Table(document.into_inner()), span })
}

#[derive(Clone)]
struct Reader<'a> {
    value: &'a DeValue<'a>,
    span: Range<usize>,
}

impl<'a> Reader<'a> {
    fn new(value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { value: value.get_ref(), span: value.span() }
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = TextError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        let read = match self.value {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(number) => match signed(number) {
                Some(signed) => visitor.visit_i64(signed),
                None => visitor.visit_u64(unsigned(number).map_err(|error| error.within(&self.span))?),
            },
            DeValue::Float(number) => {
                visitor.visit_f64(float(number).map_err(|error| error.within(&self.span))?)
            }
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Datetime(date) => visitor.visit_str(&date.to_string()),
            DeValue::Array(values) => visitor.visit_seq(Elements(values.iter())),
            DeValue::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
        };
        read.map_err(|error| error.within(&self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        let span = self.span.clone();
        let (name, content) = match self.value {
            DeValue::String(text) => (text, None),
            DeValue::Table(table) => match table.iter().next() {
                Some((name, value)) if table.len() == 1 => (name.get_ref(), Some(Reader::new(value))),
                _ => return Err(TextError::custom("wanted exactly 1 element").within(&span)),
            },
            _ => return Err(TextError::custom("wanted string or table").within(&span)),
        };
        visitor.visit_enum(Variant { name, content }).map_err(|error| error.within(&span))
    }

    /// Only tables become structs, so the code for other values is not compiled.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        let read = match self.value {
            DeValue::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
            other => Err(TextError::invalid_type(kind_of(other), &visitor)),
        };
        read.map_err(|error| error.within(&self.span))
    }

    forward_to_deserialize_any! {
        bool u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 char str string seq bytes byte_buf map unit ignored_any
        unit_struct tuple_struct tuple identifier
    }
}

fn kind_of<'a>(value: &'a DeValue<'_>) -> Unexpected<'a> {
    match value {
        DeValue::String(text) => Unexpected::Str(text),
        DeValue::Integer(number) => match signed(number) {
            Some(signed) => Unexpected::Signed(signed),
            None => Unexpected::Other("an integer"),
        },
        DeValue::Float(number) => float(number).map_or(Unexpected::Other("a number"), Unexpected::Float),
        DeValue::Boolean(value) => Unexpected::Bool(*value),
        DeValue::Datetime(_) => Unexpected::Other("a date"),
        DeValue::Array(_) => Unexpected::Seq,
        DeValue::Table(_) => Unexpected::Map,
    }
}

fn signed(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn unsigned(number: &DeInteger<'_>) -> Result<u64, TextError> {
    u64::from_str_radix(number.as_str(), number.radix())
        .map_err(|_| TextError::custom("integer number overflowed"))
}

fn float(number: &DeFloat<'_>) -> Result<f64, TextError> {
    let value = number.as_str().parse().ok();
    value
        .filter(|value: &f64| value.is_finite() || number.as_str().contains(['i', 'n']))
        .ok_or_else(|| TextError::custom("floating-point number overflowed"))
}

struct Elements<'a>(std::slice::Iter<'a, Spanned<DeValue<'a>>>);

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = TextError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, TextError> {
        self.0.next().map(|value| seed.deserialize(Reader::new(value))).transpose()
    }
}

struct Entries<'a> {
    rest: Iter<'a, Spanned<DeString<'a>>, Spanned<DeValue<'a>>>,
    value: Option<Reader<'a>>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = TextError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TextError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(Reader::new(value));
        let read = seed.deserialize(StrDeserializer::new(key.get_ref()));
        read.map(Some).map_err(|error: TextError| error.within(&key.span()))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TextError> {
        let value = self.value.take().ok_or_else(|| TextError::custom("a value without a key"))?;
        let span = value.span.clone();
        seed.deserialize(value).map_err(|error| error.within(&span))
    }
}

struct Variant<'a> {
    name: &'a str,
    content: Option<Reader<'a>>,
}

impl<'a, 'de> EnumAccess<'de> for Variant<'a> {
    type Error = TextError;
    type Variant = Content<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'a>), TextError> {
        let name = StrDeserializer::<TextError>::new(self.name);
        Ok((seed.deserialize(name)?, Content(self.content)))
    }
}

/// Content of a variant, next to its name.
struct Content<'a>(Option<Reader<'a>>);

impl<'a> Content<'a> {
    fn given(self) -> Result<Reader<'a>, TextError> {
        self.0.ok_or_else(|| TextError::custom("a name alone does not say enough"))
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = TextError;

    fn unit_variant(self) -> Result<(), TextError> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(TextError::custom("the name alone is expected")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, TextError> {
        seed.deserialize(self.given()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, TextError> {
        self.given()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        self.given()?.deserialize_any(visitor)
    }
}
