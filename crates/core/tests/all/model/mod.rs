//! Random graphs, and operations with closed-form counts.

mod counts;
mod file;
mod transformer;
mod zoo;

use crate::in_a_file;
use proptest::prelude::*;
use stepcast_core::model::zoo::build;
use stepcast_core::model::{
    Activation, Adjustment, BlockFile, Builder, Conv2d, Counting, Layer, LayerFile, Model, ModelFile, NoHead,
    OPS, Op, Padding, Pool, Shape, Value,
};
use stepcast_core::quantity::{Bytes, Flops};
use stepcast_core::text;

/// The model of a file.
fn built(text: &str) -> Model {
    text::parse::<ModelFile>(text).unwrap().build().unwrap()
}

fn one(op: Op, dims: &[u64]) -> Layer {
    let mut builder = Builder::new("one", "test");
    let input = builder.input("input", dims).unwrap();
    builder.add("layer", op, &[input]).unwrap();
    builder.finish().unwrap().layers()[1].clone()
}

/// Two operations per channel, kernel element and output, with groups dividing the channels (Zeng 2023, eq. 21).
#[test]
fn convolutions_count_two_operations_for_each_product() {
    let plain = Conv2d {
        out: 64,
        kernel: (11, 11),
        stride: (4, 4),
        padding: Padding::all(2),
        dilation: (1, 1),
        groups: 1,
        bias: true,
    };
    let layer = one(Op::Conv2d(plain), &[3, 224, 224]);
    assert_eq!(layer.output.to_string(), "64×55×55");
    assert_eq!(layer.cost.multiply_add, 2 * 3 * 11 * 11 * 64 * 55 * 55);
    assert_eq!((layer.cost.weights, layer.cost.biases), (3 * 11 * 11 * 64, 64));
    assert_eq!(layer.cost.bias, 64 * 55 * 55);
    let (kernel, stride, padding) = ((3, 3), (1, 1), Padding::all(1));
    let depth_wise = Conv2d { out: 32, kernel, stride, padding, groups: 32, bias: false, ..plain };
    let depth_wise = one(Op::Conv2d(depth_wise), &[32, 8, 8]);
    assert_eq!((depth_wise.cost.multiply_add, depth_wise.cost.weights), (2 * 9 * 32 * 64, 9 * 32));
}

/// Q·Kᵀ and A·V take 2·s²·w operations each; with a causal mask s(s+1)/2 of the s² pairs remain.
#[test]
fn attention_counts_its_two_products() {
    let full = one(Op::Attention { heads: 4, causal: false }, &[10, 3 * 64]);
    assert_eq!(full.output.to_string(), "10×64");
    assert_eq!(full.cost.multiply_add, 2 * (2 * 10 * 10 * 64));
    assert_eq!(full.cost.activation, 85 * 4 * 100);
    let causal = one(Op::Attention { heads: 4, causal: true }, &[10, 3 * 64]);
    assert_eq!(causal.cost.multiply_add, 2 * (2 * 55 * 64));
}

#[test]
fn shapes_are_carried_through() {
    assert_eq!(one(Op::Flatten, &[256, 6, 6]).output.to_string(), "9216");
    assert_eq!(one(Op::ToSequence, &[768, 14, 14]).output.to_string(), "196×768");
    assert_eq!(one(Op::ClassToken, &[196, 768]).output.to_string(), "197×768");
    assert_eq!(one(Op::SelectToken { index: 0 }, &[197, 768]).output.to_string(), "768");
    assert_eq!(one(Op::Shortcut { out: 32, stride: 2 }, &[16, 33, 32]).output.to_string(), "32×17×16");
    assert_eq!(one(Op::Embedding { count: 100, width: 8, sparse: false }, &[5]).output.to_string(), "5×8");
}

#[test]
fn adjustments_do_not_change_the_layout() {
    let mut builder = Builder::new("adjusted", "test");
    let input = builder.input("input", &[10]).unwrap();
    builder.linear("fc", 5, input).unwrap();
    builder.adjust(Adjustment { reason: "a slip".to_owned(), forward: -1000, weights: -8, pooling: false });
    let model = builder.finish().unwrap();
    assert_eq!(model.forward(Counting::default()), Flops::ZERO);
    assert_eq!((model.weights(), model.parameters()), (42, 55));
    assert_eq!(model.cost().multiply_add, 100);
}

#[test]
fn the_sum_of_layers_may_not_overflow_either() {
    let mut builder = Builder::new("large", "test");
    let input = builder.input("input", &[1 << 31]).unwrap();
    let first = builder.linear("first", 1 << 31, input).unwrap();
    let error = builder.linear("second", 1 << 31, first).and_then(|x| builder.linear("third", 1 << 31, x));
    let error = error.unwrap_err();
    assert_eq!(error.layer, "second");
    assert!(error.reason.contains("64 bits"), "{error}");
}

#[test]
fn an_empty_model_and_a_foreign_layer_are_errors() {
    let empty = Builder::new("nothing", "test").finish().unwrap_err();
    assert_eq!(empty.reason, "the model has no layers");
    let error = Builder::new("nothing", "test").linear("fc", 3, 7).unwrap_err();
    assert_eq!(error.to_string(), "layer \"fc\": it reads a layer that does not exist");
}

/// Linear layers return the gradient of their bias first, others that of their weight.
#[test]
fn gradients_come_last_layer_first() {
    let names: Vec<_> = build("resnet18").unwrap().gradients().into_iter().map(|g| g.name).collect();
    let first = ["fc.bias", "fc.weight", "layer4.1.bn2.weight", "layer4.1.bn2.bias", "layer4.1.conv2.weight"];
    assert_eq!(names[..5], first);
    assert_eq!(names.last().map(String::as_str), Some("conv1.weight"));
}

fn size() -> BoxedStrategy<u64> {
    prop_oneof![
        8 => 1_u64..5,
        2 => Just(16),
        1 => Just(0),
        1 => Just(1 << 32),
        1 => Just(i64::MAX as u64),
        1 => Just(u64::MAX),
    ]
    .boxed()
}

/// A setting as a file may have it: often a number, at times a list, a formula or nonsense.
fn setting() -> BoxedStrategy<Value> {
    let text = prop::sample::select(vec!["same", "valid", "2 * i", "input[0]", "1 / 0", "nothing + 1"]);
    prop_oneof![
        8 => size().prop_map(Value::Number),
        2 => (size(), size()).prop_map(|(height, width)| [height, width][..].into()),
        1 => (size(), size(), size()).prop_map(|(a, b, c)| [a, b, c, a][..].into()),
        2 => any::<bool>().prop_map(Value::Truth),
        1 => text.prop_map(|text| Value::Text(text.to_owned())),
    ]
    .boxed()
}

fn inputs() -> impl Strategy<Value = Option<Vec<String>>> {
    let name = prop_oneof![
        Just("input".to_owned()),
        Just("nobody".to_owned()),
        (0..8).prop_map(|n| format!("l{n}"))
    ];
    prop_oneof![3 => Just(None), 1 => prop::collection::vec(name, 0..4).prop_map(Some)]
}

/// An operation with settings of any kind and any input, at times repeated, or a block that may use itself.
fn layer() -> BoxedStrategy<LayerFile> {
    let kinds: Vec<_> =
        OPS.iter().copied().chain([("no-such-op", &["kernel"][..]), ("block", &[][..])]).collect();
    let kind = prop::sample::select(kinds);
    let settings = prop::collection::vec(prop::option::weighted(0.8, setting()), 7);
    let repeat = prop::option::weighted(0.1, setting());
    (kind, settings, inputs(), prop::option::of(0..8), repeat)
        .prop_map(|((op, keys), settings, inputs, name, repeat)| {
            let mut table = toml::Table::new();
            for (key, value) in keys.iter().zip(settings).filter(|(key, _)| **key != "cost") {
                if let Some(Ok(value)) = value.map(toml::Value::try_from) {
                    table.insert((*key).to_owned(), value);
                }
            }
            let file: LayerFile = text::parse(&table.to_string()).unwrap();
            let name = name.map(|n| format!("l{n}"));
            match op {
                "block" => LayerFile { block: Some("again".to_owned()), inputs, name, repeat, ..file },
                _ => LayerFile { op: op.to_owned(), inputs, name, repeat, ..file },
            }
        })
        .boxed()
}

/// Layers that fit any preceding layer, so that deep graphs are reached.
fn fitting() -> impl Strategy<Value = LayerFile> {
    prop_oneof![
        (1_u64..9, 1_u64..4, 1_u64..3).prop_map(|(out, kernel, stride)| LayerFile {
            op: "conv2d".to_owned(),
            out: Some(out.into()),
            kernel: Some([kernel, 1][..].into()),
            stride: Some([1, stride][..].into()),
            padding: Some(Value::Text("same".to_owned())),
            ..LayerFile::default()
        }),
        prop::sample::select(vec!["relu", "gelu", "batch-norm", "dropout"])
            .prop_map(|op| LayerFile { op: op.to_owned(), ..LayerFile::default() }),
    ]
}

fn check(model: &Model) {
    let elements: u64 = model.gradients().iter().map(|gradient| gradient.elements).sum();
    assert_eq!(elements, model.parameters());
    assert!(model.forward(Counting::ALL) >= model.forward(Counting::default()));
    for (id, layer) in model.layers().iter().enumerate() {
        assert!(layer.inputs.iter().all(|&input| (input as usize) < id));
    }
    assert!(model.activation_bytes().is_finite() && model.input_bytes() > Bytes::ZERO);
}

proptest! {
    #[test]
    fn no_file_makes_the_model_panic(
        input in prop::collection::vec(size(), 0..4),
        layers in prop::collection::vec(layer(), 0..7),
    ) {
        let blocks = [("again".to_owned(), BlockFile { with: None, layers: layers.clone() })].into();
        let input = input.into_iter().map(Value::Number).collect();
        let file = ModelFile { name: "random".to_owned(), input, with: [].into(), layers, blocks };
        match file.build() {
            Ok(model) => check(&model),
            Err(fault) => prop_assert!(!fault.reason.is_empty() && !fault.remedy.is_empty()),
        }
    }

    #[test]
    fn deep_files_build_and_come_back_from_text(
        layers in prop::collection::vec(fitting(), 1..20), width in 1_u64..40,
    ) {
        let input = [3, 9, width].map(Value::Number).into();
        let file = ModelFile { name: "deep".to_owned(), input, with: [].into(), layers, blocks: [].into() };
        check(&file.build().unwrap());
        prop_assert_eq!(text::parse::<ModelFile>(&in_a_file(&file)).unwrap(), file);
    }

    /// Output i of an adaptive pooling covers the elements from ⌊i·n/out⌋ to ⌈(i+1)·n/out⌉.
    #[test]
    fn adaptive_pooling_counts_every_window(n in 1_u64..40, out in 1_u64..40) {
        let windows: u64 = (0..out).map(|i| ((i + 1) * n).div_ceil(out) - i * n / out).sum();
        let layer = one(Op::AdaptivePool { kind: Pool::Average, size: (out, 1) }, &[2, n, 3]);
        prop_assert_eq!(layer.cost.pooling, 2 * windows * 3);
    }
}

#[test]
fn heads_are_found_where_a_feature_map_is_flattened() {
    let head = |name: &str| build(name).unwrap().head();
    let vgg = build("vgg16").unwrap();
    let found = vgg.head().unwrap();
    assert_eq!(
        (vgg.layers()[found.first].name.as_str(), found.channels, found.classes),
        ("flatten", 512, 1000)
    );
    assert_eq!(head("alexnet").map(|head| head.channels), Ok(256));
    assert_eq!(head("resnet50"), Err(NoHead::OnePixel));
    assert_eq!(head("bert-base"), Err(NoHead::NoFeatureMap));
    let convolution = r#"input = [3, 8, 8]
        layers = [{ op = "conv2d", out = 4, kernel = 3 }, { op = "relu" }]"#;
    assert_eq!(built(convolution).head(), Err(NoHead::OtherEnd));
}

/// Liu 2022, Table 3: MiB of weights.
#[test]
fn sizes_of_table_3() {
    let mib = |layer: &Layer| layer.cost.weights as f64 * 4.0 / 1024.0 / 1024.0;
    let sizes = |model: &Model, from: usize| -> Vec<f64> {
        model.layers()[from..].iter().map(mib).filter(|size| *size > 0.0).collect()
    };
    let vgg = build("vgg16").unwrap();
    let head = vgg.head().unwrap();
    let (_, replaced) = ModelFile::from_model(&vgg).replaced(head.first, head.convolutions()).unwrap();
    assert_eq!(sizes(&vgg, head.first), [392.0, 64.0, 15.625]);
    assert_eq!(sizes(&replaced, head.first), [1.0, 1.953_125]);
    assert_eq!(replaced.layers().last().unwrap().output.dims(), [1000, 1, 1]);
}

fn kept(text: &str) -> u64 {
    built(text).activation_bytes().get() as u64
}

#[test]
fn each_tensor_is_kept_once() {
    let text = r#"
        input = [1, 8, 8]
        layers = [
            { op = "conv2d", out = 1, kernel = 3, padding = 1, bias = false },
            { op = "relu" },
            { op = "max-pool", kernel = 2 },
            { op = "flatten" },
            { op = "linear", out = 10 },
        ]"#;
    // Input, ReLU (which overwrites the convolution's output), pooling with indices, logits.
    assert_eq!(kept(text), 4 * 64 + 4 * 64 + (4 + 8) * 16 + 4 * 10);
}

/// The sum of a residual block is overwritten by its ReLU, and no gradient needs the branches.
#[test]
fn sums_keep_nothing() {
    let text = r#"
        input = [4, 8, 8]
        layers = [
            { name = "left", op = "conv2d", out = 4, kernel = 1, bias = false },
            { name = "right", op = "conv2d", inputs = ["input"], out = 4, kernel = 1, bias = false },
            { op = "add", inputs = ["left", "right"] },
            { op = "relu" },
        ]"#;
    assert_eq!(kept(text), 2 * 4 * 4 * 64);
}

#[test]
fn prints_dimensions_with_crosses() {
    assert_eq!(Shape::new([64, 55, 55]).unwrap().to_string(), "64×55×55");
    assert_eq!(Shape::new([1000]).unwrap().to_string(), "1000");
}

#[test]
fn refuses_what_has_no_countable_elements() {
    assert_eq!(Shape::new([]), None);
    assert_eq!(Shape::new([3, 0, 4]), None);
    assert_eq!(Shape::new([u64::MAX, 2]), None);
    assert_eq!(Shape::new([u64::MAX]).map(|shape| shape.elements()), Some(u64::MAX));
    assert_eq!(Shape::new([u64::MAX, 2, 0]), None);
}

#[test]
fn sigmoid_takes_83_operations() {
    assert_eq!(Activation::Sigmoid.operations(), 83);
    assert_eq!(Activation::Silu.operations(), 84);
    assert_eq!(Activation::Gelu.operations(), 93);
    assert_eq!(Activation::Softmax.operations(), 85);
}
