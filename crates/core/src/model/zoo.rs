//! Models by name: one text file for each family (`catalog/models`), read when a model of the family is asked for.
//!
//! Layouts follow the papers as implemented by the named library, with its layer names, so that gradients can be
//! identified by name. Numbers of classes and input sizes are the usual ones (ImageNet: 1000 classes, 224×224) unless
//! the description says otherwise. Models called `zeng2023/…` are the layouts that Zeng 2023 counted, including their
//! quirks, and serve to reproduce that paper. Transformers known only by their shape come last.

use super::file::{BlockFile, LayerFile, Value, expand};
use super::transformer::{BaseFormat, Transformer, TransformerSection};
use super::{Adjustment, Builder, Model, Published, ShapeError};
use crate::fault::{NameList, Remedies, Remedy, shown};
use crate::suggest;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZooModel {
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub description: String,
    /// The paper and, if it differs, the implementation that defines the layout; by default, the family's.
    #[serde(default)]
    pub source: String,
    /// A model of another family whose layers it has.
    base: Option<String>,
    #[serde(default)]
    with: BTreeMap<String, Value>,
    transformer: Option<toml::Table>,
    #[serde(default)]
    adjustments: Vec<Adjustment>,
    #[serde(default)]
    published: Published,
    #[serde(skip)]
    family: usize,
    #[serde(skip)]
    shape: OnceLock<Option<Transformer>>,
    #[serde(skip)]
    built: OnceLock<Model>,
}

/// A family as its file describes it: one network, and the values or shapes of its variants.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Family {
    #[serde(default)]
    source: String,
    #[serde(default)]
    input: Vec<Value>,
    #[serde(default)]
    with: BTreeMap<String, Value>,
    #[serde(default)]
    layers: Vec<LayerFile>,
    #[serde(default)]
    blocks: BTreeMap<String, BlockFile>,
    transformer: Option<toml::Table>,
    model: Vec<ZooModel>,
}

/// The families that were asked for so far.
static FAMILIES: [OnceLock<Family>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
const FILES: &[&str] = stepcast_catalog::MODELS;

/// A name or alias, the model's own name, and the place of its family.
struct IndexRow {
    name: &'static str,
    model: &'static str,
    family: usize,
}

/// All names in the order of the files, found without parsing them: only a model's own keys start a line.
static INDEX: LazyLock<Vec<IndexRow>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    for (family, text) in FILES.iter().enumerate() {
        let mut model = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name = ") {
                model = name.trim_matches('"');
                rows.push(IndexRow { name: model, model, family });
            } else if let Some(aliases) = line.strip_prefix("aliases = ") {
                let names = aliases.split('"').skip(1).step_by(2);
                rows.extend(names.map(|name| IndexRow { name, model, family }));
            }
        }
    }
    rows
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static IndexRow>> =
    LazyLock::new(|| INDEX.iter().map(|row| (row.name, row)).collect());

/// The family at `place`; without models if its file is broken, which a test excludes.
fn family(place: usize) -> &'static Family {
    static NONE: LazyLock<Family> = LazyLock::new(Family::default);
    let read = || {
        let mut family: Family =
            FILES.get(place).and_then(|text| crate::text::parse(text).ok()).unwrap_or_default();
        for model in &mut family.model {
            model.family = place;
            if model.source.is_empty() {
                model.source.clone_from(&family.source);
            }
        }
        family
    };
    FAMILIES.get(place).map_or_else(|| &*NONE, |slot| slot.get_or_init(read))
}

impl ZooModel {
    /// Builds the model. An error is a bug in the zoo; the tests build every one.
    pub fn build(&self) -> Result<Model, ShapeError> {
        if let Some(model) = self.built.get() {
            return Ok(model.clone());
        }
        let model = self.expand(None)?;
        Ok(self.built.get_or_init(|| model).clone())
    }

    /// Builds the model for samples of `sequence` tokens; an error if its samples have no tokens, or at most fewer.
    pub fn build_for(&self, sequence: Option<u64>) -> Result<Model, ShapeError> {
        if sequence.is_some() { self.expand(sequence) } else { self.build() }
    }

    fn expand(&self, sequence: Option<u64>) -> Result<Model, ShapeError> {
        let mut builder = Builder::new(&self.name, &self.source);
        let own = family(self.family);
        for adjustment in &self.adjustments {
            builder.adjust(adjustment.clone());
        }
        builder.publish(self.published);
        let base = self.base.as_deref().and_then(find);
        let network = base.map_or(own, |base| family(base.family));
        if network.layers.is_empty() {
            let shape = self.shape().ok_or_else(|| {
                let reason = "it has neither layers nor the shape of a transformer";
                ShapeError::in_field("layers", reason, "describe it in its file").at(&self.name)
            })?;
            return shape.with_sequence(sequence.unwrap_or(shape.sequence)).layout(builder);
        }
        let mut values = network.with.clone();
        values.extend(base.into_iter().flat_map(|base| base.with.clone()));
        values.extend(self.with.clone());
        if let Some(sequence) = sequence
            && values.insert("sequence".to_owned(), sequence.into()).is_none()
        {
            let reason = "its samples are not sequences of tokens";
            return Err(ShapeError::in_field("sequence", reason, "remove `sequence`").at(&self.name));
        }
        expand(&mut builder, (&network.input, &network.layers), &network.blocks, &values)
            .map_err(|fault| fault.error)?;
        builder.finish()
    }

    /// The name of its family: how the comment of its file begins.
    pub fn family_name(&self) -> &'static str {
        let comment = FILES.get(self.family).and_then(|text| text.lines().next()).unwrap_or_default();
        let name = comment.trim_start_matches("# ").trim_end_matches('.');
        [": ", ". ", ", "].iter().fold(name, |name, end| name.split_once(end).map_or(name, |(name, _)| name))
    }

    pub fn shape(&self) -> Option<Transformer> {
        *self.shape.get_or_init(|| {
            let mut table = family(self.family).transformer.clone().unwrap_or_default();
            table.extend(self.transformer.clone()?);
            let section: TransformerSection = table.try_into().ok()?;
            section.resolve().ok().map(|(_, shape)| shape)
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    pub name: String,
    /// Similar names to try.
    pub remedy: Remedies,
    /// Reason why a listed model does not build: a bug in the zoo, or an invalid sequence.
    pub fault: Option<Box<ShapeError>>,
}

impl std::fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.fault {
            None => write!(f, "there is no model \"{}\" in the zoo", shown(&self.name)),
            Some(fault) => write!(f, "the zoo's model \"{}\" is broken: {fault}", self.name),
        }
    }
}

impl std::error::Error for UnknownModel {}

/// All models, family by family.
pub fn entries() -> impl Iterator<Item = &'static ZooModel> {
    (0..FILES.len()).flat_map(|place| &family(place).model)
}

/// The names of all models, without aliases.
pub fn names() -> impl Iterator<Item = &'static str> {
    INDEX.iter().filter(|row| row.name == row.model).map(|row| row.name)
}

/// The model with this name or alias, in any spelling, or of this checkpoint at a hub: `ResNet-50` is `resnet50`, and
/// `meta-llama/Llama-3.1-8B-Instruct` is `llama3.1-8b`.
pub fn find(name: &str) -> Option<&'static ZooModel> {
    let written = name.to_lowercase();
    let row = alike(&written).or_else(|| checkpoint(&written))?;
    family(row.family).model.iter().find(|model| model.name == row.model)
}

/// The name, else the only model whose letters and digits are these: `opt-1.3b` is not `opt-13b`.
fn alike(name: &str) -> Option<&'static IndexRow> {
    let dotted = |name: &str| name.replace(|c: char| !c.is_alphanumeric() && c != '.' && c != '_', "");
    let wanted = suggest::normal(name);
    let like = || INDEX.iter().filter(|row| suggest::normal(row.name) == wanted);
    let same = || like().find(|row| dotted(row.name) == dotted(name));
    let only = || like().next().filter(|first| like().all(|row| row.model == first.model));
    BY_NAME.get(name).copied().or_else(same).or_else(only)
}

/// Words in names of checkpoints that do not affect the shape.
const TUNED: [&str; 19] = [
    "instruct",
    "it",
    "chat",
    "thinking",
    "reasoning",
    "coder",
    "math",
    "base",
    "pt",
    "preview",
    "deduped",
    "hf",
    "v0.1",
    "v1.0",
    "diffusers",
    "4bit",
    "8bit",
    "bnb",
    "unsloth",
];

/// Beginnings of names of checkpoints that go on with the name of their shape.
const TUNERS: [&str; 4] = ["meta-", "c4ai-", "hermes-3-", "deepseek-r1-0528-"];

/// The model of a checkpoint, without the owner and without words about training, date and storage.
fn checkpoint(name: &str) -> Option<&'static IndexRow> {
    let name = name.rsplit('/').next()?;
    let name = TUNERS.iter().find_map(|tuner| name.strip_prefix(tuner)).unwrap_or(name);
    let is_date = |word: &&str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = name.split('-').filter(|word| !TUNED.contains(word)).collect();
    let undated = || words.iter().copied().filter(|word| !is_date(word)).collect::<Vec<_>>().join("-");
    alike(name).or_else(|| alike(&words.join("-"))).or_else(|| alike(&undated()))
}

/// The format of a checkpoint's matrices, if its name states it: `unsloth/llama-3-8b-bnb-4bit`.
pub fn stored_format(name: &str) -> Option<BaseFormat> {
    let name = name.to_lowercase();
    let formats = [("bnb-4bit", BaseFormat::Nf4), ("bnb-8bit", BaseFormat::Int8)];
    formats.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
}

/// The shape of the transformer with this name or alias; none if there is no such model or if it has no shape.
pub fn transformer(name: &str) -> Option<Transformer> {
    find(name)?.shape()
}

/// The names of all transformers, without aliases.
pub fn transformers() -> impl Iterator<Item = &'static str> {
    entries().filter(|model| model.transformer.is_some()).map(|model| model.name.as_str())
}

pub fn build(name: &str) -> Result<Model, UnknownModel> {
    build_for(name, None)
}

/// Builds the model with this name or alias for samples of `sequence` tokens.
pub fn build_for(name: &str, sequence: Option<u64>) -> Result<Model, UnknownModel> {
    let unknown = |remedy, fault| UnknownModel { name: name.to_owned(), remedy, fault };
    let model = find(name).ok_or_else(|| unknown(remedy(name), None))?;
    model.build_for(sequence).map_err(|fault| unknown(fault.remedy.as_str().into(), Some(Box::new(fault))))
}

/// Models whose names are similar to an unknown one.
pub fn remedy(name: &str) -> Remedies {
    let others = match name.rsplit_once('/') {
        Some((owner, _)) if !owner.is_empty() => {
            format!("name its config.json, whose path `hf download {} config.json` prints", shown(name))
        }
        _ => "describe it by a config.json, an ONNX file or `[model.transformer]`".to_owned(),
    };
    let others = [Remedy::ListNames { list: NameList::Models }, Remedy::advice(others)];
    suggest::variants(name.rsplit_once('/').map_or(name, |(_, own)| own), names(), others)
}
