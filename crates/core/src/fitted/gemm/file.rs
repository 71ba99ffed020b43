//! File format of the model of matrix products.

use super::costs::{
    ALONE, COUNT, Costs, LAUNCH, MERGE, READ, SECOND, SPLIT, START, STEP, TILE, TILE_NAMES, WRITE,
};
use super::{Alignment, Corrections, Family, GemmModel, Machine, Transposition, Variant};
use crate::precision::Precision;
use crate::quantity::{BytesPerSec, Flops, FlopsPerSec, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct GemmFile {
    multiprocessors: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Flops>,
    variant: Vec<FamilyEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FamilyEntry {
    precision: Precision,
    transposition: Transposition,
    alignment: Alignment,
    coefficients: Coefficients,
    /// None if the coefficients are assumed.
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

impl From<GemmModel> for GemmFile {
    fn from(model: GemmModel) -> Self {
        let entry = |(variant, alignment, family): (Variant, Alignment, Family)| FamilyEntry {
            precision: variant.precision,
            transposition: variant.transposition,
            alignment,
            coefficients: Coefficients::from_costs(&family.costs),
            corrections: family.corrections,
        };
        let families = model.variants.into_iter().flat_map(|(variant, families)| {
            families.into_iter().map(move |(alignment, family)| (variant, alignment, family))
        });
        Self {
            multiprocessors: model.machine.multiprocessors,
            budget: model.machine.budget,
            variant: families.map(entry).collect(),
        }
    }
}

impl TryFrom<GemmFile> for GemmModel {
    type Error = String;

    fn try_from(file: GemmFile) -> Result<Self, String> {
        if file.multiprocessors == 0 {
            return Err("a device without multiprocessors".to_owned());
        }
        let mut variants: BTreeMap<Variant, BTreeMap<Alignment, Family>> = BTreeMap::new();
        for entry in file.variant {
            let variant = Variant { precision: entry.precision, transposition: entry.transposition };
            let costs = entry
                .coefficients
                .costs()
                .ok_or_else(|| format!("a coefficient of {variant} is unusable"))?;
            if entry.corrections.as_ref().is_some_and(|corrections| !corrections.is_whole()) {
                return Err(format!("the corrections of {variant} are incomplete"));
            }
            let family = Family { costs, corrections: entry.corrections };
            variants.entry(variant).or_default().insert(entry.alignment, family);
        }
        let machine = Machine { multiprocessors: file.multiprocessors, budget: file.budget };
        Ok(Self { machine, variants })
    }
}

impl Coefficients {
    fn from_costs(Costs(costs): &Costs) -> Self {
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

    /// The costs, if all are given, finite and not negative.
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
