//! Costs and shapes of single operators against closed forms.

use super::Sketch;
use stepcast_core::model::{Cost, Model};

fn model(sketch: Sketch) -> Model {
    let imported = sketch.read("y").unwrap_or_else(|error| panic!("{error}"));
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    imported.model
}

fn last(model: &Model) -> (Vec<u64>, Cost) {
    let layer = model.layers().last().unwrap();
    (layer.output.dims().to_vec(), model.cost())
}

#[test]
fn convolutions_of_one_and_three_dimensions() {
    let sketch = Sketch::new(&["n", "4", "100"]).weight("w", &[6, 2, 5]).weight("b", &[6]);
    let (dims, cost) =
        last(&model(sketch.node_with("y", "Conv", "x w b", &[("group", &[2]), ("strides", &[2])])));
    assert_eq!(dims, [6, 48]);
    assert_eq!((cost.multiply_add, cost.bias), (2 * 2 * 5 * 6 * 48, 6 * 48));
    assert_eq!((cost.weights, cost.biases), (60, 6));
    let sketch = Sketch::new(&["n", "3", "8", "8", "8"]).weight("w", &[5, 3, 3, 3, 3]);
    let (dims, cost) = last(&model(sketch.node_with("y", "Conv", "x w", &[("pads", &[1; 6])])));
    assert_eq!((dims, cost.multiply_add), (vec![5, 8, 8, 8], 2 * 81 * 5 * 512));
}

#[test]
fn padding_may_be_left_to_the_operator() {
    let sketch = Sketch::new(&["n", "3", "7", "9"]).weight("w", &[2, 3, 3, 3]);
    let sketch = sketch.node_with("y", "Conv", "x w", &[("strides", &[2, 2])]).text("auto_pad", "SAME_UPPER");
    assert_eq!(last(&model(sketch)).0, [2, 4, 5]);
    let sketch = Sketch::new(&["n", "3", "7", "7"]);
    let attributes: &[(&str, &[i64])] =
        &[("kernel_shape", &[2, 2]), ("strides", &[2, 2]), ("ceil_mode", &[1])];
    let (dims, cost) = last(&model(sketch.node_with("y", "MaxPool", "x", attributes)));
    assert_eq!((dims, cost.pooling), (vec![3, 4, 4], 4 * 48));
}

#[test]
fn a_transposed_convolution_spreads_each_pixel() {
    let sketch = Sketch::new(&["n", "8", "5", "5"]).weight("w", &[8, 4, 3, 3]);
    let attributes: &[(&str, &[i64])] =
        &[("strides", &[2, 2]), ("pads", &[1, 1, 1, 1]), ("output_padding", &[1, 1])];
    let (dims, cost) = last(&model(sketch.node_with("y", "ConvTranspose", "x w", attributes)));
    assert_eq!((dims, cost.multiply_add), (vec![4, 10, 10], 2 * 8 * 25 * 4 * 9));
}

/// The same product in three ways.
#[test]
fn products_are_counted_alike() {
    let two = || Sketch::new(&["n", "7", "5"]).input("z", &["n", "5", "3"]);
    let expected = (vec![7, 3], 2 * 7 * 5 * 3);
    let measure = |sketch: Sketch| {
        let (dims, cost) = last(&model(sketch));
        (dims, cost.multiply_add)
    };
    assert_eq!(measure(two().node("y", "MatMul", "x z")), expected);
    assert_eq!(measure(two().node("y", "Einsum", "x z").text("equation", "bij, bjk -> bik")), expected);
    let weight = Sketch::new(&["n", "7", "5"]).weight("w", &[5, 3]).node("y", "MatMul", "x w");
    assert_eq!(measure(weight), expected);
    let outer = two().node("y", "Einsum", "x z").text("equation", "bij,bjk->bijk");
    assert_eq!(last(&model(outer)).1.elementwise, 7 * 5 * 3, "no index is summed");
}

/// Each gate multiplies the input and the state.
#[test]
fn recurrent_layers_grow_with_the_sequence() {
    for (op, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        let sketch = Sketch::new(&["20", "n", "10"])
            .weight("w", &[1, gates * 16, 10])
            .weight("r", &[1, gates * 16, 16])
            .weight("b", &[1, 2 * gates * 16])
            .node_with("y", op, "x w r b", &[("hidden_size", &[16])]);
        let cost = model(sketch).cost();
        let gates = gates as u64;
        assert_eq!(cost.multiply_add, 2 * 20 * gates * 16 * 26, "{op}");
        assert_eq!(cost.weights, gates * 16 * 26, "{op}");
        assert_eq!(cost.biases, 2 * gates * 16, "{op}");
    }
}

#[test]
fn shapes_are_computed_from_shapes() {
    let sketch = Sketch::new(&["n", "6", "4"])
        .wholes("zero", &[0])
        .wholes("rest", &[-1, 8])
        .node("shape", "Shape", "x")
        .node("batch", "Gather", "shape zero")
        .node_with("wanted", "Concat", "batch rest", &[("axis", &[0])])
        .node("r", "Reshape", "x wanted")
        .node("y", "Relu", "r");
    let (dims, cost) = last(&model(sketch));
    assert_eq!((dims, cost.activation), (vec![3, 8], 24));
}

#[test]
fn moving_costs_nothing() {
    let sketch = Sketch::new(&["n", "6", "4"])
        .wholes("from", &[1])
        .wholes("to", &[5])
        .wholes("axes", &[1])
        .node_with("t", "Transpose", "x", &[("perm", &[0, 2, 1])])
        .node("s", "Slice", "t from to axes")
        .node_with("a b", "Split", "s", &[("axis", &[2])])
        .node_with("c", "Concat", "a b", &[("axis", &[-1])])
        .node("y", "Identity", "c");
    let model = model(sketch);
    assert_eq!(model.cost(), Cost::default());
    assert_eq!(model.layers().last().unwrap().output.dims(), [3, 6]);
}

#[test]
fn attention_as_one_operator_is_an_attention() {
    let sketch =
        Sketch::new(&["n", "10", "24"]).input("k", &["n", "10", "24"]).input("v", &["n", "10", "24"]);
    let attributes: &[(&str, &[i64])] = &[("q_num_heads", &[3]), ("kv_num_heads", &[3]), ("is_causal", &[1])];
    let model = model(sketch.node_with("y", "Attention", "x k v", attributes));
    let pairs = 10 * 11 / 2;
    assert_eq!(model.cost().multiply_add, 2 * pairs * 48);
    assert_eq!(model.cost().activation, 85 * 3 * pairs);
}

#[test]
fn states_are_updated_by_outer_products() {
    let three =
        || Sketch::new(&["n", "10", "24"]).input("k", &["n", "10", "24"]).input("v", &["n", "10", "48"]);
    let heads: &[(&str, &[i64])] = &[("q_num_heads", &[3]), ("kv_num_heads", &[3])];
    let measure = |rule: &str| {
        let sketch = three().node_with("y", "LinearAttention", "x k v", heads).text("update_rule", rule);
        let (dims, cost) = last(&model(sketch));
        assert_eq!(dims, [10, 48]);
        (cost.multiply_add, cost.elementwise)
    };
    let cells = 10 * 3 * 8 * 16;
    assert_eq!(measure("linear"), (4 * cells, 0));
    assert_eq!(measure("gated_delta"), (6 * cells, cells));
}

#[test]
fn frames_of_a_signal_are_transformed() {
    let sketch = Sketch::new(&["n", "1024", "1"]).wholes("step", &[128]).wholes("length", &[256]);
    let mut sketch = sketch.node("y", "STFT", "x step window length");
    sketch.graph().nodes[0].inputs[2].clear();
    let (dims, cost) = last(&model(sketch));
    assert_eq!(dims, [7, 129, 2]);
    assert_eq!(cost.multiply_add, 7 * 256 * 5 * 8);
}
