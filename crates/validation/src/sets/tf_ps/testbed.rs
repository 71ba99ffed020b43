//! Parameters of the testbed, the same for all configurations. All but two come from iperf and from captured steps; those
//! two were chosen on runs with several workers, and [`super::held_out`] tests that choice.

use super::capture::joining_share;
use super::data::{Configuration, wrong};
use super::iperf::Iperf;
use serde::{Deserialize, Serialize};
use serde_with::serde_as;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_sim::TcpSpec;
use stepcast_stats::quantile;
use stepcast_trace::unpacked;

/// Transfers below this size cost their receivers the fixed part of parsing only.
const SMALL: f64 = 10e3;

/// Transfers above this size show the part that grows.
const LARGE: f64 = 1e6;

/// Share of the nominal rate where there is no iperf result: TCP payload on Ethernet with jumbo segments offloaded, as
/// iperf shows at every rate of this testbed.
const USUAL_GOODPUT: f64 = 0.956;

/// Cost of parsing where no step was captured: as on the testbed whose runs are described in docs/validation.md.
const USUAL_PARSE_FIXED: f64 = 0.31e-3;
const USUAL_PARSE_PER_BYTE: f64 = 0.17e-9;

/// Parameters that all configurations share.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Testbed {
    /// Share of the nominal rate that payload gets, from iperf with one connection.
    pub(super) goodput: f64,
    /// Parsing of what has arrived: cost of a transfer.
    #[serde(rename = "parse_fixed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) parse_fixed: Seconds,
    /// Parsing: cost of a byte.
    #[serde(rename = "parse_per_byte_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) parse_per_byte: Seconds,
    /// Cores of the one host on which all processes run.
    pub(super) cores: f64,
    /// Spread of connections' shares, down and up, from iperf with four connections at once.
    pub(super) spread: [f64; 2],
    /// Window of a connection at first, from iperf with one connection.
    #[serde(rename = "first_window_b")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) first_window: Bytes,
    /// Its spread, likewise.
    pub(super) first_window_spread: f64,
    /// Share of a download that joins another, from captured steps of two workers.
    pub(super) joining: f64,
    /// Share of upload queues that delay acknowledgements of downloads. Chosen on runs with several workers.
    pub(super) acknowledgements_queued: f64,
    /// Time after which a download is established. Chosen on runs with several workers, among what captures allow.
    #[serde(rename = "established_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) established: Seconds,
}

#[derive(Debug, Deserialize)]
struct Overhead {
    wire_bytes: f64,
    overhead_s: f64,
}

impl Testbed {
    /// Takes the parameters from iperf results and from captured steps.
    pub(super) fn measure(folder: &Path, configurations: &[Configuration]) -> Result<Self, Fault> {
        let usual = TcpSpec::linux(1.0, 1.0);
        let iperf = Iperf::read(&folder.join("bandwidth"))?;
        let (parse_fixed, parse_per_byte) = parsing(configurations)?;
        let (first_window, first_window_spread) =
            iperf.windows().unwrap_or((usual.first_window, usual.first_window_spread));
        let spread = |test: &str, usual: f64| iperf.spread(test).unwrap_or(usual);
        Ok(Self {
            goodput: iperf.goodput().unwrap_or(USUAL_GOODPUT),
            parse_fixed,
            parse_per_byte,
            cores: 2.0,
            spread: [spread("4xdown", usual.spread[0]), spread("4xup", usual.spread[1])],
            first_window: Bytes::new(first_window),
            first_window_spread,
            joining: joining_share(configurations, usual.established)?.unwrap_or(usual.joining),
            acknowledgements_queued: usual.acknowledgements_queued,
            established: Seconds::new(usual.established),
        })
    }

    /// The network of a configuration.
    pub(super) fn network(&self, configuration: &Configuration) -> TcpSpec {
        let rate = (configuration.rate * self.goodput).to_bytes_per_sec();
        TcpSpec {
            spread: self.spread,
            first_window: self.first_window.get(),
            first_window_spread: self.first_window_spread,
            joining: self.joining,
            acknowledgements_queued: self.acknowledgements_queued,
            established: self.established.get(),
            ..TcpSpec::linux(rate.get(), configuration.queue.get())
        }
    }
}

/// Cost of parsing from captured steps of one worker: the median time of small transfers, and the median time that large
/// ones take beyond it for each byte.
fn parsing(configurations: &[Configuration]) -> Result<(Seconds, Seconds), Fault> {
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
    let per_byte = if slopes.is_empty() { USUAL_PARSE_PER_BYTE } else { quantile(&mut slopes, 0.5).max(0.0) };
    Ok((Seconds::new(fixed), Seconds::new(per_byte)))
}
