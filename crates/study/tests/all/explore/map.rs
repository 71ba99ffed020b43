//! Maps of nodes and batches.

use crate::example;
use std::ops::ControlFlow;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::oyama2016::{Oyama2016, Structure};
use stepcast_core::method::Method;
use stepcast_core::scenario::Scenario;
use stepcast_study::explore::map::{Extent, Map, MinibatchRange};

fn scenario(changes: &[&str]) -> Scenario {
    crate::scenario(&example("sprint.toml"), changes)
}

fn extent(minibatch: Option<MinibatchRange>) -> Extent {
    Extent { nodes: Some((1..=16).collect()), batches: Some(vec![1, 4, 8, 11]), minibatch }
}

#[test]
fn every_cell_is_the_prediction_of_its_scenario() {
    let range = MinibatchRange { low: 103.5, high: 172.5 };
    let map = Map::new(&scenario(&[]), &Oyama2016, extent(Some(range))).unwrap();
    assert_eq!(map.cells.len(), 16 * 4);
    let cell = map.cells[4 * 7 + 2];
    assert_eq!((cell.nodes, cell.batch), (8, 8));
    let alone = Oyama2016.predict(&scenario(&["strategy.batch=8"])).unwrap();
    assert_eq!(cell.iteration, alone.iteration);
    assert_eq!(cell.minibatch.to_bits(), alone.updating.unwrap().minibatch.to_bits());
}

#[test]
fn the_ranking_holds_all_admissible_cells_by_epoch() {
    let range = MinibatchRange { low: 103.5, high: 172.5 };
    let map = Map::new(&scenario(&[]), &Oyama2016, extent(Some(range))).unwrap();
    let admissible = map.cells.iter().filter(|cell| range.contains(cell.minibatch)).count();
    assert!(admissible > 1 && admissible < map.cells.len());
    assert_eq!(map.ranking.len(), admissible);
    assert!(map.ranking.windows(2).all(|pair| map.cells[pair[0]].epoch <= map.cells[pair[1]].epoch));
    assert!(map.best().unwrap().admissible);
    let all = Map::new(&scenario(&[]), &Oyama2016, extent(None)).unwrap();
    assert_eq!(all.ranking.len(), all.cells.len());
    let none = MinibatchRange { low: 1e9, high: 2e9 };
    assert_eq!(Map::new(&scenario(&[]), &Oyama2016, extent(Some(none))).unwrap().best(), None);
}

#[test]
fn synchronous_steps_have_the_minibatch_of_all_workers() {
    let changes = ["strategy.architecture=parameter-server", "strategy.synchronisation=bsp"];
    let map = Map::new(&scenario(&changes), &Layerwise, extent(None)).unwrap();
    let cell = map.cells[4 * 2 + 1];
    assert_eq!((cell.nodes, cell.batch, cell.minibatch as u64), (3, 4, 3 * 8 * 4));
}

#[test]
fn a_map_can_be_stopped() {
    let mut seen = Vec::new();
    let stopped = Map::watched(&scenario(&[]), &Oyama2016, extent(None), &mut |done, of| {
        seen.push((done, of));
        if done < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(stopped.unwrap_err().reason, "the map was stopped");
    assert_eq!(seen, [(0, 64), (1, 64), (2, 64), (3, 64)]);
}

#[test]
fn a_map_of_too_many_cells_is_refused_before_it_begins() {
    let numbers = Some((1..=4096).collect());
    let extent = Extent { nodes: numbers.clone(), batches: numbers, minibatch: None };
    let refused = Map::watched(&scenario(&[]), &Oyama2016, extent, &mut |_, _| unreachable!());
    assert!(refused.unwrap_err().reason.contains("16777216 cells"));
}

#[test]
fn minibatches_are_ranges() {
    let range = |low, high| Ok(MinibatchRange { low, high });
    assert_eq!("103.5..172.5".parse(), range(103.5, 172.5));
    assert_eq!("64 .. 64".parse(), range(64.0, 64.0));
    for text in ["", "64", "..", "1..", "2..1", "-1..5", "nan..1", "1..inf", "a..b"] {
        assert!(text.parse::<MinibatchRange>().is_err(), "{text}");
    }
}

#[test]
fn batches_go_as_far_as_the_memory() {
    let map = Map::new(&scenario(&[]), &Oyama2016, Extent::default()).unwrap();
    assert_eq!(map.nodes, (1..=8).collect::<Vec<_>>());
    // The paper ran sub-batches of up to 11 on a K80 and of up to 5 on a K20X.
    let largest = *map.batches.last().unwrap();
    assert_eq!(largest, 11);
    let older = scenario(&["cluster.workers.0.device=tesla-k20x"]);
    assert_eq!(Map::new(&older, &Oyama2016, Extent::default()).unwrap().batches, [1, 2, 3, 4, 5]);
    let memory = scenario(&[]).cluster.smallest_memory();
    let structure = Structure::from_model(scenario(&[]).workload.graph.as_deref().unwrap()).unwrap();
    assert!(structure.memory(largest) <= memory && structure.memory(largest + 1) > memory);
    let small = scenario(&["cluster.workers.0.device={base=\"tesla-k80\", memory=\"100 MB\"}"]);
    assert_eq!(Map::new(&small, &Oyama2016, Extent::default()).unwrap_err().key, "cluster.workers");
}
