//! vTrain's single-node file, composed from the 32 profiles behind it.
//!
//! The 1,440 rows are vTrain's own simulations, not measurements, so that agreement with them tests composition, not
//! accuracy: 1F1B with blocking sends of twice the hidden states at a quarter of 800 Gibit/s, recomputation on all
//! stages but the last, begun before the gradient arrives and without its all-reduces, all-reduces from a table
//! rounded to MiB, the gradients of the first stage, the update of the slowest.
//!
//! The rows and the table are not part of the repository; without them the test prints a note and passes.

use super::{cases, held, number, plan};
use serde_json::Value;
use std::collections::HashMap;
use std::process::Command;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::schedules::{Sends, Sizes, Times, execute, orders};
use stepcast_core::model::transformer::Transformer;
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::{Implementation, Plan, ScheduleKind};

const PROFILES: &str = include_str!("../../../../../validation/transformer/vtrain-replay.json");
const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/published");
const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;
const VOCABULARY: u64 = 50_257;

/// Measured all-reduces in ms by ranks and MiB, and the rate of the largest by ranks.
#[derive(Default)]
struct Table {
    times: HashMap<(u64, u64), f64>,
    rates: HashMap<u64, f64>,
}

impl Table {
    fn read() -> Option<Self> {
        let path = format!("{PUBLISHED}/vtrain_nccl_allreduce_intranode.csv.gz");
        let out =
            Command::new("gzip").args(["-dc", &path]).output().ok().filter(|out| out.status.success())?;
        let text = String::from_utf8(out.stdout).unwrap();
        let mut table = Self::default();
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            if cells[1] == "a100" {
                let (ranks, bytes): (u64, u64) = (cells[2].parse().unwrap(), cells[4].parse().unwrap());
                let mib = bytes >> 20;
                table.times.insert((ranks, mib), cells[9].parse::<f64>().unwrap() / 1e6);
                if mib == 1024 {
                    table.rates.insert(ranks, cells[10].parse::<f64>().unwrap() * GIB);
                }
            }
        }
        Some(table)
    }

    /// Above 1 GiB the program divides by the rate of the bus, without the ring's factor.
    fn all_reduce(&self, ranks: u64, bytes: u64) -> f64 {
        let mib = ((bytes as f64 / MIB).round() as u64).max(1);
        match mib {
            _ if ranks == 1 => 0.0,
            0..=1024 => self.times[&(ranks, mib)],
            _ => 1e3 * (mib as f64 * MIB) / self.rates[&ranks],
        }
    }
}

struct Row {
    global_batch: u64,
    micro_batch: u64,
    shape: Transformer,
    split: Split,
    iteration: f64,
}

impl Row {
    fn parse(line: &str) -> Self {
        let mut cells = line.rsplit(',');
        let iteration: f64 = cells.next().unwrap().parse().unwrap();
        let mut next = || cells.next().unwrap().parse::<u64>().unwrap();
        let [pipeline, data, tensor] = [next(), next(), next()];
        let [sequence, layers, heads, hidden] = [next(), next(), next(), next()];
        let [micro_batch, global_batch] = [next(), next()];
        let shape =
            Transformer { tied: false, ..Transformer::gpt(layers, hidden, heads, VOCABULARY, sequence) };
        let split = Split { tensor, pipeline, data, ..Split::WHOLE };
        Self { global_batch, micro_batch, shape, split, iteration }
    }

    fn predict(&self, profile: &Value, table: &Table) -> f64 {
        let Split { tensor, pipeline, data, .. } = self.split;
        let time = |key: &str| profile[key].as_f64().unwrap();
        let states = self.shape.sequence * self.micro_batch * self.shape.hidden * 2;
        let reduce = 2.0 * table.all_reduce(tensor, states);
        let layers = (self.shape.layers / pipeline) as f64;
        let last = pipeline as usize - 1;
        let stage = |each: f64, first: f64, end: f64| {
            let mut times = vec![layers * each; last + 1];
            times[0] += first;
            times[last] += end;
            times
        };
        let seconds = |times: Vec<f64>| times.into_iter().map(Seconds::new).collect::<Vec<_>>();
        let forward = seconds(stage(time("layer_f_ms") + reduce, time("embed_f_ms"), time("head_f_ms")));
        let backward = seconds(stage(time("layer_b_ms") + reduce, time("embed_b_ms"), time("head_b_ms")));
        let mut ahead = seconds(stage(time("layer_f_ms"), 0.0, 0.0));
        ahead[last] = Seconds::ZERO;
        let micro_batches = self.global_batch / (data * self.micro_batch);
        let kind = ScheduleKind::OneFOneB;
        let sizes =
            Sizes { stages: pipeline as u32, micro_batches: micro_batches as u32, chunks: 1, group: None };
        let send = Seconds::new(1e3 * 2.0 * states as f64 / (800.0 * GIB / 8.0 / 4.0));
        let times =
            Times { ahead: &ahead, send, sends: Sends::Blocking, ..Times::new(&forward, &backward, &[]) };
        let timeline = execute(kind, &sizes, &orders(kind, &sizes), &times).unwrap();
        let updates = stage(time("update_layer_ms"), time("update_embed_ms"), time("update_head_ms"));
        let update = updates.into_iter().fold(0.0, f64::max);
        timeline.last_end[0].get() + table.all_reduce(data, 2 * self.parameters()) + update
    }

    fn parameters(&self) -> u64 {
        let Split { tensor, pipeline, .. } = self.split;
        let plan = Plan { tensor, pipeline, ..plan(Implementation::Textbook) };
        let (dense, _) = held(&self.shape, &plan).stage_parameters(0);
        dense
    }
}

#[test]
fn all_rows_follow_from_the_profiles() {
    let rows = std::fs::read_to_string(format!("{PUBLISHED}/vtrain_megatron_deepspeed_a100_singlenode.csv"));
    let (Ok(rows), Some(table)) = (rows, Table::read()) else {
        eprintln!("skipped: no rows at {PUBLISHED}");
        return;
    };
    let profiles: HashMap<[u64; 3], Value> = cases(PROFILES)
        .into_iter()
        .map(|case| (["hidden", "tp", "micro_batch"].map(|key| number(&case, key)), case))
        .collect();
    assert_eq!(profiles.len(), 32);
    let (mut count, mut worst) = (0, 0.0_f64);
    for line in rows.lines().skip(1) {
        let row = Row::parse(line);
        let profile = &profiles[&[row.shape.hidden, row.split.tensor, row.micro_batch]];
        let error = (row.predict(profile, &table) / row.iteration - 1.0).abs();
        (count, worst) = (count + 1, worst.max(error));
    }
    assert_eq!(count, 1440);
    assert!(worst < 1e-6, "{worst}");
}
