//! Step times of a running job: from a table, from the log of a framework, or from plain lines.

use stepcast_core::fault::Fault;
use stepcast_core::quantity::{SamplesPerSec, Seconds};

/// Most steps that are read.
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

/// All steps in a text. It is a table if its first line has a column `step-time` or `throughput`; otherwise every line
/// is searched for what Megatron-LM, DeepSpeed, torchtitan or a progress bar print, or is one time such as `41 ms`.
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
        (None, None) => text.lines().filter_map(of_line).take(MOST_STEPS).collect(),
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

fn time(text: &str) -> Option<Seconds> {
    let plain = text.parse::<f64>().ok().map(Seconds::new);
    plain.or_else(|| text.parse().ok())
}

fn throughput(text: &str) -> Option<SamplesPerSec> {
    let plain = text.parse::<f64>().ok().map(SamplesPerSec::new);
    plain.or_else(|| text.parse().ok())
}

fn of_line(line: &str) -> Option<Reading> {
    let known = PATTERNS.iter().find_map(|pattern| {
        let (_, after) = line.split_once(pattern.before)?;
        Some((pattern.reading)(number(after.trim_start())?))
    });
    known.or_else(|| bar(line)).or_else(|| time(line.trim()).map(Reading::Step))
}

/// The number at the beginning of a text; commas group its digits.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | 'e' | '-' | '+'));
    text[..end.unwrap_or(text.len())].trim_end_matches(',').replace(',', "").parse().ok()
}

/// A progress bar, as Lightning and tqdm draw it: `3.41it/s` or `1.20s/it`.
fn bar(line: &str) -> Option<Reading> {
    let before = |unit: &str| {
        let (before, _) = line.split_once(unit)?;
        let start = before.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
        before.get(start..)?.parse::<f64>().ok()
    };
    before("it/s").map(|rate| seconds(1.0 / rate)).or_else(|| before("s/it").map(seconds))
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
