//! What is sent: bytes by collective, seats of groups, times on two levels.

use super::flops::recomputed;
use super::{near, number, of_kind, shape, truth, word};
use proptest::prelude::*;
use serde_json::Value;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::placement::{FULL, Group, Links, Route, Seats, Torus};
use stepcast_analytic::transformer::traffic::{self, Collective, Message, Phase, Reduction, Widths};
use stepcast_core::machine::{FabricLevel, MAX_LEVELS};
use stepcast_core::model::transformer::Block;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::strategy::Sharding;

const GOLDEN: &str = include_str!("../../../../../validation/transformer/comm.json");

fn split(case: &Value) -> Split {
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
        let none = stepcast_core::strategy::Recomputed::NONE;
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
        let none = stepcast_core::strategy::Recomputed::NONE;
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

const GROUPS: [(&str, Group); 5] = [
    ("tp", Group::Tensor),
    ("cp", Group::Context),
    ("dp", Group::Data),
    ("pp", Group::Pipeline),
    ("dp*cp", Group::DataContext),
];

#[test]
fn groups_sit_where_the_golden_cases_have_them() {
    let cases = of_kind(GOLDEN, "placement");
    assert_eq!(cases.len(), 10);
    for case in cases {
        for (key, group) in GROUPS {
            let expect = &case["expect"][key];
            let found = group.seats(&split(&case), number(&case, "node"));
            let seats = Seats {
                size: number(expect, "size"),
                per_node: number(expect, "ranks_per_node"),
                nodes: number(expect, "nodes"),
                ..found
            };
            assert_eq!(found, seats, "{key} of {case}");
        }
    }
}

#[test]
fn collectives_take_the_golden_times() {
    let cases = of_kind(GOLDEN, "collective-time");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let real = |key: &str| case[key].as_f64().unwrap();
        let links = Links {
            within: BytesPerSec::new(real("nvlink")),
            within_latency: Seconds::new(real("latency_nvlink")),
            between: BytesPerSec::new(real("nic")),
            own_part: BytesPerSec::new(f64::INFINITY),
            between_latency: Seconds::new(real("latency_nic")),
            between_message: Seconds::new(real("latency_nic")),
            within_start: Seconds::ZERO,
            between_start: Seconds::ZERO,
            torus: None,
            switch_sums: 1.0,
            trees: true,
            levels: [FULL; MAX_LEVELS],
        };
        let (size, per_node) = (number(&case, "ranks"), number(&case, "ranks_per_node"));
        let seats = Seats { size, per_node, nodes: size / per_node, apart: 1 };
        let route = if case["algorithm"] == "flat" { Route::Flat } else { Route::Hierarchical };
        let of: Collective = word(&case["collective"]);
        let time = links.time(of, seats, Bytes::new(real("bytes")), route);
        near(time.get(), &case["expect_seconds"], &case.to_string());
    }
}

fn some_links() -> Links {
    Links {
        within: BytesPerSec::new(2e11),
        within_latency: Seconds::new(3e-6),
        between: BytesPerSec::new(1.25e10),
        own_part: BytesPerSec::new(f64::INFINITY),
        between_latency: Seconds::new(12e-6),
        between_message: Seconds::new(12e-6),
        within_start: Seconds::ZERO,
        between_start: Seconds::ZERO,
        torus: None,
        switch_sums: 1.0,
        trees: true,
        levels: [FULL; MAX_LEVELS],
    }
}

/// Small sums over many nodes go along trees, where the software has them: two steps a doubling, not two a node.
#[test]
fn small_sums_go_along_trees() {
    let links = Links { within_latency: Seconds::ZERO, ..some_links() };
    let seats = Seats { size: 64, per_node: 1, nodes: 64, apart: 1 };
    let time = |links: &Links, of, size: f64, route| links.time(of, seats, Bytes::new(size), route).get();
    let steps = |of, route| time(&links, of, 1.0, route) / links.between_latency.get();
    assert!((steps(Collective::AllReduce, Route::Hierarchical) - 126.0).abs() < 1e-3);
    assert!((steps(Collective::AllReduce, Route::Trees) - 12.0).abs() < 1e-3);
    assert!((steps(Collective::AllGather, Route::Trees) - 63.0).abs() < 1e-3);
    let without = Links { trees: false, ..links };
    assert!(
        (time(&without, Collective::AllReduce, 1e9, Route::Trees)
            - time(&links, Collective::AllReduce, 1e9, Route::Hierarchical))
        .abs()
            < 1e-12
    );
    // A ring moves less of a large tensor.
    assert!(
        time(&links, Collective::AllReduce, 1e9, Route::Trees)
            > time(&without, Collective::AllReduce, 1e9, Route::Trees)
    );
}

/// Two p4de.24xlarge, 8 A100 with four ports of 100 Gbit/s each, sum 2 GiB at 78.3 GB/s (aws-samples/awsome-distributed-training): more
/// than a ring could with whole ports, 50 GB/s.
#[test]
fn two_nodes_exchange_halves() {
    let links = Links {
        within: BytesPerSec::new(0.8 * 300e9),
        within_latency: Seconds::new(1.9e-6),
        between: BytesPerSec::new(50e9 / 8.0),
        ..some_links()
    };
    let time = |nodes, route| {
        let seats = Seats { size: 8 * nodes, per_node: 8, nodes, apart: 1 };
        links.time(Collective::AllReduce, seats, Bytes::new(2_147_483_648.0), route).get()
    };
    let rate = 2.0 * 15.0 / 16.0 * 2_147_483_648.0 / time(2, Route::Trees);
    assert!((rate / 78.3e9 - 1.0).abs() < 0.15, "{rate}");
    let exchange = time(2, Route::Trees) - time(1, Route::Trees);
    for (nodes, sent) in [(3, 1.5), (4, 2.0), (64, 2.0)] {
        let own = time(nodes, Route::Trees) - time(1, Route::Trees);
        assert!((own / exchange / sent - 1.0).abs() < 0.01, "{nodes}: {own}");
    }
}

/// Latencies of an all-to-all pass at the same time: 24 of 32 ranks are elsewhere, each after the one before.
#[test]
fn messages_of_an_all_to_all_follow_each_other() {
    let links = Links { between_message: Seconds::new(4e-6), ..some_links() };
    let seats = Seats { size: 32, per_node: 8, nodes: 4, apart: 1 };
    let time = links.time(Collective::AllToAll, seats, Bytes::new(1.0), Route::Flat).get();
    assert!((time / (12e-6 + 23.0 * 4e-6) - 1.0).abs() < 1e-3, "{time}");
}

/// NCCL alone on H100, all-gathers of 512 MiB by 2, 4 and 8 ranks (ai-dynamo/aiconfigurator): few ranks have large parts of their own.
#[test]
fn a_ring_copies_the_own_part_of_every_rank() {
    let links = Links {
        within: BytesPerSec::new(0.797 * 450e9),
        own_part: BytesPerSec::new(1.65 * 450e9),
        within_latency: Seconds::new(1.9e-6),
        ..some_links()
    };
    for (size, measured) in [(2, 1038.2e-6), (4, 1268.3e-6), (8, 1398.1e-6)] {
        let seats = Seats { size, per_node: size, nodes: 1, apart: 1 };
        let time =
            links.time(Collective::AllGather, seats, Bytes::new(512.0 * 1_048_576.0), Route::Flat).get();
        assert!((time / measured - 1.0).abs() < 0.08, "{size}: {time}");
    }
}

/// Only all-reduces of enough ranks of one node are summed by its switches.
#[test]
fn switches_sum_what_many_ranks_of_a_node_reduce() {
    let mut links = some_links();
    (links.within_latency, links.between_latency) = (Seconds::ZERO, Seconds::ZERO);
    let summed = Links { switch_sums: 1.33, ..links };
    let gain = |of, size, nodes| {
        let seats = Seats { size, per_node: size / nodes, nodes, apart: 1 };
        let time = |links: &Links| links.time(of, seats, Bytes::new(1e9), Route::Flat).get();
        time(&links) / time(&summed)
    };
    assert!((gain(Collective::AllReduce, 8, 1) - 1.33).abs() < 1e-9);
    for (of, size, nodes) in
        [(Collective::AllReduce, 4, 1), (Collective::AllReduce, 16, 2), (Collective::AllGather, 8, 1)]
    {
        assert_eq!(gain(of, size, nodes), 1.0);
    }
}

/// 512 chips are 8 along each of three axes: a group of 8 has a third of the links, of 64 two thirds, of all chips all. An
/// all-to-all of 8 along one axis travels two of eight hops on average: bisection, 4·4 messages of S/8 over two links.
#[test]
fn a_torus_offers_the_links_of_the_axes_that_a_group_spans() {
    let mut links = some_links();
    links.within_latency = Seconds::ZERO;
    let torus = Links { torus: Some(Torus { dimensions: 3.0, chips: 512.0 }), ..links };
    let seats = |size| Seats { size, per_node: size, nodes: 1, apart: 1 };
    let slower = |of, size| {
        let time = |links: &Links| links.time(of, seats(size), Bytes::new(1e9), Route::Flat).get();
        time(&torus) / time(&links)
    };
    for (size, axes) in [(8, 1.0), (64, 2.0), (512, 3.0)] {
        assert!((slower(Collective::AllReduce, size) - 3.0 / axes).abs() < 1e-9, "{size}");
    }
    let bisected = 16.0 * 1e9 / 8.0 / (2.0 * 2e11 / 6.0);
    let found = torus.time(Collective::AllToAll, seats(8), Bytes::new(1e9), Route::Flat).get();
    assert!((found / (bisected * 7.0 / 8.0) - 1.0).abs() < 1e-9, "{found}");
}

/// Above four machines, a quarter of their rate: a ring leaves four by one port, which has it all; with eight machines from one
/// to the next every port wants to leave; an all-to-all of eight machines sends half upwards.
#[test]
fn switches_that_carry_less_slow_what_leaves_them() {
    let mut links = some_links();
    (links.between_latency, links.between_message) = (Seconds::ZERO, Seconds::ZERO);
    let mut levels = links.levels;
    levels[0] = FabricLevel { machines: 4, ratio: 4.0 };
    let narrow = Links { levels, ..links };
    let slower = |of, apart| {
        let seats = Seats { size: 8, per_node: 1, nodes: 8, apart };
        let time = |links: &Links| links.time(of, seats, Bytes::new(1e9), Route::Flat).get();
        time(&narrow) / time(&links)
    };
    assert!((slower(Collective::AllGather, 1) - 1.0).abs() < 1e-9);
    assert!((slower(Collective::AllGather, 8) - 4.0).abs() < 1e-9);
    assert!((slower(Collective::Send, 1) - 1.0).abs() < 1e-9);
    assert!((slower(Collective::Send, 2) - 2.0).abs() < 1e-9);
    assert!((slower(Collective::AllToAll, 1) - 4.0 * 4.0 / 7.0).abs() < 1e-9);
}

/// Tokens sent once for each machine: of 8 experts on 4 machines of 8, 4(1 - (3/4)^8) = 3.6 machines have one, three quarters of
/// them others; a plain all-to-all sends all 8 copies, 24 of 32 elsewhere. Where routing keeps to two machines, two copies at most.
#[test]
fn tokens_are_sent_once_for_each_machine() {
    let mut links = some_links();
    (links.between_latency, links.between_message) = (Seconds::ZERO, Seconds::ZERO);
    let seats = Seats { size: 32, per_node: 8, nodes: 4, apart: 1 };
    let token = Bytes::new(1e9);
    let between = |copies: f64| copies * 1e9 / 1.25e10;
    let flex = links.fan_out(seats, token, 8, None).get();
    assert!((flex / between(4.0 * (1.0 - 0.75_f64.powi(8)) * 0.75) - 1.0).abs() < 1e-9, "{flex}");
    let plain = links.time(Collective::AllToAll, seats, token * 8.0, Route::Flat).get();
    assert!((plain / between(8.0 * 0.75) - 1.0).abs() < 1e-9, "{plain}");
    let limited = links.fan_out(seats, token, 8, Some(2)).get();
    assert!((limited / between(2.0 * 0.75) - 1.0).abs() < 1e-9, "{limited}");
}

fn seats_by_listing(group: Group, split: &Split, node: u64) -> Seats {
    let Split { tensor, context, data, pipeline, .. } = *split;
    let rank = |[t, c, d, p]: [u64; 4]| t + tensor * (c + context * (d + data * p));
    let apart = group.seats(split, node).apart;
    let mut seats = Seats { size: 0, per_node: 0, nodes: 0, apart };
    let mut all: std::collections::BTreeMap<[u64; 4], Vec<u64>> = std::collections::BTreeMap::new();
    for t in 0..tensor {
        for c in 0..context {
            for d in 0..data {
                for p in 0..pipeline {
                    // What tells a group from others of its kind.
                    let of = match group {
                        Group::Tensor => [0, c, d, p],
                        Group::Context => [t, 0, d, p],
                        Group::Data => [t, c, 0, p],
                        Group::Pipeline => [t, c, d, 0],
                        Group::DataContext => [t, 0, 0, p],
                    };
                    all.entry(of).or_default().push(rank([t, c, d, p]) / node);
                }
            }
        }
    }
    for nodes in all.values() {
        seats.size = nodes.len() as u64;
        let mut distinct = nodes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        seats.nodes = seats.nodes.max(distinct.len() as u64);
        let most = distinct.iter().map(|node| nodes.iter().filter(|of| *of == node).count() as u64).max();
        seats.per_node = seats.per_node.max(most.unwrap_or(0));
    }
    seats
}

proptest! {
    #[test]
    fn seats_are_those_of_a_listing(
        tensor in 1_u64..7, context in 1_u64..5, data in 1_u64..7, pipeline in 1_u64..5, node in 1_u64..10,
    ) {
        let split = Split { tensor, context, data, pipeline, ..Split::WHOLE };
        for (_, group) in GROUPS {
            prop_assert_eq!(group.seats(&split, node), seats_by_listing(group, &split, node), "{:?}", group);
        }
    }

    /// With one node, or with one rank on each, both routes are one ring.
    #[test]
    fn both_routes_agree_on_one_level(ranks in 2_u64..40, bytes in 1.0..1e10_f64, alone: bool) {
        let links = some_links();
        let seats = match alone {
            true => Seats { size: ranks, per_node: 1, nodes: ranks, apart: 1 },
            false => Seats { size: ranks, per_node: ranks, nodes: 1, apart: 1 },
        };
        for of in [Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter] {
            let time = |route| links.time(of, seats, Bytes::new(bytes), route).get();
            let (flat, two) = (time(Route::Flat), time(Route::Hierarchical));
            prop_assert!((flat / two - 1.0).abs() < 1e-12, "{} {}", flat, two);
        }
    }
}
