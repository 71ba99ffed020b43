//! Sections as files and answers write them.
//!
//! A section becomes a tree of values here, in one place, and every format writes that tree: none of them needs code of its own
//! for each section.

use super::kebab;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Error, Map, Value};

/// The keys of a section that are given, in the order of their declaration.
#[derive(Default)]
pub(crate) struct Entries {
    written: Map<String, Value>,
    fault: Option<Error>,
}

impl Entries {
    /// Adds the value of a field, if it is given.
    pub(crate) fn add<T: Serialize>(&mut self, field: &str, value: Option<&T>) {
        match value.map(serde_json::to_value) {
            None => {}
            Some(Ok(value)) => {
                self.written.insert(kebab(field), value);
            }
            Some(Err(error)) => self.fault = Some(error),
        }
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.fault {
            None => self.written.serialize(serializer),
            Some(error) => Err(S::Error::custom(error)),
        }
    }
}

/// Writes a section by its `entries`.
macro_rules! write_entries {
    ($section:ident { $($field:ident)* }) => {
        impl $section {
            fn entries(&self) -> $crate::keys::Entries {
                let mut entries = $crate::keys::Entries::default();
                $(entries.add(stringify!($field), self.$field.as_ref());)*
                entries
            }
        }

        impl serde::Serialize for $section {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.entries(), serializer)
            }
        }
    };
}

pub(crate) use write_entries;
