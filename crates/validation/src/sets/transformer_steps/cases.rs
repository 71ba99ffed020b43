//! Measured steps as scenarios of names; shards of blocks, of output layers and of experts as the method computes them.

use crate::ValidationError;
use crate::priors::{LogStep, Observation};
use crate::records::{self, Fields};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_analytic::transformer::compute::{Parts, Shard, Software};
use stepcast_analytic::transformer::flops::Work;
use stepcast_analytic::transformer::{LayerKind, Split};
use stepcast_core::machine::{Device, catalog};
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::{Block, Delta, Experts, FeedForward, Mamba, Mixer, Transformer};
use stepcast_core::precision::Precision;
use stepcast_core::prior::Priors;
use stepcast_core::quantity::BytesPerSec;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{Mask, Offload};
use stepcast_fit::machine::Decoder;

/// The device of measured steps and shards.
const DEVICE: &str = "h200-sxm";

pub(in crate::sets) struct StepCase {
    pub(in crate::sets) family: String,
    pub(in crate::sets) name: String,
    /// What is left out together with it: all figures of its model, or of its source.
    pub(in crate::sets) model: String,
    pub(in crate::sets) is_fitted: bool,
    /// Seconds.
    pub(in crate::sets) measured: f64,
    predict: LogStep,
    pub(in crate::sets) step: Option<Scenario>,
}

impl StepCase {
    pub(in crate::sets) fn step(
        family: &str,
        name: String,
        model: String,
        scenario: Scenario,
        measured: f64,
    ) -> Self {
        let own = scenario.clone();
        let predict: LogStep = Box::new(move |priors: &Priors| {
            let moved = Scenario { priors: Arc::new(priors.clone()), ..own.clone() };
            Ok(Method.step(&moved)?.get().ln())
        });
        let family = family.to_owned();
        Self { family, name, model, is_fitted: true, measured, predict, step: Some(scenario) }
    }

    /// The figure as the fit of constants sees it.
    pub(in crate::sets) fn observation(self) -> Observation {
        Observation {
            family: self.family,
            source: self.model,
            is_fitted: self.is_fitted,
            measured: self.measured.ln(),
            predict: self.predict,
        }
    }
}

pub(in crate::sets) fn all_cases() -> Result<Vec<StepCase>, ValidationError> {
    let mut cases = on_one_gpu()?;
    cases.extend(scans()?);
    for row in records::cases("transformer-steps/offloaded.csv")? {
        cases.push(offloaded(&row)?);
    }
    for row in records::cases("transformer-steps/published.csv.gz")? {
        cases.push(published(&row)?);
    }
    Ok(cases)
}

/// A field of one of the program's own types.
fn typed<T: serde::de::DeserializeOwned>(row: &Value, key: &str) -> Result<T, ValidationError> {
    let damaged = |error| ValidationError::Data(format!("transformer-steps, {key}: {error}"));
    serde_json::from_value(row.field(key).clone()).map_err(damaged)
}

/// "Gpt" and "Llama", as figures are named.
fn titled(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

fn decoder(row: &Value, precision: Precision, recompute: bool, tensor: u64) -> Decoder {
    Decoder {
        gpt: row.text("architecture") == "gpt",
        hidden: row.count("hidden"),
        heads: [row.count("heads"), row.count("kv_heads")],
        mlp_width: row.count("mlp_width"),
        layers: row.count("layers"),
        sequence: row.count("sequence"),
        micro_batch: row.count("micro_batch"),
        vocabulary: row.count("vocabulary"),
        precision,
        recompute,
        tensor,
    }
}

/// What is left out together: all rows of an architecture and width.
fn model(row: &Value) -> String {
    format!("h200 {} of {}", row.text("architecture"), row.count("hidden"))
}

/// One H200: whole steps, and shards, behind a pause, forward and backward.
pub(super) fn on_one_gpu() -> Result<Vec<StepCase>, ValidationError> {
    let mut cases = Vec::new();
    for row in records::cases("transformer-steps/h200.csv.gz")? {
        let (kind, precision) = (row.text("kind"), typed(&row, "precision")?);
        let [hidden, layers, sequence, micro_batch, vocabulary, tensor] =
            ["hidden", "layers", "sequence", "micro_batch", "vocabulary", "tensor"].map(|key| row.count(key));
        let decoder = decoder(&row, precision, row.is("recompute"), tensor);
        let scenario = decoder.scenario(DEVICE)?;
        let name = format!(
            "{} {} of {hidden}, {layers} layers, {micro_batch} x {sequence} tokens, V {vocabulary}, t {tensor}, {precision}{}",
            titled(row.text("architecture")),
            titled(kind),
            if row.is("recompute") { ", recomputed" } else { "" }
        );
        let experts = row.count("experts");
        let model = model(&row) + if experts > 0 { ", experts" } else { "" };
        let family = match kind {
            "step" => {
                cases.push(StepCase::step("step, H200", name, model, scenario, row.number("step_ms") / 1e3));
                continue;
            }
            "head" => "head shard, H200",
            "bmm" | "grouped" => "experts, H200",
            _ => "block shard, H200",
        };
        let experts = (experts > 0).then_some(Experts {
            count: experts,
            active: row.count("active"),
            width: row.count("mlp_width"),
            shared_width: 0,
            dense_layers: 0,
            every: 1,
            router_bias: false,
            shared_gate: false,
        });
        let shape = Transformer { experts, ..decoder.shape() };
        let block = shape.block(shape.layers - 1);
        let shard = Alone {
            kind: kind.to_owned(),
            decoder,
            shape,
            block,
            device: catalog::device(DEVICE)?,
            scenario,
        };
        cases.extend(shard.passes(&row, family, &name, &model));
    }
    Ok(cases)
}

/// Convolution, scan and norm of delta nets and of Mamba. Their passes over memory were counted on these rows.
fn scans() -> Result<Vec<StepCase>, ValidationError> {
    let mut cases = Vec::new();
    for row in records::cases("transformer-steps/scans.csv")? {
        let kind = row.text("kind");
        let [key_heads, heads, key_width, width, groups, state, chunk, sequence, micro_batch] = [
            "key_heads",
            "heads",
            "key_width",
            "width",
            "groups",
            "state",
            "chunk",
            "sequence",
            "micro_batch",
        ]
        .map(|key| row.count(key));
        let decoder = Decoder {
            gpt: false,
            hidden: 4096,
            heads: [32, 32],
            mlp_width: 4096,
            layers: 1,
            sequence,
            micro_batch,
            vocabulary: 32_000,
            precision: Precision::Bf16,
            recompute: false,
            tensor: 1,
        };
        let mut shape = decoder.shape();
        let convolution = 4;
        let mixer = match kind {
            "delta" => {
                let [value_heads, value_width] = [heads, width];
                shape.delta = Some(Delta { key_heads, value_heads, key_width, value_width, convolution });
                Mixer::Linear
            }
            _ => {
                let step_rank = if kind == "mamba-1" { 256 } else { 0 };
                shape.mamba = Some(Mamba {
                    heads,
                    head_width: width,
                    groups,
                    state,
                    convolution,
                    chunk,
                    step_rank,
                    step_norms: true,
                });
                Mixer::Mamba
            }
        };
        let name = format!("{kind}, {heads} heads of {width}, {micro_batch} x {sequence} tokens");
        let shard = Alone {
            kind: "scan".to_owned(),
            scenario: decoder.scenario(DEVICE)?,
            decoder,
            shape,
            block: Block { mixer, feed: FeedForward::None },
            device: catalog::device(DEVICE)?,
        };
        let passes = shard.passes(&row, "scans, H200", &name, kind);
        cases.extend(passes.map(|case| StepCase { is_fitted: false, ..case }));
    }
    Ok(cases)
}

/// A shard that is computed alone.
struct Alone {
    kind: String,
    decoder: Decoder,
    shape: Transformer,
    block: Block,
    device: Device,
    scenario: Scenario,
}

impl Alone {
    /// Its forward and its backward pass, each a figure.
    fn passes(
        self,
        row: &Value,
        family: &str,
        name: &str,
        model: &str,
    ) -> impl Iterator<Item = StepCase> + use<> {
        let shard = Arc::new(self);
        let case = |index: usize, pass: &str| {
            let shard = Arc::clone(&shard);
            StepCase {
                family: family.to_owned(),
                name: format!("{name} {pass}"),
                model: model.to_owned(),
                is_fitted: true,
                measured: row.number(&format!("{pass}_ms")) / 1e3,
                predict: Box::new(move |priors| Ok(shard.times(priors)?[index].ln())),
                step: None,
            }
        };
        [case(0, "forward"), case(1, "backward")].into_iter()
    }

    /// Seconds of the forward and of the backward pass.
    fn times(&self, priors: &Priors) -> Result<[f64; 2], ValidationError> {
        let Self { decoder, shape, block, device, scenario, .. } = self;
        let precision = decoder.precision;
        let peak = device.peak(precision).unwrap_or_else(|| device.fp32_peak());
        let software = Software::eager(precision);
        let parts = Parts::new(device, peak, 1.0, software, &priors.transformer).rested();
        let damaged = || ValidationError::Data("a shard has no plan".to_owned());
        let plan = scenario.strategy.plan.as_ref().ok_or_else(damaged)?;
        let split = Split { tensor: decoder.tensor, ..Split::WHOLE };
        let work = Work { sequence: decoder.sequence, batch: decoder.micro_batch, mask: Mask::Causal };
        let kind = LayerKind { block: *block, ..LayerKind::default() };
        let shard = Shard::new(shape, plan, &split, kind, false, work);
        let computed = match self.kind.as_str() {
            "head" => parts.head(&shard, decoder.vocabulary as f64 / decoder.tensor as f64),
            "bmm" | "grouped" => parts.expert_layer(&shard),
            "scan" => parts.scan(&shard),
            _ => parts.layer(&shard),
        };
        let backward = computed.input.device + computed.weight.device;
        Ok([computed.forward.device.get(), backward.get()])
    }
}

/// One H200 whose host keeps activations or optimiser states. Nothing is fitted to these steps.
fn offloaded(row: &Value) -> Result<StepCase, ValidationError> {
    let gigabytes = |key: &str| BytesPerSec::new(row.number(key) * 1e9);
    let offload: Offload = typed(row, "offload")?;
    let mut scenario = decoder(row, Precision::Bf16, false, 1).scenario(DEVICE)?;
    if let Some(plan) = &mut scenario.strategy.plan {
        plan.offload = vec![offload];
        plan.host_link = Some(gigabytes("host_link"));
        plan.host_memory = gigabytes("host_memory");
    }
    let [hidden, layers, sequence, micro_batch] =
        ["hidden", "layers", "sequence", "micro_batch"].map(|key| row.count(key));
    let architecture = titled(row.text("architecture"));
    let name =
        format!("{architecture} of {hidden}, {layers} layers, {micro_batch} x {sequence} tokens, {offload}");
    let case = StepCase::step("offloaded, H200", name, model(row), scenario, row.number("step_ms") / 1e3);
    Ok(StepCase { is_fitted: false, ..case })
}

/// Families of published runs, and what figures of them are called.
const PUBLISHED: [(&str, &str); 5] = [
    ("vTrain multi-node", "vTrain multi-node, A100"),
    ("Korthikanti table 5", "Korthikanti table 5, A100"),
    ("llm-foundry", "llm-foundry, A100"),
    ("torchtitan", "torchtitan, H100"),
    ("SimuMax", "SimuMax, B200"),
];

/// A published run of several GPUs, as a scenario of names.
fn published(row: &Value) -> Result<StepCase, ValidationError> {
    let known = PUBLISHED.iter().find(|(family, _)| row.text("family") == *family);
    let unknown = || ValidationError::Data(format!("there is no family {}", row.text("family")));
    let (source, family) = *known.ok_or_else(unknown)?;
    let scenario = published_scenario(row)?;
    let settings = row.text("settings");
    // What is left out together: all runs of one model; of SimuMax, which has only one, of one number of ranks.
    let model = match source {
        "SimuMax" => format!("{family}, {}", settings.split(' ').next().unwrap_or("")),
        _ => format!("{family}, hidden {}", row.count("hidden")),
    };
    let case = StepCase::step(family, published_name(row), model, scenario, row.number("seconds"));
    Ok(StepCase { is_fitted: is_fitted(source, row), ..case })
}

pub(in crate::sets) fn published_name(row: &Value) -> String {
    format!(
        "{} of {} layers, {} tokens, {} x {}, {}",
        row.text("shape"),
        row.count("layers"),
        row.count("sequence"),
        row.count("gpus"),
        row.text("device"),
        row.text("settings"),
    )
}

/// The scenario of a published run. `shape` is "gpt", a name, or all keys of a shape; `device` has a name, and what its
/// data sheet says otherwise; `settings` has keys of `[strategy.plan]`, and behind a slash of `[strategy]`; `adapters`, if there
/// are any, keys of `[model.adapters]`.
pub(in crate::sets) fn published_scenario(row: &Value) -> Result<Scenario, ValidationError> {
    let [layers, hidden, heads, vocabulary, sequence, gpus, ports] =
        ["layers", "hidden", "heads", "vocabulary", "sequence", "gpus", "ports"].map(|key| row.count(key));
    let mut text = match row.text("shape") {
        "gpt" => format!(
            "[model.transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\n\
             vocabulary = {vocabulary}\nsequence = {sequence}\nmlp = \"gelu\"\nnorm = \"layer\"\nbias = true\n\
             positions = {sequence}\ntied = true\n"
        ),
        keys if keys.contains('=') => {
            format!("[model.transformer]\nsequence = {sequence}\n{}\n", keys.replace(' ', "\n"))
        }
        base => format!("[model.transformer]\nbase = \"{base}\"\nlayers = {layers}\nsequence = {sequence}\n"),
    };
    if !row.text("adapters").is_empty() {
        let _ = write!(text, "[model.adapters]\n{}\n", row.text("adapters").replace("; ", "\n"));
    }
    let mut device = row.text("device").split('|');
    let base = device.next().unwrap_or("");
    let _ = write!(text, "[[cluster.workers]]\ncount = {gpus}\ndevice = {{ base = \"{base}\"");
    for (key, given) in device.filter_map(|pair| pair.split_once('=')) {
        let _ = write!(text, ", {key} = \"{given}\"");
    }
    let [outside, inside] = ["outside", "inside"].map(|key| row.text(key));
    let node = row.field("node").as_u64().unwrap_or(8);
    let (inside, domain) = inside.split_once("|domain=").unwrap_or((inside, ""));
    let _ = write!(
        text,
        " }}\n[cluster.network]\nbase = \"{outside}\"\n[cluster.nodes]\nworkers = {node}\nnetwork = \"{inside}\"\nports = {ports}\n"
    );
    if !domain.is_empty() {
        let _ = writeln!(text, "domain = {domain}");
    }
    let mut tables = ["[strategy]\n".to_owned(), "[strategy.plan]\n".to_owned()];
    for (key, given) in row.text("settings").split(' ').filter_map(|pair| pair.split_once('=')) {
        let plain =
            given.parse::<f64>().is_ok() || given == "true" || given == "false" || given.starts_with('[');
        let value = match (key, plain) {
            (_, true) => given.to_owned(),
            ("recompute" | "offload", false) => format!("[\"{given}\"]"),
            (_, false) => format!("\"{given}\""),
        };
        let (table, key) = key.strip_prefix('/').map_or((1, key), |key| (0, key));
        let _ = writeln!(tables[table], "{key} = {value}");
    }
    Ok(Document::new("row", text + &tables.concat()).scenario(&[])?)
}

/// Whether constants are fitted to it: not if its source is left out as a whole, or if it is out of line with its
/// neighbours for a reason that no model of computing and links has. vTrain: swapped memory, micro-batches of 2 at
/// 4 and 8 ranks of the small model, and 2 ranks of the large one. llm-foundry: short sequences of 760m on 80 GB, 1b on 32
/// GPUs, 13b on 8 and 70b on 64 GPUs of 40 GB.
fn is_fitted(source: &str, row: &Value) -> bool {
    let is = |setting: &str| row.text("settings").split(' ').any(|pair| pair == setting);
    let (gpus, large) = (row.count("gpus"), row.text("device") == "a100-sxm4-80gb");
    match (source, row.count("hidden")) {
        ("Korthikanti table 5" | "torchtitan", _) => false,
        ("vTrain multi-node", 3072) => {
            let small = is("micro-batch=2") && (is("tensor=4") || is("tensor=8"));
            !small && !is("micro-batch=64")
        }
        ("vTrain multi-node", 8192) => !is("tensor=2"),
        ("llm-foundry", 1536) => row.count("sequence") > 1024 || !large,
        ("llm-foundry", 2048) => gpus != 32,
        ("llm-foundry", 5120) => gpus != 8 || large,
        ("llm-foundry", 8192) => gpus != 64 || large,
        _ => true,
    }
}
