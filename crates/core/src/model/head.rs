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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModelFile, zoo};

    #[test]
    fn heads_are_found_where_a_feature_map_is_flattened() {
        let head = |name: &str| zoo::build(name).unwrap().head();
        let vgg = zoo::build("vgg16").unwrap();
        let found = vgg.head().unwrap();
        assert_eq!(
            (vgg.layers()[found.first].name.as_str(), found.channels, found.classes),
            ("flatten", 512, 1000)
        );
        assert_eq!(head("alexnet").map(|head| head.channels), Ok(256));
        assert_eq!(head("resnet50"), Err(NoHead::OnePixel));
        assert_eq!(head("bert-base"), Err(NoHead::NoFeatureMap));
        let convolution = r#"input = [3, 8, 8]
            layers = [{ op = "conv2d", out = 4, kernel = 3 }, { op = "relu" }]"#;
        let model = toml::from_str::<ModelFile>(convolution).unwrap().build().unwrap();
        assert_eq!(model.head(), Err(NoHead::OtherEnd));
    }

    /// Liu 2022, Table 3: MiB of weights.
    #[test]
    fn sizes_of_table_3() {
        let mib = |layer: &Layer| layer.cost.weights as f64 * 4.0 / 1024.0 / 1024.0;
        let sizes = |model: &Model, from: usize| -> Vec<f64> {
            model.layers()[from..].iter().map(mib).filter(|size| *size > 0.0).collect()
        };
        let vgg = zoo::build("vgg16").unwrap();
        let head = vgg.head().unwrap();
        let (_, replaced) = ModelFile::from_model(&vgg).replaced(head.first, head.convolutions()).unwrap();
        assert_eq!(sizes(&vgg, head.first), [392.0, 64.0, 15.625]);
        assert_eq!(sizes(&replaced, head.first), [1.0, 1.953_125]);
        assert_eq!(replaced.layers().last().unwrap().output.dims(), [1000, 1, 1]);
    }
}
