//! Step times of a running job: from a table, from the log of a framework, or from plain lines.
//! Also a running forecast: the end of a run, its cost and the probability of meeting a deadline, from its log. The rest of a
//! run takes its steps at their measured times, plus losses by interruptions. The rate and the cost of interruptions are means of
//! the log and of the scenario's failures, or of published runs, over the same time. The number of interruptions to come is
//! Poisson with a gamma distribution of its rate, so that its variance exceeds its mean by mean² / shape (Gelman et al., Bayesian
//! Data Analysis, section 2.6).

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use std::collections::BTreeMap;
use stepcast_core::fault::Fault;
use stepcast_core::machine::Reliability;
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_stats::{NORMAL_95, mean_and_half_width, normal_below, quantile, student_t_975};

const MOST_STEPS: usize = 1_000_000;

/// One measured step in a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// The step time.
    Step(Seconds),
    /// Samples of all workers in a second.
    Throughput(SamplesPerSec),
    /// Tokens of one device in a second.
    TokensPerDevice(f64),
}

/// A figure in the log of a framework: the words before it, and its meaning.
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

/// All steps in a text. It is a table if its first line has a column `step-time` or `throughput`. Otherwise it is the output of
/// Megatron-LM, DeepSpeed or torchtitan; failing that, progress bars; failing these, lines such as `41 ms`.
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
    // Validation, downloads and the loading of shards have separate bars.
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
fn known_reading(line: &str) -> Option<Reading> {
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

/// A progress bar of Lightning or tqdm, with its label: `Epoch 3:  12%|▏ | 12/100 [00:04<00:30, 3.41it/s]`.
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

/// A gap between two lines that exceeds their steps by this many of them, and by this many seconds, is a pause.
const PAUSE_STEPS: f64 = 3.0;
const PAUSE_SECONDS: f64 = 30.0;
/// Steps whose mean is one observation: neighbours are alike.
const BLOCK: usize = 10;

/// A line of a log with the progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgressLine {
    /// Seconds since 1970, if the line has a time.
    pub at: Option<f64>,
    /// The number of its step.
    pub step: u64,
    /// The number of all steps, if the line says so.
    pub of: Option<u64>,
    /// The measurement.
    pub reading: Reading,
}

/// Lines of Megatron-LM, DeepSpeed and torchtitan that have the number of their step.
pub fn read_progress(text: &str) -> Vec<ProgressLine> {
    let line = |line: &str| {
        let reading = known_reading(line)?;
        let (step, of) = step_number(line)?;
        Some(ProgressLine { at: timestamp(line), step, of, reading })
    };
    text.split(['\n', '\r']).filter_map(line).collect()
}

/// `iteration       10/  500000`, `step: 20`, `step=20`.
fn step_number(line: &str) -> Option<(u64, Option<u64>)> {
    let after = ["iteration", "step:", "step="]
        .iter()
        .find_map(|word| Some(line.split_once(word)?.1.trim_start()))?;
    let digits = |text: &str| -> Option<(u64, usize)> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        Some((text[..end].parse().ok()?, end))
    };
    let (step, end) = digits(after)?;
    let of = after[end..].trim_start().strip_prefix('/').and_then(|rest| digits(rest.trim_start()));
    Some((step, of.map(|(of, _)| of)))
}

/// `2024-05-01 12:02:10` anywhere in a line, as seconds since 1970.
fn timestamp(line: &str) -> Option<f64> {
    let bytes = line.as_bytes();
    let shape = b"dddd-dd-dd dd:dd:dd";
    let fits = |window: &&[u8]| {
        window.iter().zip(shape).all(|(c, of)| match of {
            b'd' => c.is_ascii_digit(),
            b' ' => *c == b' ' || *c == b'T',
            other => c == other,
        })
    };
    let found = bytes.windows(shape.len()).find(fits)?;
    let number = |from: usize, to: usize| {
        found[from..to].iter().fold(0_i64, |sum, digit| 10 * sum + i64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    // Days of the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some((days * 86_400 + number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19)) as f64)
}

/// Forecast of a running job.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct RunningForecast {
    /// Steps that are done and kept.
    pub done: u64,
    /// All steps.
    pub steps: u64,
    /// Time since the first line of the log.
    #[serde(rename = "elapsed_s", with = "InBaseUnits")]
    pub elapsed: Seconds,
    /// The share of the elapsed time spent in steps that are kept.
    pub goodput: f64,
    /// Number of restarts.
    pub restarts: u64,
    /// Steps that were repeated.
    pub lost_steps: u64,
    /// Number of pauses.
    pub pauses: u64,
    /// Total duration of the pauses.
    #[serde(rename = "paused_s", with = "InBaseUnits")]
    pub paused: Seconds,
    /// The rest of the run, with interruptions as before.
    #[serde(rename = "rest_s", with = "InBaseUnits")]
    pub rest: Seconds,
    /// Its 90 % interval.
    #[serde(rename = "rest_interval_s")]
    #[serde_as(as = "[InBaseUnits; 2]")]
    pub rest_interval: [Seconds; 2],
    /// Cost of the whole run, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The probability of meeting the deadline, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_time: Option<f64>,
}

/// The rest of a run from its log. `steps` is the number of all steps, if the log does not say it; the deadline counts from the
/// first line.
pub fn follow(
    scenario: &Scenario,
    lines: &[ProgressLine],
    step_time: &dyn Fn(&Reading) -> Result<Seconds, Fault>,
    steps: Option<u64>,
    deadline: Option<Seconds>,
) -> Result<RunningForecast, Fault> {
    let times: Vec<f64> =
        lines.iter().map(|line| Ok(step_time(&line.reading)?.get())).collect::<Result<_, Fault>>()?;
    let (Some(first), Some(last), true) = (lines.first(), lines.last(), lines.len() > 1) else {
        let reason = "the log has fewer than two lines with the number and time of a step";
        return Err(Fault::new(reason, "give a log of Megatron-LM, DeepSpeed or torchtitan, or wait"));
    };
    let Some(steps) = last.of.or(steps) else {
        let reason = "the number of all steps is not known";
        return Err(Fault::new(reason, "add `[data]` with samples and epochs, or `tokens` to `[plan]`"));
    };
    let usual = quantile(&mut times.clone(), 0.5);
    let mut state = Interruptions::default();
    for (pair, time) in lines.windows(2).zip(&times[1..]) {
        state.add(pair[0], pair[1], *time);
    }
    let done = last.step.min(steps);
    let kept = last.step.saturating_sub(first.step) as f64;
    let useful = kept * usual;
    let elapsed = match (first.at, last.at) {
        (Some(start), Some(end)) if end > start => end - start,
        _ => useful + state.lost_steps as f64 * usual + state.paused,
    };
    let prior = Prior::new(scenario, usual)?;
    let events = (state.restarts + state.pauses) as f64;
    let lost = state.lost_steps as f64 * usual + state.paused;
    // The expected interruptions over the same time count as much as the log's.
    let before = elapsed / prior.between;
    let (shape, rate) = (events + before, (events + before) / (2.0 * elapsed));
    let each = (lost + before * prior.lost) / shape;
    let (mean_step, step_error) = mean_of_blocks(&times);
    let left = steps.saturating_sub(done) as f64;
    let stepping = left * mean_step;
    let expected = rate * stepping;
    let mean = stepping + expected * each;
    let variance = (stepping * step_error).powi(2) + each.powi(2) * (expected + expected.powi(2) / shape);
    let spread = variance.sqrt();
    let interval =
        [mean - NORMAL_95 * spread, mean + NORMAL_95 * spread].map(|end| Seconds::new(end.max(0.0)));
    Ok(RunningForecast {
        done,
        steps,
        elapsed: Seconds::new(elapsed),
        goodput: (useful / elapsed.max(useful)).min(1.0),
        restarts: state.restarts,
        lost_steps: state.lost_steps,
        pauses: state.pauses,
        paused: Seconds::new(state.paused),
        rest: Seconds::new(mean),
        rest_interval: interval,
        cost: scenario.hourly_cost().map(|hourly| hourly * (elapsed + mean) / 3600.0),
        in_time: deadline.map(|deadline| normal_below((deadline.get() - elapsed - mean) / spread.max(1e-9))),
    })
}

/// The mean of steps, and the standard deviation of its logarithm.
fn mean_of_blocks(times: &[f64]) -> (f64, f64) {
    let size = if times.len() >= 3 * BLOCK { BLOCK } else { 1 };
    let blocks: Vec<f64> = times.chunks_exact(size).map(stepcast_stats::mean).collect();
    let (mean, half_width) = mean_and_half_width(&blocks);
    (mean, half_width / student_t_975(blocks.len().saturating_sub(1)) / mean)
}

/// Interruptions in a log.
#[derive(Default)]
struct Interruptions {
    restarts: u64,
    lost_steps: u64,
    pauses: u64,
    paused: f64,
}

impl Interruptions {
    fn add(&mut self, before: ProgressLine, now: ProgressLine, time: f64) {
        let made = now.step.saturating_sub(before.step).max(1);
        let is_restart = now.step <= before.step;
        if is_restart {
            self.restarts += 1;
            self.lost_steps += before.step - now.step + 1;
        }
        let Some(gap) = now.at.zip(before.at).map(|(now, before)| now - before - made as f64 * time) else {
            return;
        };
        if is_restart && gap > 0.0 {
            self.paused += gap;
        } else if gap > (PAUSE_STEPS * time).max(PAUSE_SECONDS) {
            self.pauses += 1;
            self.paused += gap;
        }
    }
}

/// Prior of interruptions from the scenario's failures, or from published runs.
struct Prior {
    between: f64,
    lost: f64,
}

impl Prior {
    fn new(scenario: &Scenario, step: f64) -> Result<Self, Fault> {
        let (assumed, given) = (Reliability::shipped()?, scenario.failures);
        let rate = given.and_then(|own| own.rate).unwrap_or(assumed.interruptions.value);
        let time = |given: Option<Seconds>, assumed: f64| given.map_or(assumed, Seconds::get);
        let restart = time(given.and_then(|own| own.detection), assumed.detection.value)
            + time(given.and_then(|own| own.restart), assumed.restart.value);
        let between = 3600.0 / (rate * scenario.cluster.workers() as f64).max(1e-12);
        // Half of the work between two checkpoints is lost on average.
        let half = 0.5 * given.and_then(|own| own.interval).map_or(0.0, Seconds::get);
        Ok(Self { between, lost: restart + half.max(step) })
    }
}
