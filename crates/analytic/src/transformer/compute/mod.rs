//! Computing time of the shard of a transformer on one device.
//!
//! One model for every device ([`Parts`]): products run in tiles over the multiprocessors (`kernels`), attention at its
//! own share of the peak rate or, unfused, as products and passes over its scores, everything else as passes over
//! memory (`pointwise`), experts as one product for all of them. The host needs time to issue every kernel; this is exposed
//! where it exceeds the device's time. Rates are those of the data sheet times assumed shares (`catalog/priors.toml`).
//! A device whose share of the peak rate is given computes all operations at [one rate](Compute::OneRate).

mod adapters;
mod kernels;
mod linear;
mod mixers;
mod modulation;
mod pointwise;
mod shard;
mod software;

use kernels::Operands;
pub use kernels::Product;
use linear::Input;
pub use linear::Sums;
pub use shard::Shard;
pub use software::{Software, compilation};

use stepcast_core::machine::{Device, Generation, catalog};
use stepcast_core::model::transformer::{Backward, FeedForward};
use stepcast_core::prior::Transformers;
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::strategy::{Loss, Recompute};

/// How fast a device computes the parts of a transformer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there is one for each run, which is copied whole")]
pub enum Compute {
    /// All operations at one rate, and the update at the rate of memory.
    OneRate {
        /// Rate of computing.
        rate: FlopsPerSec,
        /// Rate of memory, as far as it is reached.
        memory: BytesPerSec,
    },
    /// Every part at its own achieved rate.
    Parts(Parts),
}

impl Compute {
    /// The slower of the two.
    #[must_use]
    pub fn slower(self, other: Self) -> Self {
        if other.rate() < self.rate() { other } else { self }
    }

    /// Takes the slower update of the two: unequal replicas synchronise before and after the update.
    #[must_use]
    pub fn updating_with(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Parts(own), Self::Parts(other)) => {
                Self::Parts(Parts { update: own.update.min(other.update), ..own })
            }
            (Self::OneRate { rate, memory: own }, Self::OneRate { memory, .. }) => {
                Self::OneRate { rate, memory: own.min(*memory) }
            }
            (own, _) => own,
        }
    }

    /// Rate of large products.
    pub fn rate(&self) -> FlopsPerSec {
        match self {
            Self::OneRate { rate, .. } => *rate,
            Self::Parts(parts) => parts.product,
        }
    }

    /// Time to move bytes of weights, gradients and states of the optimiser for an update.
    pub fn update(&self, moved: Bytes) -> Seconds {
        match self {
            Self::OneRate { memory, .. } => moved / *memory,
            Self::Parts(parts) => moved / parts.update,
        }
    }

    /// Time to copy this many numbers of widths `from` into those of `to`.
    pub fn copying(&self, numbers: f64, from: f64, to: f64) -> Seconds {
        let moved = Bytes::new(numbers * (from + to));
        match self {
            Self::OneRate { memory, .. } => moved / *memory,
            Self::Parts(parts) if from < to => (moved / parts.stream).max(moved / parts.converting()),
            Self::Parts(parts) => moved / parts.stream,
        }
    }
}

/// Rate at which one multiprocessor turns gradients of 16 bits into those of 32 bits that are reduced, read and written, byte/s: 2.06 to
/// 2.09 TB/s for layers of Llama 3 8B on an H200, where copies of 16 bits reach 3.4 to 3.9 (research/transformers/copies.py).
const CONVERTED: f64 = 15.7e9;

/// Peak rate of one multiprocessor of an H200 in 16 bits, FLOP/s: `head` of the priors is stated for it.
const REFERENCE: f64 = 989.4e12 / 132.0;

/// Rate of products on a board of Hopper whose power is capped, against the rate at its rated power: below two thirds the voltage
/// falls no further, and the clock is in proportion to the power beyond that of an idle board. 0.65 and 0.44 at 400 and 300 W of an
/// H200's 700 in 16 bits, 0.63 and 0.42 in 8 bits (research/transformers/power.py).
fn capped(device: &Device, exponent: f64) -> f64 {
    const IDLE: f64 = 0.13;
    let rated = || catalog::devices().ok()?.values().find(|own| own.name == device.name)?.power;
    let cap = device.power.and_then(|power| Some(power.get() / rated()?.get())).unwrap_or(1.0);
    (1.47 * (cap - IDLE)).max(0.01).min(cap.powf(exponent)) / cap.powf(exponent)
}

/// Achieved rates of the parts of a transformer on a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parts {
    /// Rate of large products.
    product: FlopsPerSec,
    /// Rate of flash attention, forward and backward, with wide heads.
    flash: [FlopsPerSec; 2],
    /// Rate of Triton's flash attention as of 2023, forward and backward.
    triton: [FlopsPerSec; 2],
    /// Rate of cuDNN's attention against flash attention.
    cudnn: f64,
    /// Rate of memory that long copies, operands of products and losses reach.
    stream: BytesPerSec,
    /// Rate of memory that passes of norms, sums and activations reach.
    pass: BytesPerSec,
    /// Rate of memory that an update reaches.
    update: BytesPerSec,
    /// Rate of products in 32 bits without tensor units.
    single: FlopsPerSec,
    /// Whether the device is of Hopper's generation or newer.
    is_new: bool,
    /// Number format of the layers' products.
    narrow: Operands,
    /// Multiprocessors.
    multiprocessors: f64,
    /// Peak rate of a multiprocessor against that of an H200's, which computes as many exponentials in a cycle.
    pace: f64,
    /// Slowdown of everything on the device relative to the assumption.
    slowness: f64,
    /// Slowdown of everything on the host.
    host_slowness: f64,
    software: Software,
    constants: Transformers,
}

impl Parts {
    /// Achieved rates of `device` at its data sheet's `peak`, `speed` times as fast as others of its name.
    pub fn new(
        device: &Device,
        peak: FlopsPerSec,
        speed: f64,
        software: Software,
        constants: &Transformers,
    ) -> Self {
        let constants = &match (device.measured(), device.generation) {
            (Some(own), _) => constants.with_measured(&own.transformer),
            (None, Some(Generation::Pascal | Generation::Volta | Generation::Ampere)) => {
                constants.with_slower_host(constants.older_host)
            }
            _ => *constants,
        };
        let share = match device.generation {
            Some(Generation::Ampere) => constants.product_ampere,
            Some(Generation::Hopper) => constants.product_hopper,
            Some(Generation::Blackwell) => constants.product_blackwell,
            Some(Generation::Volta) => constants.product_volta,
            Some(Generation::Cdna) => constants.product_cdna,
            Some(Generation::Gb20x) => constants.product_gb20x,
            Some(Generation::Trainium) => constants.product_trainium,
            Some(own) if own.is_systolic() => constants.product_systolic,
            _ => constants.product_other,
        };
        let throttle = device.tensor_throttle(peak).powf(constants.power)
            * if device.generation == Some(Generation::Hopper) {
                capped(device, constants.power)
            } else {
                1.0
            };
        // Tensors are small for the fastest memories alone.
        let pass = match device.generation {
            Some(Generation::Hopper | Generation::Blackwell | Generation::Cdna) => constants.pass,
            _ => constants.pass_ampere,
        };
        let triton = [constants.triton, constants.triton_back];
        let flash = match device.generation {
            // FlashAttention 2 computes with products of a warp, which are the fastest of these.
            Some(Generation::Ampere | Generation::Ga10x | Generation::Ada | Generation::Gb20x) => {
                [constants.flash_ampere, constants.flash_back_ampere]
            }
            Some(own) if own.is_systolic() => triton,
            Some(Generation::Blackwell) => [constants.flash_blackwell, constants.flash_back_blackwell],
            _ => [constants.flash, constants.flash_back],
        };
        // Kernels of cuDNN for older devices are no faster; what the kit measured is what the device's software reaches.
        let is_new = matches!(device.generation, Some(Generation::Hopper | Generation::Blackwell));
        let cudnn = if is_new && device.measured().is_none() { constants.cudnn } else { 1.0 };
        let gain = match device.generation {
            Some(Generation::Blackwell) => constants.float8_blackwell,
            _ => constants.float8,
        };
        let stack = match software.is_loop {
            true if is_new => constants.stack * constants.stack_pytorch,
            true if device.generation == Some(Generation::Cdna) => constants.stack * constants.loop_cdna,
            _ => constants.stack,
        };
        Self {
            product: peak * (share * throttle),
            flash: flash.map(|share| peak * (share * throttle)),
            cudnn,
            triton: triton
                .map(|share| peak * (share * throttle * if is_new { kernels::WARP_PRODUCTS } else { 1.0 })),
            single: device.fp32_peak() * kernels::SINGLE,
            is_new,
            stream: device.memory_rate * constants.memory,
            pass: device.memory_rate * pass,
            update: device.memory_rate * (constants.update * speed / stack),
            narrow: Operands::new(device, peak, software, gain, constants.float4),
            multiprocessors: device.multiprocessors(),
            pace: peak.get() / device.multiprocessors() / REFERENCE,
            slowness: stack / speed,
            host_slowness: stack,
            software,
            constants: *constants,
        }
    }

    /// Start and tail of this many kernels.
    pub fn starting(&self, kernels: f64) -> Seconds {
        self.constants.kernel * kernels
    }

    /// Time of kernels such as norms, sums and activations that move this many bytes.
    pub fn passing_of(&self, moved: Bytes, kernels: f64) -> Seconds {
        moved / self.pass + self.starting(kernels)
    }

    /// Time of kernels such as long copies and losses that move this many bytes.
    pub fn copying(&self, moved: Bytes, kernels: f64) -> Seconds {
        moved / self.stream + self.starting(kernels)
    }

    /// The device right after idling: at a clock that its power limit does not lower yet.
    #[must_use]
    pub fn rested(self) -> Self {
        let faster = 1.0 / self.constants.sustained;
        Self {
            product: self.product * faster,
            flash: self.flash.map(|rate| rate * faster),
            triton: self.triton.map(|rate| rate * faster),
            ..self
        }
    }

    /// The device and host with all times multiplied.
    #[must_use]
    pub fn disturbed(self, factor: f64) -> Self {
        Self {
            update: self.update / factor,
            slowness: self.slowness * factor,
            host_slowness: self.host_slowness * factor,
            ..self
        }
    }

    /// The device with a host that replays a graph of the whole step.
    #[must_use]
    pub fn graphed(self) -> Self {
        Self { constants: self.constants.with_slower_host(0.0), ..self }
    }

    /// The device with weights that arrive in 16 bits, as FSDP gathers them, and need no cast.
    #[must_use]
    pub fn gathering(self) -> Self {
        Self { software: Software { casts: false, ..self.software }, ..self }
    }

    /// Bytes of a number between layers, where sums are made: 32 bits under automatic mixed precision, unless weights are
    /// frozen in 16.
    fn residual_width(&self, shard: &Shard<'_>) -> f64 {
        if self.software.casts && shard.shape.trains_matrices() { 4.0 } else { self.width() }
    }

    fn width(&self) -> f64 {
        f64::from(self.software.precision.width())
    }

    fn passing(&self, bytes: f64) -> Seconds {
        Bytes::new(bytes) / self.pass
    }

    fn converting(&self) -> BytesPerSec {
        BytesPerSec::new(CONVERTED * self.multiprocessors)
    }

    fn streaming(&self, bytes: f64) -> Seconds {
        Bytes::new(bytes) / self.stream
    }
}

/// A part of a transformer for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Time of the device.
    pub device: Seconds,
    /// Kernels.
    pub kernels: f64,
}

impl Work {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { device: self.device + other.device, kernels: self.kernels + other.kernels }
    }

    /// The work without a part of it.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self { device: self.device - part.device, kernels: self.kernels - part.kernels }
    }
}

/// A layer or the output layer for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Computed {
    /// Forward.
    pub forward: Work,
    /// Gradients of inputs.
    pub input: Work,
    /// Gradients of weights.
    pub weight: Work,
    /// Core attention alone, forward and backward, as part of the others.
    pub core: [Work; 2],
    /// Work that recomputing a part of a layer repeats, by [`Recompute`]: all of the MLP or of the experts; `Operators` repeats every
    /// other product, and everything in between. Attention is `core`.
    pub again: [Work; Recompute::ALL.len()],
    /// The end of the forward pass, before which recomputation of a layer stops.
    pub last: Work,
}

impl Computed {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            forward: self.forward.and(other.forward),
            input: self.input.and(other.input),
            weight: self.weight.and(other.weight),
            core: [self.core[0].and(other.core[0]), self.core[1].and(other.core[1])],
            again: std::array::from_fn(|part| self.again[part].and(other.again[part])),
            last: self.last.and(other.last),
        }
    }

    fn map(self, each: impl Fn(Work) -> Work) -> Self {
        Self {
            forward: each(self.forward),
            input: each(self.input),
            weight: each(self.weight),
            core: self.core.map(&each),
            again: self.again.map(&each),
            last: each(self.last),
        }
    }

    /// Scaled by `count`.
    fn times(self, count: f64) -> Self {
        self.map(|work| Work { device: work.device * count, kernels: work.kernels * count })
    }

    /// All times multiplied.
    fn slower(self, factor: f64) -> Self {
        self.map(|work| Work { device: work.device * factor, ..work })
    }

    /// The time of each pass multiplied: forward, for the input and for the weights.
    fn slower_by_pass(self, factors: [f64; 3]) -> Self {
        let slow = |work: Work, factor| Work { device: work.device * factor, ..work };
        let [forward, input, weight] = factors;
        Self {
            forward: slow(self.forward, forward),
            input: slow(self.input, input),
            weight: slow(self.weight, weight),
            ..self
        }
    }

    /// Adds the work that recomputing `part` repeats.
    fn repeating(mut self, part: Recompute, work: Work) -> Self {
        self.again[part as usize] = work;
        self
    }

    /// Core attention takes `factor` times as long.
    #[must_use]
    pub fn with_slower_core(self, factor: f64) -> Self {
        let [forward, backward] = self.core.map(|work| work.device * (factor - 1.0));
        let more = |work: Work, time| Work { device: work.device + time, ..work };
        Self {
            forward: more(self.forward, forward),
            input: more(self.input, backward),
            core: [more(self.core[0], forward), more(self.core[1], backward)],
            ..self
        }
    }

    /// Drops the parts of the backward pass that a layer of this kind does not have.
    fn going_backward(self, backward: Backward) -> Self {
        match backward {
            Backward::Nothing => {
                Self { core: [self.core[0], Work::default()], forward: self.forward, ..Self::default() }
            }
            Backward::Own | Backward::All => self,
        }
    }

    /// Moves all gradients into the forward pass.
    #[must_use]
    pub fn in_forward(self) -> Self {
        Self { forward: self.forward.and(self.input).and(self.weight), ..Self::default() }
    }
}

impl Parts {
    /// One layer.
    pub fn layer(&self, shard: &Shard<'_>) -> Computed {
        let own = self.mixer(shard).and(shard.each_stream(|stream| self.between(&stream)));
        let own = own.and(shard.each_stream(|stream| self.modulation(&stream)));
        let mlp = match &shard.experts {
            Some(experts) if shard.separate => self.experts(shard, experts),
            Some(experts) => self.experts(shard, experts).slower(self.constants.stack_experts),
            None if shard.block.feed == FeedForward::None => Computed::default(),
            None => shard.each_stream(|stream| {
                self.mlp(&stream, &stream.mlp_products(), Input::Normed)
                    .and(self.activation(&stream, stream.tokens * stream.mlp))
            }),
        };
        let mlp = mlp.repeating(Recompute::Mlp, mlp.forward);
        let mut all = own
            .repeating(Recompute::Norms, self.separate_norms(shard))
            .repeating(Recompute::Projections, self.widening(shard))
            .and(mlp)
            .and(self.adapters(shard));
        let between =
            self.between(shard).forward.and(self.activation(shard, shard.tokens * shard.mlp).forward);
        let products = (all.forward.device - between.device - all.core[0].device).max(Seconds::ZERO);
        let alternate = Work {
            device: between.device + products * shard.alternate,
            kernels: between.kernels + (all.forward.kernels - between.kernels) * shard.alternate,
        };
        all = all.repeating(Recompute::Operators, alternate);
        all.last = self.behind_last_kept(shard);
        self.paced(all.going_backward(shard.backward))
    }

    /// Core attention of a layer alone.
    pub fn core_attention(&self, shard: &Shard<'_>) -> Computed {
        self.paced(self.attention(shard))
    }

    /// The half of a layer with its experts, and a norm.
    pub fn expert_layer(&self, shard: &Shard<'_>) -> Computed {
        shard.experts.as_ref().map_or_else(Computed::default, |own| self.paced(self.experts(shard, own)))
    }

    /// The output layer and the loss, with the last norm.
    pub fn head(&self, shard: &Shard<'_>, vocabulary: f64) -> Computed {
        let chunked = shard.loss == Some(Loss::Chunked);
        let chunks = if chunked { Loss::chunks(shard.shape, shard.tokens) } else { 1.0 };
        let logits = Product::new(shard.tokens / chunks, vocabulary, shard.hidden);
        let trained = [true, !shard.shape.tuning.frozen_output];
        let mut products =
            self.matrices(&[logits], trained).times(chunks).slower_by_pass(self.misaligned(vocabulary));
        if chunked && trained[1] {
            // Every chunk adds to the weight gradients of the chunks before it.
            products.weight.device += self.streaming(pointwise::HALF * chunks * vocabulary * shard.hidden);
        }
        let further = shard.shape.multi_token as f64;
        let joined = Product::new(shard.tokens, shard.hidden, 2.0 * shard.hidden / shard.tensor);
        let joined = self.matrices(&[joined], [true, shard.shape.trains_matrices()]).times(further);
        let passes = products.and(self.loss(shard, vocabulary)).times(1.0 + further);
        self.paced(passes.and(joined).and(self.last_modulation(shard)))
    }

    /// The embedding.
    pub fn embedding(&self, shard: &Shard<'_>, vocabulary: f64) -> Computed {
        let table = if shard.shape.looks_up() { self.lookup(shard, vocabulary) } else { Computed::default() };
        self.paced(table.and(self.receiving(shard)))
    }

    /// Adds the start and the tail of every kernel, and scales by the slowdown of this device relative to others of its name.
    fn paced(&self, all: Computed) -> Computed {
        all.map(|work| Work { device: (work.device + self.starting(work.kernels)) * self.slowness, ..work })
    }
}
