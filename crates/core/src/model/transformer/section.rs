//! `[model.transformer]`: a transformer written key by key, or by its differences from a transformer of the zoo.

use super::{
    Block, ConditionSection, DeltaSection, FeedForward, MambaSection, Mlp, Modules, NormKind, Pattern,
    SignalSection, Transformer,
};
use crate::fault::{Fault, KeyPath, NameList, Remedy};
use crate::keys::document_keys;
use crate::model::zoo;
use crate::suggest;

document_keys! {
    /// `[model.transformer]`: the shape of a transformer.
    TransformerSection {
        /// What it is called in the output.
        name: String, "string", "`base`, or `\"transformer\"`";
        /// Transformer of the zoo to start from.
        base: String, "string", "`zoo` of `[model]`, if given";
        /// Layers.
        layers: u64, "integer", "required";
        /// Width between layers.
        hidden: u64, "integer", "required";
        /// Query heads.
        heads: u64, "integer", "required";
        /// Key-value heads; fewer than `heads` for grouped queries.
        kv_heads: u64, "integer", "`heads`";
        /// Width of a head.
        head_width: u64, "integer", "`hidden` / `heads`";
        /// Inner width of the MLP of a dense layer.
        mlp_width: u64, "integer", "4 × `hidden`";
        /// Kind of the MLP: `"gelu"` (two matrices) or `"swiglu"` (three).
        mlp: Mlp, "string", "`\"swiglu\"`";
        /// Modules of Hugging Face's library: `"plain"`, `"gpt2"`, `"opt"`, `"neox"`, `"phi3"`, `"t5"`, `"timm"`, `"whisper"`,
        /// `"cohere"`, `"falcon"`, `"phi"` or `"gptj"`.
        modules: Modules, "string", "`\"plain\"`";
        /// Rows of the embedding and of the output layer, with padding if the framework pads; of the output layer alone for patches.
        vocabulary: u64, "integer", "required";
        /// Tokens of one sample: of the encoder, if there is one.
        sequence: u64, "integer", "required";
        /// Tokens of the decoder behind an encoder; `--sequence` scales them with the encoder's.
        target: u64, "integer", "`0`";
        /// Normalisation: `"rms"`, `"layer"`, `"layer-no-bias"` or, without parameters, `"layer-plain"`.
        norm: NormKind, "string", "`\"rms\"`";
        /// Whether each half of a layer also normalises its output (Gemma 2).
        sandwich: bool, "boolean", "`false`";
        /// Whether a normalisation follows the last layer.
        final_norm: bool, "boolean", "`true`";
        /// Whether the output projection and the MLP have biases.
        bias: bool, "boolean", "`false`";
        /// Whether queries, keys and values have biases.
        qkv_bias: bool, "boolean", "`bias`";
        /// Whether queries and keys are normalised in each head (Qwen 3).
        qk_norm: bool, "boolean", "`false`";
        /// Whether that normalisation is over all heads at once (OLMo 2, MiniMax-M2).
        qk_norm_joint: bool, "boolean", "`false`";
        /// Learned positions; 0 for rotary ones.
        positions: u64, "integer", "`0`";
        /// Rows of the table of relative-position biases, in place of other positions (T5: 32).
        relative_positions: u64, "integer", "`0`";
        /// Rows of a table of token types (BERT).
        token_types: u64, "integer", "`0`";
        /// Whether the embedding is normalised (BERT, BLOOM).
        embedding_norm: bool, "boolean", "`false`";
        /// Whether the output layer shares the weight of the embedding.
        tied: bool, "boolean", "`false`";
        /// Whether a dense layer with a normalisation, and a bias of the logits, precede the loss (BERT).
        head_transform: bool, "boolean", "`false`";
        /// Whether a query sees only keys up to its own position.
        causal: bool, "boolean", "`true`";
        /// Number of keys that a query sees, itself included.
        window: u64, "integer", "all of them";
        /// One layer in this many has the window.
        window_every: u64, "integer", "`1`";
        /// Every n-th layer has no window (Gemma 3: 6).
        global_every: u64, "integer", "`0`";
        /// The last layers that predict further tokens, each with a projection and a pass through the output layer (DeepSeek-V3: one
        /// more layer, and 1).
        multi_token: u64, "integer", "`0`";
        /// Whether attention is multiplied by a gate of its width (Qwen3-Next).
        attention_gate: bool, "boolean", "`false`";
        /// Kinds of layers, one letter each, repeated: `A` attention, `L` a gated delta net, `M` Mamba, each with a
        /// feed-forward; `a`, `l`, `m` without one; `f` a feed-forward alone (Qwen3-Next: `"LLLA"`). `E` is a layer of an encoder, `C`
        /// cross-attention with a feed-forward: a layer of T5's decoder is `aC`. `J` is a layer with separate weights for the tokens of
        /// image and text, `j` the last of them (Stable Diffusion 3).
        pattern: String, "string", "`\"A\"`";
        /// Gated delta nets of the pattern, see below.
        delta: DeltaSection, "table", "none";
        /// Layers of the pattern with Mamba, see below.
        mamba: MambaSection, "table", "none";
        /// Experts in place of the MLP, see below.
        experts: ExpertsSection, "table", "none";
        /// Latent attention (DeepSeek), see below.
        mla: MlaSection, "table", "none";
        /// Patches of images or frames of sound in place of tokens, see below.
        signal: SignalSection, "table", "none";
        /// Condition that modulates every layer (DiT), see below.
        condition: ConditionSection, "table", "none";
    }
}

/// Declares a part of a transformer together with the section that describes it. Each line has a key, its type, and either an example of
/// a required value or the default, as documented and as a value, which may be an earlier key.
macro_rules! part_keys {
    (
        $(#[doc = $meaning:literal])* struct $part:ident;
        $(#[doc = $doc:literal])* section $section:ident($($outer:ident: $outer_type:ty)?);
        $($(#[doc = $fdoc:literal])* $field:ident: $type:ty, $written:literal, $default:literal, $presence:ident $value:tt;)*
    ) => {
        $(#[doc = $meaning])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $part {
            $($(#[doc = $fdoc])* pub $field: $type,)*
        }

        $crate::keys::document_keys! {
            $(#[doc = $doc])*
            $section { $($(#[doc = $fdoc])* $field: $type, $written, $default;)* }
        }

        impl $section {
            pub(super) fn resolve(self, $($outer: $outer_type)?) -> Result<$part, $crate::fault::Fault> {
                $(let $field = part_keys!(@value self.$field, $field $presence $value);)*
                Ok($part { $($field),* })
            }
        }

        impl $part {
            pub(super) const fn section(&self) -> $section {
                $section { $($field: Some(self.$field)),* }
            }
        }
    };
    (@value $given:expr, $field:ident such_as $example:literal) => {
        $given.ok_or_else(|| {
            let example = concat!(" = ", $example);
            let key = $crate::keys::kebab(stringify!($field));
            $crate::model::transformer::section::missing(&key, &format!("{key}{example}"))
        })?
    };
    (@value $given:expr, $field:ident or $default:tt) => {
        $given.unwrap_or($default)
    };
}
pub(super) use part_keys;

part_keys! {
    /// Layers whose MLP is a choice of experts.
    struct Experts;
    /// `[model.transformer.experts]`: layers whose MLP is a choice of experts.
    section ExpertsSection(mlp_width: u64);
    /// Routed experts in a layer.
    count: u64, "integer", "required", such_as 8;
    /// Routed experts that a token visits.
    active: u64, "integer", "required", such_as 2;
    /// Inner width of one expert.
    width: u64, "integer", "`mlp-width`", or mlp_width;
    /// Inner width of all shared experts together.
    shared_width: u64, "integer", "`0`", or 0;
    /// First layers that keep a dense MLP.
    dense_layers: u64, "integer", "`0`", or 0;
    /// Behind them, every n-th layer has experts (Llama 4 Maverick: 2).
    every: u64, "integer", "`1`", or 1;
    /// Whether the router adds a value for each expert.
    router_bias: bool, "boolean", "`false`", or false;
    /// Whether shared experts are multiplied by a gate of each token (Qwen3-Next).
    shared_gate: bool, "boolean", "`false`", or false;
}

part_keys! {
    /// Multi-head latent attention: keys and values, and perhaps queries, pass through a narrow layer.
    struct Mla;
    /// `[model.transformer.mla]`: latent attention.
    section MlaSection();
    /// Width that queries pass through; 0 for none.
    query_rank: u64, "integer", "`0`", or 0;
    /// Width that keys and values pass through.
    key_value_rank: u64, "integer", "required", such_as 512;
    /// Part of a head's query and key without positions.
    nope: u64, "integer", "required", such_as 128;
    /// Part of a head's query and key with rotary positions.
    rope: u64, "integer", "required", such_as 64;
    /// Width of a head's value.
    value: u64, "integer", "`nope`", or nope;
}

/// Bounds within which no count of parameters leaves 64 bits.
pub(super) mod most {
    pub(in super::super) const LAYERS: u64 = 2000;
    pub(super) const WIDTH: u64 = 1 << 17;
    pub(super) const INNER: u64 = 1 << 20;
    pub(super) const HEADS: u64 = 1 << 12;
    pub(super) const EXPERTS: u64 = 1 << 12;
    pub(super) const ROWS: u64 = 1 << 28;
    pub(super) const TOKENS: u64 = 1 << 28;
}

/// Passes a macro the keys whose default is the value of the base, or Llama's.
macro_rules! plain_keys {
    ($macro:ident) => {
        $macro!(
            layers hidden heads vocabulary sequence target mlp modules norm sandwich final_norm bias qk_norm qk_norm_joint positions
            relative_positions token_types embedding_norm tied head_transform causal window_every global_every multi_token attention_gate
        )
    };
}

impl TransformerSection {
    pub fn resolve(self) -> Result<(String, Transformer), Fault> {
        let base = self.base.as_deref().map(based).transpose()?;
        let base = base.map(|base| base.with_sequence(self.sequence.unwrap_or(base.sequence)));
        let name = self.name.clone().or_else(|| self.base.clone());
        let shape = self.filled(base)?;
        shape.check()?;
        Ok((name.unwrap_or_else(|| "transformer".to_owned()), shape))
    }

    /// The given values, then those of `base`, then the defaults.
    fn filled(self, base: Option<Transformer>) -> Result<Transformer, Fault> {
        let required = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("vocabulary", self.vocabulary),
            ("sequence", self.sequence),
        ];
        if let (None, Some((key, _))) = (base, required.iter().find(|(_, given)| given.is_none())) {
            return Err(incomplete(key));
        }
        let usual = base.unwrap_or_default();
        macro_rules! given_or_usual {
            ($($key:ident)*) => { Transformer { $($key: self.$key.unwrap_or(usual.$key),)* ..usual } };
        }
        let shape = plain_keys!(given_or_usual);
        let Transformer { hidden, heads, bias, .. } = shape;
        // A number of heads or a width of its own does not keep the quotient of the base.
        let same_heads = self.heads.is_none() && self.hidden.is_none();
        let head_width = self.head_width.or(base.filter(|_| same_heads).map(|base| base.head_width));
        let mlp_width = self.mlp_width.or(base.map(|base| base.mlp_width));
        let mlp_width = mlp_width.unwrap_or_else(|| hidden.saturating_mul(4));
        macro_rules! part {
            ($key:ident($($outer:expr)?)) => {
                match self.$key {
                    Some(own) => Some(own.resolve($($outer)?).map_err(below(stringify!($key)))?),
                    None => usual.$key,
                }
            };
        }
        Ok(Transformer {
            kv_heads: self.kv_heads.or(base.map(|base| base.kv_heads)).unwrap_or(heads),
            head_width: head_width.map_or_else(|| quotient(hidden, heads), Ok)?,
            mlp_width,
            qkv_bias: self.qkv_bias.unwrap_or(base.map_or(bias, |base| base.qkv_bias)),
            window: self.window.or(usual.window),
            pattern: match self.pattern {
                Some(pattern) => Some(Pattern::parse(&pattern)?),
                None => usual.pattern,
            },
            delta: part!(delta()),
            mamba: part!(mamba()),
            experts: part!(experts(mlp_width)),
            mla: part!(mla()),
            signal: part!(signal()),
            condition: part!(condition()),
            ..shape
        })
    }
}

impl Transformer {
    /// Checks that every value is within its bounds and that they fit together; keys are those of the section.
    pub fn check(&self) -> Result<(), Fault> {
        let has_mlp = |block: &Block| block.feed == FeedForward::Dense;
        let least_mlp = u64::from(self.blocks().iter().flatten().any(has_mlp));
        let mut bounds = vec![
            ("layers", self.layers, 1, most::LAYERS),
            ("hidden", self.hidden, 1, most::WIDTH),
            ("heads", self.heads, 1, most::HEADS),
            ("kv-heads", self.kv_heads, 1, most::HEADS),
            ("head-width", self.head_width, 1, most::HEADS),
            ("mlp-width", self.mlp_width, least_mlp, most::INNER),
            ("vocabulary", self.vocabulary, 1, most::ROWS),
            ("sequence", self.sequence, 1, most::TOKENS),
            ("target", self.target, 0, most::TOKENS),
            ("positions", self.positions, 0, most::TOKENS),
            ("relative-positions", self.relative_positions, 0, most::HEADS),
            ("token-types", self.token_types, 0, most::HEADS),
            ("window", self.window.unwrap_or(1), 1, u64::MAX),
            ("window-every", self.window_every, 1, u64::MAX),
            ("global-every", self.global_every, 0, most::LAYERS),
            ("multi-token", self.multi_token, 0, self.layers.saturating_sub(1)),
        ];
        if let Some(experts) = self.experts {
            bounds.extend([
                ("experts.count", experts.count, 1, most::EXPERTS),
                ("experts.active", experts.active, 1, experts.count),
                ("experts.width", experts.width, 1, most::INNER),
                ("experts.shared-width", experts.shared_width, 0, most::INNER),
                ("experts.dense-layers", experts.dense_layers, 0, self.layers),
                ("experts.every", experts.every, 1, self.layers),
            ]);
        }
        if let Some(mla) = self.mla {
            bounds.extend([
                ("mla.query-rank", mla.query_rank, 0, most::WIDTH),
                ("mla.key-value-rank", mla.key_value_rank, 1, most::WIDTH),
                ("mla.nope", mla.nope, 1, most::HEADS),
                ("mla.rope", mla.rope, 0, most::HEADS),
                ("mla.value", mla.value, 1, most::HEADS),
            ]);
        }
        if let Some(own) = self.signal {
            if (own.patch > 0) == (own.frequencies > 0) {
                return Err(below("signal")(missing("patch", "patch = 768")));
            }
            bounds.extend([
                ("signal.patch", own.patch, 0, most::INNER),
                ("signal.frequencies", own.frequencies, 0, most::WIDTH),
                ("signal.class-tokens", own.class_tokens, 0, self.sequence.saturating_sub(1)),
                ("signal.outputs", own.outputs, 0, self.decoded()),
                ("target", self.target, u64::from(own.frequencies > 0), most::TOKENS),
            ]);
        }
        if let Some(own) = self.condition {
            bounds.extend([
                ("condition.classes", own.classes, 0, most::ROWS),
                ("condition.pooled", own.pooled, 0, most::INNER),
                ("condition.text", own.text, 0, most::INNER),
                (
                    "condition.text-tokens",
                    own.text_tokens,
                    0,
                    self.sequence.saturating_sub(self.class_tokens().saturating_add(1)),
                ),
            ]);
        }
        if let Some(own) = self.delta {
            bounds.extend([
                ("delta.key-heads", own.key_heads, 1, most::HEADS),
                ("delta.value-heads", own.value_heads, own.key_heads, most::HEADS),
                ("delta.key-width", own.key_width, 1, most::HEADS),
                ("delta.value-width", own.value_width, 1, most::HEADS),
                ("delta.convolution", own.convolution, 1, most::HEADS),
            ]);
        }
        if let Some(own) = self.mamba {
            bounds.extend([
                ("mamba.heads", own.heads, 1, most::HEADS),
                ("mamba.head-width", own.head_width, 1, most::HEADS),
                ("mamba.groups", own.groups, 1, own.heads),
                ("mamba.state", own.state, 1, most::HEADS),
                ("mamba.convolution", own.convolution, 1, most::HEADS),
                ("mamba.chunk", own.chunk, 1, most::HEADS),
                ("mamba.step-rank", own.step_rank, 0, most::WIDTH),
            ]);
        }
        for (key, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                let reason = format!("must be between {least} and {most}, but is {value}");
                return Err(Fault::in_key(key, reason, "check it against the model's configuration"));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let reason =
                format!("{} key-value heads do not divide the {} query heads", self.kv_heads, self.heads);
            return Err(Fault::in_key("kv-heads", reason, "use a divisor of `heads`"));
        }
        self.check_pattern()?;
        // Frames of a spectrogram have fixed positions.
        let frames = self.signal.is_some_and(|own| own.frequencies > 0);
        let tokens = if frames { self.decoded() } else { self.sequence };
        if self.positions > 0 && self.positions < tokens {
            let reason = format!("{} learned positions do not reach {tokens} tokens", self.positions);
            return Err(Fault::in_key("sequence", reason, "use a shorter sequence, or more `positions`"));
        }
        Ok(())
    }

    /// The section that describes this shape, with all defaults filled in.
    pub fn section(&self, name: &str) -> TransformerSection {
        macro_rules! all_given {
            ($($key:ident)*) => {
                TransformerSection {
                    name: Some(name.to_owned()),
                    base: None,
                    kv_heads: Some(self.kv_heads),
                    head_width: Some(self.head_width),
                    mlp_width: Some(self.mlp_width),
                    qkv_bias: Some(self.qkv_bias),
                    window: self.window,
                    pattern: self.pattern.map(|pattern| pattern.to_string()),
                    delta: self.delta.map(|delta| delta.section()),
                    mamba: self.mamba.map(|mamba| mamba.section()),
                    experts: self.experts.map(|experts| experts.section()),
                    mla: self.mla.map(|mla| mla.section()),
                    signal: self.signal.map(|signal| signal.section()),
                    condition: self.condition.map(|condition| condition.section()),
                    $($key: Some(self.$key),)*
                }
            };
        }
        plain_keys!(all_given)
    }
}

fn based(name: &str) -> Result<Transformer, Fault> {
    zoo::transformer(name).ok_or_else(|| {
        let reason = format!("there is no transformer \"{name}\" in the zoo");
        let list = Remedy::ListNames { list: NameList::Models };
        Fault::in_key("base", reason, suggest::remedy(name, zoo::transformers(), list))
    })
}

fn quotient(hidden: u64, heads: u64) -> Result<u64, Fault> {
    match hidden.checked_rem(heads) {
        Some(0) => Ok(hidden / heads),
        Some(_) => {
            let reason = format!("{heads} heads do not divide the width {hidden}");
            Err(Fault::in_key("heads", reason, "use a divisor of `hidden`, or add `head-width`"))
        }
        None => Err(Fault::in_key("heads", "must be between 1 and 4096, but is 0", "use at least one")),
    }
}

pub(super) fn missing(key: &str, example: &str) -> Fault {
    Fault::new(format!("there is no `{key}`"), format!("add it, as in `{example}`"))
}

fn below(parent: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| fault.below(KeyPath::of(parent))
}

fn incomplete(key: &str) -> Fault {
    let remedy = format!("add `{key}`, or `base = \"llama3-8b\"` to start from a transformer of the zoo");
    Fault::new(format!("the transformer has neither a `base` nor `{key}`"), remedy)
}
