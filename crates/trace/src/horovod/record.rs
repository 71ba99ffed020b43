//! Events of a timeline, paired: every tensor is a separate process, and its phases nest.
//!
//! `NEGOTIATE_ALLREDUCE` goes from the first rank that is ready to the last, with an instant for each rank; `ALLREDUCE`
//! holds `WAIT_FOR_DATA`, `QUEUE`, `MEMCPY_IN_FUSION_BUFFER`, `NCCL_ALLREDUCE` or its like, `MEMCPY_OUT_FUSION_BUFFER`. Its
//! end has type and shape (horovod/common/timeline.cc).

use crate::import::tally;
use crate::objects::{Object, number, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Reductions beyond these are only counted.
const MOST_REDUCTIONS: usize = 2_000_000;
/// Phases nest three deep; and there are some twenty of them.
const DEEPEST: usize = 8;
const MOST_PHASES: usize = 64;
/// Longest wait for the device; a longer one shows that the tensor was submitted before it was computed (a guess).
const WAITED: f64 = 100e-6;
/// Seconds beyond which a time stamp is a mistake.
const LATEST: f64 = 1e10;

/// One reduction of one tensor; in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reduction {
    pub(super) tensor: usize,
    /// When rank 0 had it; the first rank, if rank 0 is not recorded.
    pub(super) ready: f64,
    pub(super) ended: f64,
    pub(super) wire: Option<(f64, f64)>,
}

#[derive(Debug, Default)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) bytes: Option<u64>,
    open: Vec<(String, f64)>,
    asked: Option<f64>,
    own: Option<f64>,
    computed: Option<f64>,
    wire: Option<(f64, f64)>,
}

/// How often a phase occurred and how long it took.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Phase {
    pub(super) count: u64,
    pub(super) total: f64,
    pub(super) longest: f64,
}

/// Takes events in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) tensors: Vec<Tensor>,
    pub(super) reductions: Vec<Reduction>,
    index: HashMap<String, usize>,
    phases: BTreeMap<String, Phase>,
    ranks: BTreeSet<u64>,
    cycles: Vec<f64>,
    others: BTreeSet<&'static str>,
    undated: usize,
    unpaired: usize,
    excess: usize,
    named: usize,
}

/// Bytes of a reduction here and in the resulting steps, and of a tensor with all its open phases.
const REDUCTION: usize = 400;
const TENSOR: usize = 2500;
/// Characters of a phase's name that are kept: all of Horovod's are shorter.
const LONGEST_PHASE: usize = 80;

impl Recorder {
    /// About how many bytes it holds.
    pub(super) fn held(&self) -> usize {
        self.reductions.len() * REDUCTION
            + self.tensors.len() * TENSOR
            + (self.cycles.len() + self.ranks.len()) * 32
            + self.named
    }

    pub(super) fn take(&mut self, event: &Object) {
        let Some(kind) = text(event.get("ph")) else { return };
        let name = text(event.get("name")).unwrap_or_default();
        if kind == "M" {
            if let (true, Some(tensor)) = (name == "process_name", self.tensor(event)) {
                let given = event.get("args").and_then(|args| text(args.get("name")));
                if let Some(given) = given {
                    self.named += 4 * given.len();
                    self.tensors[tensor].name = given.to_owned();
                }
            }
            return;
        }
        let time = number(event.get("ts")).map(|time| time / 1e6).filter(|time| time.abs() <= LATEST);
        let Some(time) = time else {
            self.undated += 1;
            return;
        };
        match kind {
            "B" => self.begin(event, name, time),
            "E" => self.end(event, time),
            "X" => self.rank_ready(event, name, time),
            "i" if name == "CYCLE_START" && self.cycles.len() < MOST_REDUCTIONS => self.cycles.push(time),
            _ => {}
        }
    }

    fn tensor(&mut self, event: &Object) -> Option<usize> {
        let process = match event.get("pid")? {
            Value::String(text) => text.clone(),
            other => number(Some(other))?.to_string(),
        };
        let next = self.tensors.len();
        if next >= MOST_REDUCTIONS {
            return None;
        }
        let tensor = *self.index.entry(process.clone()).or_insert(next);
        if tensor == next {
            self.named += 4 * process.len();
            self.tensors.push(Tensor { name: format!("tensor {process}"), ..Tensor::default() });
        }
        Some(tensor)
    }

    fn begin(&mut self, event: &Object, name: &str, time: f64) {
        let Some(index) = self.tensor(event) else { return };
        let tensor = &mut self.tensors[index];
        if tensor.open.len() == DEEPEST {
            self.unpaired += 1;
            tensor.open.clear();
        }
        if tensor.open.is_empty() && is_reduction(name.trim_start_matches("NEGOTIATE_")) {
            tensor.asked = tensor.asked.or(Some(time));
        }
        tensor.open.push((name.chars().take(LONGEST_PHASE).collect(), time));
    }

    fn rank_ready(&mut self, event: &Object, name: &str, time: f64) {
        let Ok(rank) = name.parse::<u64>() else { return };
        self.ranks.insert(rank.min(1 << 20));
        if let (0, Some(index)) = (rank, self.tensor(event)) {
            self.tensors[index].own = Some(time);
        }
    }

    fn end(&mut self, event: &Object, time: f64) {
        let Some(index) = self.tensor(event) else { return };
        let tensor = &mut self.tensors[index];
        let Some((name, began)) = tensor.open.pop() else {
            self.unpaired += 1;
            return;
        };
        let time = time.max(began);
        let top = tensor.open.is_empty();
        if !top && name.contains("ALLREDUCE") {
            tensor.wire = Some((began, time));
        }
        if name == "WAIT_FOR_DATA" && time - began > WAITED {
            tensor.computed = Some(time);
        }
        if top && is_reduction(&name) {
            tensor.bytes = tensor.bytes.or_else(|| size(event.get("args")?));
            let told = tensor.own.take().or(tensor.asked.take()).unwrap_or(began).min(time);
            let ready = tensor.computed.take().unwrap_or(told);
            let reduction = Reduction { tensor: index, ready, ended: time, wire: tensor.wire.take() };
            tensor.asked = None;
            if self.reductions.len() < MOST_REDUCTIONS {
                self.reductions.push(reduction);
            } else {
                self.excess += 1;
            }
        } else if top && !name.starts_with("NEGOTIATE_") {
            self.others.insert(kind(&name));
        }
        let known = self.phases.contains_key(&name);
        if known || self.phases.len() < MOST_PHASES {
            let phase = self.phases.entry(name).or_default();
            phase.count += 1;
            phase.total += time - began;
            phase.longest = phase.longest.max(time - began);
        }
    }

    pub(super) fn phases(&self) -> impl Iterator<Item = (&String, &Phase)> {
        self.phases.iter()
    }

    pub(super) fn ranks(&self) -> Option<u64> {
        Some(self.ranks.len() as u64).filter(|ranks| *ranks > 0)
    }

    /// Median seconds from one cycle to the next.
    pub(super) fn cycle(&self) -> Option<f64> {
        let mut gaps: Vec<f64> = self.cycles.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        gaps.get(gaps.len() / 2).copied().filter(|gap| *gap >= 0.0)
    }

    pub(super) fn report(&self, notes: &mut Vec<String>) {
        tally(notes, self.undated, "event", "ignored: no readable time");
        tally(notes, self.unpaired, "phase", "ignored: without a beginning or an end");
        tally(notes, self.excess, "reduction", "ignored: beyond the first two million");
        if !self.others.is_empty() {
            let kinds: Vec<&str> = self.others.iter().copied().collect();
            notes.push(format!("not taken for gradients: {}", kinds.join(", ")));
        }
    }
}

fn is_reduction(name: &str) -> bool {
    matches!(name, "ALLREDUCE" | "ADASUM")
}

fn kind(name: &str) -> &'static str {
    match name {
        "ALLGATHER" => "all-gathers",
        "BROADCAST" => "broadcasts",
        "ALLTOALL" => "all-to-alls",
        "REDUCESCATTER" => "reduce-scatters",
        _ => "other operations",
    }
}

/// Bytes of a tensor with this `dtype` and `shape`: `{"dtype": "float32", "shape": "[64, 3, 7, 7]"}`.
fn size(args: &Value) -> Option<u64> {
    let element: u64 = match text(args.get("dtype"))? {
        "uint8" | "int8" | "bool" => 1,
        "uint16" | "int16" | "float16" | "bfloat16" => 2,
        "int32" | "uint32" | "float32" => 4,
        "int64" | "uint64" | "float64" => 8,
        _ => return None,
    };
    let shape = text(args.get("shape"))?.trim().strip_prefix('[')?.strip_suffix(']')?;
    let dimensions = shape.split(',').map(str::trim).filter(|dimension| !dimension.is_empty());
    dimensions
        .map(|dimension| dimension.parse::<u64>().ok())
        .try_fold(element, |size, dimension| size.checked_mul(dimension?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_from_type_and_shape() {
        let size = |dtype: &str, shape: &str| size(&serde_json::json!({"dtype": dtype, "shape": shape}));
        assert_eq!(size("float32", "[64, 3, 7, 7]"), Some(37_632));
        assert_eq!(size("float16", "[]"), Some(2));
        assert_eq!(size("int64", "[0]"), Some(0));
        for (dtype, shape) in
            [("complex", "[1]"), ("float32", "64"), ("float32", "[-1]"), ("int8", "[9999999999, 9999999999]")]
        {
            assert_eq!(size(dtype, shape), None, "{dtype} {shape}");
        }
    }
}
