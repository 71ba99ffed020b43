//! Small networks for the 32×32 images of CIFAR-10.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Norm, Op, Padding, Pool};
use crate::model::{Builder, LayerId, Model, ShapeError};

const RESNET: &str = "He et al. 2015, arXiv:1512.03385, section 4.2, shortcuts of option A";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "cifar-alexnet",
        aliases: &["alexnet-cifar", "alexnet-cifar10"],
        description: "AlexNet for CIFAR-10, 32×32, 10 classes and one for the background",
        source: "layout of TensorFlow's tf_cnn_benchmarks",
        layout: alexnet,
    },
    Entry {
        name: "resnet32",
        aliases: &["cifar-resnet32"],
        description: "ResNet with 32 layers for CIFAR-10, 32×32",
        source: RESNET,
        layout: |builder| resnet(builder, 5),
    },
    Entry {
        name: "resnet56",
        aliases: &["cifar-resnet56"],
        description: "ResNet with 56 layers for CIFAR-10, 32×32",
        source: RESNET,
        layout: |builder| resnet(builder, 9),
    },
];

fn alexnet(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let five = Conv2d { padding: Padding::Same, ..Conv2d::new(64, 5).biased() };
    let pool =
        Op::Pool { kind: Pool::Max, kernel: (3, 3), stride: (2, 2), padding: Padding::Same, ceil: false };
    let norm = Op::Normalise(Norm::LocalResponse { depth: 9 });
    let x = b.input("input", &[3, 32, 32])?;
    let x = b.conv("conv0", five, x)?;
    let x = b.activate("relu0", Activation::Relu, x)?;
    let x = b.add("pool0", pool, &[x])?;
    let x = b.add("norm0", norm, &[x])?;
    let x = b.conv("conv1", five, x)?;
    let x = b.activate("relu1", Activation::Relu, x)?;
    let x = b.add("norm1", norm, &[x])?;
    let x = b.add("pool1", pool, &[x])?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    let x = b.linear("affine0", 384, x)?;
    let x = b.activate("relu2", Activation::Relu, x)?;
    let x = b.linear("affine1", 192, x)?;
    let x = b.activate("relu3", Activation::Relu, x)?;
    b.linear("affine2", 11, x)?;
    builder.finish()
}

/// A ResNet with 6·`depth` + 2 layers.
fn resnet(mut builder: Builder, depth: usize) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 32, 32])?;
    let x = b.conv("conv1", Conv2d::new(16, 3).padding(1), x)?;
    let x = b.batch_norm("bn1", x)?;
    let mut x = b.activate("relu", Activation::Relu, x)?;
    for (stage, width) in [(1, 16), (2, 32), (3, 64)] {
        for place in 0..depth {
            let stride = if stage > 1 && place == 0 { 2 } else { 1 };
            x = residual(b, &format!("layer{stage}.{place}"), width, stride, x)?;
        }
    }
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    b.linear("linear", 10, x)?;
    builder.finish()
}

fn residual(
    b: &mut Builder,
    name: &str,
    width: u64,
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let x = b.conv(format!("{name}.conv1"), Conv2d::new(width, 3).stride(stride).padding(1), from)?;
    let x = b.batch_norm(format!("{name}.bn1"), x)?;
    let x = b.activate(format!("{name}.relu1"), Activation::Relu, x)?;
    let x = b.conv(format!("{name}.conv2"), Conv2d::new(width, 3).padding(1), x)?;
    let x = b.batch_norm(format!("{name}.bn2"), x)?;
    let shortcut = match stride {
        1 => from,
        _ => b.add(format!("{name}.shortcut"), Op::Shortcut { out: width, stride }, &[from])?,
    };
    let x = b.add(format!("{name}.add"), Op::Add, &[x, shortcut])?;
    b.activate(format!("{name}.relu"), Activation::Relu, x)
}
