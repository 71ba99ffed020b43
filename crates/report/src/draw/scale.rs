//! Scales: from values to positions along an axis, the ticks, and values in units of the right size.

use stepcast_core::quantity::{Bytes, SamplesPerSec, Seconds};

/// Values outside this range are not drawn.
const EXTREMES: (f64, f64) = (1e-200, 1e200);
/// A range smaller than this share of its values counts as one value.
const RESOLUTION: f64 = 1e-9;
/// Ranges of more decades than this have ticks at powers of ten only.
const DECADES_WITH_HALVES: f64 = 3.0;

pub(crate) fn drawable(value: f64) -> bool {
    value.is_finite() && (value.abs() > EXTREMES.0 || value.abs() <= 0.0) && value.abs() < EXTREMES.1
}

/// The smallest and the largest drawable value.
pub(crate) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.into_iter().filter(|value| drawable(*value));
    values.fold(None, |seen, value| {
        let (low, high) = seen.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Linear,
    Logarithmic,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    kind: Kind,
    /// Ascending, all of them within the extent.
    pub(crate) ticks: Vec<f64>,
}

impl Scale {
    /// Linear, with about `most` ticks; the ends are ticks.
    pub(crate) fn linear((low, high): (f64, f64), most: usize) -> Self {
        let (low, high) = widened(low, high);
        let step = nice_step((high - low) / most.max(1) as f64);
        let (first, last) = ((low / step + RESOLUTION).floor(), (high / step - RESOLUTION).ceil());
        let ticks = multiples(first, last, step);
        Self { low: first * step, high: last * step, kind: Kind::Linear, ticks }
    }

    /// Linear; the ends are the extreme values.
    pub(crate) fn exact((low, high): (f64, f64), most: usize) -> Self {
        let (low, high) = widened(low, high);
        let step = nice_step((high - low) / most.max(1) as f64);
        let ticks = multiples((low / step - RESOLUTION).ceil(), (high / step + RESOLUTION).floor(), step);
        Self { low, high, kind: Kind::Linear, ticks }
    }

    /// Linear over whole numbers; the ends are the extreme values, and ticks are whole.
    pub(crate) fn whole((low, high): (f64, f64), most: usize) -> Self {
        let step = nice_step((high - low) / most.max(1) as f64).max(1.0);
        let (low, high) = if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
        let ticks = multiples((low / step).ceil(), (high / step).floor(), step);
        Self { low, high, kind: Kind::Linear, ticks }
    }

    /// Logarithmic over positive numbers; the ends are ticks.
    pub(crate) fn logarithmic((low, high): (f64, f64), most: usize) -> Self {
        let (low, high) = widened_by_ratio(low, high);
        let exponents = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32;
        let all: Vec<f64> = exponents
            .flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(exponent)))
            .collect();
        let below = |tick: &&f64| **tick <= low * (1.0 + RESOLUTION);
        let above = |tick: &&f64| **tick >= high * (1.0 - RESOLUTION);
        let low = all.iter().rev().find(below).copied().unwrap_or(low);
        let high = all.iter().find(above).copied().unwrap_or(high);
        let within = all.into_iter().filter(|tick| (low..=high).contains(tick));
        let decades = (high / low).log10();
        let ticks = if decades <= DECADES_WITH_HALVES {
            within.collect()
        } else {
            let every = (decades / most.max(1) as f64).ceil() as i32;
            within
                .filter(|tick| {
                    let exponent = tick.log10();
                    (exponent - exponent.round()).abs() < RESOLUTION
                        && (exponent.round() as i32).rem_euclid(every) == 0
                })
                .collect()
        };
        Self { low, high, kind: Kind::Logarithmic, ticks }
    }

    /// Logarithmic over positive numbers; the ends are the extreme values, ticks at powers of two.
    pub(crate) fn doubling((low, high): (f64, f64), most: usize) -> Self {
        let (low, high) = if high > low { (low, high) } else { widened_by_ratio(low, high) };
        let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
        let every = ((last - first + 1) as usize).div_ceil(most.max(1)).max(1);
        let ticks = (first..=last).step_by(every).map(|exponent| 2_f64.powi(exponent)).collect();
        Self { low, high, kind: Kind::Logarithmic, ticks }
    }

    /// The position of a value: 0 at the lower end, 1 at the upper one.
    pub(crate) fn share(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

fn multiples(first: f64, last: f64, step: f64) -> Vec<f64> {
    let count = (last - first + 1.0).clamp(0.0, 100.0) as u32;
    (0..count).map(|place| (first + f64::from(place)) * step).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powi(least.log10().floor() as i32);
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= least * (1.0 - RESOLUTION));
    digit.unwrap_or(10.0) * power
}

/// An extent whose ends differ.
fn widened(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if high - low > RESOLUTION * size {
        return (low, high);
    }
    match size {
        size if size <= 0.0 => (0.0, 1.0),
        size => (low - size / 2.0, high + size / 2.0),
    }
}

fn widened_by_ratio(low: f64, high: f64) -> (f64, f64) {
    if high / low > 1.0 + RESOLUTION { (low, high) } else { (low / 2.0, high * 2.0) }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Unit {
    /// Seconds.
    Time,
    /// Samples per second.
    Rate,
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
    const UNIT: Unit;
}

impl Figure for Seconds {
    const UNIT: Unit = Unit::Time;
}

impl Figure for SamplesPerSec {
    const UNIT: Unit = Unit::Rate;
}

impl Figure for f64 {
    const UNIT: Unit = Unit::Number;
}

impl Figure for Bytes {
    const UNIT: Unit = Unit::Bytes;
}

/// Units of time: the least value for which each is used, its size and its name.
const TIMES: [(f64, f64, &str); 7] = [
    (172_800.0, 86_400.0, "d"),
    (7200.0, 3600.0, "h"),
    (120.0, 60.0, "min"),
    (1.0, 1.0, "s"),
    (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"),
    (0.0, 1e-9, "ns"),
];

/// Units of memory, with the least value for which each is used.
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

    /// A value in a small space: two digits or more, and rates without their unit.
    pub(crate) fn brief(&self, value: f64) -> String {
        let (size, name) = self.on(value);
        let number = significant(value / size, 2);
        match self {
            Self::Rate | Self::Number => number,
            _ => format!("{number} {name}"),
        }
    }
}

/// At most `digits` significant digits, all digits before the point, and no zeros at the end.
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
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(Scale::linear((0.0, 0.93), 5).ticks, [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(Scale::linear((3.0, 41.0), 5).ticks, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(Scale::linear((7.0, 7.0), 4).ticks, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(Scale::linear((0.0, 0.0), 2).ticks, [0.0, 0.5, 1.0]);
        assert_eq!(Scale::exact((2.5, 41.0), 5).ticks, [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Scale::exact((2.5, 41.0), 5).ends(), (2.5, 41.0));
        assert_eq!(Scale::whole((1.0, 4.0), 8).ticks, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::whole((1.0, 16.0), 8).ticks, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
        assert_eq!(Scale::whole((3.0, 3.0), 8).ticks, [3.0]);
        assert_eq!(Scale::logarithmic((3.0, 41.0), 6).ticks, [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Scale::logarithmic((1.0, 1e6), 4).ticks, [1.0, 100.0, 1e4, 1e6]);
        assert_eq!(Scale::doubling((1.0, 100.0), 8).ticks, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    }

    #[test]
    fn places_are_shares_of_the_way() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(Scale::linear((0.0, 10.0), 5).share(2.5), 0.25);
        close(Scale::logarithmic((1.0, 10_000.0), 5).share(100.0), 0.5);
        close(Scale::doubling((1.0, 16.0), 5).share(4.0), 0.5);
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        assert_eq!(extent([f64::NAN, 2.0, f64::INFINITY, 1.0, 1e-300]), Some((1.0, 2.0)));
        assert_eq!(extent([f64::NAN]), None);
        assert!(drawable(0.0) && drawable(-3.0));
    }

    fn has(scale: &Scale, value: f64) -> bool {
        (-RESOLUTION..=1.0 + RESOLUTION).contains(&scale.share(value))
    }

    proptest! {
        #[test]
        fn every_value_has_its_place_and_ticks_are_few(
            a in -1e12..1e12_f64, b in -1e12..1e12_f64, most in 1usize..12,
        ) {
            let (low, high) = (a.min(b), a.max(b));
            let positive = (low.abs().min(high.abs()) + 1e-9, low.abs().max(high.abs()) + 1e-9);
            let whole = (positive.0.ceil(), positive.1.ceil());
            let scales = [
                (Scale::linear((low, high), most), (low, high)),
                (Scale::whole(whole, most), whole),
                (Scale::logarithmic(positive, most), positive),
                (Scale::doubling(positive, most), positive),
            ];
            for (scale, (low, high)) in scales {
                prop_assert!(has(&scale, low) && has(&scale, high), "{:?} {} {}", scale, low, high);
                prop_assert!(scale.share(low) <= scale.share(high));
                prop_assert!(scale.ticks.len() <= most.max(8) + 3, "{:?}", scale);
                prop_assert!(scale.ticks.iter().all(|tick| has(&scale, *tick)));
                prop_assert!(scale.ticks.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

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
