//! Published runs of several GPUs, as scenarios of names.

use super::Step;
use crate::ValidationError;
use crate::embedded::packed_rows;
use serde::Deserialize;
use std::fmt::Write as _;
use stepcast_core::scenario::{Document, Scenario};

const ROWS: &[u8] = include_bytes!("../../../../../validation/transformer-steps/published.csv.gz");

/// Devices of a node.
const NODE: u64 = 8;

#[derive(Debug, Deserialize)]
struct Row {
    family: Family,
    shape: String,
    layers: u64,
    hidden: u64,
    heads: u64,
    vocabulary: u64,
    sequence: u64,
    /// A name, and what its data sheet says otherwise.
    device: String,
    gpus: u64,
    inside: String,
    outside: String,
    ports: u64,
    /// Keys of `[strategy.plan]`, and behind a slash of `[strategy]`.
    settings: String,
    seconds: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Family {
    #[serde(rename = "vTrain multi-node")]
    VTrain,
    #[serde(rename = "Korthikanti table 5")]
    Korthikanti,
    #[serde(rename = "llm-foundry")]
    LlmFoundry,
    #[serde(rename = "torchtitan")]
    Torchtitan,
    #[serde(rename = "SimuMax")]
    SimuMax,
}

impl Family {
    const fn name(self) -> &'static str {
        match self {
            Self::VTrain => "vTrain multi-node, A100",
            Self::Korthikanti => "Korthikanti table 5, A100",
            Self::LlmFoundry => "llm-foundry, A100",
            Self::Torchtitan => "torchtitan, H100",
            Self::SimuMax => "SimuMax, B200",
        }
    }
}

/// A value of TOML: numbers, booleans and lists as they are, everything else in quotes.
fn value(key: &str, text: &str) -> String {
    match (key, text.parse::<f64>().is_ok() || text == "true" || text == "false") {
        ("recompute", _) => format!("[\"{text}\"]"),
        (_, true) => text.to_owned(),
        (_, false) => format!("\"{text}\""),
    }
}

impl Row {
    fn text(&self) -> String {
        let Row { layers, hidden, heads, vocabulary, sequence, gpus, .. } = self;
        let mut text = match self.shape.as_str() {
            "gpt" => format!(
                "[model.transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\n\
                 vocabulary = {vocabulary}\nsequence = {sequence}\nmlp = \"gelu\"\nnorm = \"layer\"\nbias = true\n\
                 positions = {sequence}\ntied = true\n"
            ),
            base => {
                format!("[model.transformer]\nbase = \"{base}\"\nlayers = {layers}\nsequence = {sequence}\n")
            }
        };
        let mut device = self.device.split('|');
        let _ = write!(
            text,
            "[[cluster.workers]]\ncount = {gpus}\ndevice = {{ base = \"{}\"",
            device.next().unwrap_or("")
        );
        for (key, given) in device.filter_map(|pair| pair.split_once('=')) {
            let _ = write!(text, ", {key} = \"{given}\"");
        }
        let _ = write!(
            text,
            " }}\n[cluster.network]\nbase = \"{}\"\n[cluster.nodes]\nworkers = {NODE}\nnetwork = \"{}\"\nports = {}\n",
            self.outside, self.inside, self.ports
        );
        let settings = || self.settings.split(' ').filter_map(|pair| pair.split_once('='));
        text.push_str("[strategy]\n");
        for (key, given) in settings() {
            if let Some(key) = key.strip_prefix('/') {
                let _ = writeln!(text, "{key} = {}", value(key, given));
            }
        }
        text.push_str("[strategy.plan]\n");
        for (key, given) in settings().filter(|(key, _)| !key.starts_with('/')) {
            let _ = writeln!(text, "{key} = {}", value(key, given));
        }
        text
    }

    fn scenario(&self) -> Result<Scenario, ValidationError> {
        Ok(Document::new("row", self.text()).scenario(&[])?)
    }

    fn step(&self) -> Result<Step, ValidationError> {
        let name = format!(
            "{} of {} layers, {} tokens, {} x {}, {}",
            self.shape, self.layers, self.sequence, self.gpus, self.device, self.settings
        );
        Ok(Step { family: self.family.name(), name, scenario: self.scenario()?, measured: self.seconds })
    }
}

pub(super) fn steps() -> Result<Vec<Step>, ValidationError> {
    packed_rows::<Row>(ROWS)?.iter().map(Row::step).collect()
}
