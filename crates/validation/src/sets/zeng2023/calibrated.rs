//! The layer-wise model with a few coefficients per machine, fitted by least squares on relative errors.
//!
//! Fitted: for every device the share of its peak rate and of its memory rate (from stand-alone batch
//! sweeps), for the network the start-up cost of a transfer and the rate at which hosts copy payload (from
//! distributed runs). Not fitted: framing, which the catalog has from the protocol headers.

use super::{Experiment, Machines};
use crate::ValidationError;
use crate::recipe::Recipe;
use serde_json::{Value, json};
use stepcast_analytic::layerwise::Layerwise;
use stepcast_core::machine::catalog;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::{BYTES_PER_WEIGHT, FLOPS_PER_FORWARD};
use stepcast_fit::efficiency::{StepWork, TwoShares};
use stepcast_fit::nnls;

/// The length of a step is piecewise linear in the network's coefficients, so that this many linearisations converge.
const LINEARISATIONS: usize = 6;

/// Neither share is fitted.
const UNFITTED: TwoShares = TwoShares { compute: 1.0, memory: 1.0 };

#[derive(Debug, Clone)]
pub(super) struct Calibration<'a> {
    recipe: &'a Recipe,
    /// The network that took no part in the fit; none if all did.
    pub(super) left_out: Option<&'static str>,
    /// Shares of the peak rate and of the memory rate of Xeon E5-2620, Xeon E5-2660 and Quadro RTX 4000. The GTX 1060, never
    /// measured by itself, is taken to be like the latter.
    devices: [TwoShares; 3],
    /// Start-up cost of a transfer.
    startup: Seconds,
    host_per_byte: Seconds,
}

impl<'a> Calibration<'a> {
    /// Fits all coefficients on the measurements of all networks but `left_out`: devices on `sweeps`, the network on
    /// distributed `runs`.
    pub(super) fn fit(
        recipe: &'a Recipe,
        left_out: Option<&'static str>,
        sweeps: &[Experiment],
        runs: &[Experiment],
    ) -> Result<Self, ValidationError> {
        let kept = |run: &&Experiment| Some(run.model.as_str()) != left_out;
        let (startup, host_per_byte) = (Seconds::ZERO, Seconds::ZERO);
        let mut calibration = Self { recipe, left_out, devices: [UNFITTED; 3], startup, host_per_byte };
        let mut devices = [UNFITTED; 3];
        for (device, config) in devices.iter_mut().zip(["cpu-2.0", "cpu-2.2", "gpu"]) {
            *device =
                calibration.shares(sweeps.iter().filter(kept).filter(|run| run.machines.config == config))?;
        }
        calibration.devices = devices;
        let distributed = runs.iter().filter(kept).filter(|run| !run.machines.is_stand_alone());
        calibration.fit_network(&distributed.collect::<Vec<_>>())?;
        Ok(calibration)
    }

    /// The two shares of a device from a stand-alone batch sweep.
    fn shares<'b>(&self, sweep: impl Iterator<Item = &'b Experiment>) -> Result<TwoShares, ValidationError> {
        let mut steps = Vec::new();
        for run in sweep {
            let device = catalog::device(run.machines.devices()[0])?;
            let workload = self.scenario(run)?.workload;
            let batch = f64::from(run.batch);
            let copy = device.host_link.map_or(Seconds::ZERO, |link| workload.sample * batch / link);
            steps.push(StepWork {
                fixed: copy,
                compute: workload.forward * (FLOPS_PER_FORWARD * batch) / device.fp32_peak(),
                memory: Bytes::new(workload.parameters as f64 * BYTES_PER_WEIGHT) / device.memory_rate,
                measured: Seconds::new(run.mt),
            });
        }
        Ok(TwoShares::fit(&steps, &never_cancelled)?)
    }

    /// Gauss-Newton with non-negative coefficients.
    fn fit_network(&mut self, runs: &[&Experiment]) -> Result<(), ValidationError> {
        const STARTUP_STEP: f64 = 1e-5;
        const HOST_STEP: f64 = 1e-13;
        for _ in 0..LINEARISATIONS {
            let mut rows = Vec::with_capacity(runs.len());
            let mut target = Vec::with_capacity(runs.len());
            for run in runs {
                let time = |startup: f64, host: f64| -> Result<f64, ValidationError> {
                    let nudged = Self {
                        startup: self.startup + Seconds::new(startup),
                        host_per_byte: self.host_per_byte + Seconds::new(host),
                        ..self.clone()
                    };
                    Ok(nudged.predict(run)?.iteration.get())
                };
                let now = time(0.0, 0.0)?;
                let by_startup = (time(STARTUP_STEP, 0.0)? - now) / STARTUP_STEP;
                let by_host = (time(0.0, HOST_STEP)? - now) / HOST_STEP;
                let linear = by_startup * self.startup.get() + by_host * self.host_per_byte.get();
                rows.push(vec![by_startup / run.mt, by_host / run.mt]);
                target.push((run.mt - now + linear) / run.mt);
            }
            let fit = nnls(&rows, &target)?;
            self.startup = Seconds::new(fit.coefficients[0]);
            self.host_per_byte = Seconds::new(fit.coefficients[1]);
        }
        Ok(())
    }

    pub(super) fn predict(&self, run: &Experiment) -> Result<Prediction, ValidationError> {
        Ok(Layerwise.predict(&self.scenario(run)?)?)
    }

    fn scenario(&self, run: &Experiment) -> Result<Scenario, ValidationError> {
        let worker = |device: &&str| {
            let TwoShares { compute, memory } = match *device {
                "xeon-e5-2620" => self.devices[0],
                "xeon-e5-2660" => self.devices[1],
                _ => self.devices[2],
            };
            format!(
                "[[cluster.workers]]\ncount = 1\n\
                 device = {{ base = \"{device}\", efficiency = {compute:?}, memory-efficiency = {memory:?} }}\n"
            )
        };
        let Machines { network, .. } = &run.machines;
        let case = json!({
            "layout": layout(&run.model),
            "workers": run.machines.devices().iter().map(worker).collect::<String>(),
            "network": network,
            "startup": self.startup.get(),
            "host_rate": self.host_rate().map(BytesPerSec::get),
            "batch": run.batch,
            "architecture": if run.machines.is_stand_alone() { "stand-alone" } else { "" },
        });
        self.recipe.scenario(&case)
    }

    fn host_rate(&self) -> Option<BytesPerSec> {
        (self.host_per_byte.get() > 0.0).then(|| BytesPerSec::new(1.0 / self.host_per_byte.get()))
    }

    pub(super) fn to_value(&self) -> Value {
        let shares =
            |TwoShares { compute, memory }: TwoShares| json!({ "compute": compute, "memory": memory });
        let [cpu20, cpu22, gpu] = self.devices.map(shares);
        json!({
            "left_out": self.left_out,
            "cpu20": cpu20,
            "cpu22": cpu22,
            "gpu": gpu,
            "startup_s": self.startup.get(),
            "host_s_per_byte": self.host_per_byte.get(),
            "_left_out": self.left_out.unwrap_or("(all networks)"),
            "_host": self.host_rate().map_or("no cost".to_owned(), BytesPerSec::human),
        })
    }
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
