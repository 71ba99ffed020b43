//! Sequences of a step: as given, or the usual number for the size of the model, in micro-batches of replicas.

use super::Plan;
use crate::fault::Fault;
use crate::model::transformer::Transformer;

/// Tokens of a step for models up to each size: GPT-3's table 2.1 up to 5 billion parameters, Llama 2 up to 70 and
/// GPT-3 up to 175 billion, Llama 3 beyond.
const TOKENS: [(u64, u64); 4] =
    [(1_000_000_000, 1 << 19), (5_000_000_000, 1 << 20), (300_000_000_000, 1 << 22), (u64::MAX, 1 << 24)];

/// Most tokens of one worker in a step, but at least one sequence: on a few workers people take smaller steps.
const WORKER_TOKENS: u64 = 1 << 13;

/// Usual number of sequences of a step for the size of a model and the number of workers: a multiple of the workers, or the
/// workers divided by a power of two as far as possible.
pub fn usual_global_batch(shape: &Transformer, workers: u64) -> u64 {
    let parameters = shape.parameters();
    let usual = TOKENS.iter().find(|(most, _)| parameters < *most).map_or(1 << 24, |(_, tokens)| *tokens);
    let sequences =
        (usual.min(WORKER_TOKENS.max(shape.sequence).saturating_mul(workers)) / shape.sequence).max(1);
    let mut each = (sequences / workers).max(1);
    // Samples such as images have no round number of tokens.
    if !shape.sequence.is_power_of_two() {
        each = 1 << each.ilog2();
    }
    let mut batch = each * workers;
    while batch > sequences && batch.is_multiple_of(2) {
        batch /= 2;
    }
    batch
}

impl Plan {
    /// Sequences of a step, and micro-batches of a replica.
    pub(super) fn batches(&self, shape: &Transformer, workers: u64, data: u64) -> Result<(u64, u64), Fault> {
        let data = data.saturating_mul(self.outer_replicas);
        let each = data.saturating_mul(self.micro_batch);
        let usual = || {
            let whole = each.saturating_mul(self.pipeline);
            usual_global_batch(shape, workers).checked_next_multiple_of(whole).unwrap_or(whole)
        };
        let global = self.global_batch.unwrap_or_else(usual);
        if !global.is_multiple_of(each) {
            let reason = format!(
                "{data} replicas × micro-batch {} = {each} does not divide {global} sequences",
                self.micro_batch
            );
            let below = global / each * each;
            let near = if below > 0 { format!("{below} or {}", below + each) } else { each.to_string() };
            return Err(Fault::in_key("global-batch", reason, format!("use a multiple, such as {near}")));
        }
        Ok((global, global / each))
    }

    pub(super) fn check_micro_batches(&self, micro_batches: u64) -> Result<(), Fault> {
        let (kind, p, m) = (self.schedule_kind(), self.pipeline, micro_batches);
        if p == 1 || kind.takes(p, m) {
            return Ok(());
        }
        let least = p.saturating_mul(2);
        let (reason, wanted, other) = match kind.is_folded() {
            true => (
                format!("`{kind}` on {p} stages takes {least} micro-batches or more, not {m}"),
                format!("{least} of them"),
                "zbv",
            ),
            false => (
                format!("`{kind}` takes micro-batches in groups of {p}, and a replica has {m}"),
                format!("a multiple of {p}"),
                "1f1b",
            ),
        };
        let remedy = format!("choose `global-batch` so that a replica has {wanted}, or `{other}`");
        Err(Fault::in_key("schedule", reason, remedy))
    }
}
