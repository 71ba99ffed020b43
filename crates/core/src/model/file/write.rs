//! Models back as files, and files with their last layers replaced: the fully connected head of an image classifier by
//! convolutions (Liu 2022, section 4.1), say.

use super::{LayerFile, ModelFile, Value};
use crate::fault::{Fault, KeyPath, Step};
use crate::model::op::Op;
use crate::model::{Layer, LayerId, Model};
use std::collections::BTreeMap;

/// Name of the first input in the file.
const INPUT: &str = "input";

impl ModelFile {
    /// The layers of `model`, each with its name and inputs. Deviations of published counts from the layout are not
    /// included.
    pub fn from_model(model: &Model) -> Self {
        let layers = model.layers();
        let escaped = |name: &str| name.replace('{', "{{").replace('}', "}}");
        let name = |id: &LayerId| match layers.get(*id as usize) {
            Some(layer) if *id > 0 => escaped(&layer.name),
            _ => INPUT.to_owned(),
        };
        let write = |(id, layer): (usize, &Layer)| {
            let follows = layer.op == Op::Input || layer.inputs == [id as LayerId - 1];
            let has_shape = matches!(layer.op, Op::Input | Op::Counted(_));
            LayerFile {
                name: Some(escaped(&layer.name)),
                inputs: (!follows).then(|| layer.inputs.iter().map(name).collect()),
                shape: has_shape.then(|| layer.output.dims().into()),
                ..LayerFile::from_op(&layer.op)
            }
        };
        Self {
            name: model.name.clone(),
            input: model.input().dims().iter().copied().map(Value::Number).collect(),
            with: BTreeMap::new(),
            layers: layers.iter().enumerate().skip(1).map(write).collect(),
            blocks: BTreeMap::new(),
        }
    }
}

impl ModelFile {
    /// This model with layer `first` and all later ones replaced by `layers`; the input is layer 0. The first of
    /// `layers` reads the inputs of layer `first` by default. Paths of errors refer to a table that contains only
    /// `layers`.
    pub fn replaced(&self, first: usize, layers: Vec<LayerFile>) -> Result<(Self, Model), Fault> {
        let wrong = |reason: String, remedy: &str| Err(Fault::in_key("layers", reason, remedy));
        let Some((kept, cut)) = first.checked_sub(1).and_then(|place| self.layers.split_at_checked(place))
        else {
            return wrong("the input cannot be replaced".to_owned(), "cut at a later layer");
        };
        let mut layers = layers;
        let Some(head) = layers.first_mut() else {
            let remedy = "list at least one layer, such as { op = \"global-average-pool\" }";
            return wrong("there is nothing to put in place".to_owned(), remedy);
        };
        if head.inputs.is_none() {
            head.inputs = cut.first().and_then(|layer| layer.inputs.clone());
        }
        let read: Vec<&String> = layers.iter().filter_map(|layer| layer.inputs.as_ref()).flatten().collect();
        if let Some(lost) = self.lost(kept, &read, head_reads_last(&layers)) {
            let reason =
                format!("nothing would read the layer \"{lost}\" any more: the cut goes through a branch");
            return wrong(reason, "cut where a single layer leads on");
        }
        let file = Self { layers: kept.iter().cloned().chain(layers).collect(), ..self.clone() };
        let model = file.build().map_err(|fault| without(kept.len(), fault))?;
        Ok((file, model))
    }

    /// A kept layer that only removed layers read, and that the replacement does not read.
    fn lost(&self, kept: &[LayerFile], read: &[&String], last_is_read: bool) -> Option<String> {
        let name = |index: usize| self.layers[index].plain_name(index);
        let reads = |index: usize| -> Vec<String> {
            match (&self.layers[index].inputs, index) {
                (Some(names), _) => names.clone(),
                (None, _) if self.layers[index].op == "input" => Vec::new(),
                (None, 0) => vec!["input".to_owned()],
                (None, _) => vec![name(index - 1)],
            }
        };
        let before: Vec<String> = (0..kept.len()).flat_map(reads).collect();
        let after: Vec<String> = (kept.len()..self.layers.len()).flat_map(reads).collect();
        let last = kept.len().checked_sub(1).map(name);
        after.into_iter().find(|layer| {
            let kept_layer = (0..kept.len()).any(|index| name(index) == *layer);
            let still_read = before.contains(layer)
                || read.contains(&layer)
                || (last_is_read && last.as_ref() == Some(layer));
            kept_layer && !still_read
        })
    }
}

fn head_reads_last(layers: &[LayerFile]) -> bool {
    layers.first().is_some_and(|layer| layer.inputs.is_none() && layer.op != "input")
}

/// The error with indices into `layers` reduced by `kept`.
fn without(kept: usize, fault: Fault) -> Fault {
    let step = |path: KeyPath, step: &Step| match step {
        Step::Key(key) => path.key(key),
        Step::Index(index) => path.index(index.saturating_sub(kept)),
    };
    Fault { key: fault.key.steps().iter().fold(KeyPath::root(), step), ..fault }
}

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
