//! Deep Speech 2: two convolutions over a spectrogram, bidirectional recurrent layers, and letters for every step.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Norm, Op};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

const SOURCE: &str =
    "Amodei et al. 2015, arXiv:1512.02595; layout of github.com/SeanNaren/deepspeech.pytorch of 2017";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "deepspeech2",
        aliases: &["deep-speech-2", "ds2"],
        description: "Deep Speech 2 with five bidirectional GRU layers of 800, ten seconds of speech",
        source: SOURCE,
        layout: |builder| layout(builder, Recurrent { gates: 3, width: 800, depth: 5 }),
    },
    Entry {
        name: "deepspeech2-lstm",
        aliases: &[],
        description: "Deep Speech 2 with four bidirectional LSTM layers of 400, ten seconds of speech",
        source: SOURCE,
        layout: |builder| layout(builder, Recurrent { gates: 4, width: 400, depth: 4 }),
    },
];

/// Frames of 10 ms.
const FRAMES: u64 = 1000;
/// Frequencies of a window of 20 ms at 16 kHz.
const FREQUENCIES: u64 = 161;
const LETTERS: u64 = 29;
const CHANNELS: u64 = 32;

#[derive(Debug, Clone, Copy)]
struct Recurrent {
    /// 3 of a GRU, 4 of an LSTM.
    gates: u64,
    width: u64,
    depth: u64,
}

fn layout(mut builder: Builder, recurrent: Recurrent) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[1, FREQUENCIES, FRAMES])?;
    let x = convolution(b, 0, (41, 11), (2, 2), x)?;
    let x = convolution(b, 3, (21, 11), (2, 1), x)?;
    let (steps, features) = match b.shape(x).map(|shape| shape.dims().to_vec()).as_deref() {
        Some(&[channels, frequencies, steps]) => (steps, channels * frequencies),
        _ => (0, 0),
    };
    let mut x = b.counted("steps", &[x], &[steps, features], Cost::default())?;
    for place in 0..recurrent.depth {
        let name = format!("rnns.{place}");
        if place > 0 {
            x = norm(b, &format!("{name}.batch_norm"), [steps, recurrent.width], x)?;
        }
        let read = if place == 0 { features } else { recurrent.width };
        let forth = direction(b, &name, "", recurrent, [steps, read], x)?;
        let back = direction(b, &name, "_reverse", recurrent, [steps, read], x)?;
        x = b.add(format!("{name}.sum"), Op::Add, &[forth, back])?;
    }
    let x = norm(b, "fc.0", [steps, recurrent.width], x)?;
    b.add("fc.1", Op::Linear { out: LETTERS, bias: false, tied: false }, &[x])?;
    builder.finish()
}

fn convolution(
    b: &mut Builder,
    place: u64,
    kernel: (u64, u64),
    stride: (u64, u64),
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let names = [place, place + 1, place + 2].map(|part| format!("conv.{part}"));
    let conv = Conv2d { kernel, stride, bias: true, ..Conv2d::new(CHANNELS, 1) };
    conv_norm(b, names, conv, Some(Activation::Relu), from)
}

/// A batch normalisation over all steps: one scale and one shift for each feature.
fn norm(b: &mut Builder, name: &str, [steps, width]: [u64; 2], from: LayerId) -> Result<LayerId, ShapeError> {
    let normalisation = Norm::Batch { affine: true }.operations() * steps * width;
    let cost =
        Cost { normalisation, weights: width, biases: width, buffers: 2 * width + 1, ..Cost::default() };
    b.counted(name, &[from], &[steps, width], cost)
}

/// One direction of a recurrent layer without biases: the products with all inputs, then step after step with the state.
fn direction(
    b: &mut Builder,
    name: &str,
    suffix: &str,
    Recurrent { gates, width, .. }: Recurrent,
    [steps, read]: [u64; 2],
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let product = |read: u64| Cost {
        multiply_add: 2 * steps * read * gates * width,
        weights: read * gates * width,
        ..Cost::default()
    };
    let inputs = format!("{name}.rnn.weight_ih_l0{suffix}");
    let x = b.counted(&inputs, &[from], &[steps, gates * width], product(read))?;
    // A gate is a sigmoid or a tanh; each state is mixed of two.
    let state = Cost {
        activation: steps * gates * width * Activation::Sigmoid.operations(),
        elementwise: steps * (gates + 3) * width,
        ..product(width)
    };
    b.counted(&format!("{name}.rnn.weight_hh_l0{suffix}"), &[x], &[steps, width], state)
}
