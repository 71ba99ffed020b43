//! DenseNet: every layer of a block reads the outputs of all previous layers of the block.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "densenet121",
    aliases: &["densenet-121"],
    description: "DenseNet with 121 layers, growth 32",
    source: "Huang et al. 2016, arXiv:1608.06993, table 1; layout of torchvision",
    layout: |builder| layout(builder, [6, 12, 24, 16]),
}];

const GROWTH: u64 = 32;
const BOTTLENECK: u64 = 4 * GROWTH;

fn layout(mut builder: Builder, depths: [u64; 4]) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 224, 224])?;
    let x = b.conv("features.conv0", Conv2d::new(2 * GROWTH, 7).stride(2).padding(3), x)?;
    let x = b.batch_norm("features.norm0", x)?;
    let x = b.activate("features.relu0", Activation::Relu, x)?;
    let mut x = b.pool("features.pool0", Pool::Max, (3, 2, 1), x)?;
    let mut channels = 2 * GROWTH;
    for (block, depth) in (1..).zip(depths) {
        x = dense_block(b, &format!("features.denseblock{block}"), depth, x)?;
        channels += depth * GROWTH;
        if block < depths.len() {
            channels /= 2;
            x = transition(b, &format!("features.transition{block}"), channels, x)?;
        }
    }
    let x = b.batch_norm("features.norm5", x)?;
    let x = b.activate("relu", Activation::Relu, x)?;
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    b.linear("classifier", 1000, x)?;
    builder.finish()
}

fn dense_block(b: &mut Builder, name: &str, depth: u64, from: LayerId) -> Result<LayerId, ShapeError> {
    let mut seen = vec![from];
    for place in 1..=depth {
        let name = format!("{name}.denselayer{place}");
        let x = match seen[..] {
            [only] => only,
            _ => b.add(format!("{name}.concat"), Op::Concat, &seen)?,
        };
        let x = b.batch_norm(format!("{name}.norm1"), x)?;
        let x = b.activate(format!("{name}.relu1"), Activation::Relu, x)?;
        let x = b.conv(format!("{name}.conv1"), Conv2d::new(BOTTLENECK, 1), x)?;
        let x = b.batch_norm(format!("{name}.norm2"), x)?;
        let x = b.activate(format!("{name}.relu2"), Activation::Relu, x)?;
        seen.push(b.conv(format!("{name}.conv2"), Conv2d::new(GROWTH, 3).padding(1), x)?);
    }
    b.add(format!("{name}.concat"), Op::Concat, &seen)
}

fn transition(b: &mut Builder, name: &str, channels: u64, from: LayerId) -> Result<LayerId, ShapeError> {
    let x = b.batch_norm(format!("{name}.norm"), from)?;
    let x = b.activate(format!("{name}.relu"), Activation::Relu, x)?;
    let x = b.conv(format!("{name}.conv"), Conv2d::new(channels, 1), x)?;
    b.pool(format!("{name}.pool"), Pool::Average, (2, 2, 0), x)
}
