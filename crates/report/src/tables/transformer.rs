//! Transformers: their parts with parameters, and their split by a plan.

use crate::format::{as_sure, count, percent, percent_with_decimal};
use crate::sentences;
use crate::table::Table;
use stepcast_core::model::transformer::{Parameters, Transformer};
use stepcast_core::prediction::{MemoryReport, SplitReport, StageMemory};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::Mask;
use stepcast_study::Forecast;

pub fn parts(shape: &Transformer) -> Table {
    let columns = ["part", "#parameters", "#layers", "#together", "#share", "~divided by"];
    let mut table = Table::new("", columns);
    let parts = shape.parts();
    let total = parts.total();
    let mut row = |name: &str, parameters: Parameters, layers: Option<u64>| {
        let together = parameters.total() * layers.unwrap_or(1);
        if together > 0 {
            table.row([
                name.to_owned(),
                count(parameters.total()),
                layers.map_or_else(String::new, count),
                count(together),
                percent(together as f64 / total as f64),
                divided(&parameters).to_owned(),
            ]);
        }
    };
    row("embedding", parts.embedding, None);
    for own in &parts.layers {
        let prefix = if parts.layers.len() > 1 { format!("{}: ", own.block) } else { String::new() };
        for part in &own.parts {
            row(&format!("{prefix}{}", part.name), part.parameters, Some(own.count));
        }
    }
    row("final norm", parts.final_norm, None);
    row("output", parts.output, None);
    let active = match shape.experts {
        Some(_) => format!(" A token uses {} of them.", count(shape.active_parameters())),
        None => String::new(),
    };
    let output = if shape.tied { " The output layer shares the embedding's matrix." } else { "" };
    table.note = format!("{} parameters.{active}{output}", count(total));
    table
}

/// Kind of parallelism that divides a part.
fn divided(parameters: &Parameters) -> &'static str {
    match parameters {
        Parameters { expert: 1.., .. } => "experts",
        Parameters { key_value: 1.., .. } => "tensor ranks, by whole heads",
        Parameters { tensor: 1.., .. } => "tensor ranks",
        _ => "nothing",
    }
}

/// The tables of a transformer that a plan splits: figures, stages, memory.
pub fn all(report: &SplitReport) -> Vec<Table> {
    vec![figures(report), stages(report), memory(report)]
}

/// Tokens and utilisation, for the headline.
pub(super) fn rates(
    table: &mut Table,
    report: &SplitReport,
    samples_per_s: f64,
    peak: &str,
    forecast: &Forecast,
) {
    let per_sample = report.tokens_per_s / samples_per_s;
    let ends = forecast.interval.as_ref().map_or("of all devices".to_owned(), |interval| {
        let [low, high] = interval.throughput_samples_per_s.map(|rate| rounded(rate.get() * per_sample));
        format!("90 % interval {low}–{high}")
    });
    table.figure("tokens", rate(as_sure(report.tokens_per_s, sentences::width(forecast))), ends);
    let pairs = match report.mask {
        Mask::None => "all pairs of query and key counted",
        Mask::Half => "half of all pairs of query and key counted",
        Mask::Causal => "pairs of query and key counted that the mask leaves",
    };
    table.figure("MFU", percent_with_decimal(report.mfu), format!("of {peak}; {pairs}"));
}

fn figures(report: &SplitReport) -> Table {
    let mut table = Table::of_figures("Transformer");
    table.figure("tokens per device", rate(report.tokens_per_s_per_device), "");
    table.figure("HFU", percent_with_decimal(report.hfu), "the same with recomputation");
    let plural = if report.micro_batches == 1 { "" } else { "es" };
    let number = count(report.micro_batches);
    let micro_batches = format!("{}, {number} micro-batch{plural} per replica", report.schedule);
    table.figure("bubble", percent(report.bubble), micro_batches);
    table.figure("replicas", count(report.data), "");
    if let Some(outer) = &report.outer {
        let from = outer.hides_from.map_or(String::new(), |rate| format!(", none from {} on", rate.human()));
        let waits = format!(
            "each site sends {} in {} steps, {} a fragment; exposed: {}{from}",
            outer.sent.human(),
            count(outer.steps),
            outer.exchange.human(),
            outer.exposed.human(),
        );
        table.figure("outer replicas", count(outer.replicas), waits);
    }
    let verdict = sentences::verdict(report.memory.verdict);
    let MemoryReport { least, most, capacity, stage, saving, risk, .. } = report.memory;
    let risk = risk.filter(|risk| *risk >= 0.001).map_or(String::new(), |risk| {
        format!(
            "; with uneven experts more than it has, with a probability of {}",
            percent_with_decimal(risk)
        )
    });
    let saving = saving.map_or(String::new(), |saving| format!("; {} {}", least.human(), saving.condition()));
    let range = format!(
        "{}{} of {} on stage {stage}{saving}{risk}",
        if saving.is_empty() { format!("{} to ", least.human()) } else { String::new() },
        most.human(),
        capacity.human()
    );
    table.figure("memory", verdict, range);
    table
}

/// Three digits of a number, grouped.
fn rounded(number: f64) -> String {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 2.0).max(0.0));
    count(((number / unit).round() * unit) as u64)
}

/// "12,345/s", or with a decimal where there are few.
fn rate(tokens: f64) -> String {
    if tokens >= 1000.0 { format!("{}/s", count(tokens.round() as u64)) } else { format!("{tokens:.1}/s") }
}

fn stages(report: &SplitReport) -> Table {
    let columns = ["#stage", "#layers", "#parameters", "#forward", "#backward", "#end", "#in flight"];
    let mut table = Table::new("Stages", columns);
    for (index, stage) in report.stages.iter().enumerate() {
        table.row([
            index.to_string(),
            count(stage.layers),
            count(stage.parameters),
            stage.forward.human(),
            stage.backward.human(),
            stage.end.human(),
            count(stage.in_flight),
        ]);
    }
    table.note =
        "One rank of every stage: times of a micro-batch, and when its last backward pass ends.".to_owned();
    table
}

fn memory(report: &SplitReport) -> Table {
    let columns =
        ["#stage", "#weights", "#gradients", "#optimiser", "#activations", "#working sets", "#together"];
    let mut table = Table::new("Memory of a rank", columns);
    for (index, stage) in report.stages.iter().enumerate() {
        let StageMemory { weights, gradients, optimiser, activations, working, total } = stage.memory;
        let cells = [weights, gradients, optimiser, activations, working, total].map(Bytes::human);
        let fullest = (index == report.memory.stage).then_some("fullest");
        table.marked_row(std::iter::once(index.to_string()).chain(cells), fullest);
    }
    table
}
