//! MobileNet v2: inverted residuals around depth-wise convolutions.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "mobilenet-v2",
    aliases: &["mobilenetv2"],
    description: "MobileNet v2, width 1.0",
    source: "Sandler et al. 2018, arXiv:1801.04381, table 2; layout of torchvision",
    layout,
}];

/// Expansion, output channels, repetitions and first stride of each stage.
const STAGES: [(u64, u64, u64, u64); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 224, 224])?;
    let mut x = unit(b, "features.0", Conv2d::new(32, 3).stride(2).padding(1), x)?;
    let mut channels = 32;
    let mut place = 1;
    for (expansion, out, repetitions, first) in STAGES {
        for repetition in 0..repetitions {
            let stride = if repetition == 0 { first } else { 1 };
            x = inverted_residual(
                b,
                &format!("features.{place}.conv"),
                (channels, expansion, out, stride),
                x,
            )?;
            (channels, place) = (out, place + 1);
        }
    }
    let x = unit(b, &format!("features.{place}"), Conv2d::new(1280, 1), x)?;
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    let x = b.add("classifier.0", Op::Dropout, &[x])?;
    b.linear("classifier.1", 1000, x)?;
    builder.finish()
}

fn inverted_residual(
    b: &mut Builder,
    name: &str,
    (channels, expansion, out, stride): (u64, u64, u64, u64),
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let hidden = channels * expansion;
    let (mut x, mut place) = (from, 0);
    if expansion > 1 {
        x = unit(b, &format!("{name}.0"), Conv2d::new(hidden, 1), x)?;
        place += 1;
    }
    let depth_wise = Conv2d::new(hidden, 3).stride(stride).padding(1).groups(hidden);
    x = unit(b, &format!("{name}.{place}"), depth_wise, x)?;
    x = b.conv(format!("{name}.{}", place + 1), Conv2d::new(out, 1), x)?;
    x = b.batch_norm(format!("{name}.{}", place + 2), x)?;
    if stride == 1 && channels == out {
        x = b.add(format!("{name}.add"), Op::Add, &[x, from])?;
    }
    Ok(x)
}

fn unit(b: &mut Builder, name: &str, conv: Conv2d, from: LayerId) -> Result<LayerId, ShapeError> {
    let names = [format!("{name}.0"), format!("{name}.1"), format!("{name}.2")];
    conv_norm(b, names, conv, Some(Activation::Relu6), from)
}
