//! Iperf results of the testbed's links: `bandwidth/iperf_r<Mbit/s>_<test>.json`.

use super::data::{entries, json};
use serde::Deserialize;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_stats::{deviation, quantile};

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

/// All results below a folder.
#[derive(Debug, Default)]
pub(super) struct Iperf {
    connections: Vec<Connection>,
}

#[derive(Debug, Deserialize)]
struct File {
    end: End,
}

#[derive(Debug, Deserialize)]
struct End {
    sum_received: Received,
    #[serde(default)]
    streams: Vec<Stream>,
}

#[derive(Debug, Deserialize)]
struct Received {
    bits_per_second: f64,
}

#[derive(Debug, Deserialize)]
struct Stream {
    sender: Sender,
}

#[derive(Debug, Deserialize)]
struct Sender {
    #[serde(default)]
    max_snd_cwnd: f64,
}

impl Iperf {
    pub(super) fn read(folder: &Path) -> Result<Self, Fault> {
        let mut connections = Vec::new();
        if !folder.is_dir() {
            return Ok(Self::default());
        }
        for path in entries(folder)? {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let parts = name.strip_prefix("iperf_r").and_then(|name| name.split_once('_'));
            let Some((Ok(nominal), test)) = parts.map(|(rate, test)| (rate.parse(), test)) else { continue };
            let File { end } = json(&path)?;
            connections.push(Connection {
                nominal,
                test: test.to_owned(),
                received: end.sum_received.bits_per_second,
                largest_window: end.streams.first().map_or(0.0, |stream| stream.sender.max_snd_cwnd),
            });
        }
        Ok(Self { connections })
    }

    fn alone(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| connection.test == "up" || connection.test == "down")
    }

    /// Share of the nominal rate that one connection alone gets: mean over rates and directions.
    pub(super) fn goodput(&self) -> Option<f64> {
        let shares: Vec<f64> = self
            .alone()
            .map(|connection| connection.received / (1e6 * f64::from(connection.nominal)))
            .collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    /// Windows that connections alone reach: median, and standard deviation of the logarithm. Only senders report them.
    pub(super) fn windows(&self) -> Option<(f64, f64)> {
        let windows = self.alone().map(|connection| connection.largest_window);
        let mut windows: Vec<f64> = windows.filter(|window| *window > 0.0).collect();
        let spread = deviation(&windows.iter().map(|window| window.ln()).collect::<Vec<f64>>())?;
        Some((quantile(&mut windows, 0.5), spread))
    }

    /// How unequal connections are that share a port all the time, `4xup` or `4xdown`: standard deviation of the logarithm
    /// of their rates, median over nominal rates.
    pub(super) fn spread(&self, test: &str) -> Option<f64> {
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
