//! Figures of a recording, in a form that a caller can print without knowing the format.

use crate::files::Content;
use crate::import::Imported;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value as Json};
use serde_with::{serde_as, skip_serializing_none};
use stepcast_core::model::Model;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::{Bytes, BytesPerSec, InBaseUnits, Seconds};

/// Overview of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Overview {
    /// The file that was written, if any.
    pub written: Option<String>,
    /// Name of the model.
    pub name: String,
    /// Figures of its content.
    #[serde(flatten)]
    pub contents: ContentFigures,
    /// Further figures of the format.
    #[serde(rename = "found", skip_serializing_if = "is_empty", serialize_with = "as_map")]
    #[schemars(with = "Option<Map<String, Json>>")]
    pub summary: Summary,
    /// Notes on repaired, omitted or odd parts.
    pub notes: Vec<String>,
}

/// A profile or a model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Contents")]
pub enum ContentFigures {
    /// Measured steps.
    Profile(StepFigures),
    /// A network.
    Model {
        /// Number of layers.
        layers: usize,
        /// Number of parameters.
        parameters: u64,
    },
}

/// The steps of a profile.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Steps")]
pub struct StepFigures {
    /// Source of the profile.
    pub source: String,
    /// Samples of one step.
    pub batch: u32,
    /// Number of steps.
    pub steps: usize,
    /// Mean length.
    #[serde(rename = "mean_step_s")]
    #[serde_as(as = "InBaseUnits")]
    pub mean: Seconds,
    /// Standard deviation.
    #[serde(rename = "step_deviation_s")]
    #[serde_as(as = "InBaseUnits")]
    pub deviation: Seconds,
    /// The shortest.
    #[serde(rename = "shortest_step_s")]
    #[serde_as(as = "InBaseUnits")]
    pub shortest: Seconds,
    /// The longest.
    #[serde(rename = "longest_step_s")]
    #[serde_as(as = "InBaseUnits")]
    pub longest: Seconds,
    /// Resources that they use.
    pub resources: Vec<ResourceUsage>,
}

/// One resource in a mean step.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub struct ResourceUsage {
    /// The resource.
    pub resource: Resource,
    /// Operations that use it.
    pub operations: usize,
    /// Payload; transfers only.
    pub bytes: Option<u64>,
    /// Time that its operations take together; computing only, because transfers wait for each other.
    #[serde(rename = "busy_s")]
    pub busy: Option<f64>,
}

impl Overview {
    pub fn new(imported: &Imported, written: Option<String>) -> Self {
        let (name, contents) = match &imported.content {
            Content::Profile(profile) => (&profile.name, ContentFigures::Profile(StepFigures::new(profile))),
            Content::Model(model) => (&model.name, model_figures(model)),
        };
        Self {
            written,
            name: name.clone(),
            contents,
            summary: imported.summary.clone(),
            notes: imported.notes.clone(),
        }
    }
}

fn model_figures(model: &Model) -> ContentFigures {
    ContentFigures::Model { layers: model.layers().len(), parameters: model.parameters() }
}

impl StepFigures {
    fn new(profile: &Profile) -> Self {
        let lengths = || profile.steps.iter().map(|step| step.length);
        let mean = profile.mean_step();
        let squares: f64 = lengths().map(|length| (length - mean.get()).powi(2)).sum();
        let freedom = profile.steps.len().saturating_sub(1).max(1) as f64;
        let resources = [Resource::Downlink, Resource::Worker, Resource::Uplink, Resource::Server];
        Self {
            source: profile.source.clone(),
            batch: profile.batch,
            steps: profile.steps.len(),
            mean,
            deviation: Seconds::new((squares / freedom).sqrt()),
            shortest: Seconds::new(lengths().fold(f64::INFINITY, f64::min)),
            longest: Seconds::new(lengths().fold(0.0, f64::max)),
            resources: resources.map(|resource| ResourceUsage::new(profile, resource)).into(),
        }
    }
}

impl ResourceUsage {
    fn new(profile: &Profile, resource: Resource) -> Self {
        let indices =
            || (0..profile.operations.len()).filter(|&op| profile.operations[op].resource == resource);
        let busy: Seconds =
            indices().flat_map(|op| profile.steps.iter().map(move |step| step.duration(op))).sum();
        let bytes = indices().map(|op| profile.operations[op].bytes).fold(0, u64::saturating_add);
        let transfer = resource.is_transfer();
        Self {
            resource,
            operations: indices().count(),
            bytes: transfer.then_some(bytes),
            busy: (!transfer).then(|| busy.get() / profile.steps.len() as f64),
        }
    }
}

fn is_empty(summary: &Summary) -> bool {
    summary.figures.is_empty() && summary.tables.is_empty()
}

/// `{"idle": 0.2, "buckets": [{"bytes": …}]}`: keys carry their units.
fn as_map<S: Serializer>(summary: &Summary, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for figure in &summary.figures {
        map.serialize_entry(&key(figure.key, &figure.value), &value(&figure.value))?;
    }
    for table in &summary.tables {
        let row = |cells: &Vec<SummaryValue>| {
            let named = table.columns.iter().zip(cells);
            named.map(|((name, _), cell)| (key(name, cell), value(cell))).collect::<Map<String, Json>>()
        };
        map.serialize_entry(table.key, &table.rows.iter().map(row).collect::<Vec<_>>())?;
    }
    map.end()
}

fn key(name: &str, value: &SummaryValue) -> String {
    let unit = match value {
        SummaryValue::Time(_) => "_s",
        SummaryValue::Size(_) => "_bytes",
        SummaryValue::Rate(_) => "_bytes_per_s",
        SummaryValue::Count(_) | SummaryValue::Share(_) | SummaryValue::Text(_) | SummaryValue::Unknown => "",
    };
    format!("{name}{unit}")
}

fn value(value: &SummaryValue) -> Json {
    match value {
        SummaryValue::Count(count) => (*count).into(),
        SummaryValue::Time(time) => time.get().into(),
        SummaryValue::Size(size) => size.get().into(),
        SummaryValue::Rate(rate) => rate.get().into(),
        SummaryValue::Share(share) => (*share).into(),
        SummaryValue::Text(text) => text.clone().into(),
        SummaryValue::Unknown => Json::Null,
    }
}

/// Figures and tables, in reading order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    pub figures: Vec<SummaryFigure>,
    pub tables: Vec<SummaryTable>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SummaryFigure {
    /// For programs: `idle`, without a unit.
    pub key: &'static str,
    /// For people.
    pub label: &'static str,
    pub value: SummaryValue,
    /// An explanation; may be empty.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SummaryTable {
    /// For programs: `buckets`.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    /// For programs and for people, in order.
    pub columns: Vec<(&'static str, &'static str)>,
    pub rows: Vec<Vec<SummaryValue>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SummaryValue {
    Count(u64),
    Time(Seconds),
    Size(Bytes),
    Rate(BytesPerSec),
    /// A part of a whole, from 0 to 1.
    Share(f64),
    Text(String),
    Unknown,
}

impl Summary {
    pub(crate) fn figure(
        &mut self,
        key: &'static str,
        label: &'static str,
        value: SummaryValue,
        note: impl Into<String>,
    ) {
        self.figures.push(SummaryFigure { key, label, value, note: note.into() });
    }
}
