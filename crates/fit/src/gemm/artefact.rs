//! The model of products as a TOML text, and back.

use super::alignment::Alignment;
use super::corrections::Corrections;
use super::costs::{ALONE, COUNT, Costs, LAUNCH, MERGE, READ, SPLIT, START, STEP, TILE, TILE_NAMES, WRITE};
use super::model::{Fitted, GemmModel, Machine};
use super::{Transposition, Variant};
use crate::artefact::{Errors, Provenance};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use stepcast_core::device::Precision;
use stepcast_core::quantity::{BytesPerSec, Flops, FlopsPerSec, Seconds};

const KIND: &str = "gemm";
const FORMULA: &str = "\
time = (launch^4 + kernel^4)^(1/4) below `switch` operations, alone + kernel from there on; \
kernel = least over tiles and splits of \
max(waves * 2 * tile * steps / rate(tile), (mk + kn) / read) + mn / write + start + steps * step \
+ [split > 1] (split_start + split * mn / merge); \
waves = ceil(tiles of C * split / multiprocessors), steps = k / split; \
times exp(log-ratio) interpolated between nodes";
const MEANING: [(&str, &str); 10] = [
    ("alone", "what a call that is timed by itself costs beside its kernel"),
    ("launch", "what the host needs for a call in a queue of calls"),
    ("merge", "rate at which partial sums of a split k are added"),
    ("read", "rate at which A and B are read"),
    ("split", "what adding partial sums costs whatever their size"),
    ("start", "what a kernel costs whatever its size"),
    ("step", "latency of one element of k in the loop of a block"),
    ("tiles", "rate of one multiprocessor by the part of C that a block computes"),
    ("write", "rate at which C is written"),
    ("log-ratios", "ln(measured / kernels) at nodes half a doubling apart, k fastest, then n"),
];

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    kind: String,
    multiprocessors: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<Flops>,
    provenance: Provenance,
    variant: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    precision: Precision,
    transposition: Transposition,
    alignments: BTreeSet<Alignment>,
    errors: Errors,
    coefficients: Coefficients,
    corrections: Corrections,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Coefficients {
    launch: Seconds,
    alone: Seconds,
    start: Seconds,
    step: Seconds,
    read: BytesPerSec,
    write: BytesPerSec,
    split: Seconds,
    merge: BytesPerSec,
    tiles: BTreeMap<String, FlopsPerSec>,
}

impl GemmModel {
    /// The model as the text of a TOML file; `errors` are those of each variant.
    pub fn to_toml(
        &self,
        source: String,
        date: String,
        errors: &BTreeMap<Variant, Errors>,
    ) -> Result<String, toml::ser::Error> {
        let entry = |(variant, fitted): (&Variant, &Fitted)| {
            errors.get(variant).map(|errors| Entry {
                precision: variant.precision,
                transposition: variant.transposition,
                alignments: fitted.alignments.clone(),
                errors: *errors,
                coefficients: Coefficients::of(&fitted.costs),
                corrections: fitted.corrections.clone(),
            })
        };
        toml::to_string(&File {
            kind: KIND.to_owned(),
            multiprocessors: self.machine.multiprocessors,
            switch: self.machine.switch,
            provenance: Provenance::new(FORMULA, source, date, &MEANING),
            variant: self.variants.iter().filter_map(entry).collect(),
        })
    }

    /// Reads the text of such a file; the error says what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.kind != KIND || file.multiprocessors == 0 {
            return Err(format!("it is no fit of matrix products: kind = \"{}\"", file.kind));
        }
        let mut variants = BTreeMap::new();
        for entry in file.variant {
            let variant = Variant { precision: entry.precision, transposition: entry.transposition };
            let costs = entry
                .coefficients
                .costs()
                .ok_or_else(|| format!("a coefficient of {variant} is unusable"))?;
            if !entry.corrections.is_whole() {
                return Err(format!("the corrections of {variant} are incomplete"));
            }
            let fitted = Fitted { costs, corrections: entry.corrections, alignments: entry.alignments };
            variants.insert(variant, fitted);
        }
        let machine = Machine { multiprocessors: file.multiprocessors, switch: file.switch };
        Ok(Self { machine, variants })
    }
}

impl Coefficients {
    fn of(Costs(costs): &Costs) -> Self {
        let time = |place: usize| Seconds::new(costs[place]);
        let rate = |place: usize| BytesPerSec::new(costs[place].recip());
        let tile =
            |(tile, name): (usize, &&str)| ((*name).to_owned(), FlopsPerSec::new(costs[TILE + tile].recip()));
        Self {
            launch: time(LAUNCH),
            alone: time(ALONE),
            start: time(START),
            step: time(STEP),
            read: rate(READ),
            write: rate(WRITE),
            split: time(SPLIT),
            merge: rate(MERGE),
            tiles: TILE_NAMES.iter().enumerate().map(tile).collect(),
        }
    }

    /// The costs, if every one is there and none is negative or endless.
    fn costs(&self) -> Option<Costs> {
        let mut costs = [0.0; COUNT];
        for (place, time) in [
            (LAUNCH, self.launch),
            (ALONE, self.alone),
            (START, self.start),
            (STEP, self.step),
            (SPLIT, self.split),
        ] {
            costs[place] = time.get();
        }
        for (place, rate) in [(READ, self.read), (WRITE, self.write), (MERGE, self.merge)] {
            costs[place] = rate.get().recip();
        }
        for (tile, name) in TILE_NAMES.iter().enumerate() {
            costs[TILE + tile] = self.tiles.get(*name)?.get().recip();
        }
        costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0).then_some(Costs(costs))
    }
}
