//! Output of `stepcast fit`: a TOML text with `kind`, provenance, errors and the fitted `model`. All kinds are read
//! here; only the model is used, the rest is for human readers.

use crate::fault::{Fault, Remedy};
use crate::files::Files;
use crate::fitted::efficiency::EfficiencyModel;
use crate::fitted::gemm::GemmModel;
use crate::fitted::kernel::LinearKernel;
use crate::fitted::machine::MachineModel;
use crate::fitted::steps::StepModel;
use crate::fitted::transfer::TransferModel;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Kind of fit: the word after `stepcast fit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Efficiencies of a device.
    Efficiency,
    /// Matrix products.
    Gemm,
    /// Kernels whose time depends on the number of elements.
    Kernels,
    /// A whole machine.
    Machine,
    /// Whole training steps.
    Steps,
    /// Transfers by their size.
    Transfer,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Efficiency => "efficiency",
            Self::Gemm => "gemm",
            Self::Kernels => "kernels",
            Self::Machine => "machine",
            Self::Steps => "steps",
            Self::Transfer => "transfer",
        })
    }
}

/// A fitted model of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Artefact {
    /// Efficiencies of a device.
    Efficiency(EfficiencyModel),
    /// Matrix products.
    Gemm(Box<GemmModel>),
    /// Kernels, by name.
    Kernels(BTreeMap<String, LinearKernel>),
    /// A whole machine.
    Machine(Box<MachineModel>),
    /// Whole training steps.
    Steps(Box<StepModel>),
    /// Transfers by their size.
    Transfer(TransferModel),
}

#[derive(Deserialize)]
struct Head {
    kind: Kind,
}

#[derive(Deserialize)]
struct File<M> {
    model: M,
}

impl Artefact {
    /// Parses the text of an artefact; the error describes what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let Head { kind } = read(text)?;
        Ok(match kind {
            Kind::Efficiency => {
                let model: EfficiencyModel = model(text)?;
                model.check()?;
                Self::Efficiency(model)
            }
            Kind::Gemm => Self::Gemm(Box::new(model(text)?)),
            Kind::Kernels => {
                let kernels: BTreeMap<String, LinearKernel> = model(text)?;
                for (name, kernel) in &kernels {
                    kernel.check().map_err(|reason| format!("kernel {name}: {reason}"))?;
                }
                Self::Kernels(kernels)
            }
            Kind::Machine => {
                let model: MachineModel = model(text)?;
                model.check()?;
                Self::Machine(Box::new(model))
            }
            Kind::Steps => {
                let model: StepModel = model(text)?;
                model.check()?;
                Self::Steps(Box::new(model))
            }
            Kind::Transfer => {
                let model: TransferModel = model(text)?;
                model.check()?;
                Self::Transfer(model)
            }
        })
    }

    /// The kind of this artefact.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Efficiency(_) => Kind::Efficiency,
            Self::Gemm(_) => Kind::Gemm,
            Self::Kernels(_) => Kind::Kernels,
            Self::Machine(_) => Kind::Machine,
            Self::Steps(_) => Kind::Steps,
            Self::Transfer(_) => Kind::Transfer,
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

/// The fault that an artefact has the wrong kind.
pub(crate) fn unwanted(path: &str, found: Kind, wanted: &[Kind]) -> Fault {
    let reason = format!("{path} is a fit of `{found}`, which has no use here");
    Fault::new(reason, Remedy::NameArtefact { fits: wanted.iter().map(ToString::to_string).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_artefacts_are_refused() {
        for (text, reason) in [
            ("", "missing field `kind`"),
            ("kind = 1", "wanted string"),
            ("kind = \"horoscope\"", "unknown variant `horoscope`"),
            ("kind = \"gemm\"", "missing field `model`"),
            ("kind = \"gemm\"\n[model]\nmultiprocessors = 0\nvariant = []", "without multiprocessors"),
            ("kind = \"steps\"\n[model]\nlaunch = 1", "invalid type"),
            (
                "kind = \"kernels\"\n[model.pool]\nper-element = \"-1 s\"\nstart = \"0 s\"\nleast = 1\nmost = 2",
                "kernel pool: a time is negative",
            ),
            (
                "kind = \"transfer\"\n[model]\nleast = \"1 B\"\nmost = \"2 B\"\n\
                 curve = { shape = \"line\", startup = \"1 s\", bandwidth = \"0 B/s\" }",
                "a rate is not positive",
            ),
        ] {
            let error = Artefact::from_toml(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_fitted_line_takes_what_it_says() {
        let text = "kind = \"transfer\"\n[model]\nleast = \"1 kB\"\nmost = \"1 MB\"\n\
                    curve = { shape = \"line\", startup = \"1 ms\", bandwidth = \"1 GB/s\" }";
        let Ok(Artefact::Transfer(model)) = Artefact::from_toml(text) else { unreachable!("{text}") };
        let size = crate::quantity::Bytes::new(1e6);
        assert!((model.curve.time(size).get() - 2e-3).abs() < 1e-15);
        assert_eq!(model.curve.log_linear().time(size), model.curve.time(size));
    }
}
