//! Values of flags: numbers, ranges, percentages and names.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use std::ffi::OsStr;
use std::str::FromStr;
use stepcast_core::fault::{Fault, Remedies};
use stepcast_core::machine::catalog::{self, Entries};
use stepcast_core::model::zoo;
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::MAX_WORKERS;
use stepcast_study::explore::numbers;

/// Numbers of workers, or this many machines with this many workers each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workers {
    /// Numbers of workers, ascending and without repetition.
    pub(crate) numbers: Vec<u32>,
    pub(crate) per_machine: Option<u32>,
}

impl Workers {
    pub(crate) fn single(&self) -> Option<u32> {
        match self.numbers[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl FromStr for Workers {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let Some((machines, each)) = text.split_once(['x', '×']) else {
            return Ok(Self { numbers: numbers(text, " of workers")?, per_machine: None });
        };
        let one = |text: &str, of: &str| match numbers(text, of)?[..] {
            [number] => Ok(number),
            _ => {
                let reason = format!("\"{text}\" is not one number{of}");
                Err(Fault::new(reason, "write 4x8 for four machines of eight"))
            }
        };
        let (machines, each) = (one(machines, " of machines")?, one(each, " of workers")?);
        let total = machines.checked_mul(each).filter(|total| u64::from(*total) <= MAX_WORKERS);
        let wrong = || Fault::new(format!("{text} are more than {MAX_WORKERS} workers"), Remedies::default());
        let total = total.ok_or_else(wrong)?;
        Ok(Self { numbers: vec![total], per_machine: Some(each) })
    }
}

/// Numbers of nodes or samples, ascending and without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u32>);

impl FromStr for Numbers {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        numbers(text, "").map(Self)
    }
}

/// The name and the size of a dimension: "sequence=128".
pub(crate) fn size(text: &str) -> Result<(String, u64), String> {
    let wrong = || format!("\"{text}\" is no size; write sequence=128");
    let (name, length) = text.split_once('=').ok_or_else(wrong)?;
    let length = length.trim().parse().ok().filter(|length| *length > 0).ok_or_else(wrong)?;
    if name.trim().is_empty() { Err(wrong()) } else { Ok((name.trim().to_owned(), length)) }
}

/// An amount of memory in bytes.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let bytes: Bytes = text.parse().map_err(|_| format!("\"{text}\" is no size; write \"2 GiB\""))?;
    match (1e6..1e15).contains(&bytes.get()) {
        true => Ok(bytes.get() as u64),
        false => Err("memory lies between 1 MB and 1000 TB".to_owned()),
    }
}

/// A share written in percent: "5" or "5 %" is 0.05.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end();
    let percent: f64 = number.parse().map_err(|_| format!("\"{text}\" is no percentage such as 5"))?;
    match (0.0..=1000.0).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err("a percentage lies between 0 and 1000".to_owned()),
    }
}

/// Names of the catalog as values of flags: any text is accepted, and shells complete the names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_numbers_ranges_and_lists() {
        let read = |text: &str| text.parse::<Workers>().map(|workers| workers.numbers);
        assert_eq!(read("8"), Ok(vec![8]));
        assert_eq!(read("1..4"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(read("4, 1..2,2"), Ok(vec![1, 2, 4]));
        assert_eq!(read("1..4096").map(|workers| workers.len()), Ok(4096));
        assert_eq!("4x8".parse(), Ok(Workers { numbers: vec![32], per_machine: Some(8) }));
        let wrong = ["", "0", "0..4", "4..1", "1..", "..4", "1..4097", "1000001", "-1", "1.5", "x", "1,,2"];
        for text in wrong.iter().chain(&["4x", "x8", "0x8", "1..2x8", "4x1000000"]) {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_a_name_and_a_length() {
        assert_eq!(size("sequence=128"), Ok(("sequence".to_owned(), 128)));
        for text in ["", "128", "=128", "sequence", "sequence=", "sequence=0", "sequence=-1", "sequence=x"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_may_have_their_sign() {
        assert_eq!([percent("5"), percent("12.5 %")], [Ok(0.05), Ok(0.125)]);
        for wrong in ["", "x", "-1", "NaN", "1e9"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
