//! Recordings of several ranks: tables of `stepcast.watch`, traces of PyTorch's profiler, dumps of its flight recorder, and the
//! lines of Megatron-LM's straggler detector.

use super::super::log::time;
use super::{Extremes, GroupTransfers, RankRecording, RankSeries, RankStep, flight};
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
        } else if flight::recognises(text) {
            dumps.push((flight::rank_of(Path::new(name), dumps.len() as u64), name.clone(), text.clone()));
        } else if text.contains(STRAGGLERS) {
            return Ok(Some(RankRecording { extremes: straggler_lines(text), ..RankRecording::default() }));
        }
    }
    if !dumps.is_empty() {
        return flight::read(&dumps).map(Some);
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
