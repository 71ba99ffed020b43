//! All sets of validation data by their names, and what comes of each.

use super::{ValidationError, ddp_gloo, hkbu, liu2022, published, steps, tf_ps, zeng2023};
use serde::Serialize;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::suggest;
use stepcast_study::predict::interval::Case;

/// Figures in the binary.
const ZENG2023: &str = "zeng2023";
const LIU2022: &str = "liu2022";
const HKBU: &str = "hkbu";
/// Measured runs in a folder.
const TF_PS: &str = "tf-ps";
/// Measured jobs in a file.
const DDP_GLOO: &str = "ddp-gloo";
/// Measured steps in a file.
const STEPS: &str = "steps";

/// What may be told to a set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Where its measurements are, if they are not in the binary.
    pub data: Option<&'a Path>,
    /// For `tf-ps`: also predict each configuration by figures chosen on others.
    pub held_out: bool,
    /// For `steps`: fitted matrix products.
    pub gemm: Option<&'a Path>,
}

/// What came of one set.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Report {
    /// Zeng 2023.
    Zeng2023(Box<zeng2023::Report>),
    /// Liu 2022.
    Liu2022(Box<liu2022::Report>),
    /// HKBU's measurements.
    Hkbu(Box<hkbu::Report>),
    /// Published throughput.
    Published(Box<published::Report>),
    /// Asynchronous runs of TensorFlow.
    TfPs(Box<tf_ps::Report>),
    /// DDP jobs.
    DdpGloo(Box<ddp_gloo::Report>),
    /// Training steps.
    Steps(Box<steps::Report>),
}

impl Report {
    /// Whether all bounds are kept.
    pub fn holds(&self) -> bool {
        match self {
            Self::Zeng2023(report) => report.holds(),
            Self::Liu2022(report) => report.holds(),
            Self::Hkbu(report) => report.holds(),
            Self::Published(report) => report.holds(),
            Self::TfPs(report) => report.holds(),
            Self::DdpGloo(report) => report.holds(),
            Self::Steps(report) => report.holds(),
        }
    }

    /// The runs that were measured and predicted.
    pub fn cases(&self) -> Result<Vec<Case>, ValidationError> {
        Ok(match self {
            Self::Zeng2023(report) => report.cases()?,
            Self::Liu2022(_) => Vec::new(),
            Self::Hkbu(report) => report.cases(),
            Self::Published(report) => report.cases(),
            Self::TfPs(report) => report.cases(),
            Self::DdpGloo(report) => report.cases(),
            Self::Steps(report) => report.cases(),
        })
    }
}

/// The names of all sets.
pub fn sets() -> Vec<&'static str> {
    let mut sets = vec![ZENG2023, LIU2022, HKBU];
    sets.extend(published::SETS);
    sets.extend([TF_PS, DDP_GLOO, STEPS]);
    sets
}

/// The set called `name`, or what to say instead.
pub fn set(name: &str) -> Result<&'static str, Fault> {
    let sets = sets();
    sets.iter().copied().find(|known| *known == name).ok_or_else(|| {
        let list = format!("the sets are {}", sets.join(", "));
        let remedy = suggest::remedy(name, sets.iter().copied(), &list);
        Fault::new(format!("there is no validation set \"{name}\""), remedy)
    })
}

/// Runs one set.
pub fn run(
    name: &str,
    options: Options<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report, ValidationError> {
    let set = set(name)?;
    let data = || {
        options.data.ok_or_else(|| {
            let what = if set == TF_PS { "FOLDER" } else { "FILE" };
            let remedy = format!("add --data {what}; docs/validation.md says what is in it");
            Fault::new(format!("the measurements of {set} are not in the binary"), remedy)
        })
    };
    Ok(match set {
        ZENG2023 => Report::Zeng2023(Box::new(zeng2023::run()?)),
        LIU2022 => Report::Liu2022(Box::new(liu2022::run()?)),
        HKBU => Report::Hkbu(Box::new(hkbu::run()?)),
        DDP_GLOO => Report::DdpGloo(Box::new(ddp_gloo::run(data()?)?)),
        STEPS => Report::Steps(Box::new(steps::run(data()?, options.gemm)?)),
        TF_PS => {
            let held_out = tf_ps::Options { held_out: options.held_out };
            Report::TfPs(Box::new(tf_ps::run(data()?, held_out, progress)?))
        }
        _ => Report::Published(Box::new(published::run(set)?)),
    })
}
