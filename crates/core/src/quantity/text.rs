//! Units, and parsing and formatting of quantities.
//!
//! Units are case-sensitive: "b" is a bit and "B" a byte, "M" is mega and "m" milli, "k" is 1000 and "Ki" 1024.

use std::fmt;

/// Why a text is not a valid quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct ParseQuantityError {
    pub reason: String,
    pub remedy: String,
}

/// Parses "NUMBER UNIT" with an optional space.
pub(super) fn parse(text: &str, units: &[Unit], example: &str) -> Result<f64, ParseQuantityError> {
    let text = text.trim();
    let fail = |reason: String, remedy: String| ParseQuantityError { reason, remedy };
    let like = || format!("write a number and a unit, such as \"{example}\"");
    let (number, name) = split_number(text);
    if number.is_empty() {
        return Err(fail(format!("\"{text}\" does not begin with a number"), like()));
    }
    if name.is_empty() {
        return Err(fail(format!("\"{text}\" has no unit"), like()));
    }
    let Some(unit) = units.iter().find(|unit| unit.name == name) else {
        return Err(fail(format!("\"{name}\" is not a unit that fits here"), suggestion(name, units)));
    };
    scaled(number, unit)
        .filter(|value| value.is_finite())
        .ok_or_else(|| fail(format!("\"{text}\" is not a finite number"), like()))
}

/// Splits after the longest prefix that looks like a decimal number with an optional exponent.
fn split_number(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let more = bytes[from..].iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count();
        from + more
    };
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = digits(sign);
    let mut any = end > sign;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        any |= fraction > end + 1;
        end = fraction;
    }
    if !any {
        return ("", text);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// The number times the unit; the power of ten is applied in decimal to avoid rounding twice.
fn scaled(number: &str, unit: &Unit) -> Option<f64> {
    let number = number.replace('_', "").to_ascii_lowercase();
    let (mantissa, exponent) = match number.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number.as_str(), 0),
    };
    let exponent = exponent.checked_add(unit.exponent)?;
    let value: f64 = format!("{mantissa}e{exponent}").parse().ok()?;
    Some(value * unit.factor)
}

/// Suggests the unit that differs only in case, or else all units.
fn suggestion(name: &str, units: &[Unit]) -> String {
    match units.iter().find(|unit| unit.name.eq_ignore_ascii_case(name)) {
        Some(unit) => format!("units are case-sensitive: did you mean \"{}\"?", unit.name),
        None => {
            let names: Vec<&str> = units.iter().map(|unit| unit.name).collect();
            format!("use one of {}", names.join(", "))
        }
    }
}

/// The printable unit in which `value` is at least 1, or the smallest one.
fn best_unit(value: f64, units: &[Unit]) -> &Unit {
    let printed = || units.iter().filter(|unit| unit.printed);
    let base = printed().find(|unit| unit.exponent == 0).unwrap_or(&units[0]);
    if value == 0.0 || !value.is_finite() {
        return base;
    }
    let fits = |unit: &&Unit| value.abs() >= power_of_ten(unit.exponent);
    printed().rev().find(fits).or_else(|| printed().next()).unwrap_or(base)
}

fn power_of_ten(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// The shortest text that parses back to exactly `value`.
pub(super) fn exact(value: f64, units: &[Unit]) -> String {
    let unit = best_unit(value, units);
    if !value.is_finite() {
        return format!("{value} {}", unit.name);
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0) - unit.exponent;
    format!("{} {}", shifted(mantissa, exponent), unit.name)
}

/// Formats `mantissa`·10^`exponent` without an exponent if the result stays short.
fn shifted(mantissa: &str, exponent: i32) -> String {
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = digits.chars().filter(|c| *c != '.').collect();
    let point = 1 + exponent;
    let length = digits.len() as i32;
    if !(-5..=21).contains(&exponent) {
        let (head, tail) = digits.split_at(1);
        let dot = if tail.is_empty() { "" } else { "." };
        return format!("{sign}{head}{dot}{tail}e{exponent}");
    }
    if point <= 0 {
        format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point >= length {
        format!("{sign}{digits}{}", "0".repeat((point - length) as usize))
    } else {
        let (whole, fraction) = digits.split_at(point as usize);
        format!("{sign}{whole}.{fraction}")
    }
}

/// Formats with four significant digits in the best unit.
pub(super) fn human(value: f64, units: &[Unit]) -> String {
    if !value.is_finite() {
        return exact(value, units);
    }
    // Rounding first lets 999.96 ms become 1 s.
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    let unit = best_unit(rounded, units);
    let scaled = rounded / power_of_ten(unit.exponent);
    if scaled.abs() >= 1e7 || (scaled != 0.0 && scaled.abs() < 1e-3) {
        return format!("{scaled:.3e} {}", unit.name);
    }
    let whole_digits = if scaled == 0.0 { 1 } else { scaled.abs().log10().floor() as i32 + 1 };
    let decimals = (4 - whole_digits).clamp(0, 3) as usize;
    let text = format!("{scaled:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} {}", unit.name)
}

/// Accepts a string with a unit; the error for a bare number contains a remedy.
pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
    units: &'static [Unit],
    example: &'static str,
) -> Result<f64, D::Error> {
    struct Visitor(&'static [Unit], &'static str);

    impl Visitor {
        fn bare<E: serde::de::Error>(&self, number: impl fmt::Display) -> E {
            E::custom(format!("{number} has no unit; write a string with a unit, such as \"{}\"", self.1))
        }
    }

    impl serde::de::Visitor<'_> for Visitor {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a quantity with its unit, such as \"{}\"", self.1)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<f64, E> {
            parse(text, self.0, self.1).map_err(E::custom)
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<f64, E> {
            Err(self.bare(number))
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<f64, E> {
            Err(self.bare(number))
        }

        fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<f64, E> {
            Err(self.bare(number))
        }
    }

    deserializer.deserialize_any(Visitor(units, example))
}

/// One unit: `1 name` = `factor` · 10^`exponent` base units.
///
/// The power of ten is stored separately, so that "45 µs" is parsed as 45e-6, correctly rounded, instead of 45 ×
/// 0.000001.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) exponent: i32,
    pub(crate) factor: f64,
    /// Whether it may be used for printing.
    pub(crate) printed: bool,
}

const PRINTED: bool = true;
const READ: bool = false;
const KI: f64 = 1024.0;

/// Units by their prefixes: `whether printed, factor => unit: prefix power-of-ten, …`. Printed ones are in ascending order
/// and include the base unit.
macro_rules! units {
    ($($printed:ident, $factor:expr => $unit:literal: $($prefix:literal $exponent:literal),*;)*) => {&[$($(
        Unit { name: concat!($prefix, $unit), exponent: $exponent, factor: $factor, printed: $printed },
    )*)*]};
}

pub(crate) const SECONDS: &[Unit] = units! {
    PRINTED, 1.0 => "s": "n" -9, "µ" -6, "m" -3, "" 0;
    READ, 1.0 => "s": "u" -6, "μ" -6;
    READ, 60.0 => "min": "" 0;
    READ, 3600.0 => "h": "" 0;
    READ, 86_400.0 => "d": "" 0;
};

pub(crate) const BYTES: &[Unit] = units! {
    PRINTED, 1.0 => "B": "" 0, "k" 3, "M" 6, "G" 9, "T" 12;
    READ, 1.0 => "B": "K" 3;
    READ, KI => "B": "Ki" 0;
    READ, KI * KI => "B": "Mi" 0;
    READ, KI * KI * KI => "B": "Gi" 0;
    READ, KI * KI * KI * KI => "B": "Ti" 0;
    READ, 0.125 => "bit": "" 0, "k" 3, "M" 6, "G" 9;
};

pub(crate) const BITS: &[Unit] = units! {
    PRINTED, 1.0 => "bit": "" 0, "k" 3, "M" 6, "G" 9, "T" 12;
    READ, 8.0 => "B": "" 0, "k" 3, "K" 3, "M" 6, "G" 9, "T" 12;
    READ, 8.0 * KI => "B": "Ki" 0;
    READ, 8.0 * KI * KI => "B": "Mi" 0;
    READ, 8.0 * KI * KI * KI => "B": "Gi" 0;
    READ, 8.0 * KI * KI * KI * KI => "B": "Ti" 0;
};

pub(crate) const FLOPS: &[Unit] =
    units! { PRINTED, 1.0 => "FLOP": "" 0, "k" 3, "M" 6, "G" 9, "T" 12, "P" 15, "E" 18; };

pub(crate) const HERTZ: &[Unit] = units! { PRINTED, 1.0 => "Hz": "" 0, "k" 3, "M" 6, "G" 9, "T" 12; };

pub(crate) const WATTS: &[Unit] = units! { PRINTED, 1.0 => "W": "m" -3, "" 0, "k" 3; };

pub(crate) const FLOPS_PER_SEC: &[Unit] = units! {
    PRINTED, 1.0 => "FLOP/s": "" 0, "k" 3, "M" 6, "G" 9, "T" 12, "P" 15, "E" 18;
    READ, 1.0 => "FLOPS": "G" 9, "T" 12, "P" 15;
};

pub(crate) const BITS_PER_SEC: &[Unit] = units! {
    PRINTED, 1.0 => "bit/s": "" 0, "k" 3, "M" 6, "G" 9, "T" 12;
    READ, 1.0 => "bps": "" 0, "k" 3, "M" 6, "G" 9, "T" 12;
    READ, 1.0 => "b/s": "M" 6, "G" 9, "T" 12;
    READ, 8.0 => "B/s": "" 0, "k" 3, "K" 3, "M" 6, "G" 9, "T" 12;
    READ, 8.0 * KI => "B/s": "Ki" 0;
    READ, 8.0 * KI * KI => "B/s": "Mi" 0;
    READ, 8.0 * KI * KI * KI => "B/s": "Gi" 0;
};

pub(crate) const BYTES_PER_SEC: &[Unit] = units! {
    PRINTED, 1.0 => "B/s": "" 0, "k" 3, "M" 6, "G" 9, "T" 12;
    READ, 1.0 => "B/s": "K" 3;
    READ, KI => "B/s": "Ki" 0;
    READ, KI * KI => "B/s": "Mi" 0;
    READ, KI * KI * KI => "B/s": "Gi" 0;
    READ, KI * KI * KI * KI => "B/s": "Ti" 0;
    READ, 0.125 => "bit/s": "M" 6, "G" 9, "T" 12;
};

pub(crate) const SAMPLES_PER_SEC: &[Unit] = units! {
    PRINTED, 1.0 => "samples/s": "" 0;
    READ, 1.0 => "sample/s": "" 0;
};
