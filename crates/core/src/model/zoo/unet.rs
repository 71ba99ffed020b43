//! U-Net: an image halved four times and enlarged again, with everything of each size beside it.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "unet",
    aliases: &["u-net"],
    description: "U-Net for two classes, images of 512×512, padded and with batch normalisation",
    source: "Ronneberger et al. 2015, arXiv:1505.04597, figure 1; layout of github.com/milesial/Pytorch-UNet",
    layout,
}];

const EDGE: u64 = 512;
const WIDTHS: [u64; 4] = [64, 128, 256, 512];

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let mut x = b.input("input", &[3, EDGE, EDGE])?;
    let mut sizes = Vec::new();
    let mut edge = EDGE;
    for (place, width) in WIDTHS.into_iter().enumerate() {
        x = twice(b, &format!("down{place}"), width, x)?;
        sizes.push((x, width, edge));
        x = b.pool(format!("down{place}.pool"), Pool::Max, (2, 2, 0), x)?;
        edge /= 2;
    }
    x = twice(b, "bottom", 2 * WIDTHS[3], x)?;
    for (place, (beside, width, edge)) in (1..).zip(sizes.into_iter().rev()) {
        let name = format!("up{place}");
        let x_large = b.counted(&format!("{name}.up"), &[x], &[width, edge, edge], enlarged(width, edge))?;
        let joined = b.add(format!("{name}.concat"), Op::Concat, &[beside, x_large])?;
        x = twice(b, &name, width, joined)?;
    }
    b.conv("outc", Conv2d::new(2, 1).biased(), x)?;
    builder.finish()
}

/// Two 3×3 convolutions.
fn twice(b: &mut Builder, name: &str, width: u64, from: LayerId) -> Result<LayerId, ShapeError> {
    let mut x = from;
    for place in 1..=2 {
        let names = ["conv", "norm", "relu"].map(|part| format!("{name}.{part}{place}"));
        x = conv_norm(b, names, Conv2d::new(width, 3).padding(1), Some(Activation::Relu), x)?;
    }
    Ok(x)
}

/// A transposed 2×2 convolution with stride 2 from twice as many channels: every output has one place of the window.
fn enlarged(width: u64, edge: u64) -> Cost {
    let (outputs, before) = (width * edge * edge, 2 * width);
    Cost {
        multiply_add: 2 * outputs * before,
        bias: outputs,
        weights: before * width * 4,
        biases: width,
        ..Cost::default()
    }
}
