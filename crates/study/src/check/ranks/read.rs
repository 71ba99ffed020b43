//! Recordings of several ranks: tables of `stepcast.watch`, traces of PyTorch's profiler, dumps of its flight recorder, and the
//! lines of Megatron-LM's straggler detector.
//!
//! In dumps of the flight recorder of NCCL (JSON, one file for each rank: `TORCH_NCCL_TRACE_BUFFER_SIZE`,
//! `TORCH_NCCL_ENABLE_TIMING`) the same collective has the same process group and number on all its ranks. The rank that arrives
//! last waits least, so the shortest duration of a collective is its transfer, and a rank's shorter wait is additional own
//! work. Clocks of machines differ, so that only durations are compared.

use super::super::log::time;
use super::{Extremes, GroupTransfers, RankRecording, RankSeries, RankStep};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_trace::{RankSteps, TracedStep, rank_traces};

/// Columns of a table; all but the first three may be left out. `transfer` is the time from the first byte that came from the
/// rank `peer` to the last.
const COLUMNS: [&str; 11] = [
    "rank",
    "step",
    "step-time",
    "communication",
    "data",
    "pause",
    "machine",
    "stage",
    "tokens",
    "peer",
    "transfer",
];
/// Bytes of all files that are read as text.
const MOST_BYTES: u64 = 256 << 20;
/// The mark of a line of Megatron-LM's straggler detector.
const STRAGGLERS: &str = "MxRtt/Rnk:";

/// The recording at a path: a folder with a file for each rank, a table, or a log. None if it is of no rank in particular.
pub fn read_ranks(path: &Path) -> Result<Option<RankRecording>, Fault> {
    let place = path.display().to_string();
    let unread = |error: std::io::Error| {
        Fault::in_file(place.clone(), format!("cannot read the recorded steps: {error}"), "check the path")
    };
    let is_folder = path.is_dir();
    let mut files: Vec<PathBuf> = match is_folder {
        true => fs::read_dir(path).map_err(unread)?.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        false => vec![path.to_owned()],
    };
    files.retain(|file| file.is_file());
    files.sort();
    let traces = rank_traces(path)?;
    if !traces.is_empty() {
        return recording(&place, traces.into_iter().map(from_trace).collect()).map(Some);
    }
    let bytes: u64 = files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    if is_folder && bytes > MOST_BYTES {
        let reason = format!("its files are larger than {} MiB", MOST_BYTES >> 20);
        return Err(Fault::in_file(place, reason, "give fewer ranks or steps"));
    }
    let text = |file: &PathBuf| {
        let bytes = fs::read(file).map_err(unread)?;
        Ok((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()))
    };
    let texts: Vec<(String, String)> = files.iter().map(text).collect::<Result<_, Fault>>()?;
    match read_rank_texts(&texts)? {
        None if is_folder => Err(Fault::in_file(
            place,
            "no file of it has steps of ranks",
            "give traces of PyTorch's profiler, dumps of its flight recorder as JSON, or tables of `stepcast.watch`",
        )),
        found => Ok(found),
    }
}

/// The recording in texts, each with the name of its file. None if they are of no rank in particular.
pub fn read_rank_texts(texts: &[(String, String)]) -> Result<Option<RankRecording>, Fault> {
    let mut table = RankTable::default();
    let mut dumps = Vec::new();
    for (name, text) in texts {
        if let Some(columns) = columns(text) {
            table.read(name, text, &columns)?;
        } else if is_dump(text) {
            dumps.push((rank_of(Path::new(name), dumps.len() as u64), name.clone(), text.clone()));
        } else if text.contains(STRAGGLERS) {
            return Ok(Some(RankRecording { extremes: straggler_lines(text), ..RankRecording::default() }));
        }
    }
    if !dumps.is_empty() {
        return read_dumps(&dumps).map(Some);
    }
    if table.series.is_empty() {
        return Ok(None);
    }
    let transfers = table.transfers.into_iter();
    let transfers = transfers.map(|((from, to), times)| GroupTransfers { ranks: vec![from, to], times });
    let place = texts.first().map_or("", |(name, _)| name);
    let found = recording(place, table.series.into_values().collect())?;
    Ok(Some(RankRecording { transfers: transfers.collect(), ..found }))
}

/// The ranks with equally many steps.
fn recording(place: &str, mut ranks: Vec<RankSeries>) -> Result<RankRecording, Fault> {
    ranks.sort_by_key(|rank| rank.rank);
    let steps = ranks.iter().map(|rank| rank.steps.len()).min().unwrap_or(0);
    if steps == 0 || ranks.windows(2).any(|pair| pair[0].rank == pair[1].rank) {
        let reason = "a rank has no steps, or occurs twice";
        return Err(Fault::in_file(place, reason, "give one recording of each rank, all of the same steps"));
    }
    ranks.iter_mut().for_each(|rank| rank.steps.truncate(steps));
    Ok(RankRecording { ranks, ..RankRecording::default() })
}

fn from_trace((rank, steps): RankSteps) -> RankSeries {
    let step = |step: TracedStep| RankStep {
        time: step.time.get(),
        communication: Some((step.time - step.computing - step.loading - step.silent).get().max(0.0)),
        data: step.loading.get(),
        silent: step.silent.get(),
        ..RankStep::default()
    };
    RankSeries { rank, steps: steps.into_iter().map(step).collect(), ..RankSeries::default() }
}

/// Where each of the columns is, if the first line of a text is the header of a table of ranks.
fn columns(text: &str) -> Option<[Option<usize>; COLUMNS.len()]> {
    let header: Vec<&str> = text.lines().next()?.split(',').map(str::trim).collect();
    let places = COLUMNS.map(|name| header.iter().position(|own| *own == name));
    places[..3].iter().all(Option::is_some).then_some(places)
}

#[derive(Default)]
struct RankTable {
    series: BTreeMap<u64, RankSeries>,
    transfers: BTreeMap<(u64, u64), Vec<f64>>,
}

impl RankTable {
    fn read(
        &mut self,
        name: &str,
        text: &str,
        columns: &[Option<usize>; COLUMNS.len()],
    ) -> Result<(), Fault> {
        for (index, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let cell = |column: usize| {
                columns[column].and_then(|at| cells.get(at)).copied().filter(|it| !it.is_empty())
            };
            let wrong = |column: usize| {
                let reason = format!("`{}` is no {}", cell(column).unwrap_or_default(), COLUMNS[column]);
                let remedy = "write whole numbers, and times such as 0.41 or `410 ms`";
                Fault::in_file(format!("{name}:{}", index + 1), reason, remedy)
            };
            let whole = |column: usize| {
                cell(column).map(|text| text.parse::<u64>().map_err(|_| wrong(column))).transpose()
            };
            let time = |column: usize| {
                let read =
                    |text: &str| time(text).map(Seconds::get).filter(|time| *time >= 0.0 && time.is_finite());
                cell(column).map(|text| read(text).ok_or_else(|| wrong(column))).transpose()
            };
            let rank = whole(0)?.ok_or_else(|| wrong(0))?;
            let own = self.series.entry(rank).or_insert_with(|| RankSeries { rank, ..RankSeries::default() });
            own.machine = cell(6).map(str::to_owned).or(own.machine.take());
            own.stage = whole(7)?.or(own.stage);
            own.steps.push(RankStep {
                time: time(2)?.filter(|time| *time > 0.0).ok_or_else(|| wrong(2))?,
                communication: time(3)?,
                data: time(4)?.unwrap_or(0.0),
                pause: time(5)?.unwrap_or(0.0),
                silent: 0.0,
                work: cell(8).map(|text| text.parse().map_err(|_| wrong(8))).transpose()?,
            });
            if let (Some(peer), Some(transfer)) = (whole(9)?, time(10)?) {
                self.transfers.entry((peer, rank)).or_default().push(transfer);
            }
        }
        Ok(())
    }
}

/// `… | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | … | MnDRtt/Rnk: 14.27ms/23 | MxDRtt/Rnk: 34.65ms/3 | …`
fn straggler_lines(text: &str) -> [Vec<Extremes>; 2] {
    let figure = |line: &str, key: &str| -> Option<(f64, u64)> {
        let (_, after) = line.split_once(key)?;
        let (time, rank) = after.trim_start().split_once("ms/")?;
        let end = rank.find(|c: char| !c.is_ascii_digit()).unwrap_or(rank.len());
        Some((time.trim().parse::<f64>().ok()? / 1e3, rank[..end].parse().ok()?))
    };
    ["Rtt/Rnk:", "DRtt/Rnk:"].map(|key| {
        let extremes = |line: &str| {
            let [least, most] = ["Mn", "Mx"].map(|end| figure(line, &format!("{end}{key}")));
            Some(Extremes { least: least?.0, most: most? })
                .filter(|it| it.least > 0.0 && it.most.0.is_finite())
        };
        text.lines().filter_map(extremes).collect()
    })
}

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

fn is_dump(text: &str) -> bool {
    let head: String = text.chars().take(4096).collect();
    text.trim_start().starts_with('{')
        && (head.contains("pg_config") || text.contains("\"collective_seq_id\""))
}

/// The rank of a dump: the number at the end of its name, as PyTorch writes it.
fn rank_of(path: &Path, otherwise: u64) -> u64 {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[digits..].parse().unwrap_or(otherwise)
}

/// The rank, when its host asked for a collective, and how long that took.
type Arrival = (u64, u64, f64);

fn read_dumps(dumps: &[(u64, String, String)]) -> Result<RankRecording, Fault> {
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
            // The host asks for collectives ahead of the device: the longer wait of the others is this rank's own work.
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
