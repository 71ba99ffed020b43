//! Measured times and their predictions by the compute model of transformers: of single kernels, and of decoders on one device,
//! as shards of their layers and as whole steps.

use super::AttentionChoice;
use super::read::{MeasuredDecoder, Rate, Rows};
use std::sync::Arc;
use stepcast_analytic::transformer::compute::{Compute, Computed, Parts, Product, Shard, Software};
use stepcast_analytic::transformer::flops::Work;
use stepcast_analytic::transformer::{LayerKind, Split, planned};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::machine::MeasuredConstants;
use stepcast_core::machine::Device;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::precision::Precision;
use stepcast_core::prior::{Priors, Transformers};
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{Mask, Plan};
use stepcast_stats::quantile_of_sorted;

/// Smaller passes run from cache when repeated and do not measure memory.
const LEAST_BYTES: f64 = 64e6;

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FigureKind {
    Product,
    Attention,
    Flash,
    Pass,
    Update,
    Block,
    Head,
    Step,
}

stepcast_core::variant_names!(FigureKind {
    Product = "products",
    Attention = "attention",
    Flash = "flash attention",
    Pass = "passes over memory",
    Update = "updates",
    Block = "shards of layers",
    Head = "output layers",
    Step = "steps",
});

#[derive(Debug, Clone)]
enum What {
    Product { product: Product, loaded: bool },
    Piece { decoder: Decoder, scenario: Arc<Scenario>, piece: Piece, backward: bool },
    Pass { bytes: f64, kernels: f64, rate: Rate },
    Update { bytes: f64 },
    Step { scenario: Arc<Scenario> },
}

#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub(super) kind: FigureKind,
    /// Family of measurements that are held out together.
    pub(super) family: String,
    /// Seconds.
    pub(super) measured: f64,
    what: What,
}

/// The device that was measured, as the catalog has it.
pub(super) struct On<'a> {
    pub(super) device: &'a Device,
    pub(super) id: &'a str,
    pub(super) precision: Precision,
    pub(super) priors: &'a Priors,
}

impl On<'_> {
    fn parts(&self, precision: Precision, constants: &Transformers) -> Parts {
        let peak = self.device.peak(precision).unwrap_or_else(|| self.device.fp32_peak());
        let software = Software::eager(precision);
        Parts::new(self.device, peak, 1.0, software, constants)
    }

    /// Seconds of every figure with these constants; `other` are the constants with flash attention.
    pub(super) fn predicted(
        &self,
        figures: &[Figure],
        own: &MeasuredConstants,
        flash: &MeasuredConstants,
    ) -> Vec<f64> {
        let assumed = &self.priors.transformer;
        let [own, flash] = [own, flash].map(|measured| assumed.with_measured(measured));
        figures
            .iter()
            .map(|figure| self.time(figure, if figure.kind == FigureKind::Flash { &flash } else { &own }))
            .collect()
    }

    fn time(&self, figure: &Figure, constants: &Transformers) -> f64 {
        let parts = self.parts(self.precision, constants);
        let time = match &figure.what {
            What::Product { product, loaded: true } => parts.product(product) + parts.starting(1.0),
            What::Product { product, loaded: false } => {
                let rested = parts.rested();
                rested.product(product) + rested.starting(1.0)
            }
            What::Piece { decoder, scenario, piece, backward } => {
                let Some(plan) = &scenario.strategy.plan else { return f64::NAN };
                let parts = self.parts(decoder.precision, constants).rested();
                let Computed { forward, input, weight, .. } = decoder.computed(&parts, plan, *piece);
                if *backward { input.device + weight.device } else { forward.device }
            }
            What::Pass { bytes, kernels, rate: Rate::Pass } => parts.passing_of(Bytes::new(*bytes), *kernels),
            What::Pass { bytes, kernels, rate: Rate::Stream } => parts.copying(Bytes::new(*bytes), *kernels),
            What::Update { bytes } => Compute::Parts(parts).update(Bytes::new(*bytes)),
            What::Step { scenario } => {
                let Ok(planned) = planned(scenario) else { return f64::NAN };
                let mut run = planned.run();
                run.compute = Compute::Parts(self.parts(scenario.strategy.precision, constants));
                return run.step().map_or(f64::NAN, |step| step.time.get());
            }
        };
        time.get()
    }

    pub(super) fn figures(&self, rows: &Rows) -> Result<Vec<Figure>, Fault> {
        let micros = |kind, family: &str, time: f64, what| Figure {
            kind,
            family: family.to_owned(),
            measured: time * 1e-6,
            what,
        };
        let mut figures = Vec::new();
        for row in &rows.products {
            let what = What::Product { product: Product::new(row.m, row.n, row.k), loaded: row.loaded };
            figures.push(micros(FigureKind::Product, &row.family, row.us, what));
        }
        for row in &rows.attention {
            let kind = match row.backend {
                AttentionChoice::Default => FigureKind::Attention,
                AttentionChoice::Flash => FigureKind::Flash,
            };
            let decoder = Decoder {
                gpt: true,
                hidden: row.heads * row.width,
                heads: [row.heads; 2],
                mlp_width: 4 * row.heads * row.width,
                layers: 1,
                sequence: row.sequence,
                micro_batch: row.batch,
                vocabulary: 1024,
                precision: self.precision,
                recompute: false,
                tensor: 1,
            };
            let times = [row.fwd_us, row.bwd_us].map(|time| time * 1e-6);
            figures.extend(self.pieces(kind, &row.family, decoder, Piece::Attention, times)?);
        }
        for row in rows.passes.iter().filter(|row| row.bytes >= LEAST_BYTES) {
            let what = What::Pass { bytes: row.bytes, kernels: row.kernels, rate: row.rate };
            figures.push(micros(FigureKind::Pass, &row.family, row.us, what));
        }
        for row in &rows.updates {
            let what = What::Update { bytes: row.bytes };
            figures.push(micros(FigureKind::Update, &row.family, row.us, what));
        }
        for (kind, piece, rows) in
            [(FigureKind::Block, Piece::Block, &rows.blocks), (FigureKind::Head, Piece::Head, &rows.heads)]
        {
            for row in rows {
                let times = [row.fwd_ms, row.bwd_ms].map(|time| time * 1e-3);
                figures.extend(self.pieces(kind, &row.model, self.decoder(row), piece, times)?);
            }
        }
        for row in &rows.steps {
            let decoder = self.decoder(row);
            let what = What::Step { scenario: Arc::new(decoder.scenario(self.id)?) };
            let mut times = row.step_ms.clone();
            times.sort_unstable_by(f64::total_cmp);
            let measured = quantile_of_sorted(&times, 0.5) * 1e-3;
            figures.push(Figure { kind: FigureKind::Step, family: row.model.clone(), measured, what });
        }
        Ok(figures)
    }

    fn decoder(&self, row: &MeasuredDecoder) -> Decoder {
        Decoder::from_row(row, self.precision)
    }

    fn pieces(
        &self,
        kind: FigureKind,
        family: &str,
        decoder: Decoder,
        piece: Piece,
        times: [f64; 2],
    ) -> Result<[Figure; 2], Fault> {
        let scenario = Arc::new(decoder.scenario(self.id)?);
        let figure = |backward: bool| Figure {
            kind,
            family: family.to_owned(),
            measured: times[usize::from(backward)],
            what: What::Piece { decoder, scenario: scenario.clone(), piece, backward },
        };
        Ok([figure(false), figure(true)])
    }
}

/// A decoder on one device, or the shard of one of several ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decoder {
    /// Whether its layers are GPT's: layer norms, biases, GELU, learned positions, a tied output layer; else Llama's.
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
    /// Rows of the vocabulary.
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

    /// The times of the shard that a rank computes.
    pub fn computed(&self, parts: &Parts, plan: &Plan, what: Piece) -> Computed {
        let split = Split { tensor: self.tensor, ..Split::WHOLE };
        let work = Work { sequence: self.sequence, batch: self.micro_batch, mask: Mask::Causal };
        let shape = self.shape();
        let shard = Shard::new(&shape, plan, &split, LayerKind::default(), false, work);
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
