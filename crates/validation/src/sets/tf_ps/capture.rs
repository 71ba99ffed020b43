//! Captured steps of several workers: the rate of a download that joins another one, from `h2_W<k>_frames.csv.gz`, the
//! HTTP/2 frames at the server's port.

use super::data::{Configuration, wrong};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_stats::quantile;
use stepcast_trace::unpacked;

/// Numbers of workers whose steps may be captured.
const WORKERS: std::ops::RangeInclusive<u32> = 2..=8;

/// Frames of one connection that are less than this apart, in seconds, belong to one download.
const PAUSE: f64 = 0.05;

/// Bytes below which messages are not the parameters of a step.
const LEAST: f64 = 1e6;

#[derive(Debug, Deserialize)]
struct Frame {
    t_first: f64,
    t_last: f64,
    src: String,
    dst: String,
    #[serde(rename = "type")]
    kind: String,
    length: f64,
}

/// The parameters of one step on their way to one worker.
#[derive(Debug, Default)]
struct Download {
    /// First byte, last byte, bytes of every frame.
    frames: Vec<(f64, f64, f64)>,
}

impl Download {
    fn start(&self) -> f64 {
        self.frames.first().map_or(f64::INFINITY, |frame| frame.0)
    }

    fn end(&self) -> f64 {
        self.frames.iter().map(|frame| frame.1).fold(f64::NEG_INFINITY, f64::max)
    }

    fn bytes(&self, since: f64, until: f64) -> f64 {
        let part = |&(first, last, bytes): &(f64, f64, f64)| {
            let inside = (last.min(until) - first.max(since)).max(0.0);
            if last > first { bytes * inside / (last - first) } else { 0.0 }
        };
        self.frames.iter().map(part).sum()
    }
}

/// Bytes of a download while it shares the port with one that began at least `established` seconds earlier, relative to
/// the bytes of that earlier one: median over all such pairs in all captures.
pub(super) fn joining_share(
    configurations: &[Configuration],
    established: f64,
) -> Result<Option<f64>, Fault> {
    let mut shares = Vec::new();
    for configuration in configurations {
        for path in WORKERS.map(|workers| configuration.file(&format!("h2_W{workers}_frames.csv.gz"))) {
            if path.is_file() {
                shares.extend(shares_of(&downloads(&path)?, established));
            }
        }
    }
    Ok((!shares.is_empty()).then(|| quantile(&mut shares, 0.5)))
}

/// Downloads of every worker, by its address.
fn downloads(path: &Path) -> Result<BTreeMap<String, Vec<Download>>, Fault> {
    let bytes = unpacked(path)?;
    let rows = csv::Reader::from_reader(bytes.as_slice()).into_deserialize();
    let frames: Vec<Frame> = rows
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(path, error.to_string(), "check the columns"))?;
    // Everything that passes the server's port comes from the server or goes to it.
    let is_server = |address: &str| frames.iter().all(|frame| frame.src == address || frame.dst == address);
    let mut workers: BTreeMap<String, Vec<Download>> = BTreeMap::new();
    let Some(first) = frames.first() else { return Ok(workers) };
    let server = if is_server(&first.src) { first.src.clone() } else { first.dst.clone() };
    for frame in frames.into_iter().filter(|frame| frame.kind == "DATA" && frame.src == server) {
        let downloads = workers.entry(frame.dst).or_default();
        if downloads.last().is_none_or(|download| frame.t_first > download.end() + PAUSE) {
            downloads.push(Download::default());
        }
        if let Some(download) = downloads.last_mut() {
            download.frames.push((frame.t_first, frame.t_last, frame.length));
        }
    }
    Ok(workers)
}

fn shares_of(workers: &BTreeMap<String, Vec<Download>>, established: f64) -> Vec<f64> {
    let mut shares = Vec::new();
    let is_large = |download: &&Download| download.bytes(f64::NEG_INFINITY, f64::INFINITY) >= LEAST;
    for (worker, downloads) in workers {
        let others = || workers.iter().filter(|(other, _)| *other != worker).flat_map(|(_, theirs)| theirs);
        for joining in downloads.iter().filter(is_large) {
            let since = joining.start();
            for other in others().filter(|other| other.start() + established <= since && since < other.end())
            {
                let until = joining.end().min(other.end());
                let theirs = other.bytes(since, until);
                if theirs > 0.0 {
                    shares.push(joining.bytes(since, until) / theirs);
                }
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_download_is_compared_with_the_earlier_one() {
        let early = Download { frames: vec![(0.0, 1.0, 100e6)] };
        let late = Download { frames: vec![(0.5, 1.5, 50e6)] };
        let together = Download { frames: vec![(2.0, 3.0, 10e6)] };
        let message = Download { frames: vec![(2.5, 2.6, 100.0)] };
        let likewise = Download { frames: vec![(2.0, 3.0, 10e6)] };
        let workers = BTreeMap::from([
            ("a".to_owned(), vec![early, together]),
            ("b".to_owned(), vec![late, likewise]),
            ("c".to_owned(), vec![message]),
        ]);
        assert_eq!(shares_of(&workers, 0.1), [0.5]);
    }
}
