//! Mixers of the tokens of a layer: attention with its products, a gated delta net, or Mamba.
//!
//! Kernels of scans compute chunks from what they read again and again, so their times follow from passes over memory, and those of
//! a delta net also from the chunks that its state goes through one after the other. Passes and kernels were counted on an H200
//! (`research/steps/mixers.py`: 16 shapes, kernels of flash-linear-attention, mamba_ssm and causal_conv1d). The prior `scan` is
//! the factor that remains on other devices and in other software.

use super::{Computed, Input, Parts, Product, Shard, Work};
use stepcast_core::model::transformer::{Backward, Delta, Mamba, Mixer, Modules};
use stepcast_core::quantity::{Flops, Seconds};

/// Passes over the channels of the convolution, forward and backward, in units of their width.
const CONVOLVED: [f64; 2] = [1.7, 3.6];

/// Passes over values for their gate and their norm in groups of 512 channels and more (Mamba 2); and what the row of one head takes
/// (delta nets), as many numbers at the rate of passes, because each has a separate block.
const NORMALISED: [f64; 2] = [2.2, 8.4];
const NORMALISED_ROW: [f64; 2] = [845.0, 1750.0];

/// Passes of Mamba 2 over the values of its heads, and over the states between chunks, in 32 bits.
const DUAL: [f64; 2] = [9.2, 33.5];
const DUAL_STATES: [f64; 2] = [1.9, 5.0];
const STATE: f64 = 4.0;
const MAMBA_KERNELS: [f64; 2] = [9.0, 46.0];

/// Passes of a delta net over the values of its heads, and over its states, which the backward pass reads; and what one chunk takes in the
/// kernel that carries the state on. Its blocks have 32 columns of a head's values.
const DELTA: f64 = 14.2;
const DELTA_STATES: [f64; 2] = [0.0, 7.2];
const DELTA_CHUNK: [Seconds; 2] = [Seconds::new(0.94e-6), Seconds::new(2.87e-6)];
const DELTA_COLUMNS: f64 = 32.0;
const DELTA_KERNELS: [f64; 2] = [17.0, 33.0];

/// Operations of Mamba 1's one kernel for each channel and element of its state, at the rate of single products: exponentials
/// above all.
const SELECTIVE: [f64; 2] = [49.0, 190.0];
const SELECTIVE_KERNELS: [f64; 2] = [4.0, 15.0];

/// Passes over queries, keys and values of two streams that are put together, and over the parts of their attention.
const JOINED: [f64; 2] = [8.0, 2.0];
const JOINED_KERNELS: [f64; 2] = [5.0, 2.0];

/// Copies of Whisper's queries, keys, values and attention that lay heads one behind the other, and of their gradients: read and written,
/// and slower than other passes by this factor. In a step of whisper-large-v3 on an H200, 803 such copies of 31 GB took 33 ms.
const LAID_OUT: f64 = 2.0;
const STRIDED: f64 = 3.8;

impl Parts {
    /// The mixer of a layer with the products around it.
    pub(super) fn mixer(&self, shard: &Shard<'_>) -> Computed {
        let of_input = shard.backward == Backward::All;
        let around = |to: &[Product], from: Product| {
            self.linear(shard, to, of_input, Input::Normed).and(self.linear(
                shard,
                &[from],
                true,
                Input::Plain,
            ))
        };
        let product =
            |columns: u64, depth: f64| Product::new(shard.tokens, columns as f64 / shard.tensor, depth);
        let back = |inner: u64| Product::new(shard.tokens, shard.hidden, inner as f64 / shard.tensor);
        let products = match (shard.block.mixer, shard.shape.delta, shard.shape.mamba) {
            (Mixer::Attention | Mixer::Encoder | Mixer::Cross | Mixer::Joint | Mixer::JointLast, ..) => {
                let products = |stream: Shard<'_>| {
                    let (to, [from]) = stream.products_around_attention();
                    around(&to, from)
                };
                shard.each_stream(products).and(self.attention(shard)).and(self.copies(shard))
            }
            (Mixer::Linear, Some(own), _) => {
                let heads = 2 * own.value_heads;
                let to = [product(own.projected() - heads, shard.hidden), product(heads, shard.hidden)];
                around(&to, back(own.inner()))
            }
            (Mixer::Mamba, _, Some(own)) => {
                let to = [product(own.projected(), shard.hidden)];
                let products = around(&to, back(own.inner()));
                if own.is_first() { products.and(self.selection(shard, &own)) } else { products }
            }
            _ => Computed::default(),
        };
        products.and(self.scanning(shard))
    }

    /// Convolution, scan and norm of a gated delta net or of Mamba, alone.
    pub fn scan(&self, shard: &Shard<'_>) -> Computed {
        self.paced(self.scanning(shard))
    }

    /// Copies around attention.
    fn copies(&self, shard: &Shard<'_>) -> Computed {
        let [query, keys, values] = shard.widths;
        let (bytes, kernels) = match shard.block.mixer {
            Mixer::Joint | Mixer::JointLast => {
                (JOINED.map(|passes| passes * shard.tokens * query), JOINED_KERNELS)
            }
            _ if shard.separate && shard.shape.modules == Modules::Whisper => {
                let numbers = 2.0 * shard.tokens * query + shard.key_tokens * (keys + values);
                ([LAID_OUT * STRIDED * numbers; 2], [4.0; 2])
            }
            _ => return Computed::default(),
        };
        let work = |index: usize| Work {
            device: self.passing(self.width() * bytes[index]),
            kernels: kernels[index],
        };
        Computed { forward: work(0), input: work(1), ..Computed::default() }
    }

    fn scanning(&self, shard: &Shard<'_>) -> Computed {
        let work = |pass: usize| {
            let (device, kernels) = match (shard.block.mixer, shard.shape.delta, shard.shape.mamba) {
                (Mixer::Linear, Some(own), _) => (self.delta(shard, &own, pass), DELTA_KERNELS),
                (Mixer::Mamba, _, Some(own)) if own.is_first() => {
                    (self.selective(shard, &own, pass), SELECTIVE_KERNELS)
                }
                (Mixer::Mamba, _, Some(own)) => (self.dual(shard, &own, pass), MAMBA_KERNELS),
                _ => return Work::default(),
            };
            Work { device: device * self.constants.scan, kernels: kernels[pass] }
        };
        Computed { forward: work(0), input: work(1), ..Computed::default() }
    }

    /// The chunked gated delta rule (Yang et al. 2024, section 3.3), forward or backward.
    fn delta(&self, shard: &Shard<'_>, own: &Delta, pass: usize) -> Seconds {
        let [key, value, heads] = [own.key_width, own.value_width, own.value_heads].map(|width| width as f64);
        let heads = heads / shard.tensor;
        let values = heads * (value * DELTA + NORMALISED_ROW[pass]);
        let channels = CONVOLVED[pass] * own.channels() as f64 / shard.tensor;
        let chunk = Delta::CHUNK as f64;
        let states = DELTA_STATES[pass] * STATE * heads * key * value / chunk;
        let blocks = shard.samples * heads * value / DELTA_COLUMNS;
        let rounds = (blocks / self.multiprocessors).ceil() * shard.tokens / (shard.samples * chunk);
        self.passing(shard.tokens * (self.width() * (values + channels) + states))
            + DELTA_CHUNK[pass] * rounds
    }

    /// Mamba 2 by duality (Dao and Gu 2024, section 6), forward or backward.
    fn dual(&self, shard: &Shard<'_>, own: &Mamba, pass: usize) -> Seconds {
        let inner = own.inner() as f64 / shard.tensor;
        let channels = CONVOLVED[pass] * own.channels() as f64 / shard.tensor;
        let states =
            DUAL_STATES[pass] * STATE * inner * own.state as f64 / (own.chunk as f64).min(shard.tokens);
        let values = inner * (DUAL[pass] + NORMALISED[pass]);
        self.passing(shard.tokens * (self.width() * (values + channels) + states))
    }

    /// Products of Mamba 1 that select steps and states (Gu and Dao 2023, section 3.2).
    fn selection(&self, shard: &Shard<'_>, own: &Mamba) -> Computed {
        let inner = own.inner() as f64 / shard.tensor;
        let [rank, states] = [own.step_rank, own.states()].map(|width| width as f64);
        let select =
            [Product::new(shard.tokens, rank + states, inner), Product::new(shard.tokens, inner, rank)];
        self.linear(shard, &select, true, Input::Plain)
    }

    /// Mamba 1 in one kernel, whose states do not leave the multiprocessors (Gu and Dao 2023, section 3.3), forward or backward.
    fn selective(&self, shard: &Shard<'_>, own: &Mamba, pass: usize) -> Seconds {
        let inner = own.inner() as f64 / shard.tensor;
        let operations = Flops::new(SELECTIVE[pass] * shard.tokens * inner * own.state as f64);
        operations / self.single + self.passing(shard.tokens * self.width() * CONVOLVED[pass] * inner)
    }
}
