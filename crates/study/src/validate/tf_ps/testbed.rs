//! Figures of the testbed, the same for all configurations.

use super::data::{Configuration, entries, json, wrong};
use serde::{Deserialize, Serialize};
use std::path::Path;
use stepcast_core::quantity::{Seconds, number};
use stepcast_sim::measure::quantile;
use stepcast_trace::{TraceError, unpacked};

/// Transfers below this size cost their receivers the fixed part of parsing only.
const SMALL: f64 = 10e3;

/// Transfers above this size show the part that grows.
const LARGE: f64 = 1e6;

/// Share of the nominal rate where no iperf result is there: TCP payload on Ethernet with jumbo segments offloaded, as
/// iperf shows at every rate of this testbed.
const USUAL_GOODPUT: f64 = 0.956;

/// Cost of parsing where no step was captured: as on the testbed whose runs are described in docs/validation.md.
const USUAL_PARSE_FIXED: f64 = 0.31e-3;
const USUAL_PARSE_PER_BYTE: f64 = 0.17e-9;

/// What is the same for all configurations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Testbed {
    /// Share of the nominal rate that payload gets, from iperf with one connection.
    pub goodput: f64,
    /// Parsing of what has arrived: cost of a transfer.
    #[serde(rename = "parse_fixed_s", serialize_with = "number")]
    pub parse_fixed: Seconds,
    /// Parsing: cost of a byte.
    #[serde(rename = "parse_per_byte_s", serialize_with = "number")]
    pub parse_per_byte: Seconds,
    /// Cores of the one host on which all processes run.
    pub cores: f64,
}

#[derive(Debug, Deserialize)]
struct Iperf {
    end: IperfEnd,
}

#[derive(Debug, Deserialize)]
struct IperfEnd {
    sum_received: IperfSum,
}

#[derive(Debug, Deserialize)]
struct IperfSum {
    bits_per_second: f64,
}

#[derive(Debug, Deserialize)]
struct Overhead {
    wire_bytes: f64,
    overhead_s: f64,
}

impl Testbed {
    /// Takes the figures from iperf results and from captured one-worker steps.
    pub(super) fn measure(folder: &Path, configurations: &[Configuration]) -> Result<Self, TraceError> {
        let mut overheads: Vec<Overhead> = Vec::new();
        for configuration in configurations {
            let path = configuration.file("overhead_W1.csv.gz");
            if !path.is_file() {
                continue;
            }
            let bytes = unpacked(&path)?;
            for row in csv::Reader::from_reader(bytes.as_slice()).deserialize() {
                overheads.push(row.map_err(|error| wrong(&path, error.to_string(), "check the columns"))?);
            }
        }
        let mut small: Vec<f64> =
            overheads.iter().filter(|row| row.wire_bytes < SMALL).map(|row| row.overhead_s).collect();
        let fixed = if small.is_empty() { USUAL_PARSE_FIXED } else { quantile(&mut small, 0.5).max(0.0) };
        let large = overheads.iter().filter(|row| row.wire_bytes > LARGE);
        let mut slopes: Vec<f64> = large.map(|row| (row.overhead_s - fixed) / row.wire_bytes).collect();
        let per_byte =
            if slopes.is_empty() { USUAL_PARSE_PER_BYTE } else { quantile(&mut slopes, 0.5).max(0.0) };
        Ok(Self {
            goodput: goodput(&folder.join("bandwidth"))?.unwrap_or(USUAL_GOODPUT),
            parse_fixed: Seconds::new(fixed),
            parse_per_byte: Seconds::new(per_byte),
            cores: 2.0,
        })
    }
}

/// Mean over all rates and both directions of one connection alone: `iperf_r<Mbit/s>_up.json` and `_down.json`.
fn goodput(folder: &Path) -> Result<Option<f64>, TraceError> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut shares = Vec::new();
    for path in entries(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let alone = name.strip_suffix("_up.json").or_else(|| name.strip_suffix("_down.json"));
        let nominal =
            alone.and_then(|name| name.strip_prefix("iperf_r")).and_then(|rate| rate.parse::<f64>().ok());
        if let Some(nominal) = nominal {
            let result: Iperf = json(&path)?;
            shares.push(result.end.sum_received.bits_per_second / (nominal * 1e6));
        }
    }
    Ok((!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64))
}
