//! T5: an encoder over the input and a decoder over the target, which also attends to what the encoder makes of the input.
//!
//! Every self-attention adds a learned bias for each bucket of distances and head, which the layers of a stack share.

use super::Entry;
use crate::model::cost::Cost;
use crate::model::op::{Activation, Norm, Op};
use crate::model::shape::Misfit;
use crate::model::{Builder, LayerId, Model, ShapeError};

const SOURCE: &str = "Raffel et al. 2020, JMLR 21(140); layout of Hugging Face transformers";
const SOURCE_1_1: &str = "T5 v1.1, google-research/text-to-text-transfer-transformer; layout of Hugging Face \
                          transformers";
const VOCABULARY: u64 = 32_128;
/// Buckets of distances.
const BUCKETS: u64 = 32;
/// Tokens of the input, and of the target that span corruption makes of it (Raffel 2020, section 3.1.4).
const TOKENS: u64 = 512;
const TARGET: u64 = 114;

#[derive(Debug, Clone, Copy)]
struct Size {
    width: u64,
    heads: u64,
    head_width: u64,
    mlp_width: u64,
    depth: u64,
    /// v1.1: a gate with GELU in place of ReLU, and an output layer of its own.
    gated: bool,
}

impl Size {
    const fn new(width: u64, [heads, head_width]: [u64; 2], mlp_width: u64, depth: u64) -> Self {
        Self { width, heads, head_width, mlp_width, depth, gated: false }
    }

    const fn gated(self) -> Self {
        Self { gated: true, ..self }
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "t5-small",
        aliases: &[],
        description: "T5 small, 512 tokens of input and 114 of target",
        source: SOURCE,
        layout: |builder| layout(builder, Size::new(512, [8, 64], 2048, 6)),
    },
    Entry {
        name: "t5-base",
        aliases: &[],
        description: "T5 base, 512 tokens of input and 114 of target",
        source: SOURCE,
        layout: |builder| layout(builder, Size::new(768, [12, 64], 3072, 12)),
    },
    Entry {
        name: "t5-large",
        aliases: &[],
        description: "T5 large, 512 tokens of input and 114 of target",
        source: SOURCE,
        layout: |builder| layout(builder, Size::new(1024, [16, 64], 4096, 24)),
    },
    Entry {
        name: "t5-3b",
        aliases: &[],
        description: "T5 3B, 512 tokens of input and 114 of target",
        source: SOURCE,
        layout: |builder| layout(builder, Size::new(1024, [32, 128], 16_384, 24)),
    },
    Entry {
        name: "t5-11b",
        aliases: &[],
        description: "T5 11B, 512 tokens of input and 114 of target",
        source: SOURCE,
        layout: |builder| layout(builder, Size::new(1024, [128, 128], 65_536, 24)),
    },
    Entry {
        name: "t5-v1.1-small",
        aliases: &["flan-t5-small"],
        description: "T5 v1.1 small: gated GELU, an output layer of its own",
        source: SOURCE_1_1,
        layout: |builder| layout(builder, Size::new(512, [6, 64], 1024, 8).gated()),
    },
    Entry {
        name: "t5-v1.1-base",
        aliases: &["flan-t5-base"],
        description: "T5 v1.1 base: gated GELU, an output layer of its own",
        source: SOURCE_1_1,
        layout: |builder| layout(builder, Size::new(768, [12, 64], 2048, 12).gated()),
    },
    Entry {
        name: "t5-v1.1-large",
        aliases: &["flan-t5-large"],
        description: "T5 v1.1 large: gated GELU, an output layer of its own",
        source: SOURCE_1_1,
        layout: |builder| layout(builder, Size::new(1024, [16, 64], 2816, 24).gated()),
    },
    Entry {
        name: "t5-v1.1-xl",
        aliases: &["flan-t5-xl"],
        description: "T5 v1.1 XL: gated GELU, an output layer of its own",
        source: SOURCE_1_1,
        layout: |builder| layout(builder, Size::new(2048, [32, 64], 5120, 24).gated()),
    },
    Entry {
        name: "t5-v1.1-xxl",
        aliases: &["flan-t5-xxl"],
        description: "T5 v1.1 XXL: gated GELU, an output layer of its own",
        source: SOURCE_1_1,
        layout: |builder| layout(builder, Size::new(4096, [64, 64], 10_240, 24).gated()),
    },
];

/// One of both stacks.
#[derive(Debug, Clone, Copy)]
struct Stack {
    size: Size,
    name: &'static str,
    tokens: u64,
    /// What its cross-attention reads: the output of the encoder.
    memory: Option<LayerId>,
}

fn layout(mut builder: Builder, size: Size) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let tokens = b.tokens(TOKENS);
    let overflow = || Misfit::overflow().at("decoder_input");
    let target = tokens.checked_mul(TARGET).ok_or_else(overflow)?.div_ceil(TOKENS);
    let input = b.input("input", &[tokens])?;
    let x =
        b.add("shared", Op::Embedding { count: VOCABULARY, width: size.width, sparse: false }, &[input])?;
    let memory = Stack { size, name: "encoder", tokens, memory: None }.add(b, x)?;
    let shifted = b.input("decoder_input", &[target])?;
    // The same table as the encoder's.
    let x = b.counted("decoder.embed_tokens", &[shifted], &[target, size.width], Cost::default())?;
    let x = Stack { size, name: "decoder", tokens: target, memory: Some(memory) }.add(b, x)?;
    b.add("lm_head", Op::Linear { out: VOCABULARY, bias: false, tied: !size.gated }, &[x])?;
    builder.finish()
}

impl Stack {
    fn add(&self, b: &mut Builder, from: LayerId) -> Result<LayerId, ShapeError> {
        let mut x = from;
        for index in 0..self.size.depth {
            let name = format!("{}.block.{index}", self.name);
            x = self.residual(b, &format!("{name}.layer.0"), x, |b, name, x| {
                self.attention(b, &format!("{name}.SelfAttention"), [x, x], Some(index == 0))
            })?;
            let mut last = 1;
            if let Some(memory) = self.memory {
                x = self.residual(b, &format!("{name}.layer.1"), x, |b, name, x| {
                    self.attention(b, &format!("{name}.EncDecAttention"), [x, memory], None)
                })?;
                last = 2;
            }
            x = self.residual(b, &format!("{name}.layer.{last}"), x, |b, name, x| {
                self.mlp(b, &format!("{name}.DenseReluDense"), x)
            })?;
        }
        self.normalise(b, &format!("{}.final_layer_norm", self.name), x)
    }

    /// A part of a layer behind its normalisation, added to what it reads.
    fn residual(
        &self,
        b: &mut Builder,
        name: &str,
        from: LayerId,
        part: impl FnOnce(&mut Builder, &str, LayerId) -> Result<LayerId, ShapeError>,
    ) -> Result<LayerId, ShapeError> {
        let x = self.normalise(b, &format!("{name}.layer_norm"), from)?;
        let x = part(b, name, x)?;
        let x = b.add(format!("{name}.dropout"), Op::Dropout, &[x])?;
        b.add(format!("{name}.add"), Op::Add, &[x, from])
    }

    /// Attention of what comes first to what comes second; with a bias by distance, which the first layer holds.
    fn attention(
        &self,
        b: &mut Builder,
        name: &str,
        [from, to]: [LayerId; 2],
        biased: Option<bool>,
    ) -> Result<LayerId, ShapeError> {
        let Size { width, heads, head_width, .. } = self.size;
        let part = |out: u64| Op::Linear { out, bias: false, tied: false };
        let query = b.add(format!("{name}.q"), part(heads * head_width), &[from])?;
        let key = b.add(format!("{name}.k"), part(heads * head_width), &[to])?;
        let value = b.add(format!("{name}.v"), part(heads * head_width), &[to])?;
        let causal = biased.is_some() && self.memory.is_some();
        let (core, inputs) = (Op::Attention { heads, causal }, [query, key, value]);
        let x = match (biased, b.infer(&core, &inputs)) {
            (Some(holds), Some((_, cost))) => {
                let weights = if holds { BUCKETS * heads } else { 0 };
                // One more sum for each score.
                let cost = Cost { weights, elementwise: cost.elementwise.saturating_mul(2), ..cost };
                let dims = [self.tokens, heads * head_width];
                b.counted(&format!("{name}.relative_attention_bias"), &inputs, &dims, cost)?
            }
            _ => b.add(format!("{name}.core"), core, &inputs)?,
        };
        b.add(format!("{name}.o"), part(width), &[x])
    }

    fn mlp(&self, b: &mut Builder, name: &str, from: LayerId) -> Result<LayerId, ShapeError> {
        let matrix = |out: u64| Op::Linear { out, bias: false, tied: false };
        let inner = self.size.mlp_width;
        let x = match self.size.gated {
            false => {
                let x = b.add(format!("{name}.wi"), matrix(inner), &[from])?;
                b.activate(format!("{name}.act"), Activation::Relu, x)?
            }
            true => {
                let gate = b.add(format!("{name}.wi_0"), matrix(inner), &[from])?;
                let gate = b.activate(format!("{name}.act"), Activation::Gelu, gate)?;
                let x = b.add(format!("{name}.wi_1"), matrix(inner), &[from])?;
                b.add(format!("{name}.product"), Op::Multiply, &[x, gate])?
            }
        };
        let x = b.add(format!("{name}.dropout"), Op::Dropout, &[x])?;
        b.add(format!("{name}.wo"), matrix(self.size.width), &[x])
    }

    /// By the root mean square, with a scale.
    fn normalise(&self, b: &mut Builder, name: &str, from: LayerId) -> Result<LayerId, ShapeError> {
        let elements = self.tokens.checked_mul(self.size.width);
        let each = Norm::Layer { affine: true }.operations();
        let normalisation = elements.and_then(|elements| elements.checked_mul(each));
        let normalisation = normalisation.ok_or_else(|| Misfit::overflow().at(name))?;
        let cost = Cost { normalisation, weights: self.size.width, ..Cost::default() };
        b.counted(name, &[from], &[self.tokens, self.size.width], cost)
    }
}
