//! A transformer as a model of layers, for methods that know only layers.
//!
//! Matrices are linear layers. What the operations of [`Op`] do not have (normalisation without a shift, grouped
//! queries, windows, latent attention, experts) are counted layers with the same costs.

use super::{Experts, FeedForward, Mixer, Mla, Mlp, Modules, NormKind, Transformer};
use crate::model::cost::Cost;
use crate::model::op::{Activation, Norm, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) type Added = Result<LayerId, ShapeError>;

impl Transformer {
    /// The layers, one sample being a sequence.
    pub fn layout(&self, mut builder: Builder) -> Result<Model, ShapeError> {
        let b = &mut builder;
        let encoder =
            (0..self.layers).take_while(|index| self.block(*index).mixer == Mixer::Encoder).count() as u64;
        let encoded = match encoder {
            0 => None,
            _ => Some(Self { causal: false, ..*self }.encode(b, encoder)?),
        };
        // The decoder has samples of its own length, and attends to the encoder.
        Self { sequence: self.decoded(), ..*self }.decode(b, encoder, encoded)?;
        builder.finish()
    }

    fn encode(&self, b: &mut Builder, layers: u64) -> Added {
        let mut x = self.embed(b)?;
        for index in 0..layers {
            x = self.layer(b, index, x, None)?;
        }
        if self.final_norm { self.normalise(b, "encoder.norm", self.hidden, x) } else { Ok(x) }
    }

    /// The layers from `first` on, and the output layer.
    fn decode(&self, b: &mut Builder, first: u64, encoded: Option<LayerId>) -> Added {
        let embedded = match encoded {
            None => self.embed(b)?,
            Some(_) => {
                let tokens = b.input("target", &[self.sequence])?;
                match self.signal {
                    // The encoder has no table to share.
                    Some(_) => {
                        let x = self.look_up(b, tokens)?;
                        b.add("positions", Op::PositionEmbedding { count: self.positions }, &[x])?
                    }
                    None => {
                        let dims = [self.sequence, self.hidden];
                        b.counted("target.embedding", &[tokens], &dims, Cost::default())?
                    }
                }
            }
        };
        let mut x = embedded;
        for index in first..self.layers {
            let predicts = index + self.multi_token >= self.layers;
            if predicts {
                let name = format!("layers.{index}.join");
                let join = |b: &mut Builder, what: &str, from| {
                    let x = self.normalise(b, &format!("{name}.{what}.norm"), self.hidden, from)?;
                    let half = Op::Linear { out: self.hidden, bias: false, tied: false };
                    b.add(format!("{name}.{what}"), half, &[x])
                };
                let halves = [join(b, "states", x)?, join(b, "token", embedded)?];
                x = b.add(format!("{name}.add"), Op::Add, &halves)?;
            }
            x = self.layer(b, index, x, encoded)?;
            if predicts {
                let states = self.normalise(b, &format!("layers.{index}.output.norm"), self.hidden, x)?;
                let output = Op::Linear { out: self.vocabulary, bias: false, tied: true };
                b.add(format!("layers.{index}.output"), output, &[states])?;
            }
        }
        if self.final_norm {
            x = self.normalise(b, "norm", self.hidden, x)?;
        }
        x = self.modulate(b, "modulation", self.last_modulation(), x)?;
        if b.shape(x).is_some_and(|own| own.dims().first() != Some(&self.predicted())) {
            x = b.counted("predicted", &[x], &[self.predicted(), self.hidden], Cost::default())?;
        }
        if self.head_transform {
            x = b.add("head.dense", Op::Linear { out: self.hidden, bias: self.bias, tied: false }, &[x])?;
            x = b.activate("head.activation", Activation::Gelu, x)?;
            x = self.normalise(b, "head.norm", self.hidden, x)?;
        }
        let output = Op::Linear { out: self.vocabulary, bias: self.biases_logits(), tied: self.tied };
        b.add("output", output, &[x])
    }

    fn embed(&self, b: &mut Builder) -> Added {
        let width = self.hidden;
        let mut x = match self.signal {
            Some(signal) => self.receive(b, signal)?,
            None => {
                let tokens = b.input("input", &[self.sequence])?;
                self.look_up(b, tokens)?
            }
        };
        if self.relative_positions > 0 {
            let dims = [self.sequence, width];
            let weights = self.stacks() * self.relative_positions * self.heads;
            x = b.counted("relative_positions", &[x], &dims, Cost { weights, ..Cost::default() })?;
        }
        if self.token_types > 0 {
            let types = b.input("token_types", &[self.sequence])?;
            let types = b.add(
                "type_embedding",
                Op::Embedding { count: self.token_types, width, sparse: false },
                &[types],
            )?;
            x = b.add("embedding.add", Op::Add, &[x, types])?;
        }
        // Positions of frames are fixed.
        if self.positions > 0 && self.target == 0 {
            x = b.add("positions", Op::PositionEmbedding { count: self.positions }, &[x])?;
        }
        match self.embedding_norm {
            true => self.normalise(b, "embedding.norm", width, x),
            false => Ok(x),
        }
    }

    fn look_up(&self, b: &mut Builder, tokens: LayerId) -> Added {
        let table = Op::Embedding { count: self.vocabulary, width: self.hidden, sparse: false };
        b.add("embedding", table, &[tokens])
    }

    fn layer(&self, b: &mut Builder, index: u64, from: LayerId, encoded: Option<LayerId>) -> Added {
        let name = format!("layers.{index}");
        let block = self.block(index);
        let from = self.modulate(b, &format!("{name}.modulation"), self.modulation_of(block.mixer), from)?;
        let from = self.second_stream(b, &name, block, from)?;
        let mut middle = from;
        let half = match block.mixer {
            Mixer::Attention | Mixer::Encoder | Mixer::Cross | Mixer::Joint | Mixer::JointLast => "attention",
            Mixer::Linear | Mixer::Mamba | Mixer::None => "mixer",
        };
        if block.mixer != Mixer::None {
            let x = self.normalise(b, &format!("{name}.{half}.norm"), self.hidden, from)?;
            let x = match block.mixer {
                Mixer::Cross => self.attention(b, &name, index, x, encoded)?,
                Mixer::Attention | Mixer::Encoder | Mixer::Joint | Mixer::JointLast | Mixer::None => {
                    self.attention(b, &name, index, x, None)?
                }
                Mixer::Linear | Mixer::Mamba => self.mixer(b, &format!("{name}.{half}"), block.mixer, x)?,
            };
            let x = self.after(b, &format!("{name}.{half}.after"), x)?;
            let from = match block.mixer {
                Mixer::JointLast => self.image(b, &format!("{name}.image"), self.hidden, from)?,
                _ => from,
            };
            middle = b.add(format!("{name}.{half}.add"), Op::Add, &[x, from])?;
        }
        if block.feed == FeedForward::None {
            return Ok(middle);
        }
        let x = match self.modules.shares_norm() {
            true => middle,
            false => self.normalise(b, &format!("{name}.mlp.norm"), self.hidden, middle)?,
        };
        let x = match self.experts.filter(|_| block.has_experts()) {
            Some(experts) => self.experts(b, &name, experts, x)?,
            None => self.mlp(b, &format!("{name}.mlp"), self.mlp_width, x)?,
        };
        let x = self.after(b, &format!("{name}.mlp.after"), x)?;
        b.add(format!("{name}.mlp.add"), Op::Add, &[x, middle])
    }

    fn after(&self, b: &mut Builder, name: &str, from: LayerId) -> Added {
        if self.sandwich { self.normalise(b, name, self.hidden, from) } else { Ok(from) }
    }

    /// A delta net or Mamba: a projection, convolution and scan as one counted layer, and the way back.
    fn mixer(&self, b: &mut Builder, name: &str, mixer: Mixer, from: LayerId) -> Added {
        let (parts, widths, operations) = match mixer {
            Mixer::Linear => self
                .delta
                .map(|own| (own.parts(self.hidden), [own.projected(), own.inner()], own.operations())),
            _ => self
                .mamba
                .map(|own| (own.parts(self.hidden), [own.projected(), own.inner()], own.operations())),
        }
        .ok_or_else(|| ShapeError::in_field("pattern", "its mixers have no widths", "add them").at(name))?;
        let plain = |out: u64| Op::Linear { out, bias: false, tied: false };
        let x = b.add(format!("{name}.input"), plain(widths[0]), &[from])?;
        let cost = Cost {
            multiply_add: times(name, &[self.sequence, operations])?,
            weights: parts[1].parameters.total() + parts[2].parameters.total(),
            ..Cost::default()
        };
        let x = b.counted(&format!("{name}.core"), &[x], &[self.sequence, widths[1]], cost)?;
        b.add(format!("{name}.output"), plain(self.hidden), &[x])
    }

    /// Attention to itself, or to the output of an encoder.
    fn attention(
        &self,
        b: &mut Builder,
        layer: &str,
        index: u64,
        from: LayerId,
        encoded: Option<LayerId>,
    ) -> Added {
        let name = format!("{layer}.attention");
        let keys_from = encoded.unwrap_or(from);
        let (key_width, value_width) = self.widths();
        let mut gate = None;
        let [query, key, value] = match self.mla {
            Some(mla) => self.latent(b, &name, mla, from)?,
            None => {
                let part = |out: u64| Op::Linear { out, bias: self.qkv_bias, tied: false };
                let query = b.add(format!("{name}.query"), part(self.heads * key_width), &[from])?;
                gate = match self.attention_gate {
                    true => Some(b.add(format!("{name}.gate"), part(self.heads * value_width), &[from])?),
                    false => None,
                };
                let bias = self.qkv_bias && self.modules != Modules::Whisper;
                let keys = Op::Linear { out: self.kv_heads * key_width, bias, tied: false };
                let key = b.add(format!("{name}.key"), keys, &[keys_from])?;
                let value =
                    b.add(format!("{name}.value"), part(self.kv_heads * value_width), &[keys_from])?;
                [query, key, value]
            }
        };
        let query = self.head_norm(b, &format!("{name}.query.norm"), self.heads, query)?;
        let key = self.head_norm(b, &format!("{name}.key.norm"), self.kv_heads, key)?;
        let grouped = self.kv_heads != self.heads || self.mla.is_some();
        let x = match (grouped, self.window_of(index)) {
            (false, None) => {
                let attention = Op::Attention { heads: self.heads, causal: self.causal && encoded.is_none() };
                b.add(format!("{name}.core"), attention, &[query, key, value])?
            }
            (_, window) => {
                let pairs = self.pairs(window).ok_or_else(|| ShapeError::overflow().at(&name))?;
                let scores = times(&name, &[self.heads, pairs])?;
                let cost = Cost {
                    multiply_add: times(&name, &[2, scores, key_width + value_width])?,
                    activation: times(&name, &[Activation::Softmax.operations(), scores])?,
                    elementwise: scores,
                    ..Cost::default()
                };
                let dims = [self.sequence, self.heads * value_width];
                b.counted(&format!("{name}.core"), &[query, key, value], &dims, cost)?
            }
        };
        let x = match gate {
            Some(gate) => {
                let gate = b.activate(format!("{name}.gate.activation"), Activation::Sigmoid, gate)?;
                b.add(format!("{name}.product"), Op::Multiply, &[x, gate])?
            }
            None => x,
        };
        let x = match self.block(index).mixer {
            Mixer::JointLast => self.image(b, &format!("{name}.image"), self.heads * value_width, x)?,
            _ => x,
        };
        let output = Op::Linear { out: self.hidden, bias: self.biases_attention(), tied: false };
        b.add(format!("{name}.output"), output, &[x])
    }

    /// Queries, keys and values through their narrow layers.
    fn latent(
        &self,
        b: &mut Builder,
        name: &str,
        mla: Mla,
        from: LayerId,
    ) -> Result<[LayerId; 3], ShapeError> {
        let plain = |out: u64| Op::Linear { out, bias: false, tied: false };
        let mut query = from;
        if mla.query_rank > 0 {
            query = b.add(format!("{name}.query.narrow"), plain(mla.query_rank), &[query])?;
            query = self.normalise(b, &format!("{name}.query.narrow.norm"), mla.query_rank, query)?;
        }
        let query = b.add(format!("{name}.query"), plain(self.heads * (mla.nope + mla.rope)), &[query])?;
        let narrow = format!("{name}.key_value.narrow");
        let rank = mla.key_value_rank;
        let narrow = b.add(narrow, plain(rank + mla.rope), &[from])?;
        // The rotary part goes past the normalisation and the wide layer.
        let name_of_part = format!("{name}.key_value.part");
        let part = b.counted(&name_of_part, &[narrow], &[self.sequence, rank], Cost::default())?;
        let part = self.normalise(b, &format!("{name}.key_value.narrow.norm"), rank, part)?;
        let wide = plain(self.heads * (mla.nope + mla.value));
        let both = b.add(format!("{name}.key_value"), wide, &[part])?;
        let dims = |width: u64| [self.sequence, self.heads * width];
        let key =
            b.counted(&format!("{name}.key"), &[both, narrow], &dims(mla.nope + mla.rope), Cost::default())?;
        let value = b.counted(&format!("{name}.value"), &[both], &dims(mla.value), Cost::default())?;
        Ok([query, key, value])
    }

    /// Query-key pairs of one head; none if they overflow 64 bits.
    fn pairs(&self, window: Option<u64>) -> Option<u64> {
        let s = u128::from(self.sequence);
        let pairs = match (window, self.causal) {
            (Some(window), true) => {
                let window = u128::from(window).min(s);
                s * window - window * (window - 1) / 2
            }
            (Some(window), false) => s * u128::from(window).min(s),
            (None, true) => s * (s + 1) / 2,
            (None, false) => s * s,
        };
        u64::try_from(pairs).ok()
    }

    fn mlp(&self, b: &mut Builder, name: &str, width: u64, from: LayerId) -> Added {
        let matrix = |out: u64| Op::Linear { out, bias: self.bias, tied: false };
        let inner = match self.mlp {
            Mlp::Gelu => {
                let x = b.add(format!("{name}.up"), matrix(width), &[from])?;
                b.activate(format!("{name}.activation"), Activation::Gelu, x)?
            }
            Mlp::Swiglu => {
                let gate = Op::Linear { out: width, bias: false, tied: false };
                let gate = b.add(format!("{name}.gate"), gate, &[from])?;
                let gate = b.activate(format!("{name}.activation"), Activation::Silu, gate)?;
                let up = b.add(format!("{name}.up"), matrix(width), &[from])?;
                b.add(format!("{name}.product"), Op::Multiply, &[up, gate])?
            }
        };
        b.add(format!("{name}.down"), matrix(self.hidden), &[inner])
    }

    /// A router, the experts as one counted layer, and the shared expert.
    fn experts(&self, b: &mut Builder, layer: &str, experts: Experts, from: LayerId) -> Added {
        let router = Op::Linear { out: experts.count, bias: experts.router_bias, tied: false };
        let routed = b.add(format!("{layer}.router"), router, &[from])?;
        let routed = b.activate(format!("{layer}.router.softmax"), Activation::Softmax, routed)?;
        let name = format!("{layer}.experts");
        let matrix = times(&name, &[self.mlp.matrices(), self.hidden, experts.width])?;
        let inner = times(&name, &[experts.active, self.sequence, experts.width])?;
        let activation = match self.mlp {
            Mlp::Gelu => Activation::Gelu,
            Mlp::Swiglu => Activation::Silu,
        };
        let biases = if self.bias { experts.count * (experts.width + self.hidden) } else { 0 };
        let cost = Cost {
            multiply_add: times(&name, &[2, self.sequence, experts.active, matrix])?,
            activation: times(&name, &[activation.operations(), inner])?,
            elementwise: times(&name, &[experts.active, self.sequence, self.hidden])?,
            weights: times(&name, &[experts.count, matrix])?,
            biases,
            ..Cost::default()
        };
        let x = b.counted(&name, &[from, routed], &[self.sequence, self.hidden], cost)?;
        match experts.shared_width {
            0 => Ok(x),
            width => {
                let mut shared = self.mlp(b, &format!("{layer}.shared"), width, from)?;
                if experts.shared_gate {
                    let elementwise = times(&name, &[self.sequence, self.hidden])?;
                    let multiply_add = times(&name, &[2, elementwise])?;
                    let cost = Cost { multiply_add, elementwise, weights: self.hidden, ..Cost::default() };
                    let gated = format!("{layer}.shared.gated");
                    shared = b.counted(&gated, &[shared, from], &[self.sequence, self.hidden], cost)?;
                }
                b.add(format!("{layer}.shared.add"), Op::Add, &[x, shared])
            }
        }
    }

    fn normalise(&self, b: &mut Builder, name: &str, width: u64, from: LayerId) -> Added {
        let affine = Norm::Layer { affine: true };
        match self.norm {
            NormKind::Layer => b.layer_norm(name, from),
            NormKind::LayerPlain => b.add(name, Op::Normalise(Norm::Layer { affine: false }), &[from]),
            NormKind::LayerNoBias | NormKind::Rms => {
                let normalisation = times(name, &[affine.operations(), self.sequence, width])?;
                let cost = Cost { normalisation, weights: width, ..Cost::default() };
                b.counted(name, &[from], &[self.sequence, width], cost)
            }
        }
    }

    /// The normalisation in each head, whose weights are those of one head, or over all of them.
    fn head_norm(&self, b: &mut Builder, name: &str, heads: u64, from: LayerId) -> Added {
        if !self.qk_norm {
            return Ok(from);
        }
        let (width, _) = self.widths();
        let elements = times(name, &[self.sequence, heads, width])?;
        let normalisation = times(name, &[Norm::Layer { affine: true }.operations(), elements])?;
        let weights = if self.qk_norm_joint { heads * width } else { width };
        let cost = Cost { normalisation, weights, ..Cost::default() };
        b.counted(name, &[from], &[self.sequence, heads * width], cost)
    }
}

pub(super) fn times(name: &str, factors: &[u64]) -> Result<u64, ShapeError> {
    let product = factors.iter().try_fold(1_u64, |product, &factor| product.checked_mul(factor));
    product.ok_or_else(|| ShapeError::overflow().at(name))
}
