//! YOLOv3: Darknet-53 and three scales of detection.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "yolov3",
    aliases: &["yolo-v3"],
    description: "YOLOv3 for 80 classes, images of 416×416; leaky ReLU counts as ReLU",
    source: "Redmon and Farhadi 2018, arXiv:1804.02767, table 1; layout of yolov3.cfg",
    layout,
}];

/// Channels and residual blocks of the stages of Darknet-53.
const STAGES: [(u64, u64); 5] = [(64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)];

/// Three boxes, each with four coordinates, a score and 80 classes.
const OUTPUTS: u64 = 3 * (4 + 1 + 80);

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 416, 416])?;
    let mut x = conv(b, "stem", 32, 3, 1, x)?;
    let mut scales = Vec::new();
    for (stage, (width, depth)) in (1..).zip(STAGES) {
        x = conv(b, &format!("stage{stage}.down"), width, 3, 2, x)?;
        for place in 0..depth {
            let name = format!("stage{stage}.{place}");
            let inner = conv(b, &format!("{name}.1"), width / 2, 1, 1, x)?;
            let inner = conv(b, &format!("{name}.2"), width, 3, 1, inner)?;
            x = b.add(format!("{name}.add"), Op::Add, &[inner, x])?;
        }
        scales.push(x);
    }
    let [.., fine, middle, coarse] = scales[..] else { return builder.finish() };
    let (x, large) = detect(b, "large", 512, coarse)?;
    let x = joined(b, "medium", 256, 26, x, middle)?;
    let (x, medium) = detect(b, "medium", 256, x)?;
    let x = joined(b, "small", 128, 52, x, fine)?;
    let (_, small) = detect(b, "small", 128, x)?;
    b.add("boxes", Op::Concat, &[large, medium, small])?;
    builder.finish()
}

fn conv(
    b: &mut Builder,
    name: &str,
    out: u64,
    kernel: u64,
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let names = [format!("{name}.conv"), format!("{name}.norm"), format!("{name}.relu")];
    let conv = Conv2d::new(out, kernel).stride(stride).padding(kernel / 2);
    conv_norm(b, names, conv, Some(Activation::Relu), from)
}

/// Five convolutions, which the next scale reads, and the boxes of this one.
fn detect(b: &mut Builder, name: &str, width: u64, from: LayerId) -> Result<(LayerId, LayerId), ShapeError> {
    let mut x = from;
    for (place, (out, kernel)) in
        [(width, 1), (2 * width, 3), (width, 1), (2 * width, 3), (width, 1)].into_iter().enumerate()
    {
        x = conv(b, &format!("{name}.{place}"), out, kernel, 1, x)?;
    }
    let inner = conv(b, &format!("{name}.5"), 2 * width, 3, 1, x)?;
    let boxes = b.conv(format!("{name}.boxes"), Conv2d::new(OUTPUTS, 1).biased(), inner)?;
    Ok((x, b.add(format!("{name}.flat"), Op::Flatten, &[boxes])?))
}

/// The coarser scale at twice its size, beside the finer one.
fn joined(
    b: &mut Builder,
    name: &str,
    width: u64,
    edge: u64,
    from: LayerId,
    finer: LayerId,
) -> Result<LayerId, ShapeError> {
    let x = conv(b, &format!("{name}.route"), width, 1, 1, from)?;
    let copied = Cost { elementwise: width * edge * edge, ..Cost::default() };
    let x = b.counted(&format!("{name}.upsample"), &[x], &[width, edge, edge], copied)?;
    b.add(format!("{name}.concat"), Op::Concat, &[x, finer])
}
