//! The axes of a sweep: keys with their values, and the Cartesian product of all of them, which is never materialised.

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
    pub(super) fn hides(&self, other: &Self) -> bool {
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
    pub(super) fn is_below(&self, other: &Self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let axis = Axis::parse(text).unwrap();
        (0..axis.values.len()).map(|place| axis.value(place)).collect()
    }

    fn reason(text: &str) -> String {
        Axis::parse(text).unwrap_err().reason
    }

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(values("strategy.batch=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("strategy.batch=1..=10:4"), ["1", "5", "9"]);
        assert_eq!(values("strategy.batch=3..50:x2"), ["3", "6", "12", "24", "48"]);
        assert_eq!(values("network.bandwidth=1Gbit/s, 10 Gbit/s"), ["1Gbit/s", "10 Gbit/s"]);
        let tables = "strategy.fusion={rule=\"none\"},{rule=\"horovod\", size=\"64 MB\"}";
        assert_eq!(values(tables).len(), 2);
        assert_eq!(values("synchronisation=bsp,ssp(3)"), ["bsp", "ssp(3)"]);
    }

    #[test]
    fn what_is_no_axis_says_why() {
        assert!(reason("strategy.batch=1..").contains("has no end"));
        assert!(reason("strategy.batch=..4").contains("has no beginning"));
        assert!(reason("strategy.batch=4..1").contains("is empty"));
        assert!(reason("strategy.batch=1..4:0").contains("no step"));
        assert!(reason("strategy.batch=1..4:x1").contains("does not grow"));
        assert!(reason("strategy.batch=").contains("no values"));
        assert!(reason("strategy.batch=1,,2").contains("a value is empty"));
        assert!(reason("strategy.batch=1,2,1").contains("twice"));
        assert!(reason("strategy.batch=1,4..8").contains("range within a list"));
        assert!(reason("network.bandwidth=1..10Gbit/s").contains("whole numbers"));
        assert!(reason("strategy.batch").contains("no \"=\""));
        assert!(reason("bandwith=1").contains("no scenario has a key"));
    }

    #[test]
    fn sections_may_be_left_out_where_that_is_clear() {
        let key = |text: &str| Axis::parse(text).unwrap().key;
        assert_eq!(key("network.bandwidth=1Gbit/s"), "cluster.network.bandwidth");
        assert_eq!(key("workers.0.count=1"), "cluster.workers.0.count");
        assert_eq!(key("batch=1"), "strategy.batch");
        assert_eq!(key("cluster.nodes.workers=1"), "cluster.nodes.workers");
        assert_eq!(key("simulate.seed=1"), "methods.simulate.seed");
    }

    #[test]
    fn keys_hide_what_they_replace() {
        let axis = |key: &str| Axis::parse(&format!("{key}=1")).unwrap();
        let hides = |a: &str, b: &str| axis(a).hides(&axis(b));
        assert!(hides("cluster.workers", "cluster.workers.0.count"));
        assert!(hides("cluster.workers.count", "cluster.workers.1.count"));
        assert!(hides("cluster.workers.count", "cluster.workers.count"));
        assert!(!hides("cluster.workers.1.count", "cluster.workers.count"));
        assert!(hides("cluster.network", "cluster.network.bandwidth"));
        assert!(!hides("cluster.network.bandwidth", "cluster.network"));
        assert!(!hides("cluster.workers.0.count", "cluster.workers.1.count"));
        assert!(!hides("cluster.workers.0.count", "cluster.workers.0.batch"));
        assert!(axis("cluster.workers.1.count").is_below(&axis("cluster.workers.count")));
        assert!(!axis("cluster.workers.count").is_below(&axis("cluster.workers.batch")));
    }
}
#[cfg(test)]
mod grid_tests {
    use super::*;

    #[test]
    fn digits_and_index_are_inverse() {
        let grid = Grid::new(vec![3, 1, 4, 5]);
        assert_eq!(grid.points(), 60);
        let mut digits = Vec::new();
        let mut last = None;
        for index in 0..60 {
            grid.digits(index, &mut digits);
            assert_eq!(grid.index(&digits), index);
            assert!(last.as_ref() < Some(&digits), "{digits:?}");
            last = Some(digits.clone());
        }
        assert_eq!(Grid::new(vec![u64::MAX; 3]).points(), u128::MAX);
        assert_eq!(Grid::new(Vec::new()).points(), 1);
    }
}
