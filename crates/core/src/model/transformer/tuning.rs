//! Trained parts of a transformer: everything, adapters beside frozen matrices (Hu 2021, LoRA; Liu 2024, DoRA), or its last
//! layers; and how frozen matrices are stored (Dettmers 2023, QLoRA).

use super::{Block, Mixer, Parameters, Transformer};
use crate::fault::Fault;
use crate::keys::document_keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest rank of an adapter.
const MOST_RANK: u64 = 1 << 14;

/// Trained and frozen parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tuning {
    /// Adapters beside the matrices of layers; these matrices and norms are then frozen.
    pub adapters: Option<Adapters>,
    /// Number of first layers that are not trained.
    pub frozen_layers: u64,
    /// Whether the embedding is frozen.
    pub frozen_embedding: bool,
    /// Whether the final norm and the output layer are frozen.
    pub frozen_output: bool,
}

/// Adapters of low rank: y = Wx + BAx, with W frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapters {
    /// Columns of B and rows of A.
    pub rank: u64,
    /// The matrices that have an adapter.
    pub targets: Targets,
    /// Whether the input of A passes dropout.
    pub dropout: bool,
    /// Whether directions and lengths of columns are trained separately (DoRA).
    pub dora: bool,
    /// Storage of the frozen matrices of layers.
    pub base: BaseFormat,
}

/// Number format of frozen matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaseFormat {
    /// 16 bits.
    #[default]
    Bf16,
    /// 8-bit floating point, which products read as it is.
    Fp8,
    /// 8-bit integers with a scale for each row.
    Int8,
    /// 4 bits, a scale of 8 bits for every 64 weights, and one of 32 bits for every 256 of these (NF4 with double
    /// quantisation: Dettmers 2023, section 3).
    Nf4,
}

impl BaseFormat {
    /// Bytes of a weight.
    pub const fn bytes(self) -> f64 {
        match self {
            Self::Bf16 => 2.0,
            Self::Fp8 | Self::Int8 => 1.0,
            Self::Nf4 => 0.5 + 1.0 / 64.0 + 4.0 / (64.0 * 256.0),
        }
    }

    /// Whether a product first writes its weights in 16 bits.
    pub const fn is_expanded(self) -> bool {
        matches!(self, Self::Int8 | Self::Nf4)
    }
}

/// Matrices of a layer by their role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Queries.
    Q,
    /// Keys; with latent attention, both matrices of keys and values.
    K,
    /// Values; with latent attention, both matrices of keys and values.
    V,
    /// Output projection of attention.
    O,
    /// Gate of the MLP.
    Gate,
    /// Way up of the MLP, or its only first matrix.
    Up,
    /// Way back of the MLP.
    Down,
    /// All matrices of routed experts.
    Experts,
}

crate::variant_names!(Target {
    Q = "q",
    K = "k",
    V = "v",
    O = "o",
    Gate = "gate",
    Up = "up",
    Down = "down",
    Experts = "experts",
});

impl Target {
    /// The matrices that a word of a file names: one of them, `attention`, `mlp` or `all`.
    pub fn meant_by(word: &str) -> Option<&'static [Self]> {
        match word {
            "attention" => Some(&Self::ALL[..4]),
            "mlp" => Some(&Self::ALL[4..7]),
            "all" => Some(Self::ALL),
            _ => Self::ALL.iter().position(|own| own.name() == word).map(|place| &Self::ALL[place..=place]),
        }
    }
}

/// A set of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Targets(u8);

impl Targets {
    /// Whether it has `target`.
    pub const fn has(self, target: Target) -> bool {
        self.0 & (1 << target as u8) != 0
    }

    /// Whether it has any of these.
    pub fn any(self, targets: &[Target]) -> bool {
        targets.iter().any(|target| self.has(*target))
    }

    fn words(self) -> Vec<String> {
        Target::ALL.iter().filter(|own| self.has(**own)).map(|own| own.name().to_owned()).collect()
    }
}

impl FromIterator<Target> for Targets {
    fn from_iter<I: IntoIterator<Item = Target>>(targets: I) -> Self {
        Self(targets.into_iter().fold(0, |set, target| set | 1 << target as u8))
    }
}

document_keys! {
    /// `[model.adapters]`: adapters of low rank beside frozen matrices.
    AdaptersSection {
        /// Columns of one factor and rows of the other.
        rank: u64, "integer", "required";
        /// Matrices that have an adapter: `"q"`, `"k"`, `"v"`, `"o"`, `"gate"`, `"up"`, `"down"`, `"experts"`, or `"attention"`,
        /// `"mlp"`, `"all"`.
        targets: Vec<String>, "list of strings", "`[\"all\"]`, without experts";
        /// Whether the input of an adapter passes dropout.
        dropout: bool, "boolean", "`false`";
        /// Whether lengths and directions of columns are trained separately (DoRA).
        dora: bool, "boolean", "`false`";
        /// Storage of the frozen matrices of layers: `"bf16"`, `"fp8"`, `"int8"` or `"nf4"`.
        base: BaseFormat, "string", "`\"bf16\"`";
        /// Whether the embedding is trained in full.
        trained_embedding: bool, "boolean", "`false`";
        /// Whether the final norm and the output layer are trained in full.
        trained_output: bool, "boolean", "`false`";
    }
}

document_keys! {
    /// `[model.frozen]`: parts that are not trained, without adapters.
    FrozenSection {
        /// Number of first layers that are not trained.
        layers: u64, "integer", "`0`";
        /// Whether the embedding is frozen.
        embedding: bool, "boolean", "whether any layer is";
        /// Whether the final norm and the output layer are frozen.
        output: bool, "boolean", "`false`";
    }
}

impl AdaptersSection {
    fn resolve(&self, shape: &Transformer) -> Result<Tuning, Fault> {
        let mixes = |block: &Block| !block.mixer.attends() && block.mixer != Mixer::None;
        if shape.blocks().iter().flatten().any(mixes) || shape.attention_gate {
            let reason = "adapters beside gates or mixers other than attention are not modelled";
            return Err(Fault::new(reason, "train the model in full, or freeze its first layers"));
        }
        let rank = self.rank.ok_or_else(|| Fault::in_key("rank", "there is no `rank`", "add `rank = 16`"))?;
        if !(1..=MOST_RANK).contains(&rank) {
            let reason = format!("must be between 1 and {MOST_RANK}, but is {rank}");
            return Err(Fault::in_key("rank", reason, "use a rank such as 16"));
        }
        let targets: Targets = match &self.targets {
            None => Target::ALL[..7].iter().copied().collect(),
            Some(words) => {
                let mut all = Vec::new();
                for word in words {
                    let named = Target::meant_by(word).ok_or_else(|| {
                        let reason = format!("\"{word}\" is no matrix of a layer");
                        let remedy = "use q, k, v, o, gate, up, down, experts, attention, mlp or all";
                        Fault::in_key("targets", reason, remedy)
                    })?;
                    // "all" includes experts only if the model has some.
                    all.extend(named.iter().filter(|target| {
                        named.len() == 1 || **target != Target::Experts || shape.experts.is_some()
                    }));
                }
                all.into_iter().collect()
            }
        };
        if targets == Targets::default() {
            return Err(Fault::in_key("targets", "no matrix has an adapter", "use `targets = [\"all\"]`"));
        }
        if targets.has(Target::Experts) && shape.experts.is_none() {
            return Err(Fault::in_key("targets", "the model has no experts", "leave \"experts\" out"));
        }
        Ok(Tuning {
            adapters: Some(Adapters {
                rank,
                targets,
                dropout: self.dropout.unwrap_or(false),
                dora: self.dora.unwrap_or(false),
                base: self.base.unwrap_or_default(),
            }),
            frozen_layers: 0,
            frozen_embedding: !self.trained_embedding.unwrap_or(false),
            frozen_output: !self.trained_output.unwrap_or(false),
        })
    }
}

impl Tuning {
    /// The tuning that the sections describe; without them everything is trained.
    pub fn resolve(
        adapters: Option<&AdaptersSection>,
        frozen: Option<&FrozenSection>,
        shape: &Transformer,
    ) -> Result<Self, Fault> {
        match (adapters, frozen) {
            (None, None) => Ok(Self::default()),
            (Some(_), Some(_)) => {
                let reason = "beside adapters everything is frozen";
                Err(Fault::in_key("frozen", reason, "keep `[model.adapters]` or `[model.frozen]`"))
            }
            (Some(section), None) => section.resolve(shape).map_err(|fault| fault.below("adapters".into())),
            (None, Some(section)) => {
                let layers = section.layers.unwrap_or(0);
                let frozen_output = section.output.unwrap_or(false);
                if layers > shape.layers || (layers == shape.layers && frozen_output) {
                    let reason =
                        format!("of {} layers, {layers} are frozen and nothing is trained", shape.layers);
                    return Err(Fault::in_key("frozen.layers", reason, "freeze fewer layers"));
                }
                let frozen_embedding = section.embedding.unwrap_or(layers > 0);
                if layers > 0 && !frozen_embedding {
                    let reason =
                        "gradients of the embedding pass through frozen layers, which is not modelled";
                    return Err(Fault::in_key("frozen.embedding", reason, "freeze the embedding, too"));
                }
                if shape.tied && frozen_embedding != frozen_output {
                    let reason = "the embedding and the output layer share one matrix";
                    let remedy = "set `embedding` and `output` alike, or `tied = false`";
                    return Err(Fault::in_key("frozen.embedding", reason, remedy));
                }
                Ok(Self { adapters: None, frozen_layers: layers, frozen_embedding, frozen_output })
            }
        }
    }

    /// The sections that describe this tuning.
    pub fn sections(&self) -> (Option<AdaptersSection>, Option<FrozenSection>) {
        match self.adapters {
            Some(own) => {
                let section = AdaptersSection {
                    rank: Some(own.rank),
                    targets: Some(own.targets.words()),
                    dropout: Some(own.dropout),
                    dora: Some(own.dora),
                    base: Some(own.base),
                    trained_embedding: Some(!self.frozen_embedding),
                    trained_output: Some(!self.frozen_output),
                };
                (Some(section), None)
            }
            None if *self == Self::default() => (None, None),
            None => {
                let section = FrozenSection {
                    layers: Some(self.frozen_layers),
                    embedding: Some(self.frozen_embedding),
                    output: Some(self.frozen_output),
                };
                (None, Some(section))
            }
        }
    }
}

/// Gradients that a layer computes in the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backward {
    /// Nothing: neither it nor anything before it is trained.
    Nothing,
    /// Gradients of its own weights, but not of its input: nothing before it is trained.
    Own,
    /// Gradients of its weights and of its input.
    #[default]
    All,
}

impl Transformer {
    /// Gradients that the layer at `index` computes in the backward pass.
    pub const fn backward_at(&self, index: u64) -> Backward {
        let Tuning { frozen_layers, frozen_embedding, .. } = self.tuning;
        if !frozen_embedding || index > frozen_layers {
            Backward::All
        } else if index == frozen_layers {
            Backward::Own
        } else {
            Backward::Nothing
        }
    }

    /// Whether matrices and norms of layers are trained themselves, where anything is.
    pub const fn trains_matrices(&self) -> bool {
        self.tuning.adapters.is_none()
    }

    /// Whether the gradients of these targets' weights, or of their adapters, are computed, which needs their inputs.
    pub fn needs_input(&self, targets: &[Target]) -> bool {
        self.tuning.adapters.is_none_or(|own| own.targets.any(targets))
    }

    /// Trained parameters of a layer that is not frozen.
    pub fn trained_layer_parameters(&self, block: Block) -> Parameters {
        let Some(adapters) = self.tuning.adapters else { return self.layer_parameters(block) };
        let mut sum = Parameters::default();
        let adapted = self.matrices(block).into_iter().filter(|(target, _)| adapters.targets.has(*target));
        for (target, own) in adapted {
            let dora = if adapters.dora { own.output } else { 0 };
            let (a, b) = (adapters.rank * own.input, adapters.rank * own.output + dora);
            let each = match (target, own.divides_input) {
                (Target::Experts, _) => Parameters { expert: a + b, ..Parameters::default() },
                (Target::K | Target::V, _) if self.mla.is_none() => {
                    Parameters { key_value: b, every: a, ..Parameters::default() }
                }
                (_, true) => Parameters { tensor: a, every: b, ..Parameters::default() },
                (_, false) => Parameters { tensor: b, every: a, ..Parameters::default() },
            };
            sum += each.times(own.count);
        }
        sum
    }

    /// All trained parameters.
    pub fn trained_parameters(&self) -> u64 {
        let Tuning { frozen_layers, frozen_embedding, frozen_output, .. } = self.tuning;
        let counted = self.blocks().into_iter().zip(self.count_blocks(&(frozen_layers..self.layers)));
        let layers: u64 = counted
            .filter_map(|(block, count)| Some(self.trained_layer_parameters(block?).total() * count))
            .sum();
        let ends = [
            (frozen_embedding, self.embedding_parameters()),
            (frozen_output, self.final_norm_parameters() + self.output_parameters()),
        ];
        let ends: u64 = ends.iter().filter(|(frozen, _)| !frozen).map(|(_, own)| own.total()).sum();
        layers + ends
    }
}
