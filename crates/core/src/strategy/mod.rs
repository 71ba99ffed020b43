//! Training strategies: how workers exchange gradients and when they synchronise.

mod exchange;
mod fusion;
mod plan;

pub use exchange::{Algorithm, AllReduceSection, CurveSection, Exchange, Overlap, WireFormat};
pub use fusion::{
    BucketList, BufferReading, Fusion, FusionRule, FusionSection, HOROVOD_CYCLE, HOROVOD_THRESHOLD,
    PYTORCH_CAP, PYTORCH_FIRST,
};
pub(crate) use plan::plan_dimensions;
pub use plan::{
    Attention, COMPARED_EACH, COMPARED_LISTED, Coded, Conditions, ContextExchange, DIMENSIONS, Dimension,
    DimensionNames, Dispatcher, Division, Framework, Implementation, ListedValue, Loss, Mask, Offload,
    Offloaded, OverlapPreset, Overlaps, Plan, PlanChoice, PlanSection, Recipe, Recomputation, Recompute,
    Recomputed, ScheduleKind, Sends, Setting, SettingForm, Sharding, Shares, States, has_layers,
    layers_before, stage_share, usual_global_batch,
};

use crate::keys::{Check, keys, plain};
use crate::machine::MAX_BATCH;
use crate::precision::Precision;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// How gradients are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// Servers hold the parameters; workers push gradients to them and pull parameters from them.
    ParameterServer,
    /// Workers combine gradients among themselves.
    #[default]
    AllReduce,
    /// A single worker, without any exchange.
    StandAlone,
}

/// How workers synchronise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronisation {
    /// Bulk-synchronous: every step ends with a barrier.
    #[default]
    Bsp,
    /// Workers never wait for each other.
    Async,
    /// Stale-synchronous: no worker is more than this many steps ahead of the slowest.
    Ssp(u32),
    /// Bulk-synchronous every given number of steps; in between, workers train independently.
    LocalSgd(u32),
}

impl fmt::Display for Synchronisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bsp => f.write_str("bsp"),
            Self::Async => f.write_str("async"),
            Self::Ssp(bound) => write!(f, "ssp({bound})"),
            Self::LocalSgd(steps) => write!(f, "local-sgd({steps})"),
        }
    }
}

impl FromStr for Synchronisation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is not a synchronisation; use \"bsp\", \"async\", \"ssp(3)\" or \"local-sgd(8)\""
            )
        };
        let argument = |name: &str| {
            let inner = text.trim().strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')')?;
            inner.trim().parse::<u32>().ok()
        };
        match text.trim() {
            "bsp" => Ok(Self::Bsp),
            "async" => Ok(Self::Async),
            _ => match (argument("ssp"), argument("local-sgd")) {
                (Some(bound), _) => Ok(Self::Ssp(bound)),
                (_, Some(0)) => Err("local-sgd(0) never computes; use \"local-sgd(1)\" or more".to_owned()),
                (_, Some(steps)) => Ok(Self::LocalSgd(steps)),
                _ => Err(wrong()),
            },
        }
    }
}

impl JsonSchema for Synchronisation {
    fn schema_name() -> Cow<'static, str> {
        "Synchronisation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(bsp|async|ssp\([0-9]+\)|local-sgd\([1-9][0-9]*\))$" })
    }
}

impl Serialize for Synchronisation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Synchronisation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Default number of samples per worker and step.
const DEFAULT_BATCH: u32 = 32;

plain!(Architecture, "string");
plain!(Synchronisation, "string");

keys! {
    /// The way of training.
    #[derive(Debug, Clone, PartialEq)]
    struct Strategy;
    /// `[strategy]`: the way of training.
    section StrategySection;
    before {}
    keys {
        /// Who combines the gradients: `"parameter-server"`, `"all-reduce"`, or `"stand-alone"` for one worker alone. Servers
        /// are the default if `[cluster.servers]`, `async` or `ssp` is given, or a profile was recorded with them.
        architecture: Architecture => Architecture, default(Architecture::default()), Check::Any, Exchange;
        /// When workers wait for each other, see below.
        synchronisation: Synchronisation => Synchronisation, default(Synchronisation::default()), Check::Any, Exchange;
        /// Samples per worker and step; a profile brings its own.
        batch: u32 => u32, default(DEFAULT_BATCH), Check::Between(1, MAX_BATCH, "the number of samples per worker and step"), Load;
        /// Batches whose gradients a worker adds up before they are exchanged; for all-reduce.
        accumulation: u32 => u32, default(1_u32), Check::Between(1, 65_536, "a number such as 4"), Load;
        /// Number format of the arithmetic; gradients always travel as 32-bit numbers, unless `[strategy.all-reduce]` says
        /// otherwise.
        precision: Precision => Precision, default(Precision::default()), Check::Any, Choice;
        /// Update of weights: gradient descent with momentum, Adam, or without any state.
        optimiser: Optimiser => Optimiser, default(Optimiser::default()), Check::Any, Choice;
        /// Whether a compiler fuses element-wise layers (XLA, `torch.compile`).
        compiled: bool => bool, default(false), Check::Any, Choice;
        /// Whether images are stored with their channels last.
        channels_last: bool => bool, default(false), Check::Any, Choice;
    }
    after {
        /// How workers sum their gradients among themselves, see below.
        all_reduce: AllReduceSection, "table", "a ring";
        /// Which gradients travel together, see below.
        fusion: FusionSection, "table", "PyTorch's buckets";
        /// How a transformer is split over ranks, see below.
        plan: PlanSection, "table", "a usual one that fits";
    }
    made {
        /// How workers sum their gradients among themselves; for all-reduce.
        exchange: Exchange;
        /// How a transformer is split over ranks.
        plan: Option<Plan>;
    }
}

/// How weights are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Gradient descent with momentum.
    #[default]
    Sgd,
    /// Adam or AdamW.
    Adam,
    /// No state: plain gradient descent, or no update at all.
    None,
}

plain!(Optimiser, "`\"sgd\"`, `\"adam\"` or `\"none\"`");

impl Optimiser {
    /// Bytes that the update of a weight moves: weight, gradient and states are read, weight and states written.
    pub fn update_bytes(self) -> f64 {
        match self {
            Self::Sgd => 20.0,
            Self::Adam => 28.0,
            Self::None => 0.0,
        }
    }

    /// Bytes of the states of a weight, which stay in memory.
    pub fn state_bytes(self) -> f64 {
        match self {
            Self::Sgd => 4.0,
            Self::Adam => 8.0,
            Self::None => 0.0,
        }
    }
}
