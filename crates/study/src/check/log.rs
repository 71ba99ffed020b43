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

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Reading {
        read_steps("log", line).unwrap()[0]
    }

    #[test]
    fn logs_of_frameworks_are_read() {
        let step = |time: f64| Reading::Step(Seconds::new(time));
        for (line, reading) in [
            (
                " iteration 10/ 500 | consumed samples: 1280 | elapsed time per iteration (ms): 1234.5 |",
                step(1.2345),
            ),
            (
                "[titan] step: 20 loss: 7.1 memory: 40.2GiB(42.1%) tps: 6,512 mfu: 41%",
                Reading::TokensPerDevice(6512.0),
            ),
            ("SamplesPerSec=812.5, MemAllocated=1GB", Reading::Throughput(SamplesPerSec::new(812.5))),
            ("Epoch 0: 12%|#2 | 12/100 [00:04<00:30, 2.50it/s, loss=1.2]", step(0.4)),
            ("12/100 [00:24<02:30, 1.25s/it]", step(1.25)),
            ("41 ms", step(0.041)),
            ("0.5", step(0.5)),
        ] {
            assert_eq!(one(line), reading, "{line}");
        }
    }

    fn times(text: &str) -> Vec<f64> {
        let steps = read_steps("train.log", text).unwrap();
        let time = |reading: &Reading| match reading {
            Reading::Step(time) => time.get(),
            Reading::Throughput(rate) => rate.get(),
            Reading::TokensPerDevice(rate) => *rate,
        };
        steps.iter().map(time).collect()
    }

    #[test]
    fn megatron_prints_more_than_steps() {
        let log = "using world size: 64, data-parallel size: 4, tensor-model-parallel size: 8\n\
                   > building train, validation, and test datasets for GPT ...\n 12\n\
                   time (ms) | model-and-optimizer-setup: 4012.13 | train/valid/test-data-iterators-setup: 213.90\n\
                   [before the start of training step] datetime: 2024-05-01 12:00:00\n \
                   [2024-05-01 12:02:10] iteration       10/  500000 | consumed samples:        10240 | elapsed time per \
                   iteration (ms): 13245.6 | throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.5E-05 | global batch \
                   size:  1024 | lm loss: 9.128E+00 | loss scale: 1.0 | grad norm: 3.1 | number of skipped iterations: 0 |\n \
                   validation loss at iteration 10 | lm loss value: 9.0E+00 | lm loss PPL: 8.1E+03 |\n \
                   [2024-05-01 12:04:20] iteration       20/  500000 | consumed samples:        20480 | elapsed time per \
                   iteration (ms): 12987.1 | global batch size:  1024 | lm loss: 8.7E+00 |\n";
        assert_eq!(times(log), [13.2456, 12.9871]);
    }

    #[test]
    fn torchtitan_prints_in_colours() {
        let log = "[rank0]:[titan] 2025-01-01 00:00:00,000 - root - INFO - Training starts at step 1\n\
                   [rank0]:[titan] 2025-01-01 00:00:09,120 - root - INFO - \u{1b}[31mstep:  1  \u{1b}[32mloss: 12.2721  \
                   \u{1b}[33mmemory: 38.22GiB(40.23%)  \u{1b}[34mtps: 1,234  \u{1b}[36mtflops: 45.04  \u{1b}[35mmfu: 4.55%\u{1b}[39m\n\
                   [rank0]:[titan] 2025-01-01 00:00:20,310 - root - INFO - \u{1b}[31mstep: 10  \u{1b}[32mloss:  9.1  \
                   \u{1b}[33mmemory: 47.1GiB(49.6%)  \u{1b}[34mtps: 7,301  \u{1b}[36mtflops: 422.0  \u{1b}[35mmfu: 42.7%\u{1b}[39m\n";
        assert_eq!(times(log), [1234.0, 7301.0]);
    }

    #[test]
    fn bars_of_lightning_return_to_their_line() {
        let log = "GPU available: True (cuda), used: True\n\rSanity Checking DataLoader 0: 100%|##| 2/2 [00:01<00:00, 9.10it/s]\n\
                   \rTraining: |          | 0/? [00:00<?, ?it/s]\rEpoch 0:   0%|          | 0/100 [00:00<?, ?it/s]\
                   \rEpoch 0:   1%|1         | 1/100 [00:01<01:39,  0.50it/s, v_num=0, loss=7.1]\
                   \rEpoch 0:   2%|2         | 2/100 [00:01<01:00,  2.00it/s, v_num=0, loss=6.9]\
                   \rEpoch 0:   3%|3         | 3/100 [00:01<00:48,  2.50it/s, v_num=0, loss=6.8]\n\
                   \rValidation DataLoader 0:  50%|##| 5/10 [00:00<00:00, 20.1it/s]\rValidation DataLoader 0: 100%|##| 10/10 \
                   [00:00<00:00, 20.0it/s]\rEpoch 1:   1%|1         | 1/100 [00:00<00:40,  2.50it/s, v_num=0]\n";
        assert_eq!(times(log), [2.0, 0.5, 0.4, 0.4]);
        let trainer = "Loading checkpoint shards: 100%|##| 4/4 [00:10<00:00,  2.50s/it]\n\
                       \r  0%|          | 1/1000 [00:03<50:00,  3.00s/it]\r  0%|          | 2/1000 [00:05<40:00,  2.40s/it]\
                       {'loss': 2.1, 'learning_rate': 5e-05}\n";
        assert_eq!(times(trainer), [3.0, 2.4]);
    }

    #[test]
    fn plain_lines_may_be_mixed_with_words() {
        assert_eq!(times("started\r\n41 ms\r\n0.043\r\n\r\n1.2 s\r\n"), [0.041, 0.043, 1.2]);
    }

    #[test]
    fn tables_are_read_by_their_header() {
        let steps = read_steps("run.csv", "step,step-time\n1,41 ms\n2,0.043\n").unwrap();
        assert_eq!(steps.len(), 2);
        let rates = read_steps("run.csv", "throughput\n812 samples/s\n").unwrap();
        assert_eq!(rates, [Reading::Throughput(SamplesPerSec::new(812.0))]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let refused = |text: &str| read_steps("run.csv", text).unwrap_err().to_string();
        assert!(refused("").contains("no step times"));
        assert!(refused("hello\n").contains("no step times"));
        assert!(refused("step-time\nfast\n").contains("run.csv:2"));
        assert!(refused("step-time\n-1 s\n").contains("not positive"));
    }
}
