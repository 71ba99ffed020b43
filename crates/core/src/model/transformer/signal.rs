//! Tokens made of a signal instead of rows of a vocabulary: patches of images and frames of sound. Conditions that modulate every layer.

use super::layout::{Added, times};
use super::parts::Parameters;
use super::section::part_keys;
use super::{Block, Mixer, Transformer};
use crate::model::cost::Cost;
use crate::model::op::Activation;
use crate::model::{Builder, LayerId};

part_keys! {
    /// The signal that is cut into tokens, in place of rows of a vocabulary.
    struct Signal;
    /// `[model.transformer.signal]`: patches or frames in place of a table of tokens.
    section SignalSection();
    /// Numbers of a patch, which one matrix turns into a token: 768 for 16 × 16 pixels of three colours.
    patch: u64, "integer", "`0`", or 0;
    /// Frequencies of a spectrogram: two convolutions over three frames turn every second frame into a token of the encoder
    /// (Whisper).
    frequencies: u64, "integer", "`0`", or 0;
    /// Learned tokens beside those of patches, which `sequence` includes (ViT: 1).
    class_tokens: u64, "integer", "`0`", or 0;
    /// Tokens that reach the output layer; 0 for all (ViT: 1).
    outputs: u64, "integer", "`0`", or 0;
}

part_keys! {
    /// Condition that modulates every layer.
    struct Condition;
    /// `[model.transformer.condition]`: a vector of each sample that scales, shifts and gates the halves of every layer (DiT).
    section ConditionSection();
    /// Rows of a table of classes, including the row for no class.
    classes: u64, "integer", "`0`", or 0;
    /// Width of a pooled text, which two matrices turn into a part of the condition (Stable Diffusion 3).
    pooled: u64, "integer", "`0`", or 0;
    /// Width of the tokens of a text before they join the image's, for layers `J`.
    text: u64, "integer", "`0`", or 0;
    /// Tokens of that text, which `sequence` includes.
    text_tokens: u64, "integer", "`0`", or 0;
}

/// Sines and cosines that stand for a step of diffusion, before two matrices.
const TIME: u64 = 256;

impl Signal {
    /// Convolutions over three frames.
    pub const KERNEL: u64 = 3;

    /// Inputs of the matrices that turn the signal into tokens, and the number of rows of each for a token.
    pub fn matrices(&self, hidden: u64) -> [(u64, u64); 2] {
        match self.patch {
            0 => [(Self::KERNEL * self.frequencies, 2), (Self::KERNEL * hidden, 1)],
            patch => [(patch, 1), (0, 0)],
        }
    }
}

impl Transformer {
    /// Vectors of the hidden width that scale, shift and gate a layer: three for each half, and for each of two streams; where the
    /// stream of the text ends, it is only scaled and shifted.
    pub const fn modulation_of(&self, mixer: Mixer) -> u64 {
        match (self.condition, mixer) {
            (None, _) => 0,
            (Some(_), Mixer::Joint) => 12,
            (Some(_), Mixer::JointLast) => 8,
            (Some(_), _) => 6,
        }
    }

    /// Vectors that scale and shift the states before the output layer.
    pub const fn last_modulation(&self) -> u64 {
        if self.condition.is_some() { 2 } else { 0 }
    }

    /// Whether the first layer looks tokens up in a table; patches are not looked up.
    pub const fn looks_up(&self) -> bool {
        !matches!(self.signal, Some(Signal { patch: 1.., .. }))
    }

    /// Tokens of a text that have separate weights in layers `J`.
    pub const fn text_tokens(&self) -> u64 {
        match self.condition {
            Some(own) => own.text_tokens,
            None => 0,
        }
    }

    /// Learned tokens beside those of a signal.
    pub(super) fn class_tokens(&self) -> u64 {
        self.signal.map_or(0, |own| own.class_tokens)
    }

    /// Tokens that are made of a signal. A shape whose other tokens exceed its sequence is refused.
    fn received(&self) -> u64 {
        self.sequence.saturating_sub(self.class_tokens()).saturating_sub(self.text_tokens())
    }

    /// Rows of a sample and inputs of the matrices before the first layer, two for each source: the signal, the step in time, a pooled
    /// text, and the tokens of a text. The second reads what the first has written.
    pub fn signal_matrices(&self) -> [(u64, u64); 8] {
        let hidden = self.hidden;
        let received = self.received();
        let [first, second] = self.signal.map_or([(0, 0); 2], |own| own.matrices(hidden));
        let signal = [first, second].map(|(input, rows)| (received * rows, input));
        let [time, pooled, text] = match self.condition {
            None => [[(0, 0); 2]; 3],
            Some(own) => [
                [(1, TIME), (1, hidden)],
                if own.pooled > 0 { [(1, own.pooled), (1, hidden)] } else { [(0, 0); 2] },
                [(own.text_tokens, own.text), (0, 0)],
            ],
        };
        [signal[0], signal[1], time[0], time[1], pooled[0], pooled[1], text[0], text[1]]
    }

    /// Parameters of the matrices that turn a signal into tokens, and of the condition before the first layer.
    pub(super) fn signal_parameters(&self) -> Parameters {
        let inputs = self.signal_matrices().into_iter().map(|(_, input)| input);
        let matrices: u64 = inputs.filter(|input| *input > 0).map(|input| (input + 1) * self.hidden).sum();
        let rows = self.class_tokens() + self.condition.map_or(0, |own| own.classes);
        Parameters { every: matrices + rows * self.hidden, ..Parameters::NONE }
    }
}

impl Transformer {
    /// Tokens made of patches or frames, with learned tokens and tokens of a text, and conditions.
    pub(super) fn receive(&self, b: &mut Builder, signal: Signal) -> Added {
        let received = self.received();
        let [(first, rows), (second, _)] = signal.matrices(self.hidden);
        let x = b.input("input", &[received * rows, first])?;
        let mut x = b.linear("signal.0", self.hidden, x)?;
        if second > 0 {
            x = b.activate("signal.0.activation", Activation::Gelu, x)?;
            x = b.counted("signal.frames", &[x], &[received, second], Cost::default())?;
            x = b.linear("signal.1", self.hidden, x)?;
            x = b.activate("signal.1.activation", Activation::Gelu, x)?;
        }
        let name = "signal.tokens";
        let mut multiply_add = 0;
        for (rows, input) in &self.signal_matrices()[2..] {
            multiply_add += times(name, &[2, *rows, *input, self.hidden])?;
        }
        let laid_out = [first, second].into_iter().filter(|input| *input > 0);
        let laid_out: u64 = laid_out.map(|input| (input + 1) * self.hidden).sum();
        let weights = self.signal_parameters().total() - laid_out;
        let cost = Cost { multiply_add, weights, ..Cost::default() };
        b.counted(name, &[x], &[self.sequence, self.hidden], cost)
    }

    /// Vectors of a condition, and the scales, shifts and gates that they control.
    pub(super) fn modulate(&self, b: &mut Builder, name: &str, vectors: u64, from: LayerId) -> Added {
        if vectors == 0 {
            return Ok(from);
        }
        let numbers = times(name, &[vectors, self.hidden])?;
        let weights = times(name, &[numbers, self.hidden])?;
        let cost = Cost {
            multiply_add: times(name, &[2, weights])?,
            elementwise: times(name, &[numbers, self.sequence])?,
            weights,
            biases: numbers,
            ..Cost::default()
        };
        let dims = [self.sequence, self.hidden];
        b.counted(name, &[from], &dims, cost)
    }

    /// The tokens of the image among all.
    pub(super) fn image(&self, b: &mut Builder, name: &str, width: u64, from: LayerId) -> Added {
        b.counted(name, &[from], &[self.predicted(), width], Cost::default())
    }

    /// The weights of the tokens of a text in a joint layer; their products are counted with those of the image.
    pub(super) fn second_stream(&self, b: &mut Builder, name: &str, block: Block, from: LayerId) -> Added {
        if block.mixer.streams() == 1 {
            return Ok(from);
        }
        let one = Block { mixer: Mixer::Attention, ..block };
        let modulation = |mixer| self.modulation_of(mixer) * self.hidden * (self.hidden + 1);
        let whole = self.layer_parameters(block).total() - modulation(block.mixer);
        let weights = whole - (self.layer_parameters(one).total() - modulation(one.mixer));
        let cost = Cost { weights, ..Cost::default() };
        b.counted(&format!("{name}.text"), &[from], &[self.sequence, self.hidden], cost)
    }
}
