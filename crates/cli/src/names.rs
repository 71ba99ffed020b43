//! Names of the catalog as values of flags: any text is accepted, and shells complete the names.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use std::ffi::OsStr;
use stepcast_core::machine::catalog::{self, Entries};
use stepcast_core::model::zoo;

/// A list of names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    Models,
    Devices,
    Machines,
    Networks,
}

impl Names {
    fn all(self) -> Vec<&'static str> {
        match self {
            Self::Models => zoo::names().collect(),
            Self::Devices => catalog::devices().map_or_else(|_| Vec::new(), ids),
            Self::Machines => catalog::machines().map_or_else(|_| Vec::new(), ids),
            Self::Networks => catalog::networks().map_or_else(|_| Vec::new(), ids),
        }
    }
}

fn ids<T>(entries: &'static Entries<T>) -> Vec<&'static str> {
    entries.keys().map(String::as_str).collect()
}

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        value.to_str().map(str::to_owned).ok_or_else(|| Error::new(ErrorKind::InvalidUtf8).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.all().into_iter().map(PossibleValue::new)))
    }
}
