//! ConvNeXt: depth-wise 7×7 convolutions and MLPs on pixels.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

const SOURCE: &str = "Liu et al. 2022, arXiv:2201.03545, section 3; layout of torchvision";

const SMALL: [u64; 4] = [3, 3, 27, 3];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "convnext-tiny",
        aliases: &["convnext-t"],
        description: "ConvNeXt, tiny",
        source: SOURCE,
        layout: |builder| layout(builder, [3, 3, 9, 3], 96),
    },
    Entry {
        name: "convnext-small",
        aliases: &["convnext-s"],
        description: "ConvNeXt, small",
        source: SOURCE,
        layout: |builder| layout(builder, SMALL, 96),
    },
    Entry {
        name: "convnext-base",
        aliases: &["convnext-b"],
        description: "ConvNeXt, base",
        source: SOURCE,
        layout: |builder| layout(builder, SMALL, 128),
    },
    Entry {
        name: "convnext-large",
        aliases: &["convnext-l"],
        description: "ConvNeXt, large",
        source: SOURCE,
        layout: |builder| layout(builder, SMALL, 192),
    },
];

/// Channels and edge of an image.
#[derive(Clone, Copy)]
struct Image {
    channels: u64,
    edge: u64,
}

impl Image {
    fn dims(self) -> [u64; 3] {
        [self.channels, self.edge, self.edge]
    }
}

fn layout(mut builder: Builder, depths: [u64; 4], width: u64) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let mut image = Image { channels: width, edge: 224 / 4 };
    let x = b.input("input", &[3, 224, 224])?;
    let x = b.conv("features.0.0", Conv2d::new(width, 4).stride(4).biased(), x)?;
    let mut x = normalised(b, "features.0.1", image, x)?;
    for (stage, depth) in depths.into_iter().enumerate() {
        if stage > 0 {
            let name = format!("features.{}", 2 * stage);
            x = normalised(b, &format!("{name}.0"), image, x)?;
            image = Image { channels: 2 * image.channels, edge: image.edge / 2 };
            x = b.conv(format!("{name}.1"), Conv2d::new(image.channels, 2).stride(2).biased(), x)?;
        }
        for place in 0..depth {
            x = block(b, &format!("features.{}.{place}", 2 * stage + 1), image, x)?;
        }
    }
    let x = b.global_average("avgpool", x)?;
    let x = b.add("classifier.1", Op::Flatten, &[x])?;
    let x = b.layer_norm("classifier.0", x)?;
    b.linear("classifier.2", 1000, x)?;
    builder.finish()
}

/// A normalisation over the channels of every pixel.
fn normalised(b: &mut Builder, name: &str, image: Image, from: LayerId) -> Result<LayerId, ShapeError> {
    let x = b.add(format!("{name}.pixels"), Op::ToSequence, &[from])?;
    let x = b.layer_norm(name, x)?;
    b.counted(&format!("{name}.image"), &[x], &image.dims(), Cost::default())
}

fn block(b: &mut Builder, name: &str, image: Image, from: LayerId) -> Result<LayerId, ShapeError> {
    let width = image.channels;
    let x =
        b.conv(format!("{name}.block.0"), Conv2d::new(width, 7).padding(3).groups(width).biased(), from)?;
    let x = b.add(format!("{name}.block.1"), Op::ToSequence, &[x])?;
    let x = b.layer_norm(format!("{name}.block.2"), x)?;
    let x = b.linear(format!("{name}.block.3"), 4 * width, x)?;
    let x = b.activate(format!("{name}.block.4"), Activation::Gelu, x)?;
    let x = b.linear(format!("{name}.block.5"), width, x)?;
    let x = b.counted(&format!("{name}.block.6"), &[x], &image.dims(), Cost::default())?;
    let scaled = Cost { elementwise: width * image.edge * image.edge, weights: width, ..Cost::default() };
    let x = b.counted(&format!("{name}.layer_scale"), &[x], &image.dims(), scaled)?;
    b.add(format!("{name}.add"), Op::Add, &[x, from])
}
