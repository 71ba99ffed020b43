//! SSD: VGG-16 without its classifier, and boxes at six scales.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op, Padding, Pool};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "ssd300-vgg16",
    aliases: &["ssd", "ssd300"],
    description: "SSD on VGG-16 for 91 classes, images of 300×300",
    source: "Liu et al. 2015, arXiv:1512.02325, figure 2; layout of torchvision",
    layout,
}];

const CLASSES: u64 = 91;

/// Convolutions of VGG-16 up to the first scale, and the ones after it: channels, how many.
const FIRST: [(u64, u64); 4] = [(64, 2), (128, 2), (256, 3), (512, 3)];

/// Two convolutions before each of the smaller scales: channels, then channels, stride and padding.
const EXTRA: [(u64, (u64, u64, u64)); 4] =
    [(256, (512, 2, 1)), (128, (256, 2, 1)), (128, (256, 1, 0)), (128, (256, 1, 0))];

/// Boxes at each pixel of a scale.
const BOXES: [u64; 6] = [4, 6, 6, 6, 4, 4];

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let mut x = b.input("input", &[3, 300, 300])?;
    for (stage, (width, depth)) in (1..).zip(FIRST) {
        if stage > 1 {
            // The third halving keeps the last pixel: 75 becomes 38.
            x = halved(b, &format!("pool{}", stage - 1), x)?;
        }
        for place in 1..=depth {
            x = conv(b, &format!("conv{stage}_{place}"), Conv2d::new(width, 3).padding(1), x)?;
        }
    }
    let scale = Cost { normalisation: 5 * 512 * 38 * 38, weights: 512, ..Cost::default() };
    let mut scales = vec![b.counted("scale_weight", &[x], &[512, 38, 38], scale)?];
    x = halved(b, "pool4", x)?;
    for place in 1..=3 {
        x = conv(b, &format!("conv5_{place}"), Conv2d::new(512, 3).padding(1), x)?;
    }
    x = b.pool("pool5", Pool::Max, (3, 1, 1), x)?;
    let dilated = Conv2d { dilation: (6, 6), ..Conv2d::new(1024, 3).padding(6) };
    x = conv(b, "conv6", dilated, x)?;
    x = conv(b, "conv7", Conv2d::new(1024, 1), x)?;
    scales.push(x);
    for (place, (before, (width, stride, padding))) in (8..).zip(EXTRA) {
        x = conv(b, &format!("conv{place}_1"), Conv2d::new(before, 1), x)?;
        let wide = Conv2d::new(width, 3).stride(stride).padding(padding);
        x = conv(b, &format!("conv{place}_2"), wide, x)?;
        scales.push(x);
    }
    let mut found = Vec::new();
    for (place, (scale, boxes)) in scales.into_iter().zip(BOXES).enumerate() {
        for (kind, each) in [("classification", CLASSES), ("regression", 4)] {
            let name = format!("head.{kind}.{place}");
            let out = b.conv(name.clone(), Conv2d::new(boxes * each, 3).padding(1).biased(), scale)?;
            found.push(b.add(format!("{name}.flat"), Op::Flatten, &[out])?);
        }
    }
    b.add("boxes", Op::Concat, &found)?;
    builder.finish()
}

fn conv(b: &mut Builder, name: &str, conv: Conv2d, from: LayerId) -> Result<LayerId, ShapeError> {
    let x = b.conv(name, conv.biased(), from)?;
    b.activate(format!("{name}.relu"), Activation::Relu, x)
}

/// Maxima of 2×2 pixels; a last row or column that only partly fits is kept.
fn halved(b: &mut Builder, name: &str, from: LayerId) -> Result<LayerId, ShapeError> {
    let (kernel, stride) = ((2, 2), (2, 2));
    b.add(name, Op::Pool { kind: Pool::Max, kernel, stride, padding: Padding::Valid, ceil: true }, &[from])
}
