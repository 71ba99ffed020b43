//! Encoders with their decoders, patches and frames: operations, traffic, and what is not modelled.

use super::{held, plan};
use stepcast_analytic::transformer::flops::{self, Work};
use stepcast_analytic::transformer::traffic;
use stepcast_analytic::transformer::{LayerKind, Split, Transformer as Method};
use stepcast_core::method::Method as _;
use stepcast_core::model::Counting;
use stepcast_core::model::zoo;
use stepcast_core::scenario::Document;
use stepcast_core::strategy::{Implementation, Mask, Plan, Recomputed, States};

/// The forward pass of the layout of Hugging Face's library, product by product.
#[test]
fn both_stacks_and_their_cross_attention_are_counted() {
    for (name, sequence) in [("t5-base", 512), ("t5-v1.1-small", 1024)] {
        let shape = zoo::transformer(name).unwrap().with_sequence(sequence);
        let work = Work { sequence, batch: 1, mask: Mask::Causal };
        let counted = flops::layers(&shape, work, &(0..shape.layers)).forward() + flops::logits(&shape, work);
        let model = zoo::build_for(name, Some(sequence)).unwrap();
        assert_eq!(counted, model.forward(Counting::default()).get() as u128, "{name}");
    }
}

/// The forward pass of layouts of patches and frames, with conditions and the matrices before the first layer.
#[test]
fn signals_and_conditions_are_counted() {
    for name in ["dit-xl-2", "vit-h-14", "whisper-small", "sd3", "sd3.5"] {
        let shape = zoo::transformer(name).unwrap();
        let mask = if shape.causal { Mask::Causal } else { Mask::None };
        let work = Work { sequence: shape.sequence, batch: 1, mask };
        let layers = flops::layers(&shape, work, &(0..shape.layers)).forward();
        let counted = layers + flops::logits(&shape, work) + flops::signal(&shape, work)[0];
        let model = zoo::build(name).unwrap();
        assert_eq!(counted, model.forward(Counting::default()).get() as u128, "{name}");
    }
}

/// A layer of DiT keeps 40 bytes of a number between layers, as saved tensors of PyTorch 2.11 show (research/steps/signals.py).
#[test]
fn a_modulated_layer_keeps_what_pytorch_keeps() {
    let shape = zoo::transformer("dit-xl-2").unwrap();
    let plan = Plan { states: States::Bf16, ..plan(Implementation::HuggingFace) };
    let kept = held(&shape, &plan)
        .kept_by(LayerKind { block: shape.block(0), ..LayerKind::default() }, Recomputed::NONE);
    let each = kept.get() / (256.0 * 1152.0);
    assert!((each - 40.14).abs() < 0.1, "{each}");
}

#[test]
fn tensor_parallel_ranks_send_the_tokens_of_each_stack() {
    let shape = zoo::transformer("t5-base").unwrap();
    let split = Split { tensor: 2, ..Split::WHOLE };
    let sent = |index: u64| {
        let messages = traffic::tensor_layer(&shape, &split, 4, shape.block(index), Recomputed::NONE);
        messages.map(|message| message.count * message.bytes).sum::<u64>()
    };
    // Two halves forward and backward; self-attention of the decoder is one, cross-attention and the MLP are two.
    assert_eq!(sent(0), 4 * 4 * 512 * 768 * 2);
    assert_eq!(sent(12), 2 * 4 * 114 * 768 * 2);
    assert_eq!(sent(13), 4 * 4 * 114 * 768 * 2);
}

#[test]
fn ranks_divide_tensors_and_states_but_not_stacks() {
    let predict = |plan: &str| {
        let text = format!(
            "[model]\nzoo = \"t5-3b\"\n[[cluster.workers]]\ncount = 8\ndevice = \"h100\"\n[cluster.nodes]\nworkers = 8\n\
             [strategy.plan]\nglobal-batch = 64\nmicro-batch = 2\n{plan}\n"
        );
        let scenario = Document::new("t5", text).scenario(&[])?;
        let report = Method.predict(&scenario)?.transformer.unwrap();
        Ok::<f64, stepcast_core::fault::Fault>(report.stages[0].memory.total.get())
    };
    let whole = predict("").unwrap();
    assert!(predict("sharding = \"zero-3\"").unwrap() < 0.5 * whole);
    assert!(predict("tensor = 4").unwrap() < 0.5 * whole);
    assert_eq!(predict("pipeline = 2").unwrap_err().key.to_string(), "strategy.plan.pipeline");
    assert_eq!(predict("context = 2").unwrap_err().key.to_string(), "strategy.plan.context");
}
