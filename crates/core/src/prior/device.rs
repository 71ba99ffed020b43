//! The step of one GPU from its data sheet and priors (docs/priors.md, one GPU; slow twin: `formula` in
//! research/priors/onegpu.py).
//!
//! The time of a layer is the time of its operations at the rate of its class plus the time of its passes over memory. The host
//! that launches it sets a floor, rounded where both times are alike.

use super::constants::OneGpu;
use super::work::{StepWork, Work};
use crate::fitted::steps::{LayerTimes, StepLayers};
use crate::machine::{Device, Generation};
use crate::precision::Precision;
use crate::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use crate::strategy::{Optimiser, Strategy};

/// Sharpness of the larger of device and host: step = (device³ + host³)^⅓.
const ROUNDING: f64 = 3.0;
/// Share of the host's time that remains in a compiled step.
const COMPILED_HOST: f64 = 0.5;
/// Bytes moved for each weight beside its update: read forward and backward, gradient written.
const WEIGHT_BYTES: f64 = 12.0;
/// Bytes moved for each weight to cast it to 16 bits.
const CAST_BYTES: f64 = 6.0;
/// Bytes of a 32-bit number.
const WIDE: f64 = 4.0;

/// Settings of a step other than its batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub precision: Precision,
    /// Update of the weights.
    pub optimiser: Optimiser,
    /// Whether a compiler fuses element-wise layers.
    pub compiled: bool,
    /// Whether images are stored with their channels last.
    pub channels_last: bool,
}

impl Settings {
    pub fn from_strategy(strategy: &Strategy, precision: Precision) -> Self {
        let Strategy { optimiser, compiled, channels_last, .. } = *strategy;
        Self { precision, optimiser, compiled, channels_last }
    }
}

/// Inputs of the formula from a data sheet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sheet {
    /// Peak rate in FP32.
    pub fp32: FlopsPerSec,
    /// Peak rate of the tensor units, if the number format uses them.
    pub tensor: Option<FlopsPerSec>,
    /// Rate of 64 multiply-adds per cycle and multiprocessor.
    pub lane: FlopsPerSec,
    pub memory: BytesPerSec,
    /// Power per FP32 rate, relative to the full-power board of its generation.
    pub throttle: f64,
    pub generation: Option<Generation>,
}

impl Sheet {
    pub fn from_device(device: &Device, precision: Precision) -> Self {
        let tensor = match precision.of_products() {
            Precision::Tf32 => device.tf32,
            Precision::Fp16 => device.fp16,
            Precision::Bf16 => device.bf16,
            _ => None,
        };
        Self {
            fp32: device.fp32_peak(),
            tensor,
            lane: device.lane_rate(),
            memory: device.memory_rate,
            throttle: device.throttle(),
            generation: device.generation,
        }
    }
}

/// Achieved rates of a GPU with a number format and settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    square: FlopsPerSec,
    conv: FlopsPerSec,
    linear: FlopsPerSec,
    stem: FlopsPerSec,
    depthwise: FlopsPerSec,
    grouped: FlopsPerSec,
    stream: BytesPerSec,
    /// Bytes of an element in passes of products, and in those of other layers.
    passes: [f64; 2],
    /// Bytes of an element that stays in 32 bits.
    wide: f64,
    per_weight: f64,
    kernel: Seconds,
    operation: Seconds,
    gradient: Seconds,
    /// Factor of the whole step.
    deviation: f64,
}

impl Reach {
    pub fn new(sheet: &Sheet, settings: Settings, priors: &OneGpu) -> Self {
        let mixed = settings.precision.is_mixed();
        let when = |holds: bool, factor: f64| if holds { factor } else { 1.0 };
        let generation = |is: fn(Generation) -> bool| sheet.generation.is_some_and(is);
        let kepler = generation(|own| own == Generation::Kepler);
        let brand = when(kepler, priors.kepler)
            * when(generation(Generation::is_amd), priors.amd)
            * sheet.throttle.powf(priors.power);
        let ordinary = sheet.fp32 * (brand * when(generation(Generation::is_dual), priors.dual));
        let rate = |share: f64, feed: f64| match sheet.tensor {
            Some(peak) => {
                let tf32 = when(settings.precision == Precision::Tf32, priors.feed_tf32);
                let fed = sheet.lane.get() * feed * tf32;
                FlopsPerSec::new(brand / (1.0 / (priors.tensor * peak.get()) + 1.0 / fed))
            }
            None => ordinary * share,
        };
        let layout = when(settings.channels_last, priors.channels_last);
        let width = f64::from(settings.precision.width()) * when(mixed, priors.amp);
        let fused = when(settings.compiled, priors.compiled);
        let host = when(mixed, priors.host_amp) * when(settings.compiled, COMPILED_HOST);
        Self {
            square: rate(priors.square, priors.feed_square) * layout,
            conv: rate(priors.conv, priors.feed_conv) * layout,
            linear: rate(priors.linear, priors.feed_linear),
            stem: ordinary * priors.stem,
            depthwise: ordinary * priors.depthwise,
            grouped: ordinary * priors.grouped,
            stream: sheet.memory * (priors.memory * when(kepler, priors.kepler.sqrt())),
            passes: [width, width * fused],
            wide: WIDE * fused,
            per_weight: WEIGHT_BYTES
                + settings.optimiser.update_bytes()
                + if mixed { CAST_BYTES } else { 0.0 },
            kernel: priors.start,
            operation: priors.op * host,
            gradient: priors.gradient * host,
            deviation: priors.deviation,
        }
    }

    /// Time of the device for `work` on every sample.
    fn device(&self, work: &Work, batch: f64) -> Seconds {
        let computing: Seconds = [
            (work.square, self.square),
            (work.conv, self.conv),
            (work.linear, self.linear),
            (work.stem, self.stem),
            (work.depthwise, self.depthwise),
            (work.grouped, self.grouped),
        ]
        .into_iter()
        .map(|(operations, rate)| Flops::new(operations) / rate)
        .sum();
        let bytes = self.passes[0] * work.passes + self.passes[1] * work.elementwise + self.wide * work.wide;
        (computing + Bytes::new(bytes) / self.stream) * batch + self.kernel * work.kernels
    }

    /// Time of the device for the weights: their passes and their update.
    fn update(&self, work: &StepWork, samples: f64) -> Seconds {
        Bytes::new(self.per_weight * work.updated(samples)) / self.stream
    }

    fn host(&self, work: &StepWork) -> Seconds {
        self.operation * work.operations + self.gradient * work.tensors
    }

    /// Time until the device has worked for `device` and the host for `host`, in parallel.
    fn until(&self, device: Seconds, host: Seconds) -> Seconds {
        let cubes = device.get().powf(ROUNDING) + host.get().powf(ROUNDING);
        Seconds::new(cubes.powf(1.0 / ROUNDING) * self.deviation)
    }

    pub fn step(&self, work: &StepWork, batch: u32) -> Seconds {
        let samples = f64::from(batch);
        let device = self.device(&work.total(), samples) + self.update(work, samples);
        self.until(device, self.host(work))
    }

    /// Times of all layers and of the update. Each lasts from the end of the one before to its own end, so that no end
    /// comes later on a faster device. The host spends the same time on every kernel.
    pub fn layers(&self, work: &StepWork, batch: u32) -> StepLayers {
        let samples = f64::from(batch);
        let per_kernel = self.host(work) / work.total().kernels.max(1.0);
        let (mut device, mut host, mut end) = (Seconds::ZERO, Seconds::ZERO, Seconds::ZERO);
        let mut last = |more: Seconds, kernels: f64| {
            device += more;
            host += per_kernel * kernels;
            let begin = end;
            end = begin.max(self.until(device, host));
            end - begin
        };
        let mut layers = vec![LayerTimes::default(); work.layers.len()];
        for (times, layer) in layers.iter_mut().zip(&work.layers) {
            times.forward = last(self.device(&layer.forward, samples), layer.forward.kernels);
        }
        for (times, layer) in layers.iter_mut().zip(&work.layers).rev() {
            times.backward = last(self.device(&layer.backward, samples), layer.backward.kernels);
        }
        StepLayers { update: last(self.update(work, samples), 0.0), layers }
    }
}

/// Times of the layers of a step with this `work` on `device`.
pub fn layers(
    work: &StepWork,
    device: &Device,
    settings: Settings,
    batch: u32,
    priors: &OneGpu,
) -> StepLayers {
    reach(device, settings, priors).layers(work, batch)
}

pub fn step(work: &StepWork, device: &Device, settings: Settings, batch: u32, priors: &OneGpu) -> Seconds {
    reach(device, settings, priors).step(work, batch)
}

fn reach(device: &Device, settings: Settings, priors: &OneGpu) -> Reach {
    Reach::new(&Sheet::from_device(device, settings.precision), settings, priors)
}
