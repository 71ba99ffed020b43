//! Documentation of every key of a scenario file.

use super::{
    ClusterSection, DataSection, EnergySection, FailuresSection, InputSection, KernelsSection, LineSection,
    MethodsSection, ModelSection, OfferSection, Oyama2016Section, PerParameterSection, PlanningSection,
    PriceSection, SgemmSection, SimulateSection, Zeng2023Section,
};
use crate::fault::{Fault, shown};
use crate::keys::KeyDoc;
use crate::machine::{
    BesideSection, DeviceSection, NetworkSection, NodesSection, ServersSection, WorkersSection,
};
use crate::model::transformer::{DeltaSection, ExpertsSection, MambaSection, MlaSection, TransformerSection};
use crate::strategy::{AllReduceSection, CurveSection, FusionSection, PlanSection, StrategySection};
use crate::suggest;
use crate::text::key_parts;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::LazyLock;

/// A section of a scenario file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SectionDoc {
    /// Path, such as "cluster.network".
    pub path: &'static str,
    /// Its keys, in order.
    pub keys: Vec<KeyDoc>,
}

/// All sections, in the order of docs/scenario.md.
pub fn documentation() -> Vec<SectionDoc> {
    let section = |path, keys| SectionDoc { path, keys };
    vec![
        section("model", ModelSection::documentation()),
        section("model.transformer", TransformerSection::documentation()),
        section("model.transformer.experts", ExpertsSection::documentation()),
        section("model.transformer.mla", MlaSection::documentation()),
        section("model.transformer.delta", DeltaSection::documentation()),
        section("model.transformer.mamba", MambaSection::documentation()),
        section("cluster", ClusterSection::documentation()),
        section("cluster.workers", WorkersSection::documentation()),
        section("cluster.workers.device", DeviceSection::documentation()),
        section("cluster.beside", BesideSection::documentation()),
        section("cluster.network", NetworkSection::documentation()),
        section("cluster.servers", ServersSection::documentation()),
        section("cluster.nodes", NodesSection::documentation()),
        section("strategy", StrategySection::documentation()),
        section("strategy.all-reduce", AllReduceSection::documentation()),
        section("strategy.all-reduce.curve", CurveSection::documentation()),
        section("strategy.fusion", FusionSection::documentation()),
        section("strategy.plan", PlanSection::documentation()),
        section("input", InputSection::documentation()),
        section("data", DataSection::documentation()),
        section("price", PriceSection::documentation()),
        section("plan", PlanningSection::documentation()),
        section("plan.offers", OfferSection::documentation()),
        section("failures", FailuresSection::documentation()),
        section("energy", EnergySection::documentation()),
        section("methods", MethodsSection::documentation()),
        section("methods.zeng2023", Zeng2023Section::documentation()),
        section("methods.oyama2016", Oyama2016Section::documentation()),
        section("methods.oyama2016.load-image", LineSection::documentation()),
        section("methods.oyama2016.per-parameter", PerParameterSection::documentation()),
        section("methods.oyama2016.kernels", KernelsSection::documentation()),
        section("methods.oyama2016.kernels.sgemm", SgemmSection::documentation()),
        section("methods.simulate", SimulateSection::documentation()),
    ]
}

pub(super) static SECTIONS: LazyLock<Vec<SectionDoc>> = LazyLock::new(documentation);

/// The key that stands above all sections.
const AS_PUBLISHED: &str = "as-published";

/// The key with its section: `network.bandwidth` is `cluster.network.bandwidth`.
pub fn full_key(key: &str) -> Result<String, Fault> {
    key_parts(key)?;
    let first = key.split('.').next().unwrap_or_default();
    let mut tops = SECTIONS.iter().filter(|section| !section.path.contains('.'));
    if key == AS_PUBLISHED || tops.clone().any(|section| section.path == first) {
        return Ok(key.to_owned());
    }
    let has = |section: &&SectionDoc| section.keys.iter().any(|known| known.name == first);
    if let Some(section) = tops.clone().find(has) {
        return Ok(format!("{}.{key}", section.path));
    }
    let names =
        |section: &SectionDoc| section.keys.iter().map(|known| known.name.clone()).collect::<Vec<_>>();
    let mut known: Vec<String> = tops.clone().map(|section| section.path.to_owned()).collect();
    known.extend(tops.by_ref().flat_map(names));
    let otherwise = match &elsewhere(first)[..] {
        [] => "docs/scenario.md has all keys".to_owned(),
        sections => {
            let full: Vec<String> = sections.iter().map(|section| format!("`{section}.{first}`")).collect();
            format!("write {}", full.join(" or "))
        }
    };
    let remedy = suggest::remedy(first, known.iter().map(String::as_str), otherwise);
    Err(Fault::new(format!("no scenario has a key \"{}\"", shown(key)), remedy))
}

/// The sections that have a key of this name.
pub(super) fn elsewhere(name: &str) -> Vec<&'static str> {
    let has = |section: &&SectionDoc| section.keys.iter().any(|key| key.name == name);
    SECTIONS.iter().filter(has).map(|section| section.path).collect()
}

impl SectionDoc {
    pub fn markdown(&self) -> String {
        let mut text = String::from("| key | type | default | meaning |\n|---|---|---|---|\n");
        for KeyDoc { name, written, default, meaning, .. } in &self.keys {
            text.push_str(&format!("| `{name}` | {written} | {default} | {meaning} |\n"));
        }
        text
    }
}
