//! Fine-tuning on one H200: adapters and frozen layers, compiled and graphed steps, models of Hugging Face, by names and the
//! shipped constants alone. Nothing was fitted to these steps. Times are judged as seconds, peaks of memory as bytes.

use super::transformer_steps::{half_width, published_name, published_scenario};
use crate::coverage::Coverage;
use crate::families::{Families, Figure, Unit};
use crate::records::Fields;
use crate::report::Findings;
use crate::set::{Run, check_cancelled};
use crate::{ErrorBounds, ValidationError};
use indexmap::IndexMap;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write as _;
use stepcast_analytic::transformer::Transformer;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::scenario::{Document, Scenario};

/// What families of peaks are called in front of what was run.
const MEMORY: &str = "memory, ";

/// Steps of T5, whose rows name a model of the zoo.
const ENCODER_DECODER: &str = "encoder-decoder";

/// Steps of other models of the zoo, as it has them.
const SIGNALS: [&str; 3] = ["vision", "diffusion", "speech"];

/// Workspaces that cuBLAS keeps for every graph that a process has captured: of the two threads that go forward and backward.
const WORKSPACES: f64 = 64.0 * 1024.0 * 1024.0;

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let [rows, published] = ["h200.csv.gz", "lora.csv.gz"].map(|file| run.cases(file));
    let (rows, published): (Vec<Value>, Vec<Value>) = (rows?, published?);
    let cases: Vec<TunedStep> = rows
        .par_iter()
        .chain(&published)
        .map(|row| {
            check_cancelled(run.observer)?;
            if row.field("adapters").is_null() { TunedStep::predict(row) } else { TunedStep::published(row) }
        })
        .collect::<Result<_, _>>()?;
    let figures = |family: &str, of: fn(&TunedStep) -> Option<[f64; 2]>| {
        let figure = |case: &TunedStep| {
            let [predicted, measured] = of(case)?;
            let family = format!("{family}{}", case.kind);
            Some(Figure { family, name: case.name.clone(), predicted, measured })
        };
        cases.iter().filter_map(figure).collect::<Vec<_>>()
    };
    let times = Families { figures: figures("", |case| Some(case.seconds)), unit: Unit::Seconds };
    let (peaks, refused) = published_peaks(run)?;
    let peaks = figures(MEMORY, |case| case.bytes).into_iter().chain(peaks).collect();
    let memory = Families { figures: peaks, unit: Unit::Bytes };
    let mut by_kind: IndexMap<&str, (Coverage, Vec<f64>)> = IndexMap::new();
    for case in &cases {
        let (own, widths) = by_kind.entry(&case.kind).or_default();
        let [predicted, measured] = case.seconds;
        own.cases += 1;
        own.inside += usize::from((measured / predicted).ln().abs() <= case.half_width);
        widths.push(case.half_width);
    }
    let coverage = by_kind.values().fold(Coverage::default(), |sum, (own, _)| sum.and(*own));
    let intervals = by_kind.into_iter().map(|(family, (own, mut widths))| {
        let half_width = stepcast_stats::quantile(&mut widths, 0.5);
        json!({ "family": family, "cases": own.cases, "inside": own.share(), "half_width": half_width })
    });
    let intervals = Value::Array(intervals.collect());
    let bounds: IndexMap<String, ErrorBounds> = run.bounds()?;
    let (of_memory, of_time): (IndexMap<_, _>, IndexMap<_, _>) =
        bounds.into_iter().partition(|(family, _)| family.starts_with(MEMORY));
    let mut findings = times.findings(&of_time, coverage);
    findings.checks.extend(memory.findings(&of_memory, coverage).checks);
    findings.figures["_memory"] = json!(memory.error_rows());
    findings.figures["_intervals"] = intervals;
    findings.figures["_refused"] = json!(refused);
    Ok(findings)
}

/// Peaks of published runs, and the shares that are said not to fit: of the runs that ran out of memory, and of those that ran.
fn published_peaks(run: &Run<'_>) -> Result<(Vec<Figure>, [f64; 2]), ValidationError> {
    let rows: Vec<Value> = run.cases("published.csv.gz")?;
    let (mut figures, mut counts) = (Vec::new(), [[0.0; 2]; 2]);
    for row in &rows {
        check_cancelled(run.observer)?;
        let prediction = Transformer.predict(&published_scenario(row)?)?;
        let Some(report) = prediction.transformer else { continue };
        let ran = row.number("bytes") > 0.0;
        let [refused, all] = &mut counts[usize::from(ran)];
        *refused += if report.memory.verdict == Verdict::DoesNotFit { 1.0 } else { 0.0 };
        *all += 1.0;
        if ran {
            let tensors = report.stages.iter().map(|stage| stage.memory.total.get()).fold(0.0, f64::max);
            let predicted =
                if row.text("memory") == "allocated" { tensors } else { report.memory.most.get() };
            let family = format!("{MEMORY}{}", row.text("kind"));
            figures.push(Figure {
                family,
                name: published_name(row),
                predicted,
                measured: row.number("bytes"),
            });
        }
    }
    Ok((figures, counts.map(|[refused, all]| refused / all)))
}

/// A measured step, predicted and measured.
struct TunedStep {
    kind: String,
    name: String,
    seconds: [f64; 2],
    /// Its peak of memory, if that was measured.
    bytes: Option<[f64; 2]>,
    /// Of the 90 % interval of its time, as a logarithm.
    half_width: f64,
}

impl TunedStep {
    /// A run of several devices.
    fn published(row: &Value) -> Result<Self, ValidationError> {
        let scenario = published_scenario(row)?;
        Ok(Self {
            kind: row.text("kind").to_owned(),
            name: published_name(row),
            seconds: [Transformer.predict(&scenario)?.iteration.get(), row.number("seconds")],
            bytes: None,
            half_width: half_width(&scenario)?.unwrap_or(0.0),
        })
    }

    fn predict(row: &Value) -> Result<Self, ValidationError> {
        let scenario = scenario(row)?;
        let prediction = Transformer.predict(&scenario)?;
        let stages = prediction.transformer.iter().flat_map(|report| &report.stages);
        let bytes = stages.map(|stage| stage.memory.total.get()).fold(0.0, f64::max);
        let name = format!(
            "{} {}, {} layers, {} x {} tokens, V {}, {}{}{}",
            row.text("kind"),
            row.text("model"),
            row.count("layers"),
            row.count("micro_batch"),
            row.count("sequence"),
            row.count("vocabulary"),
            row.text("precision"),
            if row.is("recompute") { ", recomputed" } else { "" },
            match row.count("rank") {
                0 => String::new(),
                rank => format!(", rank {rank} on {}", row.text("targets")),
            },
        );
        Ok(Self {
            kind: row.text("kind").to_owned(),
            name,
            seconds: [prediction.iteration.get(), row.number("step_ms") / 1e3],
            bytes: Some([bytes, row.number("bytes") - row.number("graphs_before") * WORKSPACES]),
            half_width: half_width(&scenario)?.unwrap_or(0.0),
        })
    }
}

/// The `config.json` of a row.
struct Config<'a>(&'a str);

impl Files for Config<'_> {
    fn text(&self, _: &str) -> Result<String, Fault> {
        Ok(self.0.to_owned())
    }
}

/// The scenario of names.
fn scenario(row: &Value) -> Result<Scenario, ValidationError> {
    let mut text = String::new();
    let (kind, precision, micro_batch) = (row.text("kind"), row.text("precision"), row.count("micro_batch"));
    let config = row.text("config");
    if kind.starts_with(ENCODER_DECODER) {
        // transformers 5.17 ties the output layer whatever its configuration says.
        let (model, sequence, target) = (row.text("model"), row.count("sequence"), row.count("target"));
        let _ = write!(
            text,
            "[model.transformer]\nbase = \"{model}\"\nsequence = {sequence}\ntarget = {target}\ntied = true\n"
        );
    } else if SIGNALS.contains(&kind) {
        let _ = writeln!(text, "[model]\nzoo = \"{}\"", row.text("model"));
    } else if config.is_empty() {
        text.push_str("[model.transformer]\n");
        for (key, column) in [
            ("layers", "layers"),
            ("hidden", "hidden"),
            ("heads", "heads"),
            ("kv-heads", "kv_heads"),
            ("mlp-width", "mlp_width"),
            ("vocabulary", "vocabulary"),
            ("sequence", "sequence"),
        ] {
            let _ = writeln!(text, "{key} = {}", row.count(column));
        }
    } else {
        let _ = write!(text, "[model]\nconfig = \"config.json\"\nsequence = {}\n", row.count("sequence"));
    }
    match kind {
        _ if row.count("rank") > 0 => {
            let targets = row.text("targets").replace(' ', "\", \"");
            let _ =
                write!(text, "[model.adapters]\nrank = {}\ntargets = [\"{targets}\"]\n", row.count("rank"));
        }
        "frozen" => {
            let _ = write!(text, "[model.frozen]\nlayers = {}\n", row.count("frozen"));
        }
        "packed" => {
            let _ = write!(text, "[data]\nlengths = {}\npacking = \"within\"\n", row.text("documents"));
        }
        _ => {}
    }
    let states = if precision == "bf16" { "bf16" } else { "fp32" };
    let _ = write!(
        text,
        "[[cluster.workers]]\ncount = 1\ndevice = \"h200-sxm\"\n[strategy]\nprecision = \"{precision}\"\ncompiled = {}\n[strategy.plan]\n\
         micro-batch = {micro_batch}\nglobal-batch = {micro_batch}\nstates = \"{states}\"\noverlap = \"fsdp2\"\ngraphs = {}\nrecompute = {}\n",
        kind == "compiled",
        kind == "graphed",
        if row.is("recompute") { "[\"layer\"]" } else { "[]" },
    );
    if kind.starts_with("liger") {
        text.push_str("implementation = \"liger\"\n");
    }
    if kind.starts_with(ENCODER_DECODER) {
        text.push_str("implementation = \"hugging-face\"\n");
    }
    // Layers were compiled one by one, the loss was not.
    if matches!(kind, "compiled" | "liger, eager loss") {
        text.push_str("loss = \"eager\"\n");
    }
    Ok(Document::new("measured step", text).scenario_with(&Config(config), &[])?)
}
