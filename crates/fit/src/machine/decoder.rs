//! Decoders that are measured on one device: shards of their layers, and whole steps.

use super::read::MeasuredDecoder;
use stepcast_analytic::transformer::compute::{Computed, Parts, Shard};
use stepcast_analytic::transformer::flops::Work;
use stepcast_analytic::transformer::{LayerKind, Split};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::precision::Precision;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{Mask, Plan};

/// A decoder on one device, or the shard of one of several ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decoder {
    /// Whether it is GPT's: layer norms, biases, GELU, learned positions, a tied output layer; else Llama's.
    pub gpt: bool,
    /// Width between layers.
    pub hidden: u64,
    /// Query heads, and heads of keys and values.
    pub heads: [u64; 2],
    pub mlp_width: u64,
    pub layers: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences.
    pub micro_batch: u64,
    /// Tokens that are told apart.
    pub vocabulary: u64,
    pub precision: Precision,
    /// Whether every layer is computed again.
    pub recompute: bool,
    /// Ranks that hold a layer together.
    pub tensor: u64,
}

impl Decoder {
    pub(super) fn from_row(row: &MeasuredDecoder, half: Precision) -> Self {
        let mixed = match half {
            Precision::Fp16 => Precision::AmpFp16,
            _ => Precision::AmpBf16,
        };
        Self {
            gpt: row.arch == "gpt",
            hidden: row.h,
            heads: [row.heads, row.kv],
            mlp_width: row.ffn,
            layers: row.layers,
            sequence: row.seq,
            micro_batch: row.mb,
            vocabulary: row.vocab,
            precision: if row.precision == "amp" { mixed } else { half },
            recompute: row.recompute,
            tensor: row.t,
        }
    }

    pub fn shape(&self) -> Transformer {
        let [heads, groups] = self.heads;
        match self.gpt {
            true => Transformer::gpt(self.layers, self.hidden, heads, self.vocabulary, self.sequence),
            false => Transformer::llama(
                self.layers,
                self.hidden,
                [heads, groups],
                self.mlp_width,
                self.vocabulary,
                self.sequence,
            ),
        }
    }

    /// A step of it with a device for every rank, as the kit measures it: eager PyTorch, AdamW.
    pub fn scenario(&self, device: &str) -> Result<Scenario, Fault> {
        let shape = match self.gpt {
            true => format!(
                "mlp = \"gelu\"\nnorm = \"layer\"\nbias = true\npositions = {}\ntied = true\n",
                self.sequence
            ),
            false => String::new(),
        };
        let states = if self.precision.is_mixed() { "fp32" } else { "bf16" };
        let again = if self.recompute { "recompute = [\"layer\"]\n" } else { "" };
        let Self { layers, hidden, heads: [heads, groups], mlp_width, vocabulary, sequence, .. } = self;
        let Self { tensor, precision, micro_batch, .. } = self;
        let text = format!(
            "[model.transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\nkv-heads = {groups}\n\
             mlp-width = {mlp_width}\nvocabulary = {vocabulary}\nsequence = {sequence}\n{shape}\
             [[cluster.workers]]\ncount = {tensor}\ndevice = \"{device}\"\n\
             [strategy]\nprecision = \"{precision}\"\n[strategy.plan]\ntensor = {tensor}\nmicro-batch = {micro_batch}\n\
             global-batch = {micro_batch}\nstates = \"{states}\"\noverlap = \"fsdp2\"\n{again}",
        );
        Document::new("measured step", text).scenario(&[])
    }

    /// The shard that a rank computes, and what it takes.
    pub fn computed(&self, parts: &Parts, shape: &Transformer, plan: &Plan, what: Piece) -> Computed {
        let split = Split { tensor: self.tensor, ..Split::WHOLE };
        let work = Work { sequence: self.sequence, batch: self.micro_batch, mask: Mask::Causal };
        let shard = Shard::new(shape, plan, &split, LayerKind::default(), false, work);
        match what {
            Piece::Block => parts.layer(&shard),
            Piece::Head => parts.head(&shard, self.vocabulary as f64 / self.tensor as f64),
            Piece::Attention => parts.core_attention(&shard),
        }
    }
}

/// A piece of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A layer.
    Block,
    /// The output layer and the loss.
    Head,
    /// Scores, softmax and weighted values.
    Attention,
}
