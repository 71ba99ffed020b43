//! The units for reading and writing each quantity.
//!
//! Units are case-sensitive: "b" is a bit and "B" a byte, "M" is mega and "m" milli, "k" is 1000
//! and "Ki" 1024.

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
