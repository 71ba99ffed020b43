//! The networks as counted by Zeng et al. 2023, for reproducing the tables of that paper.
//!
//! "Modeling the Training Iteration Time for Heterogeneous Distributed Deep Learning Systems" counts two operations
//! for each multiply-add of convolutions and fully connected layers, plus some pooling, with a few slips. Each
//! deviation from the layout is an [`Adjustment`] here. The residual networks are counted without batch normalisation
//! and projections, with one bias per channel.

use super::resnet::{Block, convolutions};
use super::{Entry, alexnet, overfeat, vgg};
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Adjustment, Builder, LayerId, Model, Published, ShapeError};

const SOURCE: &str = "Zeng et al. 2023, table 1";

macro_rules! entry {
    ($name:literal, $description:literal, $layout:expr) => {
        Entry { name: $name, aliases: &[], description: $description, source: SOURCE, layout: $layout }
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    entry!("zeng2023/alexnet", "AlexNet as Zeng 2023 counts it", alexnet),
    entry!("zeng2023/overfeat", "OverFeat as Zeng 2023 counts it", overfeat),
    entry!("zeng2023/vgg11a", "VGG A as Zeng 2023 counts it", |b| vgg(
        b,
        vgg::A,
        Some(24),
        Some(132_867_435)
    )),
    entry!("zeng2023/vgg13b", "VGG B as Zeng 2023 counts it", |b| vgg(b, vgg::B, None, None)),
    entry!("zeng2023/vgg16c", "VGG C as Zeng 2023 counts it", |b| vgg(b, vgg::C, None, None)),
    // Table 1 prints the 34 pushes in the row of 16C; Table 5 uses them for the VGG16 of all experiments, 16D.
    entry!("zeng2023/vgg16d", "VGG D as Zeng 2023 counts it", |b| vgg(
        b,
        vgg::D,
        Some(34),
        Some(138_361_643)
    )),
    entry!("zeng2023/vgg19e", "VGG E as Zeng 2023 counts it", |b| vgg(
        b,
        vgg::E,
        Some(40),
        Some(143_671_339)
    )),
    entry!("zeng2023/resnet18", "ResNet-18 as Zeng 2023 counts it", |mut b| {
        b.adjust(FC_ONE_PER_PARAMETER.on(1_024_000));
        resnet(b, Block::Basic, [2, 2, 2, 2])
    }),
    entry!("zeng2023/resnet34", "ResNet-34 as Zeng 2023 counts it", |mut b| {
        b.adjust(FC_LEFT_OUT.on(1_024_000));
        resnet(b, Block::Basic, [3, 4, 6, 3])
    }),
    entry!("zeng2023/resnet50", "ResNet-50 as Zeng 2023 counts it", |mut b| {
        b.adjust(FC_LEFT_OUT.on(4_096_000));
        b.publish(Published { pushes: Some(269), shipped: Some(25_612_205), forward: None });
        resnet(b, Block::Bottleneck, [3, 4, 6, 3])
    }),
    entry!("zeng2023/resnet101", "ResNet-101 as Zeng 2023 counts it", |mut b| {
        b.adjust(FC_ONE_PER_PARAMETER.on(4_096_000));
        b.publish(Published { pushes: Some(524), ..Published::default() });
        resnet(b, Block::Bottleneck, [3, 4, 23, 3])
    }),
    entry!("zeng2023/resnet152", "ResNet-152 as Zeng 2023 counts it", |mut b| {
        b.adjust(FC_ONE_PER_PARAMETER.on(4_096_000));
        b.publish(Published { pushes: Some(779), ..Published::default() });
        resnet(b, Block::Bottleneck, [3, 8, 36, 3])
    }),
];

const fn forward(reason: &'static str, forward: i64) -> Adjustment {
    Adjustment { reason, forward, weights: 0, pooling: false }
}

const fn weights(reason: &'static str, weights: i64) -> Adjustment {
    Adjustment { reason, forward: 0, weights, pooling: false }
}

const fn pooling(reason: &'static str, forward: i64) -> Adjustment {
    Adjustment { reason, forward, weights: 0, pooling: true }
}

/// The paper's count for a fully connected layer in place of its multiply-adds.
struct FullyConnected {
    reason: &'static str,
    counted: i64,
}

const FC_LEFT_OUT: FullyConnected =
    FullyConnected { reason: "the operations of the fully connected layer are left out", counted: 0 };
const FC_ONE_PER_PARAMETER: FullyConnected = FullyConnected {
    reason: "the fully connected layer counts as 2048·1000 + 1000, one operation for each parameter",
    counted: 2_049_000,
};

impl FullyConnected {
    /// The adjustment that replaces the `multiply_adds` of the layout.
    const fn on(&self, multiply_adds: i64) -> Adjustment {
        forward(self.reason, self.counted - multiply_adds)
    }
}

fn alexnet(mut builder: Builder) -> Result<Model, ShapeError> {
    builder.publish(Published {
        pushes: Some(19),
        shipped: Some(63_380_347),
        // Includes a sigmoid of 83 operations for each output element of the eight layers.
        forward: Some(1_720_390_328),
    });
    alexnet::layout(builder, [64, 192, 384, 384, 256], Activation::Sigmoid)
}

fn overfeat(mut builder: Builder) -> Result<Model, ShapeError> {
    builder.adjust(forward(
        "the second convolution is counted at 28×28, the size of its input, though it puts out 24×24",
        2 * 96 * 5 * 5 * 256 * (28 * 28 - 24 * 24),
    ));
    builder.publish(Published { pushes: Some(20), ..Published::default() });
    overfeat::layout(builder)
}

fn vgg(
    mut builder: Builder,
    stages: vgg::Stages,
    pushes: Option<u32>,
    shipped: Option<u64>,
) -> Result<Model, ShapeError> {
    builder.adjust(pooling(
        "the 2×2 poolings are counted, four operations for each of their output elements",
        4 * (64 * 112 * 112 + 128 * 56 * 56 + 256 * 28 * 28 + 512 * 14 * 14 + 512 * 7 * 7),
    ));
    builder.publish(Published { pushes, shipped, forward: None });
    vgg::layout(builder, stages)
}

/// A residual network with parameter-free shortcuts, and biases instead of batch normalisation.
fn resnet(mut builder: Builder, block: Block, depths: [usize; 4]) -> Result<Model, ShapeError> {
    let b = &mut builder;
    b.adjust(pooling(
        "the 3×3 pooling is counted, nine operations for each of its output elements",
        9 * 64 * 56 * 56,
    ));
    if block != Block::Basic {
        b.adjust(weights("the fully connected layer counts as 512×1000 weights, not 2048×1000", -1_536_000));
        b.adjust(weights(
            "the first 1×1 convolution counts as reading 3 channels, not 64, in its weights",
            -(64 * (64 - 3)),
        ));
    }
    let x = b.input("input", &[3, 224, 224])?;
    let x = b.conv("conv1", Conv2d::new(64, 7).stride(2).padding(3).biased(), x)?;
    let x = b.activate("relu", Activation::Relu, x)?;
    let mut x = b.pool("maxpool", Pool::Max, (3, 2, 1), x)?;
    for (stage, (depth, width)) in (1..).zip(depths.into_iter().zip([64, 128, 256, 512])) {
        for place in 0..depth {
            let stride = if stage > 1 && place == 0 { 2 } else { 1 };
            x = residual(b, &format!("layer{stage}.{place}"), convolutions(block, width, stride), stride, x)?;
        }
    }
    let x = b.global_average("avgpool", x)?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    b.linear("fc", 1000, x)?;
    builder.finish()
}

fn residual(
    b: &mut Builder,
    name: &str,
    convolutions: Vec<Conv2d>,
    stride: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let (last, out) = (convolutions.len(), convolutions.last().map_or(0, |conv| conv.out));
    let mut x = from;
    for (place, conv) in (1..).zip(convolutions) {
        x = b.conv(format!("{name}.conv{place}"), conv.biased(), x)?;
        if place < last {
            x = b.activate(format!("{name}.relu{place}"), Activation::Relu, x)?;
        }
    }
    let shortcut = b.add(format!("{name}.shortcut"), Op::Shortcut { out, stride }, &[from])?;
    let x = b.add(format!("{name}.add"), Op::Add, &[x, shortcut])?;
    b.activate(format!("{name}.relu"), Activation::Relu, x)
}

#[cfg(test)]
mod tests {
    use crate::model::{Counting, zoo};

    /// Table 1: forward operations, weights, biases, and pushes (the 34 assigned to 16D, where they belong).
    const TABLE_1: [(&str, u64, u64, u64, Option<u32>); 12] = [
        ("alexnet", 1_677_577_600, 61_827_776, 10_472, Some(19)),
        ("overfeat", 5_858_398_208, 145_909_792, 11_080, Some(20)),
        ("vgg11a", 15_224_301_568, 132_851_392, 11_944, Some(24)),
        ("vgg13b", 22_623_053_824, 133_035_712, 12_136, None),
        ("vgg16c", 23_547_897_856, 133_625_536, 13_416, None),
        ("vgg16d", 30_946_650_112, 138_344_128, 13_416, Some(34)),
        ("vgg19e", 39_270_246_400, 143_652_544, 14_696, Some(40)),
        ("resnet18", 3_592_442_856, 11_506_880, 4_904, None),
        ("resnet34", 7_289_769_984, 21_607_616, 8_616, None),
        ("resnet50", 6_994_333_696, 21_194_112, 23_720, Some(269)),
        ("resnet101", 14_420_825_064, 40_134_016, 49_832, Some(524)),
        ("resnet152", 21_845_267_432, 55_731_584, 72_872, Some(779)),
    ];

    #[test]
    fn table_1_is_exact() {
        for (name, forward, weights, biases, pushes) in TABLE_1 {
            let model = zoo::build(&format!("zeng2023/{name}")).unwrap();
            assert_eq!(model.forward(Counting::default()).get() as u64, forward, "{name}: forward");
            assert_eq!(model.weights(), weights, "{name}: weights");
            assert_eq!(model.biases(), biases, "{name}: biases");
            assert_eq!(model.published().pushes, pushes, "{name}: pushes");
            assert!(model.adjustments().iter().all(|adjustment| !adjustment.reason.is_empty()));
        }
    }

    #[test]
    fn alexnet_with_sigmoids_is_the_count_of_the_other_tables() {
        let model = zoo::build("zeng2023/alexnet").unwrap();
        let sigmoids = Counting { activation: true, ..Counting::default() };
        assert_eq!(model.forward(sigmoids).get() as u64, 1_720_390_328);
        assert_eq!(model.published().forward, Some(1_720_390_328));
        assert_eq!(model.published().shipped, Some(63_380_347));
    }

    #[test]
    fn pooling_is_not_counted_twice() {
        let model = zoo::build("zeng2023/vgg16d").unwrap();
        let pooling = Counting { pooling: true, ..Counting::default() };
        assert_eq!(model.forward(pooling), model.forward(Counting::default()));
    }
}
