//! The loss of a language model: bytes that its logits need, and what its passes over them take.

use crate::resolved;
use stepcast_analytic::transformer::compute::{Parts, Product, Shard, Software};
use stepcast_analytic::transformer::flops::Work;
use stepcast_analytic::transformer::{LayerKind, Split, Transformer};
use stepcast_core::machine::catalog;
use stepcast_core::method::Method;
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::prior::Priors;
use stepcast_core::strategy::{Implementation, Loss, Mask, Plan};

fn predicted(loss: &str) -> (stepcast_core::prediction::Prediction, Plan) {
    let text = format!(
        "[model]\nzoo = \"llama3-8b\"\nsequence = 1024\n[[cluster.workers]]\ncount = 1\ndevice = \"h200-sxm\"\n[strategy]\n\
         precision = \"bf16\"\n[strategy.plan]\nglobal-batch = 8\nmicro-batch = 8\nimplementation = \"pytorch\"\n{loss}"
    );
    let scenario = resolved(text, &[]);
    let prediction = Transformer.predict(&scenario).unwrap();
    (prediction, scenario.strategy.plan.unwrap())
}

/// Eager PyTorch needs 4 + 8 bytes of a logit, a compiled loss 2 + 2, a chunked one 2 for one logit of ⌈V/h⌉.
#[test]
fn losses_keep_their_bytes() {
    let shape = zoo::transformer("llama3-8b").unwrap();
    let chunks = 128_256_f64.div_euclid(4096.0) + 1.0;
    for (loss, bytes) in
        [(Loss::Eager, [4.0, 8.0]), (Loss::Compiled, [2.0, 2.0]), (Loss::Chunked, [0.0, 2.0 / chunks])]
    {
        assert_eq!(loss.logit(Implementation::Pytorch, &shape), bytes, "{loss}");
        let (prediction, plan) = predicted(&format!("loss = \"{loss}\""));
        assert_eq!(plan.logit(&shape), bytes, "{loss}");
        assert!(prediction.iteration.get() > 0.0);
    }
    assert_eq!(predicted("loss = \"eager\"").0, predicted("").0);
}

/// With T tokens, V logits of each and a rate r of memory, passes take 22·T·V/r forward and 20·T·V/r backward, compiled 10
/// and 8; a chunked loss takes 6 forward and nothing backward, beside products of T/⌈V/h⌉ tokens.
#[test]
fn losses_pass_over_their_bytes() {
    let shape = zoo::transformer("llama3-8b").unwrap();
    let (_, plan) = predicted("");
    let device = catalog::device("h200-sxm").unwrap();
    let priors = Priors::shipped().unwrap().transformer;
    let software = Software::eager(Precision::Bf16);
    let parts = Parts::new(&device, device.peak(Precision::Bf16).unwrap(), 1.0, software, &priors);
    let work = Work { sequence: 1024, batch: 8, mask: Mask::Causal };
    let whole = Shard::new(&shape, &plan, &Split::WHOLE, LayerKind::default(), false, work);
    let (tokens, vocabulary, hidden) = (8192.0, shape.vocabulary as f64, shape.hidden as f64);
    let head = |loss| parts.head(&Shard { loss: Some(loss), ..whole }, vocabulary);
    let passes = |bytes: f64| bytes * tokens * vocabulary / (priors.memory * device.memory_rate.get());
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");

    let [eager, compiled, chunked] = [Loss::Eager, Loss::Compiled, Loss::Chunked].map(head);
    near((eager.forward.device - compiled.forward.device).get(), passes(22.0 - 10.0));
    near((eager.input.device - compiled.input.device).get(), passes(20.0 - 8.0));
    assert_eq!(eager.weight, compiled.weight);

    let chunks = Loss::chunks(&shape, tokens);
    let product =
        |rows: f64, columns: f64, depth: f64| parts.product(&Product::new(rows, columns, depth)).get();
    let each = chunks * product(tokens / chunks, hidden, vocabulary) - product(tokens, hidden, vocabulary);
    let more = parts.starting(chunks - 1.0).get();
    near((compiled.input.device - chunked.input.device).get(), passes(8.0) - each - more);
    let at_once = chunked.in_forward();
    near(
        at_once.forward.device.get(),
        (chunked.forward.device + chunked.input.device + chunked.weight.device).get(),
    );
    assert_eq!((at_once.input, at_once.weight), Default::default());
}
