//! Custom models: valid input, rejected input, and error messages.

use super::*;
use crate::precision::Precision;
use crate::strategy::Optimiser;

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
    let file: ModelFile = toml::from_str(
        r#"
        name = "small"
        input = [3, 32, 32]
        layers = [
            { name = "a", op = "conv2d", out = 16, kernel = 3, padding = 1, bias = false },
            { op = "batch-norm" },
            { op = "relu" },
            { name = "b", op = "conv2d", out = 16, kernel = [1, 3], padding = [0, 1] },
            { op = "add", inputs = ["a", "b"] },
            { op = "max-pool", kernel = 2 },
            { op = "global-average-pool" },
            { op = "flatten" },
            { op = "linear", out = 10 },
        ]
        "#,
    )
    .unwrap();
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
    let [first, second, third] = &file.layers[..] else { panic!() };
    assert_eq!(first.kernel, Some(Pair { height: 1, width: 7 }));
    assert_eq!(first.stride, Some(Pair { height: 2, width: 2 }));
    assert_eq!(first.padding, Some(Padding::Same));
    assert_eq!(second.padding, Some(Padding::Explicit { top: 0, bottom: 1, left: 2, right: 3 }));
    assert_eq!(third.padding, Some(Padding::Valid));
    let again: ModelFile = toml::from_str(&toml::to_string(&file).unwrap()).unwrap();
    assert_eq!(again, file);
    assert_eq!(again.name, "custom");
}

#[test]
fn what_cannot_be_read_is_refused_in_place() {
    let error = |layer: &str| {
        let text = format!("input = [3, 32, 32]\nlayers = [{layer}]");
        toml::from_str::<ModelFile>(&text).unwrap_err().to_string()
    };
    let message = error(r#"{ op = "conv2d", out = 1, kernel = -3 }"#);
    assert!(message.contains("expected a number, or a pair [height, width]"), "{message}");
    let message = error(r#"{ op = "conv2d", out = 1, kernel = [1, 2, 3] }"#);
    assert!(message.contains("invalid length 3"), "{message}");
    let message = error(r#"{ op = "conv2d", out = 1, kernel = 1, padding = "most" }"#);
    assert!(message.contains("\"same\" or \"valid\""), "{message}");
    assert!(error(r#"{ op = "conv2d", output = 1 }"#).contains("unknown field `output`"));
    assert!(error(r#"{ op = "conv2d", kernel = "same" }"#).contains("expected a number"));
}

#[test]
fn errors_name_the_layer_the_key_and_the_sizes() {
    let (path, reason, _) = fault(
        r#"{ op = "conv2d", out = 8, kernel = 3, stride = 5 },
           { name = "conv2", op = "conv2d", out = 8, kernel = 11 }"#,
    );
    assert_eq!(path, "layers[1].kernel");
    assert_eq!(reason, "layer \"conv2\": kernel 11×11 does not fit into 6×6 with padding 0");

    let (path, reason, remedy) = fault(r#"{ op = "relu", kernel = 3 }"#);
    assert_eq!(path, "layers[0].kernel");
    assert_eq!(reason, "layer \"relu0\": kernel does not belong to relu");
    assert_eq!(remedy, "relu has no settings: remove kernel");

    let (path, reason, remedy) = fault(r#"{ op = "linear", out = 10, heads = 2 }"#);
    assert_eq!((path.as_str(), remedy.as_str()), ("layers[0].heads", "linear takes out, bias, tied"));
    assert_eq!(reason, "layer \"linear0\": heads does not belong to linear");

    let (path, reason, remedy) = fault(r#"{ op = "conv3d", out = 10 }"#);
    assert_eq!(path, "layers[0].op");
    assert_eq!(reason, "layer \"conv3d0\": there is no operation \"conv3d\"");
    assert!(remedy.starts_with("did you mean \"conv2d\"? the operations are input, conv2d"), "{remedy}");

    let (path, reason, _) = fault(r#"{ op = "conv2d", out = 10 }"#);
    assert_eq!((path.as_str(), reason.as_str()), ("layers[0]", "layer \"conv2d0\": conv2d needs kernel"));

    let (path, reason, remedy) = fault(r#"{ op = "linear", out = 10 }"#);
    assert_eq!(path, "layers[0]");
    assert_eq!(reason, "layer \"linear0\": a linear layer reads features or a sequence, not 3×32×32");
    assert_eq!(remedy, "put a flatten layer before it");
}

#[test]
fn what_a_network_cannot_be_is_refused() {
    let cases = [
        ("", "layers", "the model has no layers"),
        (r#"{ op = "conv2d", out = 8, kernel = 0 }"#, "layers[0].kernel", "a kernel of 0×0 makes no window"),
        (
            r#"{ op = "conv2d", out = 8, kernel = 1, stride = [1, 0] }"#,
            "layers[0].stride",
            "a stride of 1×0 makes no window",
        ),
        (r#"{ op = "conv2d", out = 0, kernel = 1 }"#, "layers[0].out", "out is 0"),
        (r#"{ op = "conv2d", out = 8, kernel = 1, groups = 0 }"#, "layers[0].groups", "groups is 0"),
        (
            r#"{ op = "conv2d", out = 8, kernel = 1, groups = 2 }"#,
            "layers[0].groups",
            "2 groups do not divide the 3 input channels",
        ),
        (
            r#"{ op = "conv2d", out = 9223372036854775807, kernel = 1 }"#,
            "layers[0]",
            "it is too large: a count does not fit into 64 bits",
        ),
        (
            r#"{ op = "relu" }, { op = "add", inputs = ["relu0", "relu1"] }"#,
            "layers[1].inputs",
            "there is no layer \"relu1\"",
        ),
        (
            r#"{ name = "a", op = "relu", inputs = ["b"] }, { name = "b", op = "relu" }"#,
            "layers[0].inputs",
            "it reads \"b\", which does not come before it",
        ),
        (
            r#"{ name = "a", op = "relu", inputs = ["a"] }"#,
            "layers[0].inputs",
            "it reads \"a\", which does not come before it",
        ),
        (
            r#"{ name = "a", op = "relu" }, { name = "a", op = "relu" }"#,
            "layers[1].name",
            "there is another layer of this name",
        ),
        (r#"{ name = "input", op = "relu" }"#, "layers[0].name", "there is another layer of this name"),
        (
            r#"{ op = "max-pool", kernel = 2 }, { op = "add", inputs = ["input", "max-pool0"] }"#,
            "layers[1].inputs",
            "3×32×32 and 3×16×16 cannot be added",
        ),
        (r#"{ op = "add" }"#, "layers[0]", "add reads one layer only"),
        (r#"{ op = "concat", inputs = [] }"#, "layers[0].inputs", "concat reads no layer"),
        (r#"{ op = "relu", inputs = ["input", "input"] }"#, "layers[0].inputs", "it reads 2 layers, not one"),
        (r#"{ op = "input", inputs = ["input"] }"#, "layers[0].inputs", "an input reads no other layer"),
        (r#"{ op = "input" }"#, "layers[0]", "input needs shape"),
        (r#"{ op = "input", shape = [0] }"#, "layers[0].shape", "[0] is not the shape of a tensor"),
        (
            r#"{ op = "to-sequence" }, { op = "attention", heads = 2 }"#,
            "layers[1].heads",
            "2 heads do not divide the width 1",
        ),
        (
            r#"{ op = "shortcut", out = 4, stride = [1, 2] }"#,
            "layers[0].stride",
            "a shortcut has one stride, not 1×2",
        ),
        (
            r#"{ op = "to-sequence" }, { op = "select-token", index = 1024 }"#,
            "layers[1].index",
            "there is no token 1024 in a sequence of 1024",
        ),
        (
            r#"{ op = "to-sequence" }, { op = "position-embedding", count = 512 }"#,
            "layers[1].count",
            "512 positions are fewer than the 1024 tokens of the sequence",
        ),
    ];
    for (layers, path, reason) in cases {
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
    for (op, _) in OPS.iter().filter(|(op, _)| *op != "input") {
        let layer = LayerFile {
            op: (*op).to_owned(),
            out: Some(4),
            kernel: Some(Pair { height: 1, width: 1 }),
            size: Some(Pair { height: 1, width: 1 }),
            depth: Some(1),
            count: Some(1),
            width: Some(1),
            heads: Some(1),
            ..LayerFile::default()
        };
        assert!(layer.operation().is_ok(), "{op}");
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
    let again = toml::to_string(&ModelFile::of(&model)).unwrap();
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
