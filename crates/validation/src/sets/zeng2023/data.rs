//! The figures of `validation/zeng2023/`, embedded.

use crate::ValidationError;
use crate::embedded::rows;
use serde::{Deserialize, Serialize};
use std::fmt;
use stepcast_validation_data::zeng2023::{TABLE1, TABLES2_7, WORKBOOK};

/// Machines of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Config {
    /// One Xeon E5-2620.
    #[serde(rename = "cpu-2.0")]
    Cpu20,
    /// One Xeon E5-2660.
    #[serde(rename = "cpu-2.2")]
    Cpu22,
    /// One Quadro RTX 4000.
    #[serde(rename = "gpu")]
    Gpu,
    /// Two Xeon E5-2620 at 1 Gbit/s.
    #[serde(rename = "2-cpu")]
    TwoCpu,
    /// Two Quadro RTX 4000 at 1 Gbit/s.
    #[serde(rename = "2-gpu")]
    TwoGpu,
    /// A Quadro RTX 4000 and a Xeon E5-2620 at 1 Gbit/s.
    #[serde(rename = "gpu+cpu")]
    GpuAndCpu,
    /// Two Quadro RTX 4000 and a GTX 1060 at 1 Gbit/s.
    #[serde(rename = "3-gpu")]
    ThreeGpu,
    /// The same at 10 Gbit/s.
    #[serde(rename = "3-gpu-10")]
    ThreeGpu10,
}

impl Config {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 8] = [
        Self::Cpu20,
        Self::Cpu22,
        Self::Gpu,
        Self::TwoCpu,
        Self::TwoGpu,
        Self::GpuAndCpu,
        Self::ThreeGpu,
        Self::ThreeGpu10,
    ];

    /// Catalog names of the workers' devices.
    pub(super) fn devices(self) -> &'static [&'static str] {
        const CPU20: &str = "xeon-e5-2620";
        const RTX: &str = "quadro-rtx-4000";
        match self {
            Self::Cpu20 => &[CPU20],
            Self::Cpu22 => &["xeon-e5-2660"],
            Self::Gpu => &[RTX],
            Self::TwoCpu => &[CPU20, CPU20],
            Self::TwoGpu => &[RTX, RTX],
            Self::GpuAndCpu => &[RTX, CPU20],
            Self::ThreeGpu | Self::ThreeGpu10 => &[RTX, RTX, "gtx-1060-6gb"],
        }
    }

    /// Catalog name of the network.
    pub(super) fn network(self) -> &'static str {
        match self {
            Self::ThreeGpu10 => "10gbe",
            _ => "1gbe",
        }
    }

    /// Whether there is a single worker.
    pub(super) fn is_stand_alone(self) -> bool {
        self.devices().len() == 1
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cpu20 => "E5-2620",
            Self::Cpu22 => "E5-2660",
            Self::Gpu => "RTX 4000",
            Self::TwoCpu => "2 E5-2620, 1 Gbit/s",
            Self::TwoGpu => "2 RTX 4000, 1 Gbit/s",
            Self::GpuAndCpu => "RTX 4000 + E5-2620, 1 Gbit/s",
            Self::ThreeGpu => "2 RTX 4000 + GTX 1060, 1 Gbit/s",
            Self::ThreeGpu10 => "2 RTX 4000 + GTX 1060, 10 Gbit/s",
        })
    }
}

/// A printed row of Table 1.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PrintedCount {
    pub(super) model: String,
    pub(super) print_forward: f64,
    pub(super) forward: u64,
    pub(super) print_backward: f64,
    pub(super) backward: u64,
}

/// A printed cell of Tables 2-7.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PrintedCell {
    pub(super) table: u8,
    pub(super) model: String,
    pub(super) config: Config,
    pub(super) batch: u32,
    pub(super) pt: f64,
    pub(super) mt: f64,
    pub(super) accuracy: f64,
    pub(super) simd: Option<f64>,
    pub(super) typed: Option<f64>,
    pub(super) note: String,
}

/// A measured time of the authors' workbook.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Measured {
    pub(super) config: Config,
    pub(super) model: String,
    pub(super) batch: u32,
    pub(super) mt: f64,
}

/// Table 1.
pub(super) fn counts() -> Result<Vec<PrintedCount>, ValidationError> {
    rows(TABLE1)
}

/// Tables 2-7.
pub(super) fn cells() -> Result<Vec<PrintedCell>, ValidationError> {
    rows(TABLES2_7)
}

/// The workbook.
pub(super) fn workbook() -> Result<Vec<Measured>, ValidationError> {
    rows(WORKBOOK)
}
