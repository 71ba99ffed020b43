//! EfficientNet-B0: inverted residuals with squeeze and excitation.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "efficientnet-b0",
    aliases: &[],
    description: "EfficientNet-B0",
    source: "Tan and Le 2019, arXiv:1905.11946, table 1; layout of torchvision",
    layout,
}];

/// A stage of equal blocks.
struct Stage {
    expansion: u64,
    kernel: u64,
    stride: u64,
    out: u64,
    repetitions: u64,
}

const fn stage(expansion: u64, kernel: u64, stride: u64, out: u64, repetitions: u64) -> Stage {
    Stage { expansion, kernel, stride, out, repetitions }
}

const STAGES: [Stage; 7] = [
    stage(1, 3, 1, 16, 1),
    stage(6, 3, 2, 24, 2),
    stage(6, 5, 2, 40, 2),
    stage(6, 3, 2, 80, 3),
    stage(6, 5, 1, 112, 3),
    stage(6, 5, 2, 192, 4),
    stage(6, 3, 1, 320, 1),
];

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 224, 224])?;
    let mut x = unit(b, "features.0", Conv2d::new(32, 3).stride(2).padding(1), Some(Activation::Silu), x)?;
    let mut channels = 32;
    for (place, stage) in (1..).zip(&STAGES) {
        for repetition in 0..stage.repetitions {
            let stride = if repetition == 0 { stage.stride } else { 1 };
            x = block(b, &format!("features.{place}.{repetition}"), stage, channels, stride, x)?;
            channels = stage.out;
        }
    }
    let x = unit(b, "features.8", Conv2d::new(1280, 1), Some(Activation::Silu), x)?;
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    let x = b.add("classifier.0", Op::Dropout, &[x])?;
    b.linear("classifier.1", 1000, x)?;
    builder.finish()
}

fn block(
    b: &mut Builder,
    name: &str,
    stage: &Stage,
    channels: u64,
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let hidden = channels * stage.expansion;
    let (mut x, mut place) = (from, 0);
    if stage.expansion > 1 {
        x = unit(b, &format!("{name}.block.0"), Conv2d::new(hidden, 1), Some(Activation::Silu), x)?;
        place += 1;
    }
    let depth_wise =
        Conv2d::new(hidden, stage.kernel).stride(stride).padding(stage.kernel / 2).groups(hidden);
    x = unit(b, &format!("{name}.block.{place}"), depth_wise, Some(Activation::Silu), x)?;
    x = squeeze_excite(b, &format!("{name}.block.{}", place + 1), hidden, channels / 4, x)?;
    x = unit(b, &format!("{name}.block.{}", place + 2), Conv2d::new(stage.out, 1), None, x)?;
    if stride == 1 && channels == stage.out {
        x = b.add(format!("{name}.stochastic_depth"), Op::Dropout, &[x])?;
        x = b.add(format!("{name}.add"), Op::Add, &[x, from])?;
    }
    Ok(x)
}

/// Scales every channel by a factor computed from the means of all channels.
fn squeeze_excite(
    b: &mut Builder,
    name: &str,
    channels: u64,
    squeezed: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let x = b.global_average(format!("{name}.avgpool"), from)?;
    let x = b.conv(format!("{name}.fc1"), Conv2d::new(squeezed, 1).biased(), x)?;
    let x = b.activate(format!("{name}.activation"), Activation::Silu, x)?;
    let x = b.conv(format!("{name}.fc2"), Conv2d::new(channels, 1).biased(), x)?;
    let x = b.activate(format!("{name}.scale_activation"), Activation::Sigmoid, x)?;
    b.add(format!("{name}.scale"), Op::Multiply, &[from, x])
}

fn unit(
    b: &mut Builder,
    name: &str,
    conv: Conv2d,
    activation: Option<Activation>,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let names = [format!("{name}.0"), format!("{name}.1"), format!("{name}.2")];
    conv_norm(b, names, conv, activation, from)
}
