//! Numbers, ranges and percentages in flags.

use std::ops::RangeInclusive;
use std::str::FromStr;
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::MAX_WORKERS;

/// Most numbers of workers that one scaling table may have.
const MAX_POINTS: usize = 4096;

/// Numbers of workers, or so many machines with so many workers each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workers {
    /// Numbers of workers, ascending and without repetition.
    pub(crate) numbers: Vec<u32>,
    /// Workers of one machine.
    pub(crate) per_machine: Option<u32>,
}

impl Workers {
    /// The number, if there is one.
    pub(crate) fn single(&self) -> Option<u32> {
        match self.numbers[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((machines, each)) = text.split_once(['x', '×']) else {
            return Ok(Self { numbers: numbers(text, " of workers")?, per_machine: None });
        };
        let one = |text: &str, of: &str| match numbers(text, of)?[..] {
            [number] => Ok(number),
            _ => Err(format!("\"{text}\" is not one number{of}; write 4x8 for four machines of eight")),
        };
        let (machines, each) = (one(machines, " of machines")?, one(each, " of workers")?);
        let total = machines.checked_mul(each).filter(|total| u64::from(*total) <= MAX_WORKERS);
        let total = total.ok_or_else(|| format!("{text} are more than {MAX_WORKERS} workers"))?;
        Ok(Self { numbers: vec![total], per_machine: Some(each) })
    }
}

/// Numbers of nodes or samples, ascending and without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u32>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        numbers(text, "").map(Self)
    }
}

/// Minibatches from one size to another, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Minibatch(pub(crate) f64, pub(crate) f64);

impl FromStr for Minibatch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no range of minibatches; write 104..172");
        let (low, high) = text.split_once("..").ok_or_else(wrong)?;
        let number = |digits: &str| {
            let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
            if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(wrong()) }
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(format!("the range {text} is empty; write {high}..{low}"));
        }
        Ok(Self(low, high))
    }
}

/// The size of a named dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) String, pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no size; write sequence=128");
        let (name, length) = text.split_once('=').ok_or_else(wrong)?;
        let length = length.trim().parse().ok().filter(|length| *length > 0).ok_or_else(wrong)?;
        if name.trim().is_empty() { Err(wrong()) } else { Ok(Self(name.trim().to_owned(), length)) }
    }
}

/// An amount of memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory(pub(crate) u64);

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: Bytes = text.parse().map_err(|_| format!("\"{text}\" is no size; write \"2 GiB\""))?;
        match (1e6..1e15).contains(&bytes.get()) {
            true => Ok(Self(bytes.get() as u64)),
            false => Err("memory lies between 1 MB and 1000 TB".to_owned()),
        }
    }
}

/// A share written in percent: "5" or "5 %" is 0.05.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end();
    let percent: f64 = number.parse().map_err(|_| format!("\"{text}\" is no percentage such as 5"))?;
    match (0.0..=1000.0).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err("a percentage lies between 0 and 1000".to_owned()),
    }
}

/// Lists and ranges, as "1,2,4..8"; `of` names what is counted.
fn numbers(text: &str, of: &str) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let range = range(part.trim(), of)?;
        let points = (range.end() - range.start()) as usize + 1;
        if numbers.len() + points > MAX_POINTS {
            return Err(format!("more than {MAX_POINTS} numbers; give fewer, such as 1,2,4,8"));
        }
        numbers.extend(range);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// "8" or "1..16", both ends included.
fn range(text: &str, of: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |digits: &str| {
        let wrong = || format!("\"{digits}\" is no number{of}; write 8, 1..16 or 1,2,4");
        let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
        let fits = u32::try_from(number).ok().filter(|_| (1..=MAX_WORKERS).contains(&number));
        fits.ok_or_else(|| {
            format!("a number{of} is from 1 to {MAX_WORKERS}, not {number}; write 8, 1..16 or 1,2,4")
        })
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?),
        None => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(format!("the range {text} is empty; write {last}..{first}"));
    }
    Ok(first..=last)
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
        assert_eq!("sequence=128".parse(), Ok(Size("sequence".to_owned(), 128)));
        for text in ["", "128", "=128", "sequence", "sequence=", "sequence=0", "sequence=-1", "sequence=x"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_may_have_their_sign() {
        assert_eq!([percent("5"), percent("12.5 %")], [Ok(0.05), Ok(0.125)]);
        for wrong in ["", "x", "-1", "NaN", "1e9"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn minibatches_are_ranges() {
        assert_eq!("103.5..172.5".parse(), Ok(Minibatch(103.5, 172.5)));
        assert_eq!("64 .. 64".parse(), Ok(Minibatch(64.0, 64.0)));
        for text in ["", "64", "..", "1..", "2..1", "-1..5", "nan..1", "1..inf", "a..b"] {
            assert!(text.parse::<Minibatch>().is_err(), "{text}");
        }
    }
}
