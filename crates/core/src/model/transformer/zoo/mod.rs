//! Named transformers: one file for each family, shapes as data.
//!
//! The layered zoo ([`crate::model::zoo`]) lists them among its models. GPT-2 and BERT have layouts of their own
//! there, with the names of their implementation; here are their shapes.

mod bert;
mod deepseek;
mod gemma;
mod gpt;
mod llama;
mod megatron;
mod mistral;
mod mpt;
mod qwen;

use super::Transformer;
use crate::model::zoo::{Entry, find as find_entry};
use crate::model::{Builder, Model, ShapeError};

/// A transformer and its entry in the list of models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub(crate) entry: Entry,
    shape: Transformer,
}

impl Named {
    const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        description: &'static str,
        source: &'static str,
        shape: Transformer,
    ) -> Self {
        Self { entry: Entry { name, aliases, description, source, layout: by_name }, shape }
    }
}

const FAMILIES: &[&[Named]] = &[
    gpt::GPT3,
    megatron::ENTRIES,
    llama::ENTRIES,
    mistral::ENTRIES,
    qwen::ENTRIES,
    gemma::ENTRIES,
    deepseek::ENTRIES,
    mpt::ENTRIES,
];

/// Shapes of models that the layered zoo lays out itself.
const LAID_OUT: &[&[(&str, Transformer)]] = &[gpt::GPT2, bert::ENTRIES];

/// The transformers that are laid out by their shape.
pub(crate) fn named() -> impl Iterator<Item = &'static Named> {
    FAMILIES.iter().copied().flatten()
}

/// The names of all transformers, without aliases.
pub fn names() -> impl Iterator<Item = &'static str> {
    let laid_out = LAID_OUT.iter().copied().flatten().map(|(name, _)| *name);
    laid_out.chain(named().map(|named| named.entry.name))
}

/// The shape of the transformer with this name or alias; none if there is no such model or if it has no shape.
pub fn find(name: &str) -> Option<Transformer> {
    let name = find_entry(name)?.name;
    let laid_out = LAID_OUT.iter().copied().flatten().find(|(known, _)| *known == name);
    let by_shape = || named().find(|named| named.entry.name == name).map(|named| named.shape);
    laid_out.map(|(_, shape)| *shape).or_else(by_shape)
}

/// Lays out the transformer whose name the builder has.
fn by_name(mut builder: Builder) -> Result<Model, ShapeError> {
    let named = named().find(|named| named.entry.name == builder.name());
    let shape = named.map(|named| named.shape).ok_or_else(|| ShapeError {
        layer: builder.name().to_owned(),
        field: None,
        reason: "the zoo has no shape of this name".to_owned(),
        remedy: "name a transformer of the zoo".to_owned(),
    })?;
    let sequence = builder.tokens(shape.sequence);
    Transformer { sequence, ..shape }.layout(builder)
}
