//! Values for people: in a unit of the right size, with few digits.

use stepcast_core::quantity::{Bytes, SamplesPerSec, Seconds};

/// The unit of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Unit {
    /// Seconds.
    Time,
    /// Samples per second.
    Rate,
    /// Bytes.
    Bytes,
    /// Shares of one, read as percent.
    Share,
    /// Units of a currency.
    Money(String),
    /// No unit.
    Number,
}

/// A quantity that can be drawn along an axis.
pub trait Figure: Copy + Into<f64> {
    /// The unit of its values.
    const UNIT: Unit;
}

impl Figure for Seconds {
    const UNIT: Unit = Unit::Time;
}

impl Figure for SamplesPerSec {
    const UNIT: Unit = Unit::Rate;
}

impl Figure for Bytes {
    const UNIT: Unit = Unit::Bytes;
}

/// Units of time, from which value on they are used, and their size.
const TIMES: [(f64, f64, &str); 7] = [
    (172_800.0, 86_400.0, "d"),
    (7200.0, 3600.0, "h"),
    (120.0, 60.0, "min"),
    (1.0, 1.0, "s"),
    (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"),
    (0.0, 1e-9, "ns"),
];

/// Units of memory, from which value on they are used.
const SIZES: [(f64, &str); 5] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0.0, "B")];

impl Unit {
    /// Size and name of the unit for values up to `largest`.
    pub(crate) fn on(&self, largest: f64) -> (f64, &str) {
        match self {
            Self::Time => {
                let fits = |(from, _, _): &&(f64, f64, &str)| largest.abs() >= *from && largest.abs() > 0.0;
                TIMES.iter().find(fits).map_or((1.0, "s"), |&(_, size, name)| (size, name))
            }
            Self::Rate => (1.0, "samples/s"),
            Self::Bytes => {
                let fits = SIZES.iter().find(|(from, _)| largest.abs() >= *from);
                fits.map_or((1.0, "B"), |&(from, name)| (if from > 0.0 { from } else { 1.0 }, name))
            }
            Self::Share => (0.01, "%"),
            Self::Money(currency) => (1.0, currency),
            Self::Number => (1.0, ""),
        }
    }

    /// A value by itself: "3.3 s", "1,240 samples/s".
    pub(crate) fn write(&self, value: f64) -> String {
        let (size, name) = self.on(value);
        let number = significant(value / size, 3);
        if name.is_empty() { number } else { format!("{number} {name}") }
    }

    /// A value where there is little room: two digits or more, and rates without their unit.
    pub(crate) fn brief(&self, value: f64) -> String {
        let (size, name) = self.on(value);
        let number = significant(value / size, 2);
        match self {
            Self::Rate | Self::Number => number,
            _ => format!("{number} {name}"),
        }
    }
}

/// That many significant digits, all digits before the point, and no zeros at the end.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value.abs() <= 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..9).contains(&magnitude) {
        return format!("{value:.1e}");
    }
    trimmed(value, (digits - 1 - magnitude).clamp(0, 9) as usize)
}

/// Values at distances of `step`, with as many decimals as distinguish them.
pub(crate) fn stepped(value: f64, step: f64) -> String {
    if value.abs() >= 1e9 || (step < 1e-6 && value.abs() > 0.0) {
        return format!("{value:.1e}");
    }
    let decimals = if step > 0.0 { (-(step * 1.000_001).log10().floor()).clamp(0.0, 9.0) } else { 0.0 };
    trimmed(value, decimals as usize)
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        // Four digits stay together.
        if whole.len() > 4 && place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 && (grouped != "0" || !rest.is_empty()) { "−" } else { "" };
    if rest.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        let times = [0.0, 2.5e-7, 0.0213, 9.0, 85.3, 1600.0, 20_000.0, 200_000.0];
        let written = times.map(|value| Unit::Time.write(value));
        assert_eq!(written, ["0 s", "250 ns", "21.3 ms", "9 s", "85.3 s", "26.7 min", "5.56 h", "2.31 d"]);
        let brief = times.map(|value| Unit::Time.brief(value));
        assert_eq!(brief, ["0 s", "250 ns", "21 ms", "9 s", "85 s", "27 min", "5.6 h", "2.3 d"]);
        assert_eq!(Unit::Rate.write(12_345.6), "12,346 samples/s");
        assert_eq!(Unit::Rate.brief(0.1234), "0.12");
        assert_eq!([80e9, 0.0, 1234.0].map(|size| Unit::Bytes.write(size)), ["80 GB", "0 B", "1.23 kB"]);
        assert_eq!(Unit::Share.write(0.345), "34.5 %");
        assert_eq!(Unit::Money("EUR".to_owned()).write(1234.0), "1234 EUR");
        assert_eq!(Unit::Number.write(1e12), "1.0e12");
    }

    #[test]
    fn ticks_have_the_decimals_of_their_distance() {
        assert_eq!([0.0, 0.2, 0.4].map(|tick| stepped(tick, 0.2)), ["0", "0.2", "0.4"]);
        assert_eq!([0.0, 0.25, -0.5].map(|tick| stepped(tick, 0.05)), ["0", "0.25", "−0.5"]);
        assert_eq!([0.0, 20_000.0].map(|tick| stepped(tick, 1e4)), ["0", "20,000"]);
    }
}
