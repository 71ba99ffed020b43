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

const fn shown(name: &'static str, exponent: i32) -> Unit {
    Unit { name, exponent, factor: 1.0, printed: true }
}

const fn read(name: &'static str, exponent: i32, factor: f64) -> Unit {
    Unit { name, exponent, factor, printed: false }
}

const KI: f64 = 1024.0;
const MI: f64 = KI * KI;
const GI: f64 = KI * MI;
const TI: f64 = KI * GI;

// Printed units are in ascending order and include the base unit.

pub(crate) const SECONDS: &[Unit] = &[
    shown("ns", -9),
    shown("µs", -6),
    shown("ms", -3),
    shown("s", 0),
    read("us", -6, 1.0),
    read("μs", -6, 1.0),
    read("min", 0, 60.0),
    read("h", 0, 3600.0),
    read("d", 0, 86_400.0),
];

pub(crate) const BYTES: &[Unit] = &[
    shown("B", 0),
    shown("kB", 3),
    shown("MB", 6),
    shown("GB", 9),
    shown("TB", 12),
    read("KB", 3, 1.0),
    read("KiB", 0, KI),
    read("MiB", 0, MI),
    read("GiB", 0, GI),
    read("TiB", 0, TI),
    read("bit", 0, 0.125),
    read("kbit", 3, 0.125),
    read("Mbit", 6, 0.125),
    read("Gbit", 9, 0.125),
];

pub(crate) const BITS: &[Unit] = &[
    shown("bit", 0),
    shown("kbit", 3),
    shown("Mbit", 6),
    shown("Gbit", 9),
    shown("Tbit", 12),
    read("B", 0, 8.0),
    read("kB", 3, 8.0),
    read("KB", 3, 8.0),
    read("MB", 6, 8.0),
    read("GB", 9, 8.0),
    read("TB", 12, 8.0),
    read("KiB", 0, 8.0 * KI),
    read("MiB", 0, 8.0 * MI),
    read("GiB", 0, 8.0 * GI),
    read("TiB", 0, 8.0 * TI),
];

pub(crate) const FLOPS: &[Unit] = &[
    shown("FLOP", 0),
    shown("kFLOP", 3),
    shown("MFLOP", 6),
    shown("GFLOP", 9),
    shown("TFLOP", 12),
    shown("PFLOP", 15),
    shown("EFLOP", 18),
];

pub(crate) const HERTZ: &[Unit] =
    &[shown("Hz", 0), shown("kHz", 3), shown("MHz", 6), shown("GHz", 9), shown("THz", 12)];

pub(crate) const WATTS: &[Unit] = &[shown("mW", -3), shown("W", 0), shown("kW", 3)];

pub(crate) const FLOPS_PER_SEC: &[Unit] = &[
    shown("FLOP/s", 0),
    shown("kFLOP/s", 3),
    shown("MFLOP/s", 6),
    shown("GFLOP/s", 9),
    shown("TFLOP/s", 12),
    shown("PFLOP/s", 15),
    shown("EFLOP/s", 18),
    read("GFLOPS", 9, 1.0),
    read("TFLOPS", 12, 1.0),
    read("PFLOPS", 15, 1.0),
];

pub(crate) const BITS_PER_SEC: &[Unit] = &[
    shown("bit/s", 0),
    shown("kbit/s", 3),
    shown("Mbit/s", 6),
    shown("Gbit/s", 9),
    shown("Tbit/s", 12),
    read("bps", 0, 1.0),
    read("kbps", 3, 1.0),
    read("Mbps", 6, 1.0),
    read("Gbps", 9, 1.0),
    read("Tbps", 12, 1.0),
    read("Mb/s", 6, 1.0),
    read("Gb/s", 9, 1.0),
    read("Tb/s", 12, 1.0),
    read("B/s", 0, 8.0),
    read("kB/s", 3, 8.0),
    read("KB/s", 3, 8.0),
    read("MB/s", 6, 8.0),
    read("GB/s", 9, 8.0),
    read("TB/s", 12, 8.0),
    read("KiB/s", 0, 8.0 * KI),
    read("MiB/s", 0, 8.0 * MI),
    read("GiB/s", 0, 8.0 * GI),
];

pub(crate) const BYTES_PER_SEC: &[Unit] = &[
    shown("B/s", 0),
    shown("kB/s", 3),
    shown("MB/s", 6),
    shown("GB/s", 9),
    shown("TB/s", 12),
    read("KB/s", 3, 1.0),
    read("KiB/s", 0, KI),
    read("MiB/s", 0, MI),
    read("GiB/s", 0, GI),
    read("TiB/s", 0, TI),
    read("Mbit/s", 6, 0.125),
    read("Gbit/s", 9, 0.125),
    read("Tbit/s", 12, 0.125),
];

pub(crate) const SAMPLES_PER_SEC: &[Unit] = &[shown("samples/s", 0), read("sample/s", 0, 1.0)];
