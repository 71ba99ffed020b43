//! Layers that exporters take apart.

use super::Sketch;
use crate::ImportedModel;
use crate::proto::{FunctionProto, NodeProto};
use stepcast_core::model::{Activation, Norm, Op};

fn ops(imported: &ImportedModel) -> Vec<Op> {
    imported.model.layers().iter().skip(1).map(|layer| layer.op).collect()
}

fn sequence() -> Sketch {
    Sketch::new(&["n", "10", "16"])
        .real("half", 0.5)
        .real("one", 1.0)
        .real("two", 2.0)
        .real("three", 3.0)
        .real("six", 6.0)
        .real("zero", 0.0)
        .real("root", std::f32::consts::SQRT_2)
}

#[test]
fn chains_become_one_activation() {
    let gelu = sequence()
        .node("a", "Div", "x root")
        .node("b", "Erf", "a")
        .node("c", "Add", "b one")
        .node("d", "Mul", "x c")
        .node("y", "Mul", "d half");
    let tanh = sequence()
        .node("a", "Pow", "x three")
        .node("b", "Mul", "a half")
        .node("c", "Add", "x b")
        .node("d", "Tanh", "c")
        .node("e", "Add", "d one")
        .node("f", "Mul", "x half")
        .node("y", "Mul", "f e");
    let silu = sequence().node("a", "Sigmoid", "x").node("y", "Mul", "x a");
    let hardswish = sequence()
        .node("a", "Add", "x three")
        .node("b", "Clip", "a zero six")
        .node("c", "Div", "b six")
        .node("y", "Mul", "x c");
    let cases = [
        (gelu, Activation::Gelu),
        (tanh, Activation::Gelu),
        (silu, Activation::Silu),
        (hardswish, Activation::Hardswish),
    ];
    for (sketch, activation) in cases {
        assert_eq!(ops(&sketch.read("y").unwrap()), [Op::Activate(activation)]);
    }
    // What is read elsewhere too is computed on its own.
    let shared = sequence().node("a", "Sigmoid", "x").node("y", "Mul", "x a").read("y a").unwrap();
    assert_eq!(ops(&shared), [Op::Activate(Activation::Sigmoid), Op::Multiply]);
}

#[test]
fn a_layer_normalisation_is_put_together() {
    let sketch = sequence()
        .weight("ln.weight", &[16])
        .weight("ln.bias", &[16])
        .node_with("m", "ReduceMean", "x", &[("axes", &[-1])])
        .node("d", "Sub", "x m")
        .node("s", "Pow", "d two")
        .node_with("v", "ReduceMean", "s", &[("axes", &[-1])])
        .node("e", "Add", "v half")
        .node("r", "Sqrt", "e")
        .node("q", "Div", "d r")
        .node("w", "Mul", "q ln.weight")
        .node("y", "Add", "w ln.bias");
    let imported = sketch.read("y").unwrap();
    assert_eq!(ops(&imported), [Op::Normalise(Norm::Layer { affine: true })]);
    assert_eq!(imported.model.layers()[1].name, "ln");
}

#[test]
fn a_weight_that_is_used_twice_is_counted_once() {
    let sketch = Sketch::new(&["n", "10"])
        .weight("table.weight", &[50, 16])
        .weight("head.bias", &[50])
        .node("e", "Gather", "table.weight x")
        .node_with("t", "Transpose", "table.weight", &[("perm", &[1, 0])])
        .node("p", "MatMul", "e t")
        .node("y", "Add", "p head.bias");
    let imported = sketch.read("y").unwrap();
    let tied = Op::Linear { out: 50, bias: true, tied: true };
    assert_eq!(ops(&imported), [Op::Embedding { count: 50, width: 16, sparse: false }, tied]);
    assert_eq!(imported.model.parameters(), 50 * 16 + 50);
    // Two convolutions with one kernel: there is no operation for the second, but its work counts.
    let attributes: &[(&str, &[i64])] = &[("pads", &[1; 4])];
    let sketch = Sketch::new(&["n", "4", "8", "8"])
        .weight("w", &[4, 4, 3, 3])
        .node_with("a", "Conv", "x w", attributes)
        .node_with("y", "Conv", "a w", attributes);
    let model = sketch.read("y").unwrap().model;
    let (first, second) = (model.layers()[1].cost, model.layers()[2].cost);
    assert_eq!((first.weights, second.weights), (144, 0));
    assert_eq!(first.multiply_add, second.multiply_add);
}

/// Queries of four heads, keys and values of two, as large language models have them.
#[test]
fn attention_that_has_no_layer_of_its_own_is_counted() {
    let sketch = Sketch::new(&["n", "4", "10", "8"])
        .input("k", &["n", "1", "8", "10"])
        .input("v", &["n", "1", "10", "8"])
        .node("s", "MatMul", "x k")
        .node_with("p", "Softmax", "s", &[("axis", &[-1])])
        .node("y", "MatMul", "p v");
    let model = sketch.read("y").unwrap().model;
    let last = model.layers().last().unwrap();
    assert_eq!(last.cost.multiply_add, 2 * 4 * 10 * 10 * 16);
    assert_eq!(last.cost.activation, 85 * 4 * 100);
    assert!(matches!(last.op, Op::Counted(_)));
}

#[test]
fn a_mask_of_places_makes_an_attention_causal() {
    let qkv = |mask: bool| {
        let sketch = Sketch::new(&["n", "10", "24"])
            .weight("qkv.weight", &[24, 72])
            .real("scale", 0.3)
            .real("low", -1e9)
            .real("none", 0.0)
            .wholes("split", &[0, 0, 3, 3, 8])
            .wholes("merge", &[0, 0, 24])
            .wholes("rows", &[1])
            .wholes("columns", &[0])
            .wholes("begin", &[0])
            .wholes("ten", &[10])
            .wholes("step", &[1])
            .wholes("q", &[0])
            .wholes("k", &[1])
            .wholes("v", &[2])
            .wholes("axis", &[2])
            .node("a", "MatMul", "x qkv.weight")
            .node("b", "Reshape", "a split");
        let part = |sketch: Sketch, name: &str, order: &[i64]| {
            let (taken, squeezed) = (format!("{name}t"), format!("{name}s"));
            sketch
                .node_with(&taken, "Gather", &format!("b {name}"), &[("axis", &[2])])
                .node(&squeezed, "Squeeze", &format!("{taken} axis"))
                .node_with(&format!("{name}h"), "Transpose", &squeezed, &[("perm", order)])
        };
        let sketch = part(part(part(sketch, "q", &[0, 2, 1, 3]), "k", &[0, 2, 3, 1]), "v", &[0, 2, 1, 3]);
        let sketch = sketch
            .node("places", "Range", "begin ten step")
            .node("r", "Unsqueeze", "places rows")
            .node("c", "Unsqueeze", "places columns")
            .node("seen", "LessOrEqual", "c r")
            .node("bias", "Where", "seen none low")
            .node("scores", "MatMul", "qh kh")
            .node("scaled", "Mul", "scores scale");
        let sketch = if mask {
            sketch.node("m", "Add", "scaled bias")
        } else {
            sketch.node("m", "Identity", "scaled")
        };
        sketch
            .node_with("p", "Softmax", "m", &[("axis", &[-1])])
            .node("o", "MatMul", "p vh")
            .node_with("t", "Transpose", "o", &[("perm", &[0, 2, 1, 3])])
            .node("y", "Reshape", "t merge")
    };
    for causal in [false, true] {
        let imported = qkv(causal).read("y").unwrap();
        let linear = Op::Linear { out: 72, bias: false, tied: false };
        assert_eq!(ops(&imported), [linear, Op::Attention { heads: 3, causal }]);
    }
}

#[test]
fn functions_of_the_model_are_unfolded() {
    let node = |op: &str, inputs: &[&str], out: &str| NodeProto {
        op: op.to_owned(),
        inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
        outputs: vec![out.to_owned()],
        ..NodeProto::default()
    };
    let function = FunctionProto {
        name: "Swish".to_owned(),
        domain: "own".to_owned(),
        inputs: vec!["a".to_owned()],
        outputs: vec!["c".to_owned()],
        nodes: vec![node("Sigmoid", &["a"], "b"), node("Mul", &["a", "b"], "c")],
        defaults: Vec::new(),
    };
    let mut sketch = sequence().node("h", "Swish", "x").node("y", "Swish", "h");
    for call in &mut sketch.graph().nodes {
        call.domain = "own".to_owned();
    }
    sketch.model.functions = vec![function];
    let silu = Op::Activate(Activation::Silu);
    assert_eq!(ops(&sketch.read("y").unwrap()), [silu, silu]);
}

#[test]
fn a_fixed_batch_is_divided_out() {
    let build = |batch: &str| {
        Sketch::new(&[batch, "3", "8", "8"])
            .weight("conv.weight", &[4, 3, 3, 3])
            .weight("fc.weight", &[10, 144])
            .weight("fc.bias", &[10])
            .node("c", "Conv", "x conv.weight")
            .node("r", "Relu", "c")
            .node_with("f", "Flatten", "r", &[("axis", &[1])])
            .node_with("y", "Gemm", "f fc.weight fc.bias", &[("transB", &[1])])
    };
    let open = build("n").read("y").unwrap();
    let fixed = build("16").read("y").unwrap();
    assert_eq!(open.model.layers(), fixed.model.layers());
    assert_eq!(build("n").read_with("y", &[("n", 4)]).unwrap().model.layers(), open.model.layers());
    assert!(open.notes.is_empty());
    assert!(fixed.notes[0].contains("divided by 16"), "{:?}", fixed.notes);
}
