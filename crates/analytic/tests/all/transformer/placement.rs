//! Seats of groups, and times of collectives on links of two levels, switches and tori.

use super::traffic::{GOLDEN, split};
use super::{near, number, of_kind, word};
use proptest::prelude::*;
use std::collections::BTreeMap;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::placement::{FULL, Group, Links, Route, Seats, Torus};
use stepcast_analytic::transformer::traffic::Collective;
use stepcast_core::machine::{FabricLevel, MAX_LEVELS};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

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
            between_latency: Seconds::new(real("latency_nic")),
            between_message: Seconds::new(real("latency_nic")),
            ..some_links()
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
    let mut all: BTreeMap<[u64; 4], Vec<u64>> = BTreeMap::new();
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
