//! Published runs of several GPUs, as scenarios of names.

use super::Case;
use crate::ValidationError;
use crate::embedded::packed_rows;
use serde::Deserialize;
use std::fmt::Write as _;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_validation_data::transformer_steps::PUBLISHED as ROWS;

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

    /// What is left out together: all runs of one model; of SimuMax, which has only one, of one number of ranks.
    fn model(&self) -> String {
        let family = self.family.name();
        match self.family {
            Family::SimuMax => format!("{family}, {}", self.settings.split(' ').next().unwrap_or("")),
            _ => format!("{family}, hidden {}", self.hidden),
        }
    }

    /// Whether constants are fitted to it: not if its source is left out as a whole, or if it is out of line with its
    /// neighbours for a reason that no model of computing and links has. vTrain: swapped memory, micro-batches of 2 at
    /// 4 and 8 ranks of the small model, and 2 ranks of the large one. llm-foundry: short sequences of 760m on 80 GB, 1b on 32
    /// GPUs, 13b on 8 and 70b on 64 GPUs of 40 GB.
    fn is_fitted(&self) -> bool {
        let is =
            |key: &str, value: u64| self.settings.split(' ').any(|pair| pair == format!("{key}={value}"));
        let large = self.device == "a100-sxm4-80gb";
        match (self.family, self.hidden) {
            (Family::Korthikanti | Family::Torchtitan, _) => false,
            (Family::VTrain, 3072) => {
                let small = is("micro-batch", 2) && (is("tensor", 4) || is("tensor", 8));
                !small && !is("micro-batch", 64)
            }
            (Family::VTrain, 8192) => !is("tensor", 2),
            (Family::LlmFoundry, 1536) => self.sequence > 1024 || !large,
            (Family::LlmFoundry, 2048) => self.gpus != 32,
            (Family::LlmFoundry, 5120) => self.gpus != 8 || large,
            (Family::LlmFoundry, 8192) => self.gpus != 64 || large,
            _ => true,
        }
    }

    fn case(&self) -> Result<Case, ValidationError> {
        let name = format!(
            "{} of {} layers, {} tokens, {} x {}, {}",
            self.shape, self.layers, self.sequence, self.gpus, self.device, self.settings
        );
        let case = Case::step(self.family.name(), name, self.model(), self.scenario()?, self.seconds);
        Ok(Case { is_fitted: self.is_fitted(), ..case })
    }
}

pub(super) fn cases() -> Result<Vec<Case>, ValidationError> {
    packed_rows::<Row>(ROWS)?.iter().map(Row::case).collect()
}
