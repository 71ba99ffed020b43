//! What is sent: collectives and their bytes.

use super::flops::recomputed;
use super::{near, number, of_kind, shape, truth, word};
use serde_json::Value;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::traffic::{self, Message, Phase, Reduction, Widths};
use stepcast_core::model::transformer::Block;
use stepcast_core::model::zoo;
use stepcast_core::strategy::{Recomputed, Sharding};

pub(super) const GOLDEN: &str = include_str!("../../../../../validation/transformer/comm.json");

pub(super) fn split(case: &Value) -> Split {
    let ranks = |key: &str| case[key].as_u64().unwrap_or(1);
    Split {
        tensor: ranks("tp"),
        sequence_parallel: truth(case, "sp"),
        context: ranks("cp"),
        pipeline: ranks("pp"),
        chunks: ranks("chunks"),
        data: ranks("dp"),
        expert: ranks("ep"),
    }
}

fn phase(word: &str) -> Phase {
    match word {
        "forward" => Phase::Forward,
        "backward" => Phase::Backward,
        "backward-weight" => Phase::BackwardWeight,
        "backward-dkv" => Phase::BackwardKeyValue,
        "recompute" => Phase::Recompute,
        other => panic!("{other}"),
    }
}

#[track_caller]
fn same(found: Vec<Message>, case: &Value) {
    let expect = case["expect"].as_array().unwrap();
    assert_eq!(found.len(), expect.len(), "{case}: {found:?}");
    for message in expect {
        let known = found.iter().find(|known| {
            known.collective == word(&message["collective"])
                && message["phase"].as_str().is_none_or(|word| known.phase == phase(word))
        });
        let known = known.unwrap_or_else(|| panic!("{case}: no {message}"));
        assert_eq!(
            (known.count, known.bytes),
            (number(message, "count"), number(message, "bytes")),
            "{case}"
        );
        assert!(message["ranks"].as_u64().is_none_or(|ranks| known.ranks == ranks), "{case}");
        near(known.wire().get(), &message["wire"], "wire");
    }
    near(found.iter().map(|message| message.wire().get()).sum(), &case["wire_total"], "all");
}

#[test]
fn tensor_parallel_layers() {
    let cases = of_kind(GOLDEN, "tp-layer");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let shape = shape(&case, "seq");
        let recompute = recomputed(&case["recompute"]);
        let found = traffic::tensor_layer(
            &shape,
            &split(&case),
            number(&case, "micro_batch"),
            Block::DENSE,
            recompute.into(),
        );
        same(found.collect(), &case);
    }
}

/// Attention has its pair, routed experts none, a shared expert its own.
#[test]
fn experts_take_half_of_the_tensor_parallel_traffic() {
    let split = Split { tensor: 2, ..Split::WHOLE };
    let count = |name: &str, block: Block| -> u64 {
        let shape = zoo::transformer(name).unwrap();
        let none = Recomputed::NONE;
        traffic::tensor_layer(&shape, &split, 1, block, none).map(|message| message.count).sum()
    };
    assert_eq!(count("mixtral-8x7b", Block::EXPERTS), 2);
    assert_eq!(count("deepseek-moe-16b", Block::EXPERTS), 4);
    assert_eq!(count("deepseek-moe-16b", Block::DENSE), 4);
    // Other mixers have attention's pair; a layer of one half has one.
    let next = zoo::transformer("qwen3-next-80b-a3b").unwrap();
    assert_eq!(count("qwen3-next-80b-a3b", next.block(0)), count("qwen3-next-80b-a3b", next.block(3)));
    let nemotron = zoo::transformer("nemotron-h-8b").unwrap();
    assert_eq!([0, 1, 7].map(|index| count("nemotron-h-8b", nemotron.block(index))), [2; 3]);
}

#[test]
fn context_parallel_layers() {
    let cases = of_kind(GOLDEN, "cp-layer");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let (shape, split) = (shape(&case, "seq"), split(&case));
        let exchange = word(&case["exchange"]);
        let none = Recomputed::NONE;
        let found = traffic::context_layer(&shape, &split, number(&case, "micro_batch"), exchange, none);
        same(found.collect(), &case);
    }
}

#[test]
fn pipeline_boundaries() {
    let cases = of_kind(GOLDEN, "pp-boundary");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let split = split(&case);
        let tokens = number(&case, "seq") * number(&case, "micro_batch") / split.context;
        let states = tokens * number(&case, "hidden") * 2;
        let found = traffic::boundary(states, &split, truth(&case, "scatter_gather"));
        let expect = &case["expect"];
        assert_eq!(found.bytes, number(expect, "bytes_per_send"));
        assert_eq!(found.gathered, number(expect, "all_gather_after"));
        assert_eq!(found.inner_sends, number(expect, "sends_per_inner_rank_per_micro_batch"));
        assert_eq!(found.boundaries, number(expect, "boundaries"));
        let sent = |sends: u64| found.bytes * sends * number(&case, "micro_batches");
        let step = &expect["sent_per_step"];
        assert_eq!(sent(found.end_sends), number(step, "first"));
        assert_eq!(sent(found.end_sends), number(step, "last"));
        assert!(step["inner"].is_null() || sent(found.inner_sends) == number(step, "inner"));
    }
}

#[test]
fn data_parallel_steps() {
    let cases = of_kind(GOLDEN, "dp-step");
    assert_eq!(cases.len(), 10);
    for case in cases {
        let sharding = match case["scheme"].as_str().unwrap() {
            "ddp" => Sharding::None,
            "zero1" => Sharding::Zero1,
            "zero2" => Sharding::Zero2,
            "zero3" => Sharding::Zero3,
            "fsdp-keep" => Sharding::Keep,
            "hsdp" => Sharding::Hsdp,
            other => panic!("{other}"),
        };
        let reduction =
            Reduction { sharding, ranks: number(&case, "ranks"), copies: number(&case, "replicas") };
        let widths =
            Widths { gradient: number(&case, "gradient_bytes"), weight: number(&case, "weight_bytes") };
        let m = number(&case, "micro_batches");
        same(traffic::data_step(reduction, number(&case, "parameters"), m, widths).collect(), &case);
    }
}

#[test]
fn expert_parallel_layers() {
    let cases = of_kind(GOLDEN, "ep-layer");
    assert_eq!(cases.len(), 5);
    for case in cases {
        let recompute = recomputed(&case["recompute"]);
        let shape = shape(&case, "seq");
        let found =
            traffic::expert_layer(&shape, &split(&case), number(&case, "micro_batch"), recompute.into())
                .unwrap();
        let (expect, skew) = (&case["expect"], case["skew"].as_f64().unwrap());
        assert_eq!((found.count, found.bytes), (number(expect, "all_to_alls"), number(expect, "bytes_held")));
        let each = Message { count: 1, ..found };
        near(skew * each.wire().get(), &expect["wire_each_hottest"], "each");
        near(skew * found.wire().get(), &expect["wire_total_hottest"], "all");
    }
}

#[test]
fn vocabularies() {
    let cases = of_kind(GOLDEN, "vocabulary");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let (shape, split, expect) = (shape(&case, "seq"), split(&case), &case["expect"]);
        let found = traffic::vocabulary(&shape, &split, number(&case, "tokens")).unwrap();
        for (message, key) in
            [(found.embedding, "embedding_forward"), (found.logits, "logits_backward"), (found.loss, "loss")]
        {
            assert_eq!(message.collective, word(&expect[key]["collective"]));
            assert_eq!(message.bytes, number(&expect[key], "bytes"));
            assert_eq!(message.count, expect[key]["count"].as_u64().unwrap_or(1));
        }
        let tied = traffic::tied_gradient(&shape, &split);
        assert_eq!(tied.map(|message| message.bytes), expect["tied_gradient"]["bytes"].as_u64());
        assert_eq!(tied.map(|message| message.ranks), expect["tied_gradient"]["ranks"].as_u64());
    }
}
