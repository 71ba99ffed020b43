//! ResNet for ImageNet: basic blocks, bottlenecks with either placement of the stride, and wider ones.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Builder, LayerId, Model, ShapeError};

const PAPER: &str = "He et al. 2015, arXiv:1512.03385, table 1";
const SOURCE: &str = "He et al. 2015, arXiv:1512.03385, table 1; layout of torchvision";

/// Type of a residual block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// Two 3×3 convolutions.
    Basic,
    /// 1×1, 3×3, 1×1, with the stride on the first (as in the paper).
    Bottleneck,
    /// 1×1, 3×3, 1×1, with the stride on the 3×3 ("v1.5").
    BottleneckLateStride,
    /// The same with other channels inside: this many for each 64 of the stage, convolved in so many groups.
    Widened {
        /// Channels of the 3×3 convolution in the first stage.
        channels: u64,
        /// Groups of the 3×3 convolution.
        groups: u64,
    },
}

const WIDE: &str = "Zagoruyko and Komodakis 2016, arXiv:1605.07146; layout of torchvision";
const RESNEXT: &str = "Xie et al. 2016, arXiv:1611.05431, table 1; layout of torchvision";
const TWICE: Block = Block::Widened { channels: 128, groups: 1 };

const DEPTH_50: [usize; 4] = [3, 4, 6, 3];
const DEPTH_101: [usize; 4] = [3, 4, 23, 3];
const DEPTH_152: [usize; 4] = [3, 8, 36, 3];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "resnet18",
        aliases: &[],
        description: "ResNet with 18 layers",
        source: SOURCE,
        layout: |builder| layout(builder, Block::Basic, [2, 2, 2, 2]),
    },
    Entry {
        name: "resnet34",
        aliases: &[],
        description: "ResNet with 34 layers",
        source: SOURCE,
        layout: |builder| layout(builder, Block::Basic, [3, 4, 6, 3]),
    },
    Entry {
        name: "resnet50",
        aliases: &["resnet50-v1.5"],
        description: "ResNet with 50 layers, stride on the 3×3 convolution (v1.5)",
        source: SOURCE,
        layout: |builder| layout(builder, Block::BottleneckLateStride, DEPTH_50),
    },
    Entry {
        name: "resnet101",
        aliases: &["resnet101-v1.5"],
        description: "ResNet with 101 layers, stride on the 3×3 convolution (v1.5)",
        source: SOURCE,
        layout: |builder| layout(builder, Block::BottleneckLateStride, DEPTH_101),
    },
    Entry {
        name: "resnet152",
        aliases: &["resnet152-v1.5"],
        description: "ResNet with 152 layers, stride on the 3×3 convolution (v1.5)",
        source: SOURCE,
        layout: |builder| layout(builder, Block::BottleneckLateStride, DEPTH_152),
    },
    Entry {
        name: "resnet50-v1",
        aliases: &[],
        description: "ResNet with 50 layers, stride on the first 1×1 convolution",
        source: PAPER,
        layout: |builder| layout(builder, Block::Bottleneck, DEPTH_50),
    },
    Entry {
        name: "resnet101-v1",
        aliases: &[],
        description: "ResNet with 101 layers, stride on the first 1×1 convolution",
        source: PAPER,
        layout: |builder| layout(builder, Block::Bottleneck, DEPTH_101),
    },
    Entry {
        name: "resnet152-v1",
        aliases: &[],
        description: "ResNet with 152 layers, stride on the first 1×1 convolution",
        source: PAPER,
        layout: |builder| layout(builder, Block::Bottleneck, DEPTH_152),
    },
    Entry {
        name: "wide-resnet50-2",
        aliases: &[],
        description: "Wide ResNet with 50 layers, twice the channels inside blocks",
        source: WIDE,
        layout: |builder| layout(builder, TWICE, DEPTH_50),
    },
    Entry {
        name: "wide-resnet101-2",
        aliases: &[],
        description: "Wide ResNet with 101 layers, twice the channels inside blocks",
        source: WIDE,
        layout: |builder| layout(builder, TWICE, DEPTH_101),
    },
    Entry {
        name: "resnext50-32x4d",
        aliases: &["resnext50"],
        description: "ResNeXt with 50 layers, 32 groups of 4 channels",
        source: RESNEXT,
        layout: |builder| layout(builder, Block::Widened { channels: 128, groups: 32 }, DEPTH_50),
    },
    Entry {
        name: "resnext101-32x8d",
        aliases: &["resnext101"],
        description: "ResNeXt with 101 layers, 32 groups of 8 channels",
        source: RESNEXT,
        layout: |builder| layout(builder, Block::Widened { channels: 256, groups: 32 }, DEPTH_101),
    },
];

fn layout(mut builder: Builder, block: Block, depths: [usize; 4]) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 224, 224])?;
    let x = b.conv("conv1", Conv2d::new(64, 7).stride(2).padding(3), x)?;
    let x = b.batch_norm("bn1", x)?;
    let x = b.activate("relu", Activation::Relu, x)?;
    let mut x = b.pool("maxpool", Pool::Max, (3, 2, 1), x)?;
    for (stage, (depth, width)) in (1..).zip(depths.into_iter().zip([64, 128, 256, 512])) {
        for place in 0..depth {
            let stride = if stage > 1 && place == 0 { 2 } else { 1 };
            x = residual(b, &format!("layer{stage}.{place}"), block, width, stride, x)?;
        }
    }
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    b.linear("fc", 1000, x)?;
    builder.finish()
}

/// The convolutions of a block: output channels, kernel and stride of each.
pub(super) fn convolutions(block: Block, width: u64, stride: u64) -> Vec<Conv2d> {
    let one = |out| Conv2d::new(out, 1);
    let three = |out| Conv2d::new(out, 3).padding(1);
    match block {
        Block::Basic => vec![three(width).stride(stride), three(width)],
        Block::Bottleneck => vec![one(width).stride(stride), three(width), one(4 * width)],
        Block::BottleneckLateStride => vec![one(width), three(width).stride(stride), one(4 * width)],
        Block::Widened { channels, groups } => {
            let inner = width / 64 * channels;
            vec![one(inner), three(inner).stride(stride).groups(groups), one(4 * width)]
        }
    }
}

fn residual(
    b: &mut Builder,
    name: &str,
    block: Block,
    width: u64,
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let convolutions = convolutions(block, width, stride);
    let (last, out) = (convolutions.len(), convolutions.last().map_or(width, |conv| conv.out));
    let mut x = from;
    for (place, conv) in (1..).zip(convolutions) {
        x = b.conv(format!("{name}.conv{place}"), conv, x)?;
        x = b.batch_norm(format!("{name}.bn{place}"), x)?;
        if place < last {
            x = b.activate(format!("{name}.relu{place}"), Activation::Relu, x)?;
        }
    }
    let channels = b.shape(from).and_then(|shape| shape.dims().first().copied());
    let mut shortcut = from;
    if stride > 1 || channels != Some(out) {
        shortcut = b.conv(format!("{name}.downsample.0"), Conv2d::new(out, 1).stride(stride), from)?;
        shortcut = b.batch_norm(format!("{name}.downsample.1"), shortcut)?;
    }
    let x = b.add(format!("{name}.add"), Op::Add, &[x, shortcut])?;
    b.activate(format!("{name}.relu"), Activation::Relu, x)
}
