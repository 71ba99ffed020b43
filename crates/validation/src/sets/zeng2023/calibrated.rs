//! The layer-wise model with a few coefficients per machine, fitted by least squares on relative errors.
//!
//! Fitted: for every device the share of its peak rate and of its memory rate (from stand-alone batch
//! sweeps), for the network the start-up cost of a transfer and the rate at which hosts copy payload (from
//! distributed runs). Not fitted: framing, which the catalog has from the protocol headers.

use super::data::{Config, Measured, PrintedCell};
use crate::ValidationError;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_core::keys::NameOr;
use stepcast_core::machine::catalog;
use stepcast_core::machine::{DeviceSection, NetworkSection, ServerSoftware, ServersSection, WorkersSection};
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::{Bytes, BytesPerSec, InBaseUnits, Seconds};
use stepcast_core::scenario::{ClusterSection, ModelSection, Scenario, ScenarioFile};
use stepcast_core::speed::{BYTES_PER_WEIGHT, FLOPS_PER_FORWARD};
use stepcast_core::strategy::Architecture;
use stepcast_core::strategy::StrategySection;
use stepcast_fit::efficiency::{StepWork, TwoShares};
use stepcast_fit::nnls;

/// The length of a step is piecewise linear in the network's coefficients, so that this many linearisations converge.
const LINEARISATIONS: usize = 6;

/// Fitted shares of one device's rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Efficiency {
    /// Of the peak computing rate.
    pub compute: f64,
    /// Of the memory rate.
    pub memory: f64,
}

/// All fitted coefficients.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The network that took no part in the fit; none if all did.
    pub left_out: Option<String>,
    /// Xeon E5-2620.
    pub cpu20: Efficiency,
    /// Xeon E5-2660.
    pub cpu22: Efficiency,
    /// Quadro RTX 4000; the GTX 1060, never measured by itself, is taken to be alike.
    pub gpu: Efficiency,
    /// Start-up cost of a transfer.
    #[serde(rename = "startup_s")]
    #[serde_as(as = "InBaseUnits")]
    pub startup: Seconds,
    /// Host time per byte.
    #[serde(rename = "host_s_per_byte")]
    #[serde_as(as = "InBaseUnits")]
    pub host_per_byte: Seconds,
}

impl Calibration {
    /// Fits all coefficients on the measurements of all networks but `left_out`.
    pub(super) fn fit(
        left_out: Option<&str>,
        workbook: &[Measured],
        cells: &[PrintedCell],
    ) -> Result<Self, ValidationError> {
        let kept = |model: &str| Some(model) != left_out;
        let device = |config| {
            let rows = workbook.iter().filter(|row| row.config == config && kept(&row.model));
            efficiency(config, rows)
        };
        let mut calibration = Self {
            left_out: left_out.map(str::to_owned),
            cpu20: device(Config::Cpu20)?,
            cpu22: device(Config::Cpu22)?,
            gpu: device(Config::Gpu)?,
            startup: Seconds::ZERO,
            host_per_byte: Seconds::ZERO,
        };
        let distributed = cells.iter().filter(|cell| !cell.config.is_stand_alone() && kept(&cell.model));
        calibration.fit_network(&distributed.collect::<Vec<_>>())?;
        Ok(calibration)
    }

    /// Gauss-Newton with non-negative coefficients.
    fn fit_network(&mut self, cells: &[&PrintedCell]) -> Result<(), ValidationError> {
        const STARTUP_STEP: f64 = 1e-5;
        const HOST_STEP: f64 = 1e-13;
        for _ in 0..LINEARISATIONS {
            let mut rows = Vec::with_capacity(cells.len());
            let mut target = Vec::with_capacity(cells.len());
            for cell in cells {
                let time = |startup: f64, host: f64| -> Result<f64, ValidationError> {
                    let nudged = Self {
                        startup: self.startup + Seconds::new(startup),
                        host_per_byte: self.host_per_byte + Seconds::new(host),
                        ..self.clone()
                    };
                    Ok(nudged.predict(&cell.model, cell.config, cell.batch)?.get())
                };
                let now = time(0.0, 0.0)?;
                let by_startup = (time(STARTUP_STEP, 0.0)? - now) / STARTUP_STEP;
                let by_host = (time(0.0, HOST_STEP)? - now) / HOST_STEP;
                let linear = by_startup * self.startup.get() + by_host * self.host_per_byte.get();
                rows.push(vec![by_startup / cell.mt, by_host / cell.mt]);
                target.push((cell.mt - now + linear) / cell.mt);
            }
            let fit = nnls(&rows, &target)?;
            self.startup = Seconds::new(fit.coefficients[0]);
            self.host_per_byte = Seconds::new(fit.coefficients[1]);
        }
        Ok(())
    }

    /// Time of one step.
    pub(super) fn predict(
        &self,
        model: &str,
        config: Config,
        batch: u32,
    ) -> Result<Seconds, ValidationError> {
        Ok(self.prediction(model, config, batch)?.iteration)
    }

    /// The whole prediction of one step.
    pub(super) fn prediction(
        &self,
        model: &str,
        config: Config,
        batch: u32,
    ) -> Result<Prediction, ValidationError> {
        Ok(Layerwise.predict(&self.scenario(model, config, batch)?)?)
    }

    fn scenario(&self, model: &str, config: Config, batch: u32) -> Result<Scenario, ValidationError> {
        let workers = |&id: &&str| {
            let efficiency = match id {
                "xeon-e5-2620" => self.cpu20,
                "xeon-e5-2660" => self.cpu22,
                _ => self.gpu,
            };
            let device = DeviceSection {
                base: Some(id.to_owned()),
                efficiency: Some(efficiency.compute.into()),
                memory_efficiency: Some(efficiency.memory.into()),
                ..DeviceSection::default()
            };
            WorkersSection { count: Some(1), device: Some(table(device)), ..WorkersSection::default() }
        };
        let host_rate =
            (self.host_per_byte.get() > 0.0).then(|| BytesPerSec::new(1.0 / self.host_per_byte.get()).into());
        let network = NetworkSection {
            base: Some(config.network().to_owned()),
            startup: Some(self.startup),
            host_rate,
            ..NetworkSection::default()
        };
        let architecture = config.is_stand_alone().then_some(Architecture::StandAlone);
        let file = ScenarioFile {
            model: ModelSection { zoo: Some(layout(model).to_owned()), ..ModelSection::default() },
            cluster: ClusterSection {
                workers: Some(config.devices().iter().map(workers).collect()),
                network: Some(table(network)),
                // Start-up and host rate are fitted.
                servers: Some(ServersSection {
                    software: Some(ServerSoftware::None),
                    ..ServersSection::default()
                }),
                ..ClusterSection::default()
            },
            strategy: StrategySection { batch: Some(batch), architecture, ..StrategySection::default() },
            ..ScenarioFile::default()
        };
        Ok(file.resolve()?)
    }
}

fn table<T>(section: T) -> NameOr<T> {
    NameOr::Table(Box::new(section))
}

/// The layouts of TensorFlow's benchmarks: their AlexNet is the one that Zeng counted, their ResNet has its stride in
/// the 1×1 convolution.
pub(super) fn layout(model: &str) -> &str {
    match model {
        "alexnet" => "zeng2023/alexnet",
        "resnet50" => "resnet50-v1",
        other => other,
    }
}

/// The two shares of a device from a stand-alone batch sweep.
fn efficiency<'a>(
    config: Config,
    measured: impl Iterator<Item = &'a Measured>,
) -> Result<Efficiency, ValidationError> {
    let device = catalog::device(config.devices()[0])?;
    let neutral = Efficiency { compute: 1.0, memory: 1.0 };
    let unfitted = Calibration {
        left_out: None,
        cpu20: neutral,
        cpu22: neutral,
        gpu: neutral,
        startup: Seconds::ZERO,
        host_per_byte: Seconds::ZERO,
    };
    let mut steps = Vec::new();
    for row in measured {
        let scenario = unfitted.scenario(&row.model, config, row.batch)?;
        let workload = &scenario.workload;
        let batch = f64::from(row.batch);
        let copy = device.host_link.map_or(Seconds::ZERO, |link| workload.sample * batch / link);
        steps.push(StepWork {
            fixed: copy,
            compute: workload.forward * (FLOPS_PER_FORWARD * batch) / device.fp32_peak(),
            memory: Bytes::new(workload.parameters as f64 * BYTES_PER_WEIGHT) / device.memory_rate,
            measured: Seconds::new(row.mt),
        });
    }
    let TwoShares { compute, memory } = TwoShares::fit(&steps, &never_cancelled)?;
    Ok(Efficiency { compute, memory })
}
