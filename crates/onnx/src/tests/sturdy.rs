//! Files that are damaged, strange or hostile: one clear error, or a model with notes.

use super::{Sketch, value};
use crate::proto::AttributeProto;
use crate::recognises;
use stepcast_core::fault::Fault;

fn small() -> Sketch {
    Sketch::new(
        "x: n 3 8 8; conv.weight[4 3 3 3]; flat = 0 -1; fc.weight[144 10]; c = Conv(x conv.weight); r = Relu(c); \
         f = Reshape(r flat); y = MatMul(f fc.weight)",
    )
}

fn error(text: &str) -> Fault {
    Sketch::new(text).read("y").unwrap_err()
}

#[test]
fn unknown_operators_are_named_and_count_nothing() {
    let sketch = small().add("z = FancyOp(y); w = FancyOp(z)");
    let imported = sketch.clone().read("w").unwrap();
    let expected = "warning: the operator FancyOp is not known; the work of its 2 nodes was counted as zero";
    assert_eq!(imported.notes, [expected]);
    let known = small().read("y").unwrap();
    assert_eq!(imported.model.cost(), known.model.cost());
    // What needs the shape of its output says so, and where it was lost.
    let lost = sketch.clone().add("v = Relu(w)").read("v").unwrap_err();
    assert_eq!(lost.origin(), "m.onnx, node \"/v/Relu\" (Relu)");
    assert!(lost.reason.contains("\"/z/FancyOp\" (FancyOp) the operator is not known"), "{lost}");
    // A declared shape mends it.
    let mut declared = sketch.add("v = Relu(w)");
    declared.graph().values = vec![value("w", "n 5 7")];
    assert_eq!(declared.read("v").unwrap().model.cost().activation, known.model.cost().activation + 35);
}

#[test]
fn branches_are_named_even_if_only_their_bodies_read_samples() {
    let body = |op: &str| {
        let mut inside = Sketch::new(&format!("x: n 10; inner = {op}(y)"));
        AttributeProto { name: op.to_owned(), graph: Some(inside.graph().clone()), ..Default::default() }
    };
    // The file has the branch before what its bodies read.
    let mut sketch = Sketch::new("x: n 3 8 8; yes = 1; z = If(yes)");
    sketch.graph().nodes[0].attributes = vec![body("Relu"), body("Tanh")];
    let mut sketch = sketch.add("w[4 3 3 3]; y = Conv(x w); v = Relu(z)");
    sketch.graph().values = vec![value("z", "n 5 7")];
    let imported = sketch.read("v").unwrap();
    assert_eq!(
        imported.notes,
        ["warning: the operator If is not known; the work of its 1 node was counted as zero"]
    );
    let alone = Sketch::new("x: n 3 8 8; w[4 3 3 3]; y = Conv(x w)").read("y").unwrap().model.cost();
    assert_eq!(imported.model.cost().activation, alone.activation + 35);
}

#[test]
fn other_domains_are_unknown() {
    let mut sketch = small();
    sketch.graph().nodes[1].domain = "com.example".to_owned();
    sketch.graph().values = vec![value("r", "n 4 6 6")];
    let imported = sketch.read("y").unwrap();
    assert!(imported.notes[0].contains("com.example.Relu"), "{:?}", imported.notes);
}

#[test]
fn graphs_that_are_none_are_refused_with_their_place() {
    assert!(error("x: n 4; a = Add(x b); b = Relu(a); y = Relu(b)").reason.contains("cycle"));
    let missing = error("x: n 4; y = Add(x ghost)");
    assert_eq!(missing.origin(), "m.onnx, node \"/y/Add\" (Add)");
    assert!(missing.reason.contains("\"ghost\", which no node produces"), "{missing}");
    let twice = error("x: n 4; y = Relu(x); y = Tanh(x)");
    assert!(twice.reason.contains("another node produces too"), "{twice}");
    let constant = error("x: n 4; w = 1; y = Identity(w)");
    assert!(constant.reason.contains("do not depend on its inputs"), "{constant}");
    let unordered = Sketch::new("x: n 4; y = Relu(a); a = Tanh(x)");
    assert!(unordered.read("y").is_ok(), "order is mended");
}

#[test]
fn sizes_that_are_missing_or_do_not_fit_are_told() {
    let text = "x: batch sequence 4; w[4 8]; y = MatMul(x w)";
    let missing = error(text);
    assert_eq!(missing.origin(), "m.onnx, input \"x\"");
    assert!(missing.reason.contains("\"sequence\", which has no size"), "{missing}");
    assert!(missing.remedy.contains("sizes = { \"sequence\" = 128 }"), "{missing}");
    assert!(Sketch::new(text).read_with("y", &[("sequence", 7)]).is_ok());
    let unknown = Sketch::new(text).read_with("y", &[("sequence", 7), ("tokens", 7)]).unwrap_err();
    assert!(unknown.reason.contains("\"tokens\"") && unknown.remedy.contains("batch, sequence"), "{unknown}");
    let misfit = error("x: n 5; w[4 8]; y = MatMul(x w)");
    assert!(misfit.reason.contains("n×5") || misfit.reason.contains("batch×5 and 4×8"), "{misfit}");
    let mut shapeless = Sketch::new("x: n 5; y = Relu(x)");
    shapeless.graph().inputs[0].kind = None;
    assert!(shapeless.read("y").unwrap_err().reason.contains("its shape is not given"));
    let nameless = "x: ? 3 ? 8; y = Relu(x)";
    assert!(error(nameless).reason.contains("\"x.2\""));
    assert_eq!(Sketch::new(nameless).read_with("y", &[("x.2", 9)]).unwrap().model.input().dims(), [3, 9, 8]);
}

#[test]
fn absurd_sizes_are_refused() {
    for text in [
        "x: n MOST MOST; y = Relu(x)",
        "x: n 4; w[4 MOST]; y = MatMul(x w)",
        "x: n 4; w[4 -3]; y = MatMul(x w)",
        "x: n 4 4; s = MOST MOST 4; y = Expand(x s)",
        "x: n 1 4 4; w[1 1 2 2]; y = Conv(x w / pads=MOST MOST MOST MOST)",
        "x: n 1 4 4; w[1 1 2 2]; y = Conv(x w / strides=0 -1)",
        "x: n 4; s = 0 MOST; y = Reshape(x s)",
        "x: n 0 4; y = Relu(x)",
        "x: n 4; y = Transpose(x / perm=7 MOST)",
        "x: n 4; y = Unsqueeze(x / axes=ONES); z = Relu(y)",
        "x: n 4; w[ONES]; y = Mul(x w)",
    ] {
        let text = text.replace("MOST", &i64::MAX.to_string()).replace("ONES", "1 ".repeat(100).trim_end());
        let error = Sketch::new(&text).read("y").err().unwrap_or_else(|| panic!("{text} was read"));
        assert!(error.origin().starts_with("m.onnx") && !error.remedy.is_empty(), "{text}: {error}");
    }
}

/// Thirty thousand nodes of one name are read in a moment.
#[test]
fn large_graphs_are_read_in_time() {
    let started = std::time::Instant::now();
    let mut sketch = Sketch::new("x: n 4; t0 = Relu(x)");
    for place in 0..30_000 {
        let op = if place % 2 == 0 { "Identity" } else { "Relu" };
        sketch = sketch.add(&format!("t{} = {op}(t{place})", place + 1));
    }
    for node in &mut sketch.graph().nodes {
        node.name = "same".to_owned();
    }
    let model = sketch.read("t30000").unwrap().model;
    assert_eq!(model.layers().len(), 15_002);
    assert_eq!(model.layers()[3].name, "same_3");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn odd_versions_are_noted() {
    let mut sketch = small();
    sketch.model.opsets[0].version = 99;
    assert!(sketch.read("y").unwrap().notes[0].contains("version 99"));
    let mut sketch = small();
    sketch.model.opsets.clear();
    assert!(sketch.read("y").unwrap().notes[0].contains("does not say"));
}

#[test]
fn weights_that_nothing_uses_are_noted() {
    let imported = small().add("forgotten[10 10]").read("y").unwrap();
    assert!(imported.notes[0].contains("100 elements") && imported.notes[0].contains("forgotten"));
    assert_eq!(imported.model.parameters(), 4 * 27 + 1440);
}

#[test]
fn work_that_grows_with_the_square_of_the_batch_is_noted() {
    let imported = Sketch::new("x: n 8; t = Transpose(x); y = MatMul(x t)").read("y").unwrap();
    assert!(imported.notes[0].contains("grows faster than the batch"), "{:?}", imported.notes);
}

#[test]
fn models_are_known_by_their_first_bytes() {
    assert!(recognises(&small().bytes("y")));
    for other in [&b"{\"format\""[..], &[0x1f, 0x8b], &[0x0a, 0x10], b"", &[0x08]] {
        assert!(!recognises(other));
    }
}
