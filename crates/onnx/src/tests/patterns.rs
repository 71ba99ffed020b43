//! Layers that exporters take apart.

use super::{Sketch, node};
use crate::ImportedModel;
use crate::proto::FunctionProto;
use stepcast_core::model::{Activation, Norm, Op};

fn ops(imported: &ImportedModel) -> Vec<Op> {
    imported.model.layers().iter().skip(1).map(|layer| layer.op).collect()
}

fn read(text: &str) -> ImportedModel {
    Sketch::new(text).read("y").unwrap()
}

const SEQUENCE: &str =
    "x: n 10 16; half = 0.5; one = 1.0; two = 2.0; three = 3.0; six = 6.0; zero = 0.0; root = 1.4142135";

#[test]
fn chains_become_one_activation() {
    for (chain, activation) in [
        ("a = Div(x root); b = Erf(a); c = Add(b one); d = Mul(x c); y = Mul(d half)", Activation::Gelu),
        (
            "a = Pow(x three); b = Mul(a half); c = Add(x b); d = Tanh(c); e = Add(d one); f = Mul(x half); y = Mul(f e)",
            Activation::Gelu,
        ),
        ("a = Sigmoid(x); y = Mul(x a)", Activation::Silu),
        ("a = Add(x three); b = Clip(a zero six); c = Div(b six); y = Mul(x c)", Activation::Hardswish),
    ] {
        assert_eq!(ops(&read(&format!("{SEQUENCE}; {chain}"))), [Op::Activate(activation)]);
    }
    // What is read elsewhere too is computed on its own.
    let shared = Sketch::new(SEQUENCE).add("a = Sigmoid(x); y = Mul(x a)").read("y a").unwrap();
    assert_eq!(ops(&shared), [Op::Activate(Activation::Sigmoid), Op::Multiply]);
}

#[test]
fn a_layer_normalisation_is_put_together() {
    let imported = read(&format!(
        "{SEQUENCE}; ln.weight[16]; ln.bias[16]; m = ReduceMean(x / axes=-1); d = Sub(x m); s = Pow(d two); \
         v = ReduceMean(s / axes=-1); e = Add(v half); r = Sqrt(e); q = Div(d r); w = Mul(q ln.weight); y = Add(w ln.bias)"
    ));
    assert_eq!(ops(&imported), [Op::Normalise(Norm::Layer { affine: true })]);
    assert_eq!(imported.model.layers()[1].name, "ln");
}

#[test]
fn a_weight_that_is_used_twice_is_counted_once() {
    let imported = read(
        "x: n 10; table.weight[50 16]; head.bias[50]; e = Gather(table.weight x); \
         t = Transpose(table.weight / perm=1 0); p = MatMul(e t); y = Add(p head.bias)",
    );
    let tied = Op::Linear { out: 50, bias: true, tied: true };
    assert_eq!(ops(&imported), [Op::Embedding { count: 50, width: 16, sparse: false }, tied]);
    assert_eq!(imported.model.parameters(), 50 * 16 + 50);
    // Two convolutions with one kernel: there is no operation for the second, but its work counts.
    let model =
        read("x: n 4 8 8; w[4 4 3 3]; a = Conv(x w / pads=1 1 1 1); y = Conv(a w / pads=1 1 1 1)").model;
    let (first, second) = (model.layers()[1].cost, model.layers()[2].cost);
    assert_eq!((first.weights, second.weights), (144, 0));
    assert_eq!(first.multiply_add, second.multiply_add);
}

/// Queries of four heads, keys and values of two, as large language models have them.
#[test]
fn attention_that_has_no_layer_of_its_own_is_counted() {
    let heads = "x: n 4 10 8; k: n 1 8 10; v: n 1 10 8";
    let model = read(&format!("{heads}; s = MatMul(x k); p = Softmax(s / axis=-1); y = MatMul(p v)")).model;
    let last = model.layers().last().unwrap();
    assert_eq!(last.cost.multiply_add, 2 * 4 * 10 * 10 * 16);
    assert_eq!(last.cost.activation, 85 * 4 * 100);
    assert!(matches!(last.op, Op::Counted(_)));
}

#[test]
fn a_mask_of_places_makes_an_attention_causal() {
    let constants = "qkv.weight[24 72]; scale = 0.3; low = -1e9; none = 0.0; split = 0 0 3 3 8; merge = 0 0 24; \
                     rows = 1; columns = 0; begin = 0; ten = 10; step = 1; q = 0; k = 1; v = 2; axis = 2";
    let part = |name: &str, order: &str| {
        format!(
            "{name}t = Gather(b {name} / axis=2); {name}s = Squeeze({name}t axis); {name}h = Transpose({name}s / perm={order})"
        )
    };
    let parts = [part("q", "0 2 1 3"), part("k", "0 2 3 1"), part("v", "0 2 1 3")].join("; ");
    let bias = "places = Range(begin ten step); r = Unsqueeze(places rows); c = Unsqueeze(places columns); \
                seen = LessOrEqual(c r); bias = Where(seen none low)";
    for (causal, masked) in [(false, "Identity(scaled)"), (true, "Add(scaled bias)")] {
        let imported = read(&format!(
            "x: n 10 24; {constants}; a = MatMul(x qkv.weight); b = Reshape(a split); {parts}; {bias}; \
             scores = MatMul(qh kh); scaled = Mul(scores scale); m = {masked}; p = Softmax(m / axis=-1); \
             o = MatMul(p vh); t = Transpose(o / perm=0 2 1 3); y = Reshape(t merge)"
        ));
        let linear = Op::Linear { out: 72, bias: false, tied: false };
        assert_eq!(ops(&imported), [linear, Op::Attention { heads: 3, causal }]);
    }
}

#[test]
fn functions_of_the_model_are_unfolded() {
    let function = FunctionProto {
        name: "Swish".to_owned(),
        domain: "own".to_owned(),
        inputs: vec!["a".to_owned()],
        outputs: vec!["c".to_owned()],
        nodes: vec![node("b", "Sigmoid", "a"), node("c", "Mul", "a b")],
        defaults: Vec::new(),
    };
    let mut sketch = Sketch::new(SEQUENCE).add("h = Swish(x); y = Swish(h)");
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
        Sketch::new(&format!(
            "x: {batch} 3 8 8; conv.weight[4 3 3 3]; fc.weight[10 144]; fc.bias[10]; c = Conv(x conv.weight); \
             r = Relu(c); f = Flatten(r / axis=1); y = Gemm(f fc.weight fc.bias / transB=1)"
        ))
    };
    let open = build("n").read("y").unwrap();
    let fixed = build("16").read("y").unwrap();
    assert_eq!(open.model.layers(), fixed.model.layers());
    assert_eq!(build("n").read_with("y", &[("n", 4)]).unwrap().model.layers(), open.model.layers());
    assert!(open.notes.is_empty());
    assert!(fixed.notes[0].contains("divided by 16"), "{:?}", fixed.notes);
}
