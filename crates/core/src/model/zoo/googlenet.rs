//! GoogLeNet: inception modules of four branches.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op, Padding, Pool};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "googlenet",
    aliases: &["inception-v1"],
    description: "GoogLeNet with batch normalisation, without the auxiliary classifiers",
    source: "Szegedy et al. 2014, arXiv:1409.4842, table 1; layout of torchvision",
    layout,
}];

/// Channels of a module: 1×1; 3×3 reduced and full; second 3×3 reduced and full; after the pooling.
type Channels = [u64; 6];

const STAGE_3: [(&str, Channels); 2] =
    [("inception3a", [64, 96, 128, 16, 32, 32]), ("inception3b", [128, 128, 192, 32, 96, 64])];
const STAGE_4: [(&str, Channels); 5] = [
    ("inception4a", [192, 96, 208, 16, 48, 64]),
    ("inception4b", [160, 112, 224, 24, 64, 64]),
    ("inception4c", [128, 128, 256, 24, 64, 64]),
    ("inception4d", [112, 144, 288, 32, 64, 64]),
    ("inception4e", [256, 160, 320, 32, 128, 128]),
];
const STAGE_5: [(&str, Channels); 2] =
    [("inception5a", [256, 160, 320, 32, 128, 128]), ("inception5b", [384, 192, 384, 48, 128, 128])];

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 224, 224])?;
    let x = unit(b, "conv1", Conv2d::new(64, 7).stride(2).padding(3), x)?;
    let x = max_pool(b, "maxpool1", 3, 2, x)?;
    let x = unit(b, "conv2", Conv2d::new(64, 1), x)?;
    let x = unit(b, "conv3", Conv2d::new(192, 3).padding(1), x)?;
    let x = max_pool(b, "maxpool2", 3, 2, x)?;
    let x = modules(b, &STAGE_3, x)?;
    let x = max_pool(b, "maxpool3", 3, 2, x)?;
    let x = modules(b, &STAGE_4, x)?;
    let x = max_pool(b, "maxpool4", 2, 2, x)?;
    let x = modules(b, &STAGE_5, x)?;
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    let x = b.add("dropout", Op::Dropout, &[x])?;
    b.linear("fc", 1000, x)?;
    builder.finish()
}

fn modules(b: &mut Builder, list: &[(&str, Channels)], from: LayerId) -> Result<LayerId, ShapeError> {
    list.iter().try_fold(from, |x, (name, channels)| module(b, name, *channels, x))
}

fn module(b: &mut Builder, name: &str, channels: Channels, from: LayerId) -> Result<LayerId, ShapeError> {
    let [one, reduce_2, three_2, reduce_3, three_3, pooled] = channels;
    let first = unit(b, &format!("{name}.branch1"), Conv2d::new(one, 1), from)?;
    let x = unit(b, &format!("{name}.branch2.0"), Conv2d::new(reduce_2, 1), from)?;
    let second = unit(b, &format!("{name}.branch2.1"), Conv2d::new(three_2, 3).padding(1), x)?;
    let x = unit(b, &format!("{name}.branch3.0"), Conv2d::new(reduce_3, 1), from)?;
    // 5×5 in the paper; torchvision keeps the 3×3 of the model from which it was converted.
    let third = unit(b, &format!("{name}.branch3.1"), Conv2d::new(three_3, 3).padding(1), x)?;
    let x = b.pool(format!("{name}.branch4.0"), Pool::Max, (3, 1, 1), from)?;
    let fourth = unit(b, &format!("{name}.branch4.1"), Conv2d::new(pooled, 1), x)?;
    b.add(format!("{name}.concat"), Op::Concat, &[first, second, third, fourth])
}

fn unit(b: &mut Builder, name: &str, conv: Conv2d, from: LayerId) -> Result<LayerId, ShapeError> {
    let names = [format!("{name}.conv"), format!("{name}.bn"), format!("{name}.relu")];
    conv_norm(b, names, conv, Some(Activation::Relu), from)
}

fn max_pool(
    b: &mut Builder,
    name: &str,
    kernel: u64,
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let (kernel, stride) = ((kernel, kernel), (stride, stride));
    b.add(name, Op::Pool { kind: Pool::Max, kernel, stride, padding: Padding::Valid, ceil: true }, &[from])
}
