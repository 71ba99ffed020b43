//! The format of a scenario file, and the sections that contain other sections or are resolved by hand. The structs are
//! plain, without flattening or tagged enums, because those lose the position of an error.

use super::methods::MethodsSection;
use super::planning::{EnergySection, FailuresSection, PlanningSection};
use super::training::{DataSection, InputSection, PriceSection};
use crate::keys::{NameOr, document_keys};
use crate::machine::{BesideSection, NetworkSection, NodesSection, ServersSection, WorkersSection};
use crate::model::ModelFile;
use crate::model::transformer::{AdaptersSection, FrozenSection, TransformerSection};
use crate::strategy::StrategySection;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// A scenario file: TOML, in which everything except the model is optional.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScenarioFile {
    /// Whether to run each paper's method exactly as printed: nominal rates and counted operations only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_published: bool,
    /// The model to train: a section, or its name alone.
    #[serde(default, deserialize_with = "model_or_name")]
    pub model: ModelSection,
    /// The machines.
    #[serde(default)]
    pub cluster: ClusterSection,
    /// The way of training.
    #[serde(default)]
    pub strategy: StrategySection,
    /// How samples get to the workers.
    pub input: Option<InputSection>,
    /// The data set, for the epoch time.
    pub data: Option<DataSection>,
    /// The prices, for the cost.
    pub price: Option<PriceSection>,
    /// Choices of a search over plans.
    pub plan: Option<PlanningSection>,
    /// Failures of a long run.
    pub failures: Option<FailuresSection>,
    /// Factors from time to energy.
    pub energy: Option<EnergySection>,
    /// Inputs of individual methods.
    #[serde(default)]
    pub methods: MethodsSection,
}

document_keys! {
    /// `[model]`: the model to train.
    ModelSection {
        /// Name of a model in the zoo, from `stepcast models`.
        zoo: String, "string", "–";
        /// Layers of a custom model, see below.
        custom: ModelFile, "table", "–";
        /// Shape of a custom transformer, see below.
        transformer: TransformerSection, "table", "–";
        /// `config.json` of a Hugging Face model, beside the scenario.
        config: String, "path", "–";
        /// Tokens of one sample, for models whose samples are sequences.
        sequence: u64, "integer", "that of the model";
        /// Adapters of low rank, trained in place of a transformer's matrices, see below.
        adapters: AdaptersSection, "table", "everything is trained";
        /// Parts of a transformer that are not trained, see below.
        frozen: FrozenSection, "table", "none";
        /// File with measured steps of one worker, beside the scenario.
        profile: String, "path", "–";
        /// ONNX file of a model, beside the scenario.
        onnx: String, "path", "–";
        /// Lengths of dimensions that the ONNX file leaves open, by their names there.
        sizes: BTreeMap<String, u64>, "table of integers", "–";
        /// Operations that count beside multiply-adds: `"bias"`, `"activation"`, `"pooling"`, `"normalisation"`,
        /// `"elementwise"`.
        count: Vec<String>, "list of strings", "`[]`";
    }
}

/// Whether a path names an ONNX file.
pub fn is_onnx(path: &str) -> bool {
    path.ends_with(".onnx") || path.ends_with(".onnx.gz")
}

/// The key of `[model]` that a name alone means: a model of the zoo, an ONNX file or a `config.json`.
pub(super) fn key_of_name(name: &str) -> &'static str {
    match name {
        _ if is_onnx(name) => "onnx",
        _ if name.ends_with(".json") => "config",
        _ => "zoo",
    }
}

impl ModelSection {
    /// A model of the zoo, an ONNX file or a `config.json`.
    pub fn named(name: &str) -> Self {
        let given = Some(name.to_owned());
        match key_of_name(name) {
            "onnx" => Self { onnx: given, ..Self::default() },
            "config" => Self { config: given, ..Self::default() },
            _ => Self { zoo: given, ..Self::default() },
        }
    }
}

fn model_or_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelSection, D::Error> {
    Ok(match NameOr::deserialize(deserializer)? {
        NameOr::Name(name) => ModelSection::named(&name),
        NameOr::Table(section) => *section,
    })
}

document_keys! {
    /// `[cluster]`: the machines.
    ClusterSection {
        /// Groups of workers, see below.
        workers: Vec<WorkersSection>, "array of tables", "one group of defaults";
        /// Machines that are all alike: a name from `stepcast machines`, such as `"dgx-h100"`. It gives workers, network
        /// and nodes unless these sections do.
        machine: String, "name", "–";
        /// How many of them.
        machines: u32, "integer", "1";
        /// Machines of another kind in the same job, see below.
        beside: BesideSection, "table", "none";
        /// The network between all machines: a name from `stepcast networks`, a rate such as `"100 Gbit/s"`, or a table.
        network: NameOr<NetworkSection>, "name, rate or table", "the machine's, or `\"10gbe\"`";
        /// The parameter servers, see below.
        servers: ServersSection, "table", "none";
        /// Machines with several workers each, see below.
        nodes: NodesSection, "table", "as devices are sold, see below";
    }
}
