//! Dumps of PyTorch's flight recorder of NCCL as JSON, one file for each rank (`TORCH_NCCL_TRACE_BUFFER_SIZE`,
//! `TORCH_NCCL_ENABLE_TIMING`).
//!
//! The same collective has the same process group and number on all its ranks. The rank that comes last waits least, so that
//! the shortest duration of a collective is its transfer, and what a rank waits less than others is its own work. Clocks of
//! machines differ, so that only durations are compared.

use super::{GroupTransfers, RankRecording, RankSeries, RankStep};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;

#[derive(Deserialize)]
struct FlightDump {
    entries: Vec<FlightEntry>,
}

#[derive(Deserialize)]
struct FlightEntry {
    #[serde(default)]
    process_group: Value,
    #[serde(default)]
    collective_seq_id: u64,
    #[serde(default)]
    p2p_seq_id: u64,
    #[serde(default)]
    is_p2p: bool,
    time_created_ns: u64,
    #[serde(default)]
    duration_ms: Option<f64>,
    #[serde(default)]
    time_discovered_started_ns: Option<u64>,
    #[serde(default)]
    time_discovered_completed_ns: Option<u64>,
    #[serde(default)]
    state: String,
}

impl FlightEntry {
    /// Seconds, as far as they were recorded.
    fn duration(&self) -> Option<f64> {
        let discovered = || {
            let (start, end) = (self.time_discovered_started_ns?, self.time_discovered_completed_ns?);
            Some(end.checked_sub(start)? as f64 / 1e9)
        };
        self.duration_ms
            .map(|time| time / 1e3)
            .or_else(discovered)
            .filter(|time| time.is_finite() && *time >= 0.0)
    }
}

pub(super) fn recognises(text: &str) -> bool {
    let head: String = text.chars().take(4096).collect();
    text.trim_start().starts_with('{')
        && (head.contains("pg_config") || text.contains("\"collective_seq_id\""))
}

/// The rank of a dump: the number at the end of its name, as PyTorch writes it.
pub(super) fn rank_of(path: &Path, otherwise: u64) -> u64 {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[digits..].parse().unwrap_or(otherwise)
}

/// The rank, when its host asked for a collective, and how long that took.
type Arrival = (u64, u64, f64);

pub(super) fn read(dumps: &[(u64, String, String)]) -> Result<RankRecording, Fault> {
    // By group and number.
    let mut collectives: BTreeMap<(String, u64), Vec<Arrival>> = BTreeMap::new();
    for (rank, name, text) in dumps {
        let dump: FlightDump = serde_json::from_str(text).map_err(|error| {
            Fault::in_file(name.clone(), error.to_string(), "write the dump as JSON, with its `entries`")
        })?;
        for entry in dump.entries.iter().filter(|entry| entry.state == "completed" || entry.state.is_empty())
        {
            let Some(duration) = entry.duration() else { continue };
            let number = if entry.is_p2p { entry.p2p_seq_id } else { entry.collective_seq_id };
            let key = (entry.process_group.to_string(), number);
            collectives.entry(key).or_default().push((*rank, entry.time_created_ns, duration));
        }
    }
    collectives.retain(|_, calls| calls.len() > 1);
    if collectives.is_empty() {
        let reason = "no collective has its duration on several ranks";
        let remedy = "record with TORCH_NCCL_ENABLE_TIMING=1, and give the dumps of all ranks";
        return Err(Fault::in_file(dumps.first().map_or("", |(_, name, _)| name).to_owned(), reason, remedy));
    }
    let mut groups: BTreeMap<(String, Vec<u64>), Vec<f64>> = BTreeMap::new();
    for ((group, _), calls) in &collectives {
        let mut ranks: Vec<u64> = calls.iter().map(|(rank, ..)| *rank).collect();
        ranks.sort_unstable();
        let transfer = calls.iter().map(|(.., duration)| *duration).fold(f64::INFINITY, f64::min);
        groups.entry((group.clone(), ranks)).or_default().push(transfer);
    }
    // Steps are marked by the largest group that all ranks have: from one of its collectives to the next.
    let largest = groups.keys().max_by_key(|(_, ranks)| ranks.len()).map(|(group, _)| group.clone());
    let marks: Vec<&Vec<(u64, u64, f64)>> = collectives
        .iter()
        .filter(|((group, _), calls)| Some(group) == largest.as_ref() && calls.len() == dumps.len())
        .map(|(_, calls)| calls)
        .collect();
    let ranks = dumps.iter().map(|(rank, ..)| {
        let of = |calls: &[(u64, u64, f64)]| calls.iter().find(|(own, ..)| own == rank).copied();
        let steps = marks.windows(2).filter_map(|pair| {
            let ((_, before, _), (_, now, duration)) = (of(pair[0])?, of(pair[1])?);
            let time = now.checked_sub(before)? as f64 / 1e9;
            // The host asks for collectives ahead of the device: what the others wait longer is this rank's own work.
            let longest = pair[1].iter().map(|(.., duration)| *duration).fold(0.0, f64::max);
            Some(RankStep {
                time: time.max(longest),
                communication: Some(duration.min(time.max(longest))),
                ..RankStep::default()
            })
        });
        RankSeries { rank: *rank, steps: steps.collect(), ..RankSeries::default() }
    });
    let mut ranks: Vec<RankSeries> = ranks.collect();
    let fewest = ranks.iter().map(|rank| rank.steps.len()).min().unwrap_or(0);
    ranks.iter_mut().for_each(|rank| rank.steps.truncate(fewest));
    if fewest == 0 {
        ranks.clear();
    }
    let transfers = groups.into_iter().map(|((_, ranks), times)| GroupTransfers { ranks, times });
    Ok(RankRecording { ranks, transfers: transfers.collect(), ..RankRecording::default() })
}
