//! What every validation set has in common.

use crate::{Report, ValidationError, sets};
use std::ops::ControlFlow;
use std::path::Path;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::suggest;

/// How far a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Work goes on; said at least every 50 ms of it.
    Working,
    /// So many of its points are done.
    Points {
        /// Those that are done.
        done: usize,
        /// All of them.
        of: usize,
    },
}

/// Follows a set and may cancel it.
pub type Progress<'a> = dyn Fn(Reached) -> ControlFlow<()> + Sync + 'a;

/// Says how far a set is; an error if it is no longer wanted.
pub(crate) fn told(progress: &Progress<'_>, reached: Reached) -> Result<(), ValidationError> {
    match progress(reached) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ValidationError::Cancelled),
    }
}

/// Goes on if the set is still wanted.
pub(crate) fn look(progress: &Progress<'_>) -> Result<(), ValidationError> {
    told(progress, Reached::Working)
}

/// Follows a set to its end.
#[cfg(test)]
pub(crate) fn unwatched(_: Reached) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Where the data of a set are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the binary.
    Embedded,
    /// In this folder below `validation`, unless another one is named.
    Folder(&'static str),
    /// In this file below `validation`, unless another one is named.
    File(&'static str),
}

/// How to run a set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Where its measurements are, if they are not in the binary.
    pub data: Option<&'a Path>,
    /// For `tf-ps`: also predict each configuration with parameters that were chosen on the others.
    pub held_out: bool,
    /// For `steps`: an artefact of fitted matrix products.
    pub gemm: Option<&'a Path>,
}

impl<'a> Options<'a> {
    /// The path of the data of `set`, which is not in the binary.
    pub(crate) fn data_of(&self, set: &dyn Set) -> Result<&'a Path, Fault> {
        self.data.ok_or_else(|| {
            let what = if matches!(set.source(), Source::Folder(_)) { "FOLDER" } else { "FILE" };
            let remedy = Remedy::GiveOption {
                option: RequestOption::Data,
                value: Some(what.to_owned()),
                purpose: "(docs/validation.md says what is in it)".to_owned(),
            };
            Fault::new(format!("the measurements of {} are not in the binary", set.name()), remedy)
        })
    }
}

/// One source of figures that methods are held against.
pub trait Set: Sync {
    /// Its name on the command line and in `validation/bounds.toml`.
    fn name(&self) -> &'static str;

    /// Where its data are.
    fn source(&self) -> Source {
        Source::Embedded
    }

    /// Recomputes or predicts every figure.
    fn run(&self, options: &Options<'_>, progress: &Progress<'_>) -> Result<Report, ValidationError>;
}

/// The set called `name`.
pub fn find(name: &str) -> Result<&'static dyn Set, Fault> {
    sets::all().iter().copied().find(|set| set.name() == name).ok_or_else(|| {
        let names: Vec<&str> = sets::all().iter().map(|set| set.name()).collect();
        let list = format!("the sets are {}", names.join(", "));
        let remedy = suggest::remedy(name, names, list);
        Fault::new(format!("there is no validation set \"{name}\""), remedy)
    })
}
