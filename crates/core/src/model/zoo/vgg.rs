//! VGG: stacks of small convolutions between pooling layers.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Builder, Model, ShapeError};

const SOURCE: &str = "Simonyan and Zisserman 2015, arXiv:1409.1556, table 1; layout of torchvision";

/// Kernel sizes in each of the five stages.
pub(super) type Stages = [&'static [u64]; 5];

pub(super) const A: Stages = [&[3], &[3], &[3, 3], &[3, 3], &[3, 3]];
pub(super) const B: Stages = [&[3, 3], &[3, 3], &[3, 3], &[3, 3], &[3, 3]];
pub(super) const C: Stages = [&[3, 3], &[3, 3], &[3, 3, 1], &[3, 3, 1], &[3, 3, 1]];
pub(super) const D: Stages = [&[3, 3], &[3, 3], &[3, 3, 3], &[3, 3, 3], &[3, 3, 3]];
pub(super) const E: Stages = [&[3, 3], &[3, 3], &[3, 3, 3, 3], &[3, 3, 3, 3], &[3, 3, 3, 3]];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "vgg11",
        aliases: &["vgg11a"],
        description: "VGG with 11 layers, configuration A",
        source: SOURCE,
        layout: |builder| layout(builder, A),
    },
    Entry {
        name: "vgg13",
        aliases: &["vgg13b"],
        description: "VGG with 13 layers, configuration B",
        source: SOURCE,
        layout: |builder| layout(builder, B),
    },
    Entry {
        name: "vgg16c",
        aliases: &[],
        description: "VGG with 16 layers of which three are 1×1, configuration C",
        source: "Simonyan and Zisserman 2015, arXiv:1409.1556, table 1",
        layout: |builder| layout(builder, C),
    },
    Entry {
        name: "vgg16",
        aliases: &["vgg16d"],
        description: "VGG with 16 layers, configuration D",
        source: SOURCE,
        layout: |builder| layout(builder, D),
    },
    Entry {
        name: "vgg19",
        aliases: &["vgg19e"],
        description: "VGG with 19 layers, configuration E",
        source: SOURCE,
        layout: |builder| layout(builder, E),
    },
];

pub(super) fn layout(mut builder: Builder, stages: Stages) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let mut place = 0..;
    let mut next = || format!("features.{}", place.next().unwrap_or(0));
    let mut x = b.input("input", &[3, 224, 224])?;
    for (kernels, channels) in stages.into_iter().zip([64, 128, 256, 512, 512]) {
        for &kernel in kernels {
            x = b.conv(next(), Conv2d::new(channels, kernel).padding(kernel / 2).biased(), x)?;
            x = b.activate(next(), Activation::Relu, x)?;
        }
        x = b.pool(next(), Pool::Max, (2, 2, 0), x)?;
    }
    x = b.add("flatten", Op::Flatten, &[x])?;
    for place in [0, 3] {
        x = b.linear(format!("classifier.{place}"), 4096, x)?;
        x = b.activate(format!("classifier.{}", place + 1), Activation::Relu, x)?;
        x = b.add(format!("classifier.{}", place + 2), Op::Dropout, &[x])?;
    }
    b.linear("classifier.6", 1000, x)?;
    builder.finish()
}
