//! Custom models: valid input, rejected input, error messages, and how models are written.

use super::built;
use crate::{in_a_file, test_cases};
use stepcast_core::fault::Fault;
use stepcast_core::model::{Conv2d, LayerFile, Model, ModelFile, OPS, Op, Padding, zoo};
use stepcast_core::precision::Precision;
use stepcast_core::strategy::Optimiser;
use stepcast_core::text;

fn parse(layers: &str) -> ModelFile {
    text::parse(&format!("input = [3, 32, 32]\nlayers = [{layers}]")).unwrap()
}

/// The same model from its text.
fn written(model: &Model) -> Model {
    built(&in_a_file(&ModelFile::from_model(model)))
}

/// The path, reason and remedy of the error for these layers.
fn fault(layers: &str) -> (String, String, String) {
    let fault = parse(layers).build().unwrap_err();
    (fault.key.to_string(), fault.reason, fault.remedy.to_string())
}

#[test]
fn a_small_network_is_built_and_counted() {
    let model = built(include_str!("../../models/small.toml"));
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
    let again: ModelFile = text::parse(&in_a_file(&file)).unwrap();
    assert_eq!((again.name.as_str(), &again), ("custom", &file));
}

#[test]
fn what_cannot_be_read_is_refused_in_place() {
    let error = |layer: &str| {
        let text = format!("input = [3, 32, 32]\nlayers = [{layer}]");
        text::parse::<ModelFile>(&text).unwrap_err().to_string()
    };
    let message = error(r#"{ op = "conv2d", out = 1, kernel = -3 }"#);
    assert!(message.contains("expected a whole number, a list, true, false, or a formula"), "{message}");
    assert!(error(r#"{ op = "conv2d", output = 1 }"#).contains("unknown field `output`"));
}

const BLOCKS: &str = include_str!("../../models/blocks.toml");

#[test]
fn blocks_are_repeated_with_values_and_names_of_their_own() {
    let model = built(BLOCKS);
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
    let joined = built(&wide);
    let last = joined.layers().last().unwrap();
    assert_eq!((last.name.as_str(), last.output.dims()), ("all", &[48, 32, 32][..]));
}

#[test]
fn what_blocks_cannot_do_is_told_where_it_stands() {
    for [from, to, path, reason] in test_cases(include_str!("../../models/refused_blocks.txt")) {
        let text = BLOCKS.replacen(from, to, 1);
        let fault = text::parse::<ModelFile>(&text).unwrap().build().unwrap_err();
        assert_eq!(fault.key.to_string(), path, "{to}: {fault}");
        assert!(fault.reason.contains(reason), "{to}: {fault}");
    }
}

#[test]
fn what_a_network_cannot_be_is_refused() {
    for [layers, path, reason] in test_cases(include_str!("../../models/refused.txt")) {
        let (at, said, remedy) = fault(layers);
        assert_eq!(at, path, "{layers}");
        assert!(said.ends_with(reason), "{layers}: {said}");
        assert!(!remedy.is_empty());
    }
    let empty: ModelFile = text::parse("input = []\nlayers = [{ op = \"relu\" }]").unwrap();
    let fault = empty.build().unwrap_err();
    assert_eq!(
        (fault.key.to_string().as_str(), fault.reason.as_str()),
        ("input", "[] is not the shape of a tensor")
    );
}

#[test]
fn every_operation_of_the_list_is_understood() {
    for (op, keys) in OPS {
        let one = |key: &&str| match *key {
            "shape" => "shape = [1]".to_owned(),
            "cost" => "cost = { bias = 1 }".to_owned(),
            "bias" | "tied" | "ceil" | "affine" | "sparse" | "causal" => format!("{key} = true"),
            _ => format!("{key} = 1"),
        };
        let settings: Vec<String> = keys.iter().map(one).collect();
        let layer = format!("{{ op = \"{op}\", {} }}", settings.join(", "));
        let file: ModelFile = text::parse(&format!("input = [1, 8, 8]\nlayers = [{layer}]")).unwrap();
        let fault = file.build().err();
        // Some do not read an image, which says nothing about their settings.
        assert!(fault.as_ref().is_none_or(|fault| fault.key == "layers[0]"), "{op}: {fault:?}");
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
    let model = built(text);
    assert_eq!((model.cost().multiply_add, model.parameters()), (100, 32));
    let gradients: Vec<_> =
        model.gradients().into_iter().map(|gradient| (gradient.name, gradient.elements)).collect();
    assert_eq!(gradients, [("mix.weight".to_owned(), 30), ("mix.bias".to_owned(), 2)]);
    // Its input, and its output once, whatever views of it exist.
    assert_eq!(model.activation_bytes().get() as u64, 4 * 32 + 4 * 32);
    assert_eq!(written(&model).layers(), model.layers());
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
    let model = built(&text(1, ""));
    let rows = model.gradients().into_iter().find_map(|gradient| gradient.rows).unwrap();
    assert_eq!((rows.count, rows.width, rows.lookups), (1000, 8, 3));
    assert!((model.updated(1e9) - model.parameters() as f64).abs() < 1e-6);
    assert!(model.updated(1.0) < 8.0 + 8.0 * 3.0);
    let dense = text(1, "").replace(", sparse = true", "");
    let dense = built(&dense);
    let peak = |model: &Model| model.peak_memory(1, Precision::Fp32, Optimiser::Adam).get();
    // States are dense, the gradient is not: of 32 kB, three rows of 40 bytes are left, less those looked up twice.
    let saved = peak(&dense) - peak(&model);
    assert!(saved > 32_000.0 - 120.0 && saved < 32_000.0 - 119.0, "{saved}");
    let fault = text::parse::<ModelFile>(&text(1000, ", tied = true")).unwrap().build().unwrap_err();
    assert_eq!(fault.key.to_string(), "layers[1].tied");
    assert!(fault.reason.contains("sparse embedding"), "{fault}");
}

#[test]
fn the_zoo_reads_what_is_written() {
    for name in zoo::names() {
        let model = zoo::build(name).unwrap();
        assert_eq!(written(&model).layers(), model.layers(), "{name}");
    }
}

const BRANCH: &str = include_str!("../../models/branch.toml");

fn replaced(first: usize, layers: &str) -> Result<(ModelFile, Model), Fault> {
    #[derive(serde::Deserialize)]
    struct Layers {
        layers: Vec<LayerFile>,
    }
    let layers: Layers = text::parse(layers).unwrap();
    text::parse::<ModelFile>(BRANCH).unwrap().replaced(first, layers.layers)
}

#[test]
fn the_replacement_reads_what_the_first_replaced_layer_read() {
    let (_, model) = replaced(5, r#"layers = [{ op = "relu" }]"#).unwrap();
    assert_eq!(model.layers()[5].inputs, [4]);
    let (_, model) = replaced(4, r#"layers = [{ op = "add" }, { op = "relu" }]"#).unwrap();
    assert_eq!(model.layers()[4].inputs, [2, 3]);
}

#[test]
fn what_cannot_be_put_in_place_is_told_where_it_stands() {
    let wrong = |first, layers| {
        let error = replaced(first, layers).unwrap_err();
        (error.key.to_string(), error.reason)
    };
    let (path, reason) = wrong(3, r#"layers = [{ op = "relu" }]"#);
    assert_eq!((path.as_str(), reason.contains("the layer \"b\"")), ("layers", true), "{reason}");
    let (path, _) = wrong(5, r#"layers = [{ op = "relu" }, { op = "conv2d", out = 0, kernel = 1 }]"#);
    assert_eq!(path, "layers[1].out");
    let (path, _) = wrong(4, r#"layers = [{ op = "relu" }]"#);
    assert_eq!(path, "layers[0].inputs");
    assert_eq!(wrong(5, "layers = []").1, "there is nothing to put in place");
    assert_eq!(wrong(0, r#"layers = [{ op = "relu" }]"#).1, "the input cannot be replaced");
}

/// A model with one layer that counts what `cost` says, where a few names have values.
fn counted(layer: &str) -> Result<Model, String> {
    let layer = format!("{{ op = \"counted\", shape = [1], {layer} }}");
    let file = format!("input = [3, 224]\nwith = {{ width = 64, kind = \"basic\" }}\nlayers = [{layer}]");
    text::parse::<ModelFile>(&file).unwrap().build().map_err(|fault| fault.reason)
}

fn number(formula: &str) -> Result<u64, String> {
    counted(&format!("name = \"a\", cost = {{ bias = \"{formula}\" }}")).map(|model| model.cost().bias)
}

#[test]
fn formulas_follow_the_usual_precedence() {
    let numbers = [
        ("4 * width", 256),
        ("1 + 2 * 3 - 4 / 2", 5),
        ("(1 + 2) * 3", 9),
        ("20 - 5 - 5", 10),
        ("input[0] * input[2 - 1]", 672),
        ("30_522", 30_522),
    ];
    for (text, expected) in numbers {
        assert_eq!(number(text), Ok(expected), "{text}");
    }
    let truths = [("width > 64", false), ("width >= 64 && 1 != 2", true), ("kind == kind || 1 > 2", true)];
    for (text, truth) in truths {
        let model = counted(&format!("when = \"{text}\"")).unwrap();
        assert_eq!(model.layers().len() > 1, truth, "{text}");
    }
    let named = counted("name = \"{kind}.{width / 2}{{}}\"").unwrap();
    assert_eq!(named.layers()[1].name, "basic.32{}");
}

#[test]
fn what_is_no_formula_is_refused() {
    let cases = [
        ("4 *", "\"4 *\" is no formula"),
        ("(1", "\"(1\" is no formula"),
        ("1 2", "\"1 2\" is no formula"),
        ("*", "\"*\" is no formula"),
        ("2 * depth", "there is no value \"depth\""),
        ("input[2]", "\"input[2]\" asks for dimension 2 of \"input\", which does not exist"),
        ("1 - 2", "\"1 - 2\" is negative"),
        ("1 / 0", "\"1 / 0\" divides by 0"),
        ("kind + 1", "\"kind + 1\" has no numbers around +"),
        ("18446744073709551615 + 1", "it is too large: a count does not fit into 64 bits"),
    ];
    for (text, reason) in cases {
        assert_eq!(number(text), Err(format!("layer \"a\": {reason}")), "{text}");
    }
    assert!(number(&"(".repeat(300)).unwrap_err().ends_with("is too long"));
    assert!(counted("name = \"a{depth}\"").is_err());
    assert!(counted("name = \"a}\"").is_err());
}
