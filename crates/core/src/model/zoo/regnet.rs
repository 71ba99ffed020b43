//! RegNet: stages of grouped bottlenecks with widths from a linear rule; the Y kind has squeeze and excitation.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

const SOURCE: &str = "Radosavovic et al. 2020, arXiv:2003.13678, figures 16 and 17; layout of torchvision";

/// Widths and depths of the stages, and channels of a group.
#[derive(Clone, Copy)]
struct Network {
    stages: [(u64, u64); 4],
    group: u64,
    squeezes: bool,
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "regnet-x-400mf",
        aliases: &["regnetx-400mf"],
        description: "RegNetX, 0.4 billion multiply-adds",
        source: SOURCE,
        layout: |builder| x(builder, [(32, 1), (64, 2), (160, 7), (400, 12)], 16),
    },
    Entry {
        name: "regnet-x-3-2gf",
        aliases: &["regnetx-3.2gf"],
        description: "RegNetX, 3.2 billion multiply-adds",
        source: SOURCE,
        layout: |builder| x(builder, [(96, 2), (192, 6), (432, 15), (1008, 2)], 48),
    },
    Entry {
        name: "regnet-y-400mf",
        aliases: &["regnety-400mf"],
        description: "RegNetY, 0.4 billion multiply-adds",
        source: SOURCE,
        layout: |builder| y(builder, [(48, 1), (104, 3), (208, 6), (440, 6)], 8),
    },
    Entry {
        name: "regnet-y-8gf",
        aliases: &["regnety-8gf"],
        description: "RegNetY, 8 billion multiply-adds",
        source: SOURCE,
        layout: |builder| y(builder, [(224, 2), (448, 4), (896, 10), (2016, 1)], 56),
    },
    Entry {
        name: "regnet-y-16gf",
        aliases: &["regnety-16gf"],
        description: "RegNetY, 16 billion multiply-adds",
        source: SOURCE,
        layout: |builder| y(builder, [(224, 2), (448, 4), (1232, 11), (3024, 1)], 112),
    },
];

fn x(builder: Builder, stages: [(u64, u64); 4], group: u64) -> Result<Model, ShapeError> {
    layout(builder, Network { stages, group, squeezes: false })
}

fn y(builder: Builder, stages: [(u64, u64); 4], group: u64) -> Result<Model, ShapeError> {
    layout(builder, Network { stages, group, squeezes: true })
}

fn names(name: &str) -> [String; 3] {
    [format!("{name}.0"), format!("{name}.1"), format!("{name}.2")]
}

fn layout(mut builder: Builder, network: Network) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let input = b.input("input", &[3, 224, 224])?;
    let stem = Conv2d::new(32, 3).stride(2).padding(1);
    let mut x = conv_norm(b, names("stem"), stem, Some(Activation::Relu), input)?;
    let mut before = 32;
    for (stage, (width, depth)) in (1..).zip(network.stages) {
        for place in 0..depth {
            let name = format!("trunk_output.block{stage}.block{stage}-{place}");
            let from = if place == 0 { before } else { width };
            x = block(b, &name, network, (from, width), if place == 0 { 2 } else { 1 }, x)?;
        }
        before = width;
    }
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    b.linear("fc", 1000, x)?;
    builder.finish()
}

fn block(
    b: &mut Builder,
    name: &str,
    network: Network,
    (before, width): (u64, u64),
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let part = |part: &str| names(&format!("{name}.f.{part}"));
    let x = conv_norm(b, part("a"), Conv2d::new(width, 1), Some(Activation::Relu), from)?;
    let grouped = Conv2d::new(width, 3).stride(stride).padding(1).groups(width / network.group);
    let mut x = conv_norm(b, part("b"), grouped, Some(Activation::Relu), x)?;
    if network.squeezes {
        // A quarter of the channels that the block reads, rounded.
        let squeezed = (before + 2) / 4;
        let mean = b.global_average(format!("{name}.f.se.avgpool"), x)?;
        let inner = b.conv(format!("{name}.f.se.fc1"), Conv2d::new(squeezed, 1).biased(), mean)?;
        let inner = b.activate(format!("{name}.f.se.activation"), Activation::Relu, inner)?;
        let scale = b.conv(format!("{name}.f.se.fc2"), Conv2d::new(width, 1).biased(), inner)?;
        let scale = b.activate(format!("{name}.f.se.scale_activation"), Activation::Sigmoid, scale)?;
        x = b.add(format!("{name}.f.se.scale"), Op::Multiply, &[x, scale])?;
    }
    let x = conv_norm(b, part("c"), Conv2d::new(width, 1), None, x)?;
    let mut shortcut = from;
    if stride > 1 || before != width {
        let proj = Conv2d::new(width, 1).stride(stride);
        shortcut = conv_norm(b, names(&format!("{name}.proj")), proj, None, from)?;
    }
    let x = b.add(format!("{name}.add"), Op::Add, &[x, shortcut])?;
    b.activate(format!("{name}.activation"), Activation::Relu, x)
}
