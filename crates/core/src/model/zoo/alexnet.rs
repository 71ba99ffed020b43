//! AlexNet, in the single-column form of Krizhevsky 2014.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "alexnet",
    aliases: &[],
    description: "AlexNet in one column, 224×224",
    source: "Krizhevsky 2014, arXiv:1404.5997; layout of torchvision",
    layout: |builder| layout(builder, [64, 192, 384, 256, 256], Activation::Relu),
}];

/// `channels` are those of the five convolutions.
pub(super) fn layout(
    mut builder: Builder,
    channels: [u64; 5],
    activation: Activation,
) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let [first, second, third, fourth, fifth] = channels;
    let input = b.input("input", &[3, 224, 224])?;
    let x = convolution(b, 0, Conv2d::new(first, 11).stride(4).padding(2), activation, input)?;
    let x = b.pool("features.2", Pool::Max, (3, 2, 0), x)?;
    let x = convolution(b, 3, Conv2d::new(second, 5).padding(2), activation, x)?;
    let x = b.pool("features.5", Pool::Max, (3, 2, 0), x)?;
    let x = convolution(b, 6, Conv2d::new(third, 3).padding(1), activation, x)?;
    let x = convolution(b, 8, Conv2d::new(fourth, 3).padding(1), activation, x)?;
    let x = convolution(b, 10, Conv2d::new(fifth, 3).padding(1), activation, x)?;
    let x = b.pool("features.12", Pool::Max, (3, 2, 0), x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    let x = b.add("classifier.0", Op::Dropout, &[x])?;
    let x = b.linear("classifier.1", 4096, x)?;
    let x = b.activate("classifier.2", activation, x)?;
    let x = b.add("classifier.3", Op::Dropout, &[x])?;
    let x = b.linear("classifier.4", 4096, x)?;
    let x = b.activate("classifier.5", activation, x)?;
    let x = b.linear("classifier.6", 1000, x)?;
    if activation == Activation::Sigmoid {
        b.activate("classifier.7", activation, x)?;
    }
    builder.finish()
}

fn convolution(
    b: &mut Builder,
    place: usize,
    conv: Conv2d,
    activation: Activation,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let x = b.conv(format!("features.{place}"), conv.biased(), from)?;
    b.activate(format!("features.{}", place + 1), activation, x)
}
