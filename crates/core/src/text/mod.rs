//! TOML from outside, with bounded nesting.
//!
//! The parser bounds the parts of one key and the brackets around a value, but not their product: 80 inline tables, each
//! below a key of 80 parts, are 6,400 levels, and everything that walks such a tree recurses as often. Documents are
//! therefore measured, and taken apart without recursion, before anything else sees them.

mod read;

pub use read::TextError;

use crate::fault::{Fault, shown};
use serde::de::{DeserializeOwned, Error as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most levels of a document, and most parts of a key. A scenario has eight.
pub const MAX_DEPTH: usize = 32;

/// Parses a document of at most [`MAX_DEPTH`] levels.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TextError> {
    read(document(text)?)
}

pub(crate) fn read<T: DeserializeOwned>(document: Spanned<DeTable<'_>>) -> Result<T, TextError> {
    read::table(document)
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
