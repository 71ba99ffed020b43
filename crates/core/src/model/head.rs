//! The fully connected head of an image classifier, and its replacement by convolutions (Liu 2022, section 4.1).

use super::op::Op;
use super::{Layer, LayerFile, Model, Value};

/// The fully connected layers after the last feature map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Index of its first layer, which reads the feature map.
    pub first: usize,
    /// Channels of the feature map.
    pub channels: u64,
    /// Outputs of the last layer.
    pub classes: u64,
}

/// Why a model has no head that convolutions could replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoHead {
    /// The last layers are not fully connected.
    #[error("the model does not end in fully connected layers")]
    OtherEnd,
    /// They read features or tokens instead of a feature map.
    #[error("its fully connected layers do not read a feature map")]
    NoFeatureMap,
    /// They read a feature map of one pixel.
    #[error("its fully connected layers read a feature map of one pixel, as if it were averaged already")]
    OnePixel,
}

impl Model {
    /// The chain of fully connected layers at the end, starting at the layer that flattens a feature map.
    pub fn head(&self) -> Result<Head, NoHead> {
        let layers = self.layers();
        let mut connected = false;
        for (id, layer) in layers.iter().enumerate().rev() {
            match layer.op {
                Op::Flatten if connected => return self.head_from(id),
                Op::Linear { .. } => connected = true,
                Op::Activate(_) | Op::Dropout | Op::Normalise(_) => {}
                _ if connected => return Err(NoHead::NoFeatureMap),
                _ => break,
            }
            if !reads_the_one_before(id, layer) {
                break;
            }
        }
        Err(NoHead::OtherEnd)
    }

    /// The head whose first layer is at `first`, regardless of the layers after it.
    pub fn head_from(&self, first: usize) -> Result<Head, NoHead> {
        let (Some(layer), Some(last)) = (self.layers().get(first), self.layers().last()) else {
            return Err(NoHead::OtherEnd);
        };
        let [input] = layer.inputs[..] else { return Err(NoHead::NoFeatureMap) };
        match self.layers()[input as usize].output.image() {
            Some((_, 1, 1)) => Err(NoHead::OnePixel),
            Some((channels, ..)) => Ok(Head { first, channels, classes: last.output.elements() }),
            None => Err(NoHead::NoFeatureMap),
        }
    }
}

fn reads_the_one_before(id: usize, layer: &Layer) -> bool {
    matches!(layer.inputs[..], [input] if input as usize + 1 == id)
}

impl Head {
    /// Table 3 of Liu 2022: a 1×1 convolution that keeps the number of channels, one that outputs the classes, and
    /// the mean over the image (network in network, Lin 2013).
    pub fn convolutions(&self) -> Vec<LayerFile> {
        let layers = [
            ("head.conv1", "conv2d", Some(self.channels)),
            ("head.relu1", "relu", None),
            ("head.conv2", "conv2d", Some(self.classes)),
            ("head.relu2", "relu", None),
            ("head.pool", "global-average-pool", None),
        ];
        let layer = |(name, op, out): (&str, &str, Option<u64>)| LayerFile {
            name: Some(name.to_owned()),
            op: op.to_owned(),
            out: out.map(Value::Number),
            kernel: out.map(|_| Value::Number(1)),
            ..LayerFile::default()
        };
        layers.into_iter().map(layer).collect()
    }
}
