//! Models by name, with one file per family and one list of all entries.
//!
//! Layouts follow the papers as implemented by the named library, with its layer names, so that gradients can be
//! identified by name. Numbers of classes and input sizes are the usual ones (ImageNet: 1000 classes, 224×224) unless
//! the description says otherwise. Models called `zeng2023/…` are the layouts that Zeng 2023 counted, including their
//! quirks, and serve to reproduce that paper. Transformers that are known by their shape alone come last; their data is
//! in [`super::transformer::zoo`].

mod alexnet;
mod bert;
mod cifar;
mod convnext;
mod deepspeech;
mod densenet;
mod dlrm;
mod efficientnet;
mod googlenet;
mod gpt2;
mod inception;
mod mobilenet;
mod ncf;
mod overfeat;
mod regnet;
mod resnet;
mod ssd;
mod swin;
mod t5;
mod transformer_xl;
mod unet;
mod vgg;
mod vit;
mod yolo;
mod zeng2023;

use super::{Activation, Builder, Conv2d, LayerId, Model, ShapeError, transformer};
use crate::fault::{NameList, Remedies, Remedy};
use crate::suggest;

/// A model of the zoo.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// One-line description.
    pub description: &'static str,
    /// The paper and, if it differs, the implementation that defines the layout.
    pub source: &'static str,
    pub(crate) layout: fn(Builder) -> Result<Model, ShapeError>,
}

impl Entry {
    /// Builds the model. An error is a bug in the zoo; the tests build every entry.
    pub fn build(&self) -> Result<Model, ShapeError> {
        self.build_for(None)
    }

    /// Builds the model for samples of so many tokens; an error if its samples are no sequences, or not so long.
    pub fn build_for(&self, sequence: Option<u64>) -> Result<Model, ShapeError> {
        (self.layout)(Builder::new(self.name, self.source).of_sequence(sequence))
    }
}

/// A name that is not in the zoo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    /// The requested name.
    pub name: String,
    /// What to do about it: similar names.
    pub remedy: Remedies,
    /// Why a listed model does not build: a bug in the zoo, or a sequence that it cannot have.
    pub fault: Option<Box<ShapeError>>,
}

impl std::fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.fault {
            None => write!(f, "there is no model \"{}\" in the zoo", self.name),
            Some(fault) => write!(f, "the zoo's model \"{}\" is broken: {fault}", self.name),
        }
    }
}

impl std::error::Error for UnknownModel {}

const FAMILIES: &[&[Entry]] = &[
    alexnet::ENTRIES,
    overfeat::ENTRIES,
    vgg::ENTRIES,
    resnet::ENTRIES,
    regnet::ENTRIES,
    convnext::ENTRIES,
    swin::ENTRIES,
    googlenet::ENTRIES,
    inception::ENTRIES,
    densenet::ENTRIES,
    mobilenet::ENTRIES,
    efficientnet::ENTRIES,
    vit::ENTRIES,
    ssd::ENTRIES,
    yolo::ENTRIES,
    unet::ENTRIES,
    ncf::ENTRIES,
    dlrm::ENTRIES,
    deepspeech::ENTRIES,
    bert::ENTRIES,
    gpt2::ENTRIES,
    transformer_xl::ENTRIES,
    t5::ENTRIES,
    cifar::ENTRIES,
    zeng2023::ENTRIES,
];

/// All models, family by family.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    let transformers = transformer::zoo::named().map(|named| &named.entry);
    FAMILIES.iter().copied().flatten().chain(transformers)
}

/// The names of all models, without aliases.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.name)
}

/// The entry with this name or alias; case is ignored, and `_` is the same as `-`.
pub fn find(name: &str) -> Option<&'static Entry> {
    let wanted = name.to_lowercase().replace('_', "-");
    entries().find(|entry| entry.name == wanted || entry.aliases.contains(&wanted.as_str()))
}

/// Builds the model with this name or alias.
pub fn build(name: &str) -> Result<Model, UnknownModel> {
    build_for(name, None)
}

/// Builds the model with this name or alias for samples of so many tokens.
pub fn build_for(name: &str, sequence: Option<u64>) -> Result<Model, UnknownModel> {
    let unknown = |remedy, fault| UnknownModel { name: name.to_owned(), remedy, fault };
    let entry = find(name).ok_or_else(|| unknown(remedy(name), None))?;
    entry.build_for(sequence).map_err(|fault| unknown(fault.remedy.as_str().into(), Some(Box::new(fault))))
}

/// Models whose names are like one that is not in the zoo.
pub fn remedy(name: &str) -> Remedies {
    suggest::variants(name, names(), Remedy::ListNames { list: NameList::Models })
}

/// A convolution, a batch normalisation and an optional non-linearity, with their names.
fn conv_norm(
    b: &mut Builder,
    [conv_name, norm_name, activation_name]: [String; 3],
    conv: Conv2d,
    activation: Option<Activation>,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let x = b.conv(conv_name, conv, from)?;
    let x = b.batch_norm(norm_name, x)?;
    activation.map_or(Ok(x), |activation| b.activate(activation_name, activation, x))
}

#[cfg(test)]
mod measured;
#[cfg(test)]
mod tests;
