//! What mixes the tokens of a layer: attention with its products, a gated delta net, or Mamba.
//!
//! Scans are products within chunks (`kernels`), and passes over what goes from kernel to kernel. They have not been
//! measured: the prior `scan` says how many times longer the kernels take, and its spread widens the interval of such layers.
//! The state goes from chunk to chunk, which is assumed to hide behind the other heads and sequences.

use super::{Computed, Input, Parts, Product, Shard, Work};
use stepcast_core::model::transformer::{Backward, Delta, Mamba, Mixer, Modules};
use stepcast_core::quantity::{Flops, Seconds};

/// Times of the products of a scan backward against forward: two gradients of each, and chunks that are computed again.
const BACKWARD: f64 = 3.0;

/// Passes over the channels of the convolution, over values where a gate and a norm follow the scan, and over queries and keys that
/// are normalised, forward and backward, in units of the width: read and written; values, gate and result; and their gradients
/// beside them.
const CONVOLVED: [f64; 2] = [2.0, 5.0];
const NORMALISED: [f64; 2] = [3.0, 6.0];
const KEYS: [f64; 2] = [2.0, 3.0];

/// Passes over the states between chunks, in 32 bits: written, read and written again by the scan, and read; backward the same, and
/// that of their gradients.
const STATES: [f64; 2] = [4.0, 8.0];
const STATE: f64 = 4.0;

/// Kernels of a scan, forward and backward, assumed: convolution, steps, chunks, states, results and norm; of a gated delta net
/// also gates, triangles and normalised keys.
const MAMBA_KERNELS: [f64; 2] = [7.0, 16.0];
const DELTA_KERNELS: [f64; 2] = [14.0, 26.0];

/// Passes of Mamba 1's one kernel over its channels: input, step, gate and result; backward these, their gradients and the result.
const SELECTIVE: [f64; 2] = [4.0, 9.0];
const SELECTIVE_KERNELS: [f64; 2] = [6.0, 12.0];

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
        match (shard.block.mixer, shard.shape.delta, shard.shape.mamba) {
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
                around(&to, back(own.inner())).and(self.delta(shard, &own))
            }
            (Mixer::Mamba, _, Some(own)) => {
                let to = [product(own.projected(), shard.hidden)];
                around(&to, back(own.inner())).and(self.mamba(shard, &own))
            }
            _ => Computed::default(),
        }
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

    /// The chunked gated delta rule (Yang et al. 2024, section 3.3), a product for every term of [`Delta::operations`].
    fn delta(&self, shard: &Shard<'_>, own: &Delta) -> Computed {
        let chunk = Delta::CHUNK as f64;
        let [key, value, heads] = [own.key_width, own.value_width, own.value_heads].map(|width| width as f64);
        let heads = heads / shard.tensor;
        let count = shard.tokens / chunk * heads;
        let each = |rows, columns, depth| Product { rows, columns, depth, count };
        let products = [
            each(chunk, chunk, key),
            // The inverse of a triangle takes a sixth of a product.
            each(chunk, chunk, chunk / 6.0),
            each(chunk, key, chunk),
            each(chunk, value, chunk),
            each(chunk, value, key),
            each(chunk, value, key),
            each(chunk, chunk, key),
            each(chunk, value, chunk),
            each(key, value, chunk),
        ];
        let channels = own.channels() as f64 / shard.tensor;
        let passed = |index: usize| {
            let keys = KEYS[index] * 2.0 * heads * key;
            let values = NORMALISED[index] * heads * value;
            let states = STATES[index] * STATE * heads * key * value / chunk;
            shard.tokens * (self.width() * (CONVOLVED[index] * channels + keys + values) + states)
        };
        self.scan(&products, passed, DELTA_KERNELS)
    }

    /// Mamba 2 by duality (Dao and Gu 2024, section 6), a product for every term of [`Mamba::operations`]; or Mamba 1.
    fn mamba(&self, shard: &Shard<'_>, own: &Mamba) -> Computed {
        if own.is_first() {
            return self.selective(shard, own);
        }
        let [chunk, state, width] = [own.chunk, own.state, own.head_width].map(|width| width as f64);
        let chunk = chunk.min(shard.tokens);
        let [heads, groups] = [own.heads, own.groups].map(|count| count as f64 / shard.tensor);
        let chunks = shard.tokens / chunk;
        let each = |rows, columns, depth, of| Product { rows, columns, depth, count: chunks * of };
        let products = [
            each(chunk, chunk, state, groups),
            each(chunk, width, chunk, heads),
            each(state, width, chunk, heads),
            each(chunk, width, state, heads),
        ];
        let channels = own.channels() as f64 / shard.tensor;
        let passed = |index: usize| {
            let values = NORMALISED[index] * heads * width;
            let states = STATES[index] * STATE * heads * width * state / chunk;
            shard.tokens * (self.width() * (CONVOLVED[index] * channels + values) + states)
        };
        self.scan(&products, passed, MAMBA_KERNELS)
    }

    /// Mamba 1: products that select steps and states, and one kernel whose states do not leave the multiprocessors (Gu and Dao 2023,
    /// section 3.3), which computes without tensor units.
    fn selective(&self, shard: &Shard<'_>, own: &Mamba) -> Computed {
        let inner = own.inner() as f64 / shard.tensor;
        let [rank, states] = [own.step_rank, own.states()].map(|width| width as f64);
        let select =
            [Product::new(shard.tokens, rank + states, inner), Product::new(shard.tokens, inner, rank)];
        let selected = self.linear(shard, &select, true, Input::Plain);
        let scanned = |index: usize, times: f64| {
            let operations = Flops::new(times * 9.0 * shard.tokens * inner * own.state as f64);
            let moved = shard.tokens * self.width() * inner * (SELECTIVE[index] + CONVOLVED[index]);
            let device = (operations / self.single).max(self.passing(moved)) * self.constants.scan;
            Work { device, kernels: SELECTIVE_KERNELS[index] }
        };
        selected.and(Computed {
            forward: scanned(0, 1.0),
            input: scanned(1, BACKWARD),
            ..Computed::default()
        })
    }

    /// Products of a scan with the bytes that pass between its kernels.
    fn scan(&self, products: &[Product], passed: impl Fn(usize) -> f64, kernels: [f64; 2]) -> Computed {
        let computed: Seconds = products.iter().map(|product| self.product(product)).sum();
        let work = |index: usize, times: f64| Work {
            device: (computed * times + self.passing(passed(index))) * self.constants.scan,
            kernels: kernels[index],
        };
        Computed { forward: work(0, 1.0), input: work(1, BACKWARD), ..Computed::default() }
    }
}
