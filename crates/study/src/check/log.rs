//! Step times of a running job: from a table, from the log of a framework, or from plain lines.

use std::collections::BTreeMap;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{SamplesPerSec, Seconds};

const MOST_STEPS: usize = 1_000_000;

/// One measured step, as a log states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// Its time.
    Step(Seconds),
    /// Samples of all workers in a second.
    Throughput(SamplesPerSec),
    /// Tokens of one device in a second.
    TokensPerDevice(f64),
}

/// A figure in the log of a framework: the words before it, and what it means.
struct Pattern {
    before: &'static str,
    reading: fn(f64) -> Reading,
}

/// What frameworks print: Megatron-LM, DeepSpeed, torchtitan.
const PATTERNS: [Pattern; 5] = [
    Pattern { before: "elapsed time per iteration (ms):", reading: milliseconds },
    Pattern { before: "elapsed time per iteration (s):", reading: seconds },
    Pattern { before: "iter time (s):", reading: seconds },
    Pattern { before: "SamplesPerSec=", reading: |rate| Reading::Throughput(SamplesPerSec::new(rate)) },
    Pattern { before: "tps:", reading: Reading::TokensPerDevice },
];

fn seconds(time: f64) -> Reading {
    Reading::Step(Seconds::new(time))
}

fn milliseconds(time: f64) -> Reading {
    seconds(time / 1e3)
}

/// All steps in a text. It is a table if its first line has a column `step-time` or `throughput`. Otherwise it is what
/// Megatron-LM, DeepSpeed or torchtitan print; without any of that, progress bars; without these, lines such as `41 ms`.
pub fn read_steps(name: &str, text: &str) -> Result<Vec<Reading>, Fault> {
    let remedy = "give lines such as `41 ms`, a table with a column `step-time` or `throughput`, or the log of \
                  Megatron-LM, DeepSpeed, torchtitan or Lightning";
    let header: Vec<&str> = text.lines().next().unwrap_or_default().split(',').map(str::trim).collect();
    let column = |wanted: &str| header.iter().position(|name| *name == wanted);
    let steps: Vec<Reading> = match (column("step-time"), column("throughput")) {
        (Some(place), _) => of_table(name, text, place, &|cell| time(cell).map(Reading::Step))?,
        (None, Some(place)) => {
            of_table(name, text, place, &|cell| throughput(cell).map(Reading::Throughput))?
        }
        (None, None) => of_log(text),
    };
    let is_positive = |reading: &Reading| {
        let figure = match reading {
            Reading::Step(time) => time.get(),
            Reading::Throughput(rate) => rate.get(),
            Reading::TokensPerDevice(rate) => *rate,
        };
        figure > 0.0 && figure.is_finite()
    };
    if steps.is_empty() {
        return Err(Fault::in_file(name, "no step times were found", remedy));
    }
    match steps.iter().all(is_positive) {
        true => Ok(steps),
        false => Err(Fault::in_file(name, "a step time is not positive", remedy)),
    }
}

fn of_table(
    name: &str,
    text: &str,
    place: usize,
    read: &dyn Fn(&str) -> Option<Reading>,
) -> Result<Vec<Reading>, Fault> {
    let rows = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
    let row = |(index, line): (usize, &str)| {
        let cell = line.split(',').nth(place).unwrap_or_default().trim();
        read(cell).ok_or_else(|| {
            let reason = format!("`{cell}` is neither a time nor a rate");
            Fault::in_file(format!("{name}:{}", index + 1), reason, "write `41 ms` or `812 samples/s`")
        })
    };
    rows.take(MOST_STEPS).map(row).collect()
}

pub(super) fn time(text: &str) -> Option<Seconds> {
    let plain = text.parse::<f64>().ok().map(Seconds::new);
    plain.or_else(|| text.parse().ok())
}

fn throughput(text: &str) -> Option<SamplesPerSec> {
    let plain = text.parse::<f64>().ok().map(SamplesPerSec::new);
    plain.or_else(|| text.parse().ok())
}

fn of_log(text: &str) -> Vec<Reading> {
    // Progress bars return to the beginning of their line.
    let lines = || text.split(['\n', '\r']);
    let known: Vec<Reading> = lines().filter_map(known_reading).take(MOST_STEPS).collect();
    if !known.is_empty() {
        return known;
    }
    let bars: Vec<(String, Reading)> = lines().filter_map(bar).take(MOST_STEPS).collect();
    // Validation, downloads and the loading of shards have bars of their own.
    let trains = |label: &str| label.is_empty() || label.starts_with("Epoch") || label.starts_with("Train");
    let mut by_label: BTreeMap<&str, usize> = BTreeMap::new();
    for (label, _) in &bars {
        *by_label.entry(label).or_default() += 1;
    }
    match by_label.iter().max_by_key(|(label, count)| (trains(label), **count)) {
        Some((most, _)) => {
            bars.iter().filter(|(label, _)| label == most).map(|(_, reading)| *reading).collect()
        }
        None => lines().filter_map(|line| time(line.trim()).map(Reading::Step)).take(MOST_STEPS).collect(),
    }
}

/// The figure of a line that Megatron-LM, DeepSpeed or torchtitan prints.
pub(super) fn known_reading(line: &str) -> Option<Reading> {
    PATTERNS.iter().find_map(|pattern| {
        let (_, after) = line.split_once(pattern.before)?;
        Some((pattern.reading)(number(after.trim_start())?))
    })
}

/// The number at the beginning of a text; commas group its digits.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | 'e' | '-' | '+'));
    text[..end.unwrap_or(text.len())].trim_end_matches(',').replace(',', "").parse().ok()
}

/// A progress bar, as Lightning and tqdm draw it, with what it counts: `Epoch 3:  12%|▏ | 12/100 [00:04<00:30, 3.41it/s]`.
fn bar(line: &str) -> Option<(String, Reading)> {
    let before = |unit: &str| {
        let (before, _) = line.split_once(unit)?;
        let start = before.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
        before.get(start..)?.parse::<f64>().ok()
    };
    let reading = before("it/s").map(|rate| seconds(1.0 / rate)).or_else(|| before("s/it").map(seconds))?;
    let label = line.split_once(':').map_or("", |(label, _)| label);
    let is_label = |c: &char| c.is_alphabetic() || *c == ' ';
    let label = if line.find('%') < line.find(':') { "" } else { label };
    Some((label.chars().filter(is_label).collect::<String>().trim().to_owned(), reading))
}
