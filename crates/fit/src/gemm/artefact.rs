//! The model of products as a TOML text, and back.

use super::alignment::Alignment;
use super::corrections::Corrections;
use super::costs::{
    ALONE, COUNT, Costs, LAUNCH, MERGE, READ, SECOND, SPLIT, START, STEP, TILE, TILE_NAMES, WRITE,
};
use super::model::{Fitted, GemmModel, Machine};
use super::{Transposition, Variant};
use crate::artefact::{Errors, Provenance};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepcast_core::device::Precision;
use stepcast_core::quantity::{BytesPerSec, Flops, FlopsPerSec, Seconds};

const KIND: &str = "gemm";
const FORMULA: &str = "\
time = queued + (alone + kernel - queued) / calls; calls = budget / flops, from 1 to 20; \
queued = (host^4 + kernel^4)^(1/4); host = launch + [two kernels] second; \
kernel = least over tiles and splits of \
max(waves * 2 * tile * steps / rate(tile), (mk + kn) / read) + mn / write + start + steps * step \
+ [split > 1] (split_start + split * mn / merge); \
waves = ceil(tiles of C * split / multiprocessors), steps = k / split; \
times exp(log-ratio) interpolated between nodes";
const MEANING: [(&str, &str); 13] = [
    ("alignment", "largest unit in which rows of all matrices can be copied: other units take other kernels"),
    ("alone", "what the first call of a queue costs beside its kernel"),
    ("budget", "operations after which a queue of timed calls ended"),
    ("launch", "what the host needs for a call in a queue of calls"),
    ("merge", "rate at which partial sums of a split k are added"),
    ("read", "rate at which A and B are read"),
    ("second", "what the host needs for a second kernel of the same call"),
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
    budget: Option<Flops>,
    provenance: Provenance,
    variant: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    precision: Precision,
    transposition: Transposition,
    alignment: Alignment,
    /// Of the variant with all alignments.
    errors: Errors,
    coefficients: Coefficients,
    /// None where the coefficients are assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrections: Option<Corrections>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Coefficients {
    launch: Seconds,
    second: Seconds,
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
        let entry = |variant: &Variant, alignment: &Alignment, fitted: &Fitted| {
            errors.get(variant).map(|errors| Entry {
                precision: variant.precision,
                transposition: variant.transposition,
                alignment: *alignment,
                errors: *errors,
                coefficients: Coefficients::of(&fitted.costs),
                corrections: fitted.corrections.clone(),
            })
        };
        let entries = |(variant, families): (&Variant, &BTreeMap<Alignment, Fitted>)| {
            families
                .iter()
                .filter_map(|(alignment, fitted)| entry(variant, alignment, fitted))
                .collect::<Vec<_>>()
        };
        toml::to_string(&File {
            kind: KIND.to_owned(),
            multiprocessors: self.machine.multiprocessors,
            budget: self.machine.budget,
            provenance: Provenance::new(FORMULA, source, date, &MEANING),
            variant: self.variants.iter().flat_map(entries).collect(),
        })
    }

    /// Reads the text of such a file; the error says what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.kind != KIND || file.multiprocessors == 0 {
            return Err(format!("it is no fit of matrix products: kind = \"{}\"", file.kind));
        }
        let mut variants: BTreeMap<Variant, BTreeMap<Alignment, Fitted>> = BTreeMap::new();
        for entry in file.variant {
            let variant = Variant { precision: entry.precision, transposition: entry.transposition };
            let costs = entry
                .coefficients
                .costs()
                .ok_or_else(|| format!("a coefficient of {variant} is unusable"))?;
            if entry.corrections.as_ref().is_some_and(|corrections| !corrections.is_whole()) {
                return Err(format!("the corrections of {variant} are incomplete"));
            }
            let fitted = Fitted { costs, corrections: entry.corrections };
            variants.entry(variant).or_default().insert(entry.alignment, fitted);
        }
        let machine = Machine { multiprocessors: file.multiprocessors, budget: file.budget };
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
            second: time(SECOND),
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
            (SECOND, self.second),
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
