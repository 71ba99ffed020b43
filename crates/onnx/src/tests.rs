//! Small graphs by hand: costs and shapes of single operators against closed forms, layers of patterns, and messages about unusable files.

mod sturdy;

use crate::proto::{
    AttributeProto, Dimension, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSet, TensorProto,
    TensorShape, TensorType, TypeProto, ValueInfo, element,
};
use crate::{ImportedModel, Options, read};
use prost::Message;
use stepcast_core::fault::Fault;
use stepcast_core::model::{Activation, Cost, Model, Norm, Op};

/// A graph in few words, divided by semicolons: `x: n 4` is an input whose words are open dimensions (`?` has no name),
/// `w[4 8]` a weight, `axes = 0 1` a constant, `y = Conv(x w / pads=1 1 / auto_pad=VALID)` a node with its attributes.
#[derive(Clone)]
struct Sketch {
    model: ModelProto,
}

impl Sketch {
    fn new(text: &str) -> Self {
        let opset = OperatorSet { domain: String::new(), version: 17 };
        let graph = Some(GraphProto::default());
        let model = ModelProto { ir_version: 8, opsets: vec![opset], graph, ..ModelProto::default() };
        Self { model }.add(text)
    }

    fn add(mut self, text: &str) -> Self {
        let graph = self.graph();
        for statement in text.split(';').map(str::trim) {
            if let Some((name, dims)) = statement.split_once(": ") {
                graph.inputs.push(value(name, dims));
            } else if let Some((outputs, made)) = statement.split_once(" = ") {
                match made.strip_suffix(')').and_then(|call| call.split_once('(')) {
                    Some((op, arguments)) => graph.nodes.push(node(outputs, op, arguments)),
                    None => graph.initializers.push(constant(outputs, made)),
                }
            } else if let Some((name, dims)) = statement.split_once('[') {
                let dims = wholes(dims.trim_end_matches(']')).unwrap();
                let name = name.to_owned();
                let weight = TensorProto { name, dims, data_type: element::FLOAT, ..TensorProto::default() };
                graph.initializers.push(weight);
            }
        }
        self
    }

    fn graph(&mut self) -> &mut GraphProto {
        self.model.graph.get_or_insert_default()
    }

    fn bytes(mut self, outputs: &str) -> Vec<u8> {
        let outputs = outputs.split_whitespace();
        self.graph().outputs = outputs.map(|name| ValueInfo { name: name.to_owned(), kind: None }).collect();
        self.model.encode_to_vec()
    }

    fn read(self, outputs: &str) -> Result<ImportedModel, Fault> {
        self.read_with(outputs, &[])
    }

    fn read_with(self, outputs: &str, sizes: &[(&str, u64)]) -> Result<ImportedModel, Fault> {
        let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        read(&self.bytes(outputs)[..], "m.onnx", &Options { sizes, ..Options::default() })
    }
}

fn wholes(text: &str) -> Option<Vec<i64>> {
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

fn constant(name: &str, text: &str) -> TensorProto {
    let name = name.to_owned();
    match wholes(text) {
        Some(longs) => {
            let dims = vec![longs.len() as i64];
            TensorProto { name, dims, data_type: element::INT64, longs, ..TensorProto::default() }
        }
        None => {
            let floats = vec![text.parse().unwrap()];
            TensorProto { name, data_type: element::FLOAT, floats, ..TensorProto::default() }
        }
    }
}

fn node(outputs: &str, op: &str, arguments: &str) -> NodeProto {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let attribute = |text: &str| {
        let (name, value) = text.split_once('=').unwrap();
        let own = AttributeProto { name: name.to_owned(), ..AttributeProto::default() };
        match wholes(value) {
            Some(ints) => AttributeProto { int: ints.first().copied().unwrap_or(0), ints, ..own },
            None => AttributeProto { text: value.into(), ..own },
        }
    };
    let mut parts = arguments.split(" / ");
    NodeProto {
        inputs: words(parts.next().unwrap_or_default()),
        outputs: words(outputs),
        name: format!("/{outputs}/{op}"),
        op: op.to_owned(),
        attributes: parts.map(attribute).collect(),
        ..NodeProto::default()
    }
}

fn value(name: &str, dims: &str) -> ValueInfo {
    let dim = |text: &str| match text.parse() {
        Ok(value) => Dimension { value: Some(value), name: String::new() },
        Err(_) => Dimension { value: None, name: text.replace('?', "") },
    };
    let shape = TensorShape { dims: dims.split(' ').map(dim).collect() };
    let kind = TypeProto { tensor: Some(TensorType { shape: Some(shape) }) };
    ValueInfo { name: name.to_owned(), kind: Some(kind) }
}

fn model(sketch: Sketch) -> Model {
    let imported = sketch.read("y").unwrap_or_else(|error| panic!("{error}"));
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    imported.model
}

fn last(model: &Model) -> (Vec<u64>, Cost) {
    let layer = model.layers().last().unwrap();
    (layer.output.dims().to_vec(), model.cost())
}

fn measured(text: &str) -> (Vec<u64>, Cost) {
    last(&model(Sketch::new(text)))
}

#[test]
fn convolutions_of_one_and_three_dimensions() {
    let (dims, cost) = measured("x: n 4 100; w[6 2 5]; b[6]; y = Conv(x w b / group=2 / strides=2)");
    assert_eq!(dims, [6, 48]);
    assert_eq!((cost.multiply_add, cost.bias), (2 * 2 * 5 * 6 * 48, 6 * 48));
    assert_eq!((cost.weights, cost.biases), (60, 6));
    let (dims, cost) = measured("x: n 3 8 8 8; w[5 3 3 3 3]; y = Conv(x w / pads=1 1 1 1 1 1)");
    assert_eq!((dims, cost.multiply_add), (vec![5, 8, 8, 8], 2 * 81 * 5 * 512));
}

#[test]
fn padding_may_be_left_to_the_operator() {
    let same = "x: n 3 7 9; w[2 3 3 3]; y = Conv(x w / strides=2 2 / auto_pad=SAME_UPPER)";
    assert_eq!(measured(same).0, [2, 4, 5]);
    let (dims, cost) = measured("x: n 3 7 7; y = MaxPool(x / kernel_shape=2 2 / strides=2 2 / ceil_mode=1)");
    assert_eq!((dims, cost.pooling), (vec![3, 4, 4], 4 * 48));
}

#[test]
fn a_transposed_convolution_spreads_each_pixel() {
    let spread = "y = ConvTranspose(x w / strides=2 2 / pads=1 1 1 1 / output_padding=1 1)";
    let (dims, cost) = measured(&format!("x: n 8 5 5; w[8 4 3 3]; {spread}"));
    assert_eq!((dims, cost.multiply_add), (vec![4, 10, 10], 2 * 8 * 25 * 4 * 9));
}

/// The same product in three ways.
#[test]
fn products_are_counted_alike() {
    for text in [
        "x: n 7 5; z: n 5 3; y = MatMul(x z)",
        "x: n 7 5; z: n 5 3; y = Einsum(x z / equation=bij, bjk -> bik)",
        "x: n 7 5; w[5 3]; y = MatMul(x w)",
    ] {
        let (dims, cost) = measured(text);
        assert_eq!((dims, cost.multiply_add), (vec![7, 3], 2 * 7 * 5 * 3), "{text}");
    }
    let outer = measured("x: n 7 5; z: n 5 3; y = Einsum(x z / equation=bij,bjk->bijk)");
    assert_eq!(outer.1.elementwise, 7 * 5 * 3, "no index is summed");
}

/// Each gate multiplies the input and the state.
#[test]
fn recurrent_layers_grow_with_the_sequence() {
    for (op, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        let rows = gates * 16;
        let weights = format!("w[1 {rows} 10]; r[1 {rows} 16]; b[1 {}]", 2 * rows);
        let (_, cost) = measured(&format!("x: 20 n 10; {weights}; y = {op}(x w r b / hidden_size=16)"));
        assert_eq!(cost.multiply_add, 2 * 20 * rows * 26, "{op}");
        assert_eq!((cost.weights, cost.biases), (rows * 26, 2 * rows), "{op}");
    }
}

#[test]
fn shapes_are_computed_from_shapes() {
    let (dims, cost) = measured(
        "x: n 6 4; zero = 0; rest = -1 8; shape = Shape(x); batch = Gather(shape zero); \
         wanted = Concat(batch rest / axis=0); r = Reshape(x wanted); y = Relu(r)",
    );
    assert_eq!((dims, cost.activation), (vec![3, 8], 24));
}

#[test]
fn moving_costs_nothing() {
    let (dims, cost) = measured(
        "x: n 6 4; from = 1; to = 5; axes = 1; t = Transpose(x / perm=0 2 1); s = Slice(t from to axes); \
         a b = Split(s / axis=2); c = Concat(a b / axis=-1); y = Identity(c)",
    );
    assert_eq!((dims, cost), (vec![3, 6], Cost::default()));
}

#[test]
fn attention_as_one_operator_is_an_attention() {
    let attention = "y = Attention(x k v / q_num_heads=3 / kv_num_heads=3 / is_causal=1)";
    let (_, cost) = measured(&format!("x: n 10 24; k: n 10 24; v: n 10 24; {attention}"));
    let pairs = 10 * 11 / 2;
    assert_eq!((cost.multiply_add, cost.activation), (2 * pairs * 48, 85 * 3 * pairs));
}

#[test]
fn states_are_updated_by_outer_products() {
    let measure = |rule: &str| {
        let attention =
            format!("LinearAttention(x k v / q_num_heads=3 / kv_num_heads=3 / update_rule={rule})");
        let (dims, cost) = measured(&format!("x: n 10 24; k: n 10 24; v: n 10 48; y = {attention}"));
        assert_eq!(dims, [10, 48]);
        (cost.multiply_add, cost.elementwise)
    };
    let cells = 10 * 3 * 8 * 16;
    assert_eq!(measure("linear"), (4 * cells, 0));
    assert_eq!(measure("gated_delta"), (6 * cells, cells));
}

#[test]
fn frames_of_a_signal_are_transformed() {
    let mut sketch = Sketch::new("x: n 1024 1; step = 128; length = 256; y = STFT(x step window length)");
    sketch.graph().nodes[0].inputs[2].clear();
    let (dims, cost) = last(&model(sketch));
    assert_eq!((dims, cost.multiply_add), (vec![7, 129, 2], 7 * 256 * 5 * 8));
}

// Layers that exporters take apart.

fn ops(imported: &ImportedModel) -> Vec<Op> {
    imported.model.layers().iter().skip(1).map(|layer| layer.op).collect()
}

fn read_model(text: &str) -> ImportedModel {
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
        assert_eq!(ops(&read_model(&format!("{SEQUENCE}; {chain}"))), [Op::Activate(activation)]);
    }
    // What is read elsewhere too is computed on its own.
    let shared = Sketch::new(SEQUENCE).add("a = Sigmoid(x); y = Mul(x a)").read("y a").unwrap();
    assert_eq!(ops(&shared), [Op::Activate(Activation::Sigmoid), Op::Multiply]);
}

#[test]
fn a_layer_normalisation_is_put_together() {
    let imported = read_model(&format!(
        "{SEQUENCE}; ln.weight[16]; ln.bias[16]; m = ReduceMean(x / axes=-1); d = Sub(x m); s = Pow(d two); \
         v = ReduceMean(s / axes=-1); e = Add(v half); r = Sqrt(e); q = Div(d r); w = Mul(q ln.weight); y = Add(w ln.bias)"
    ));
    assert_eq!(ops(&imported), [Op::Normalise(Norm::Layer { affine: true })]);
    assert_eq!(imported.model.layers()[1].name, "ln");
}

#[test]
fn a_weight_that_is_used_twice_is_counted_once() {
    let imported = read_model(
        "x: n 10; table.weight[50 16]; head.bias[50]; e = Gather(table.weight x); \
         t = Transpose(table.weight / perm=1 0); p = MatMul(e t); y = Add(p head.bias)",
    );
    let tied = Op::Linear { out: 50, bias: true, tied: true };
    assert_eq!(ops(&imported), [Op::Embedding { count: 50, width: 16, sparse: false }, tied]);
    assert_eq!(imported.model.parameters(), 50 * 16 + 50);
    // Two convolutions with one kernel: there is no operation for the second, but its work counts.
    let model =
        read_model("x: n 4 8 8; w[4 4 3 3]; a = Conv(x w / pads=1 1 1 1); y = Conv(a w / pads=1 1 1 1)")
            .model;
    let (first, second) = (model.layers()[1].cost, model.layers()[2].cost);
    assert_eq!((first.weights, second.weights), (144, 0));
    assert_eq!(first.multiply_add, second.multiply_add);
}

/// Queries of four heads, keys and values of two, as large language models have them.
#[test]
fn attention_that_has_no_layer_of_its_own_is_counted() {
    let heads = "x: n 4 10 8; k: n 1 8 10; v: n 1 10 8";
    let model =
        read_model(&format!("{heads}; s = MatMul(x k); p = Softmax(s / axis=-1); y = MatMul(p v)")).model;
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
        let imported = read_model(&format!(
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
