//! Parameters of the testbed, the same for all configurations. All but two come from iperf and from captured steps; those
//! two were chosen on runs with several workers, and [`super::held_out`] tests that choice.

use super::capture::joining_share;
use super::data::{Configuration, entries, json, wrong};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::serde_as;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_sim::TcpSpec;
use stepcast_stats::{deviation, quantile};
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

/// One connection, in bits per second and bytes.
#[derive(Debug)]
struct Connection {
    /// Nominal rate in Mbit/s.
    nominal: u32,
    /// `up`, `down`, or four of them at once: `4xup_w0`.
    test: String,
    received: f64,
    largest_window: f64,
}

/// Iperf results of the testbed's links: `bandwidth/iperf_r<Mbit/s>_<test>.json`.
#[derive(Debug, Default)]
struct Iperf {
    connections: Vec<Connection>,
}

impl Iperf {
    fn read(folder: &Path) -> Result<Self, Fault> {
        let mut connections = Vec::new();
        if !folder.is_dir() {
            return Ok(Self::default());
        }
        for path in entries(folder)? {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let parts = name.strip_prefix("iperf_r").and_then(|name| name.split_once('_'));
            let Some((Ok(nominal), test)) = parts.map(|(rate, test)| (rate.parse(), test)) else { continue };
            let end = json::<Value>(&path)?["end"].take();
            let received = end["sum_received"]["bits_per_second"].as_f64();
            let remedy = "see docs/validation.md for the files of a configuration";
            connections.push(Connection {
                nominal,
                test: test.to_owned(),
                received: received.ok_or_else(|| wrong(&path, "no bits_per_second were received", remedy))?,
                largest_window: end["streams"][0]["sender"]["max_snd_cwnd"].as_f64().unwrap_or(0.0),
            });
        }
        Ok(Self { connections })
    }

    fn alone(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| connection.test == "up" || connection.test == "down")
    }

    /// Share of the nominal rate that one connection alone gets: mean over rates and directions.
    fn goodput(&self) -> Option<f64> {
        let shares: Vec<f64> = self
            .alone()
            .map(|connection| connection.received / (1e6 * f64::from(connection.nominal)))
            .collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    /// Windows that connections alone reach: median, and standard deviation of the logarithm. Only senders report them.
    fn windows(&self) -> Option<(f64, f64)> {
        let windows = self.alone().map(|connection| connection.largest_window);
        let mut windows: Vec<f64> = windows.filter(|window| *window > 0.0).collect();
        let spread = deviation(&windows.iter().map(|window| window.ln()).collect::<Vec<f64>>())?;
        Some((quantile(&mut windows, 0.5), spread))
    }

    /// How unequal connections are that share a port all the time, `4xup` or `4xdown`: standard deviation of the logarithm
    /// of their rates, median over nominal rates.
    fn spread(&self, test: &str) -> Option<f64> {
        let together = |connection: &&Connection| {
            connection.test.strip_prefix(test).is_some_and(|rest| rest.starts_with("_w"))
        };
        let mut nominals: Vec<u32> =
            self.connections.iter().filter(together).map(|connection| connection.nominal).collect();
        nominals.sort_unstable();
        nominals.dedup();
        let spread = |nominal: u32| {
            let rates = self.connections.iter().filter(together);
            let rates = rates.filter(|connection| connection.nominal == nominal && connection.received > 0.0);
            deviation(&rates.map(|connection| connection.received.ln()).collect::<Vec<f64>>())
        };
        let mut spreads: Vec<f64> = nominals.into_iter().filter_map(spread).collect();
        (!spreads.is_empty()).then(|| quantile(&mut spreads, 0.5))
    }
}
