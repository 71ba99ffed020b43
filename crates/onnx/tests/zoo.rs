//! Exported networks against the zoo and against what PyTorch counts.
//!
//! The files in `tests/models` have no weights; the command that made each, and PyTorch's counts of parameters and
//! operations, are beside it. Networks exported for training equal the zoo's in every count. Those exported for use have no dropout,
//! and equal what is left of the zoo's counts without it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::model::{Cost, Layer, Model, Op, zoo};
use stepcast_onnx::{ImportedModel, Options};

/// The files: zoo's name, how it was exported.
fn files() -> Vec<(String, String)> {
    let names = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let parts = |name: String| {
        let (name, how) = name.strip_suffix(".onnx.gz")?.rsplit_once('.')?;
        Some((name.to_owned(), how.to_owned()))
    };
    let files: Vec<_> = names.filter_map(parts).collect();
    assert!(files.len() > 20);
    files
}

fn path(name: &str, how: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(format!("{name}.{how}.onnx.gz"))
}

fn read(name: &str, how: &str, sizes: &[(&str, u64)]) -> Result<ImportedModel, Fault> {
    let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let packed = File::open(path(name, how)).unwrap();
    stepcast_onnx::read(
        BufReader::new(GzDecoder::new(packed)),
        name,
        &Options { sizes, ..Options::default() },
    )
}

/// The network with sequences as long as the zoo's, without a note.
fn imported(name: &str, how: &str) -> Model {
    let imported = read(name, how, &sequence(name)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.notes, Vec::<String>::new(), "{name} {how}");
    imported.model
}

fn sequence(name: &str) -> Vec<(&'static str, u64)> {
    match zoo::build(name).unwrap().input().dims() {
        [tokens] => vec![("sequence", *tokens)],
        _ => Vec::new(),
    }
}

fn provenance(name: &str, how: &str) -> Value {
    let path = path(name, how).with_extension("gz.provenance.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn dropout(model: &Model) -> u64 {
    let dropped = model.layers().iter().filter(|layer| layer.op == Op::Dropout);
    dropped.map(|layer| layer.cost.elementwise).sum()
}

fn sizes_of_gradients(model: &Model) -> Vec<u64> {
    model.gradients().iter().map(|gradient| gradient.elements).collect()
}

#[test]
fn every_count_is_that_of_the_zoo() {
    for (name, how) in &files() {
        let (model, expected) = (imported(name, how), zoo::build(name).unwrap());
        let trained = provenance(name, how)["made"]["mode"] == "train";
        let without = if trained { 0 } else { dropout(&expected) };
        let cost = Cost { elementwise: expected.cost().elementwise - without, ..expected.cost() };
        assert_eq!(model.cost(), cost, "{name} {how}");
        assert_eq!(sizes_of_gradients(&model), sizes_of_gradients(&expected), "{name} {how}: gradients");
        assert_eq!(model.input_bytes(), expected.input_bytes(), "{name} {how}: inputs");
    }
}

/// `torch.utils.flop_counter` counts products and convolutions, and all pairs of a causal attention.
#[test]
fn counts_agree_with_those_of_pytorch() {
    for (name, how) in &files() {
        let (model, counted) = (imported(name, how), &provenance(name, how)["counted"]);
        assert_eq!(counted["parameters"], model.parameters(), "{name} {how}");
        assert_eq!(counted["tensors"], model.gradients().len(), "{name} {how}");
        let unseen: u64 = model.layers().iter().map(unseen_pairs).sum();
        assert_eq!(counted["flops"], model.cost().multiply_add + unseen, "{name} {how}");
    }
}

/// Operations on the pairs that a causal attention leaves out: later keys.
fn unseen_pairs(layer: &Layer) -> u64 {
    match (layer.op, layer.output.dims()) {
        (Op::Attention { causal: true, .. }, &[tokens, width]) => 2 * tokens * (tokens - 1) / 2 * 2 * width,
        _ => 0,
    }
}

/// What is exported for training has the zoo's layers one by one, whatever they are called.
#[test]
fn layers_are_those_of_the_zoo() {
    for name in ["alexnet", "vgg16", "resnet50", "densenet121", "mobilenet-v2", "inception-v3"] {
        let (model, expected) = (imported(name, "script17"), zoo::build(name).unwrap());
        let kinds = |model: &Model| {
            let none = "Explicit { top: 0, bottom: 0, left: 0, right: 0 }";
            let kind = |layer: &Layer| format!("{:?} {}", layer.op, layer.output).replace(none, "Valid");
            let mut layers: Vec<String> = model.layers().iter().map(kind).collect();
            layers.sort();
            layers
        };
        assert_eq!(model.layers().len(), expected.layers().len(), "{name}");
        assert_eq!(kinds(&model), kinds(&expected), "{name}");
        assert_eq!(model.activation_bytes(), expected.activation_bytes(), "{name}");
    }
    let names =
        |model: &Model| model.gradients().iter().map(|gradient| gradient.name.clone()).collect::<Vec<_>>();
    let (model, expected) = (imported("resnet50", "script17"), zoo::build("resnet50").unwrap());
    assert_eq!(names(&model), names(&expected));
}

#[test]
fn counts_of_a_sample_do_not_depend_on_the_batch() {
    for (name, how) in
        [("resnet50", "script17"), ("vit-b-16", "dynamo"), ("bert-base", "script17"), ("gpt2", "dynamo")]
    {
        let open = imported(name, how);
        for batch in [1, 2, 6] {
            let mut sizes = sequence(name);
            sizes.push(("batch", batch));
            let fixed = read(name, how, &sizes).unwrap().model;
            assert_eq!(fixed.cost(), open.cost(), "{name} {how}, batch {batch}");
        }
    }
}

/// Attention grows with the square of the sequence, the pooler not at all, all else in proportion.
#[test]
fn sequences_may_have_any_length() {
    let zoo = zoo::build("bert-base").unwrap();
    for (tokens, how) in [(32, "script17"), (256, "script17"), (256, "dynamo"), (512, "script14")] {
        let model = read("bert-base", how, &[("sequence", tokens)]).unwrap().model;
        let expected = zoo.layers().iter().map(|layer| match layer.op {
            Op::Attention { .. } => layer.cost.multiply_add * tokens * tokens / (128 * 128),
            _ if layer.name.starts_with("pooler") => layer.cost.multiply_add,
            _ => layer.cost.multiply_add * tokens / 128,
        });
        assert_eq!(model.cost().multiply_add, expected.sum::<u64>(), "{tokens} tokens, {how}");
        assert_eq!(model.parameters(), zoo.parameters());
    }
    let error = read("bert-base", "script17", &[]).unwrap_err();
    assert!(error.reason.contains("\"sequence\", which has no size"), "{error}");
}

/// Every beginning of a file is refused, with the place where it ends.
#[test]
fn files_that_are_cut_short_are_refused() {
    let packed = std::fs::read(path("vgg16", "script17")).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        let read = stepcast_onnx::read(&bytes[..length], "vgg16.onnx", &Options::default());
        let error = read.err().unwrap_or_else(|| panic!("{length} bytes were enough"));
        assert!(error.origin().starts_with("vgg16.onnx") && !error.remedy.is_empty(), "{error}");
    }
}
