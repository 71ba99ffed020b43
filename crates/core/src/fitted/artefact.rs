//! Output of `stepcast fit`: a TOML text with `kind`, provenance, errors and the fitted `model`. All kinds are read
//! here; only the model is used, the rest is for human readers.

use crate::fault::{Fault, Remedy};
use crate::files::Files;
use crate::fitted::gemm::GemmModel;
use crate::fitted::machine::MachineModel;
use crate::fitted::steps::StepModel;
use crate::fitted::transfer::TransferModel;
use crate::fitted::{EfficiencyModel, LinearKernel};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Kind of fit: the word after `stepcast fit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArtefactKind {
    Efficiency,
    Gemm,
    /// Kernels whose time depends on the number of elements.
    Kernels,
    Machine,
    /// Components of SPRINT's threads.
    Sprint,
    Steps,
    Transfer,
}

impl fmt::Display for ArtefactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Artefact {
    Efficiency(EfficiencyModel),
    Gemm(Box<GemmModel>),
    Kernels(BTreeMap<String, LinearKernel>),
    Machine(Box<MachineModel>),
    /// Components of SPRINT's threads, by key.
    Sprint(BTreeMap<String, LinearKernel>),
    Steps(Box<StepModel>),
    Transfer(TransferModel),
}

#[derive(Deserialize)]
struct Head {
    kind: ArtefactKind,
}

#[derive(Deserialize)]
struct File<M> {
    model: M,
}

impl Artefact {
    /// Parses the text of an artefact; the error describes what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let Head { kind } = read(text)?;
        let artefact = match kind {
            ArtefactKind::Efficiency => Self::Efficiency(model(text)?),
            ArtefactKind::Gemm => Self::Gemm(Box::new(model(text)?)),
            ArtefactKind::Kernels => Self::Kernels(model(text)?),
            ArtefactKind::Machine => Self::Machine(Box::new(model(text)?)),
            ArtefactKind::Sprint => Self::Sprint(model(text)?),
            ArtefactKind::Steps => Self::Steps(Box::new(model(text)?)),
            ArtefactKind::Transfer => Self::Transfer(model(text)?),
        };
        artefact.check().map(|()| artefact)
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Efficiency(model) => model.check(),
            Self::Gemm(_) => Ok(()),
            Self::Kernels(kernels) | Self::Sprint(kernels) => {
                kernels.iter().try_for_each(|(name, kernel)| {
                    kernel.check().map_err(|reason| format!("kernel {name}: {reason}"))
                })
            }
            Self::Machine(model) => model.check(),
            Self::Steps(model) => model.check(),
            Self::Transfer(model) => model.check(),
        }
    }

    pub fn kind(&self) -> ArtefactKind {
        match self {
            Self::Efficiency(_) => ArtefactKind::Efficiency,
            Self::Gemm(_) => ArtefactKind::Gemm,
            Self::Kernels(_) => ArtefactKind::Kernels,
            Self::Machine(_) => ArtefactKind::Machine,
            Self::Sprint(_) => ArtefactKind::Sprint,
            Self::Steps(_) => ArtefactKind::Steps,
            Self::Transfer(_) => ArtefactKind::Transfer,
        }
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    crate::text::parse(text).map_err(|error| error.message().to_owned())
}

fn model<M: DeserializeOwned>(text: &str) -> Result<M, String> {
    read(text).map(|File { model }| model)
}

/// Loads the artefact at `path`. Errors have the root as their path; the caller sets the key.
pub(crate) fn load(path: &str, files: &dyn Files) -> Result<Artefact, Fault> {
    Artefact::from_toml(&files.text(path)?).map_err(|reason| {
        Fault::new(
            format!("{path} is no fitted artefact: {reason}"),
            Remedy::NameArtefact { fits: Vec::new() },
        )
    })
}

pub(crate) fn unwanted(path: &str, found: ArtefactKind, wanted: &[ArtefactKind]) -> Fault {
    let fits: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    let needed = Remedy::alternatives(&fits, |fit| format!("`{fit}`"));
    let reason = format!("{path} is a fit of `{found}`; this key needs {needed}");
    Fault::new(reason, Remedy::NameArtefact { fits })
}
