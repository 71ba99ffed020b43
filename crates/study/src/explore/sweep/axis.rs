//! The axes of a sweep: keys with their values, and the Cartesian product of all of them, which is never materialised.

use super::VaryError;
use std::collections::HashSet;
use std::fmt;
use stepcast_core::fault::{Fault, shown};
use stepcast_core::scenario::{Edit, full_key};

/// Values in the order in which they are tried.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Listed values, each as it is written in the scenario.
    Listed(Vec<String>),
    /// Evenly spaced whole numbers.
    Range {
        /// The first value.
        first: u64,
        /// The difference between consecutive values.
        step: u64,
        /// The number of values.
        count: u64,
    },
}

/// A key that is varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The key in full: "cluster.network.bandwidth".
    pub key: String,
    /// Its values.
    pub values: Values,
    text: String,
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> u64 {
        match self {
            Self::Listed(values) => values.len() as u64,
            Self::Range { count, .. } => *count,
        }
    }

    /// Always false: an axis has at least one value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn number(&self, place: u64) -> Option<u64> {
        match self {
            Self::Listed(_) => None,
            Self::Range { first, step, .. } => Some(first + place * step),
        }
    }
}

impl Axis {
    /// Reads axes, or names the invalid one.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, VaryError> {
        let axis =
            |text: &String| Self::parse(text).map_err(|fault| VaryError::Axis { axis: text.clone(), fault });
        texts.iter().map(axis).collect()
    }

    /// Reads `KEY=VALUES`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = |reason: &str, remedy: &str| Fault::new(reason, remedy);
        let like = "write KEY=VALUES, such as strategy.batch=16,32,64 or cluster.workers.count=1..64";
        let (key, values) = text.split_once('=').ok_or_else(|| wrong("there is no \"=\"", like))?;
        let key = full_key(key.trim())?;
        let listed = split(values)?;
        let values = match &listed[..] {
            [only] if only.contains("..") => range(only)?,
            _ => Values::Listed(listed),
        };
        if let Values::Listed(list) = &values {
            let mut seen = HashSet::new();
            if let Some(repeated) = list.iter().find(|value| !seen.insert(value.as_str())) {
                let reason = format!("{} stands there twice", shown(repeated));
                return Err(wrong(&reason, "keep one of the two"));
            }
            if let Some(range) = list.iter().find(|value| value.contains("..") && range(value).is_ok()) {
                let reason = format!("{range} is a range within a list");
                return Err(wrong(&reason, "list the numbers, or give the range alone"));
            }
        }
        Ok(Self { key, values, text: text.to_owned() })
    }

    /// The original text of the axis.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value at position `place`, as it is written in a scenario file.
    pub fn value(&self, place: u64) -> String {
        match &self.values {
            Values::Listed(values) => values[place as usize].clone(),
            Values::Range { first, step, .. } => (first + place * step).to_string(),
        }
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.key.split('.')
    }

    /// Whether setting this key overwrites everything that `other` has set before.
    pub fn hides(&self, other: &Self) -> bool {
        let mut theirs = other.parts().peekable();
        for part in self.parts() {
            let index = theirs.next_if(|theirs| is_index(theirs) && !is_index(part));
            if index.is_some() && theirs.peek().is_none() {
                return false;
            }
            if theirs.next() != Some(part) {
                return false;
            }
        }
        true
    }

    /// Whether the key is the same as that of `other` or nested below it; all elements of an array count as equal.
    pub fn is_below(&self, other: &Self) -> bool {
        let names = |axis: &'_ Self| -> Vec<String> {
            axis.parts().filter(|part| !is_index(part)).map(str::to_owned).collect()
        };
        names(self).starts_with(&names(other))
    }

    /// The override that sets the key to `value`.
    pub(super) fn change_to(&self, value: &str) -> Result<Edit, Fault> {
        Edit::parse(&format!("{}={value}", self.key))
            .map_err(|error| Fault::in_key(error.key, error.reason, error.remedy))
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_index(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits at commas outside brackets and quotes.
fn split(text: &str) -> Result<Vec<String>, Fault> {
    let mut values = vec![String::new()];
    let (mut depth, mut quoted) = (0_i32, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' | '(' if !quoted => depth += 1,
            ']' | '}' | ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = values.last_mut() {
            last.push(c);
        }
    }
    let values: Vec<String> = values.iter().map(|value| value.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        let reason = if values.len() == 1 { "there are no values" } else { "a value is empty" };
        let remedy = "write values such as 16,32,64 or a range such as 1..64";
        return Err(Fault::new(reason, remedy));
    }
    Ok(values)
}

/// `1..64`, `1..64:4` (every fourth) or `1..64:x2` (doubling); both ends are included.
fn range(text: &str) -> Result<Values, Fault> {
    let fail = |reason: String, remedy: String| Err(Fault::new(reason, remedy));
    let (ends, step) = match text.split_once(':') {
        Some((ends, step)) => (ends, Some(step.trim())),
        None => (text, None),
    };
    let Some((first, last)) = ends.split_once("..") else {
        return fail(format!("\"{text}\" is no range"), "write 1..64".to_owned());
    };
    let last = last.strip_prefix('=').unwrap_or(last);
    if last.trim().is_empty() {
        return fail(format!("the range {text} has no end"), format!("write {}..64", first.trim()));
    }
    if first.trim().is_empty() {
        return fail(format!("the range {text} has no beginning"), format!("write 1..{}", last.trim()));
    }
    let (Ok(first), Ok(last)) = (first.trim().parse::<u64>(), last.trim().parse::<u64>()) else {
        let reason = format!("{text} is no range of whole numbers");
        return fail(reason, "write 1..64, or list the values: 1Gbit/s,10Gbit/s,25Gbit/s".to_owned());
    };
    if first > last {
        return fail(format!("the range {text} is empty"), format!("write {last}..{first}"));
    }
    let steps = "write 1..64:4 for every fourth, or 1..64:x2 to double".to_owned();
    match step {
        None => Ok(Values::Range { first, step: 1, count: (last - first).saturating_add(1) }),
        Some(step) => match (step.strip_prefix('x'), step.parse::<u64>()) {
            (Some(factor), _) => match factor.parse::<u64>() {
                Ok(factor) if factor > 1 && first > 0 => {
                    let next = |number: &u64| number.checked_mul(factor).filter(|next| *next <= last);
                    let numbers = std::iter::successors(Some(first), next);
                    Ok(Values::Listed(numbers.map(|number| number.to_string()).collect()))
                }
                _ => fail(format!("the range {text} does not grow"), steps),
            },
            (None, Ok(step)) if step > 0 => {
                Ok(Values::Range { first, step, count: (last - first) / step + 1 })
            }
            _ => fail(format!("\"{step}\" is no step of a range"), steps),
        },
    }
}

/// The lengths of the axes; the last axis changes fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    lengths: Vec<u64>,
}

impl Grid {
    /// A grid of axes with these lengths, none of them 0.
    pub fn new(lengths: Vec<u64>) -> Self {
        Self { lengths }
    }

    /// Number of points, saturating.
    pub fn points(&self) -> u128 {
        self.lengths.iter().fold(1, |points: u128, &length| points.saturating_mul(u128::from(length)))
    }

    /// Length of every axis.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Positions on the axes of the point `index`.
    pub fn digits(&self, mut index: u64, digits: &mut Vec<u64>) {
        digits.clear();
        digits.resize(self.lengths.len(), 0);
        for (digit, length) in digits.iter_mut().zip(&self.lengths).rev() {
            *digit = index % length;
            index /= length;
        }
    }

    /// The index of the point at these positions.
    pub fn index(&self, digits: &[u64]) -> u64 {
        digits.iter().zip(&self.lengths).fold(0, |index, (digit, length)| index * length + digit)
    }
}
