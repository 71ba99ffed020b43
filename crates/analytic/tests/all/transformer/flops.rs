//! Operations: layers, steps, utilisation, capacity.

use super::{near, number, of_kind, shape, truth, word};
use stepcast_analytic::transformer::flops::{self, LayerFlops, Work};
use stepcast_core::model::transformer::{Block, Transformer};
use stepcast_core::quantity::{FlopsPerSec, Seconds};
use stepcast_core::strategy::{Attention, Mask, Recompute};

const GOLDEN: &str = include_str!("../../../../../validation/transformer/flops.json");

#[track_caller]
fn same(found: u128, expected: &serde_json::Value, what: &str) {
    assert_eq!(found, u128::from(expected.as_u64().unwrap()), "{what}");
}

#[test]
fn layers_are_the_golden_ones() {
    let cases = of_kind(GOLDEN, "layer");
    assert_eq!(cases.len(), 15);
    for case in cases {
        let shape = shape(&case, "seq");
        let mask = match case["mask"].as_str().unwrap() {
            "window" => Mask::Causal,
            _ => word(&case["mask"]),
        };
        let work = Work { sequence: number(&case, "seq"), batch: number(&case, "batch"), mask };
        let layer = LayerFlops::new(&shape, shape.block(shape.layers - 1), case["window"].as_u64(), work);
        let (expect, name) = (&case["expect"], case["model"].as_str().unwrap());
        let parts = [
            ("qkv", layer.qkv),
            ("scores", layer.scores),
            ("values", layer.values),
            ("out", layer.output),
            ("mlp", layer.mlp),
            ("router", layer.router),
            ("experts", layer.experts),
            ("shared", layer.shared),
        ];
        for (part, found) in parts {
            assert_eq!(found, u128::from(expect["forward"][part].as_u64().unwrap_or(0)), "{name}: {part}");
        }
        same(layer.forward(), &expect["forward_total"], name);
        same(layer.linear(), &expect["backward_input"], name);
        same(layer.backward_weight(), &expect["backward_weight"], name);
        same(2 * layer.core(), &expect["backward_attention"], name);
        same(layer.backward(Attention::Unfused), &expect["backward_total"], name);
        same(layer.backward(Attention::Flash), &expect["backward_total_flash"], name);
    }
}

#[test]
fn steps_are_the_golden_ones() {
    let cases = of_kind(GOLDEN, "step");
    assert_eq!(cases.len(), 9);
    for case in cases {
        let shape = shape(&case, "seq");
        let batch = number(&case, "global_batch");
        let work = Work { sequence: shape.sequence, batch, mask: word(&case["mask"]) };
        let (expect, name) = (&case["expect"], case["model"].as_str().unwrap());
        let step = |recompute: Recompute, attention| {
            flops::step(&shape, work, (recompute.into(), Some(0..shape.layers)), attention)
        };
        same(step(Recompute::None, Attention::Unfused).model, &expect["model"], name);
        if case.get("recompute").is_none() {
            let hardware = |recompute| step(recompute, Attention::Unfused).hardware;
            same(hardware(Recompute::Attention), &expect["hardware_selective"], name);
            same(hardware(Recompute::Layer), &expect["hardware_full"], name);
            let core = flops::layers(&shape, work, &(0..shape.layers)).core();
            let printed = step(Recompute::None, Attention::Unfused).model + 3 * core;
            same(printed, &expect["hardware_selective_as_printed"], name);
        } else {
            let recompute = recomputed(&case["recompute"]);
            let attention = if truth(&case, "flash") { Attention::Flash } else { Attention::Unfused };
            same(step(recompute, attention).hardware, &expect["hardware"], name);
            let tokens = batch * shape.sequence;
            same(6 * u128::from(shape.active_parameters()) * u128::from(tokens), &expect["six_n_d"], name);
        }
    }
}

/// The golden files' words.
pub(super) fn recomputed(word: &serde_json::Value) -> Recompute {
    match word.as_str().unwrap_or("none") {
        "none" => Recompute::None,
        "selective" => Recompute::Attention,
        "full" => Recompute::Layer,
        other => panic!("{other}"),
    }
}

#[test]
fn utilisations_are_those_printed() {
    let cases = of_kind(GOLDEN, "utilisation");
    assert_eq!(cases.len(), 5);
    for case in cases {
        let (expect, name) = (&case["expect"], case["model"].as_str().unwrap());
        let peak = FlopsPerSec::new(1e12 * case["peak_tflops"].as_f64().unwrap());
        let gpus = number(&case, "gpus");
        let [mfu, hfu] = match case["seconds"].as_f64() {
            Some(seconds) => {
                let shape = shape(&case, "seq");
                let work =
                    Work { sequence: shape.sequence, batch: number(&case, "global_batch"), mask: Mask::None };
                let step = flops::step(
                    &shape,
                    work,
                    (Recompute::Attention.into(), Some(0..shape.layers)),
                    Attention::Unfused,
                );
                let share =
                    |operations| 100.0 * flops::utilisation(operations, Seconds::new(seconds), gpus, peak);
                let core = flops::layers(&shape, work, &(0..shape.layers)).core();
                near(share(step.model + 3 * core), &expect["hfu_as_printed"], name);
                [share(step.model), share(step.hardware)]
            }
            // llm-foundry: 3 or 4 times (2N + 4·L·h·s) for each token, whatever the mask.
            None => {
                let each = 2 * number(&case, "parameters")
                    + 4 * number(&case, "layers") * number(&case, "hidden") * number(&case, "seq");
                let a_second = u128::from(each * number(&case, "tokens_per_second"));
                let share =
                    |operations| 100.0 * flops::utilisation(operations, Seconds::new(1.0), gpus, peak);
                [share(3 * a_second), share(4 * a_second)]
            }
        };
        near(mfu, &expect["mfu"], name);
        near(hfu, &expect["hfu"], name);
        let (printed, tolerance) = (&case["printed"], case["tol_printed"].as_f64().unwrap());
        assert!((mfu - printed["mfu"].as_f64().unwrap()).abs() <= tolerance, "{name}");
        let hfu = expect["hfu_as_printed"].as_f64().unwrap_or(hfu);
        assert!((hfu - printed["hfu"].as_f64().unwrap()).abs() <= tolerance, "{name}");
    }
}

#[test]
fn capacities_are_the_golden_ones() {
    let cases = of_kind(GOLDEN, "capacity");
    assert_eq!(cases.len(), 5);
    for case in cases {
        let (tokens, active) = (number(&case, "tokens"), number(&case, "topk"));
        let slots = flops::slots(tokens, number(&case, "experts"), active, case["capacity_factor"].as_f64());
        assert_eq!(slots.capacity, case["expect"]["capacity"].as_u64());
        assert_eq!(slots.slots, number(&case["expect"], "slots"));
        assert_eq!(
            (tokens * active).saturating_sub(slots.slots),
            number(&case["expect"], "drops_if_balanced")
        );
    }
}

/// Layers with a window in every second layer are the mean of both kinds.
#[test]
fn windows_count_in_their_layers() {
    let gemma = stepcast_core::model::zoo::transformer("gemma2-9b").unwrap();
    let work = Work { sequence: 8192, batch: 1, mask: Mask::Causal };
    let all = flops::layers(&gemma, work, &(0..gemma.layers));
    let with = LayerFlops::new(&gemma, Block::DENSE, gemma.window, work);
    let without = LayerFlops::new(&gemma, Block::DENSE, None, work);
    assert!(with.scores < without.scores);
    assert_eq!(all.scores, 21 * with.scores + 21 * without.scores);
    let one_by_one = (0..gemma.layers).fold(LayerFlops::default(), |sum, index| {
        sum.plus(&LayerFlops::new(&gemma, Block::DENSE, gemma.window_of(index), work), 1)
    });
    assert_eq!(all, one_by_one);
}

/// A module for a second token passes the output layer once more, and joins two vectors of the hidden width.
#[test]
fn further_tokens_have_logits_and_a_projection() {
    let one = Transformer::llama(4, 512, [8, 8], 2048, 32000, 1024);
    let two = Transformer { multi_token: 1, ..one };
    let work = Work { sequence: 1024, batch: 2, mask: Mask::Causal };
    let [single, double] = [one, two].map(|shape| flops::logits(&shape, work));
    assert_eq!(double, 2 * single + 2 * 2048 * 512 * 1024);
}
