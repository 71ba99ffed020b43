//! Custom models: valid input, rejected input, and error messages.

use super::*;
use crate::precision::Precision;
use crate::strategy::Optimiser;
use crate::text::test_cases;

fn parse(layers: &str) -> ModelFile {
    toml::from_str(&format!("input = [3, 32, 32]\nlayers = [{layers}]")).unwrap()
}

/// The path, reason and remedy of the error for these layers.
fn fault(layers: &str) -> (String, String, String) {
    let fault = parse(layers).build().unwrap_err();
    (fault.key.to_string(), fault.reason, fault.remedy.to_string())
}

#[test]
fn a_small_network_is_built_and_counted() {
    let file: ModelFile = toml::from_str(include_str!("small.toml")).unwrap();
    let model = file.build().unwrap();
    assert_eq!(model.name, "small");
    let names: Vec<_> = model.layers().iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names[..5], ["input", "a", "batch-norm1", "relu2", "b"]);
    assert_eq!(model.layers()[5].inputs, [1, 4]);
    assert_eq!(model.layers()[6].output.to_string(), "16×16×16");
    assert_eq!(model.parameters(), 3 * 9 * 16 + 2 * 16 + (16 * 3 * 16 + 16) + (16 * 10 + 10));
    assert_eq!(model.buffers(), 33);
    assert_eq!(model.cost().multiply_add, 2 * (27 * 16 * 1024 + 48 * 16 * 1024 + 160));
    assert_eq!(model.cost().pooling, 4 * 16 * 256 + 16 * 256);
}

#[test]
fn sizes_are_numbers_pairs_or_words() {
    let file = parse(
        r#"{ op = "conv2d", out = 1, kernel = [1, 7], stride = 2, padding = "same", dilation = [1, 2] },
           { op = "conv2d", out = 1, kernel = 1, padding = [0, 1, 2, 3] },
           { op = "max-pool", kernel = 3, stride = [2, 1], padding = "valid", ceil = true }"#,
    );
    let model = file.build().unwrap();
    let (kernel, stride, dilation, padding) = ((1, 7), (2, 2), (1, 2), Padding::Same);
    let conv = Conv2d { out: 1, kernel, stride, padding, dilation, groups: 1, bias: true };
    assert_eq!(model.layers()[1].op, Op::Conv2d(conv));
    let padding = Padding::Explicit { top: 0, bottom: 1, left: 2, right: 3 };
    let (kernel, stride, dilation) = ((1, 1), (1, 1), (1, 1));
    assert_eq!(model.layers()[2].op, Op::Conv2d(Conv2d { kernel, stride, dilation, padding, ..conv }));
    let again: ModelFile = toml::from_str(&toml::to_string(&file).unwrap()).unwrap();
    assert_eq!((again.name.as_str(), &again), ("custom", &file));
}

#[test]
fn what_cannot_be_read_is_refused_in_place() {
    let error = |layer: &str| {
        let text = format!("input = [3, 32, 32]\nlayers = [{layer}]");
        toml::from_str::<ModelFile>(&text).unwrap_err().to_string()
    };
    let message = error(r#"{ op = "conv2d", out = 1, kernel = -3 }"#);
    assert!(message.contains("expected a whole number, a list, true, false, or a formula"), "{message}");
    assert!(error(r#"{ op = "conv2d", output = 1 }"#).contains("unknown field `output`"));
}

const BLOCKS: &str = include_str!("blocks.toml");

#[test]
fn blocks_are_repeated_with_values_and_names_of_their_own() {
    let model = toml::from_str::<ModelFile>(BLOCKS).unwrap().build().unwrap();
    let layers: Vec<_> =
        model.layers().iter().map(|layer| format!("{} {:?}", layer.name, layer.inputs)).collect();
    let expected = [
        "input []",
        "stem [0]",
        "stage1.0.0 [1]",
        "stage1.0.1 [2]",
        "stage1.0 [3, 1]",
        "stage2.0.0 [4]",
        "stage2.0.1 [5]",
        "stage2.0.proj [4]",
        "stage2.0 [6, 7]",
        "stage2.1.0 [8]",
        "stage2.1.1 [9]",
        "stage2.1 [10, 8]",
    ];
    assert_eq!(layers, expected);
    assert_eq!(model.layers()[9].output.dims(), [64, 32, 32]);
    let wide =
        BLOCKS.replace("{ width = 16 }", "{ width = 24 }").replace("factor = [1, 2]", "factor = [1, 1]");
    let joined = toml::from_str::<ModelFile>(&wide).unwrap().build().unwrap();
    let last = joined.layers().last().unwrap();
    assert_eq!((last.name.as_str(), last.output.dims()), ("all", &[48, 32, 32][..]));
}

#[test]
fn what_blocks_cannot_do_is_told_where_it_stands() {
    for [from, to, path, reason] in test_cases(include_str!("refused_blocks.txt")) {
        let text = BLOCKS.replacen(from, to, 1);
        let fault = toml::from_str::<ModelFile>(&text).unwrap().build().unwrap_err();
        assert_eq!(fault.key.to_string(), path, "{to}: {fault}");
        assert!(fault.reason.contains(reason), "{to}: {fault}");
    }
}

#[test]
fn what_a_network_cannot_be_is_refused() {
    for [layers, path, reason] in test_cases(include_str!("refused.txt")) {
        let (at, said, remedy) = fault(layers);
        assert_eq!(at, path, "{layers}");
        assert!(said.ends_with(reason), "{layers}: {said}");
        assert!(!remedy.is_empty());
    }
    let empty: ModelFile = toml::from_str("input = []\nlayers = [{ op = \"relu\" }]").unwrap();
    let fault = empty.build().unwrap_err();
    assert_eq!(
        (fault.key.to_string().as_str(), fault.reason.as_str()),
        ("input", "[] is not the shape of a tensor")
    );
}

#[test]
fn every_operation_of_the_list_is_understood() {
    let one = || Some(Value::Number(1));
    let (size, shape, count) = (one(), Some([1][..].into()), one());
    let all = LayerFile {
        out: one(),
        kernel: one(),
        size,
        shape,
        depth: one(),
        count,
        width: one(),
        heads: one(),
        ..LayerFile::default()
    };
    for (op, _) in OPS.iter().filter(|(op, _)| *op != "input") {
        assert!(all.operation(op, &|value| Ok(value.clone())).is_ok(), "{op}");
    }
}

#[test]
fn counts_can_be_given() {
    let text = r#"
        input = [4, 8]
        layers = [
            { name = "mix", op = "counted", shape = [2, 16], cost = { multiply-add = 100, weights = 30, biases = 2 } },
            { name = "view", op = "counted", shape = [32] },
        ]"#;
    let model = toml::from_str::<ModelFile>(text).unwrap().build().unwrap();
    assert_eq!((model.cost().multiply_add, model.parameters()), (100, 32));
    let gradients: Vec<_> =
        model.gradients().into_iter().map(|gradient| (gradient.name, gradient.elements)).collect();
    assert_eq!(gradients, [("mix.weight".to_owned(), 30), ("mix.bias".to_owned(), 2)]);
    // Its input, and its output once, whatever views of it exist.
    assert_eq!(model.activation_bytes().get() as u64, 4 * 32 + 4 * 32);
    let again = toml::to_string(&ModelFile::from_model(&model)).unwrap();
    assert_eq!(toml::from_str::<ModelFile>(&again).unwrap().build().unwrap().layers(), model.layers());
}

#[test]
fn sparse_tables_have_rows_and_no_dense_twin() {
    let text = |out: u32, tied: &str| {
        format!(
            r#"
            input = [3]
            layers = [
                {{ name = "table", op = "embedding", count = 1000, width = 8, sparse = true }},
                {{ name = "out", op = "linear", out = {out}, bias = false{tied} }},
            ]"#
        )
    };
    let model = toml::from_str::<ModelFile>(&text(1, "")).unwrap().build().unwrap();
    let rows = model.gradients().into_iter().find_map(|gradient| gradient.rows).unwrap();
    assert_eq!((rows.count, rows.width, rows.lookups), (1000, 8, 3));
    assert!((model.updated(1e9) - model.parameters() as f64).abs() < 1e-6);
    assert!(model.updated(1.0) < 8.0 + 8.0 * 3.0);
    let dense = text(1, "").replace(", sparse = true", "");
    let dense = toml::from_str::<ModelFile>(&dense).unwrap().build().unwrap();
    let peak = |model: &Model| model.peak_memory(1, Precision::Fp32, Optimiser::Adam).get();
    // States are dense, the gradient is not: of 32 kB, three rows of 40 bytes are left, less those looked up twice.
    let saved = peak(&dense) - peak(&model);
    assert!(saved > 32_000.0 - 120.0 && saved < 32_000.0 - 119.0, "{saved}");
    let fault = toml::from_str::<ModelFile>(&text(1000, ", tied = true")).unwrap().build().unwrap_err();
    assert_eq!(fault.key.to_string(), "layers[1].tied");
    assert!(fault.reason.contains("sparse embedding"), "{fault}");
}
