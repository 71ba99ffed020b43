//! Plots of a plan: its ranks, the memory of its stages, and its pipeline.

use super::recording::gantt;
use crate::plots::gantt::{Gantt, Lane};
use crate::plots::rank_grid::{RankGrid, Tile};
use crate::plots::stage_memory::StageMemory;
use stepcast_core::prediction::SplitReport;
use stepcast_core::quantity::Bytes;
use stepcast_study::predict::layout::{Layout, Rank, Role};
use stepcast_study::simulate::Recording;

/// Most tensor-parallel and context-parallel ranks of a block.
const BLOCK: (u64, u64) = (16, 4);
/// Most tiles side by side, and most rows of tiles.
const MOST: (u64, u64) = (24, 16);
/// Lanes of a simulated pipeline that show when stages compute.
const PASSES: &str = "passes";

/// The name of a role.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Pipeline => "stage",
        Role::Tensor => "tensor",
        Role::Context => "context",
        Role::Data => "replica",
        Role::Expert => "experts",
        Role::Node => "machine",
    }
}

/// The first of `all` and the last; none stands for those between them.
fn folded(all: u64, most: u64) -> Vec<Option<u64>> {
    match most.max(1) {
        most if all <= most => (0..all).map(Some).collect(),
        1 => vec![Some(0), None],
        most => (0..most - 1).map(Some).chain([None, Some(all - 1)]).collect(),
    }
}

/// All ranks, coloured by `role`; what does not fit is left out in the middle.
pub fn rank_grid(layout: &Layout, role: Role, name: &str) -> RankGrid {
    let (across, down) = (layout.tensor.min(BLOCK.0), layout.context.min(BLOCK.1));
    let columns = folded(layout.data, MOST.0 / across);
    let rows = folded(layout.pipeline, MOST.1 / down);
    let mut blocks = Vec::new();
    for &stage in rows.iter().flatten() {
        for &replica in columns.iter().flatten() {
            let places = (0..down).flat_map(|context| (0..across).map(move |tensor| (tensor, context)));
            let tile =
                |(tensor, context)| tile(layout, &layout.rank([tensor, context, replica, stage]), role);
            blocks.push(places.map(tile).collect());
        }
    }
    let values = (0..layout.count(role).min(64)).map(|value| format!("{} {value}", role_name(role)));
    let names = |places: &[Option<u64>], prefix: &str| {
        places.iter().map(|place| place.map(|place| format!("{prefix}{place}"))).collect()
    };
    RankGrid {
        title: format!("Ranks of {name}, by {}", role_name(role)),
        note: note(layout),
        values: values.collect(),
        columns: names(&columns, ""),
        rows: names(&rows, "stage "),
        across: across as usize,
        down: down as usize,
        blocks,
    }
}

fn note(layout: &Layout) -> String {
    let mut words = vec!["Rows: stages".to_owned(), "columns: replicas".to_owned()];
    let mut within = |all: u64, shown: u64, what: &str| match all {
        1 => {}
        all if all > shown => words.push(format!("{shown} of {all} {what}")),
        all => words.push(format!("{all} {what}")),
    };
    within(layout.tensor, BLOCK.0, "tensor ranks across");
    within(layout.context, BLOCK.1, "context ranks down");
    words.join("; ")
}

fn tile(layout: &Layout, rank: &Rank, role: Role) -> Tile {
    let roles = [Role::Pipeline, Role::Data, Role::Tensor, Role::Context, Role::Expert, Role::Node];
    let places = roles.iter().filter(|role| layout.count(**role) > 1);
    let words: Vec<String> = places.map(|role| format!("{} {}", role_name(*role), rank.of(*role))).collect();
    Tile { value: rank.of(role), words: format!("rank {}: {}", rank.number, words.join(", ")) }
}

/// What a rank of every stage holds, against the memory of the smallest device.
pub fn stage_memory(split: &SplitReport, name: &str) -> StageMemory {
    let memory = &split.memory;
    let fullest = split.stages.get(memory.stage).map_or(Bytes::ZERO, |stage| stage.memory.total);
    let reserved = memory.least - fullest;
    let lost = if fullest > Bytes::ZERO { (memory.most - memory.least) / fullest } else { 0.0 };
    let parts = [
        "weights",
        "gradients",
        "optimiser",
        "activations",
        "working sets",
        "reserved",
        "what the allocator may lose",
    ];
    StageMemory {
        title: format!("Memory of {name}"),
        capacity: memory.capacity,
        parts: parts.map(str::to_owned).into(),
        stages: split
            .stages
            .iter()
            .map(|stage| {
                let held = &stage.memory;
                vec![
                    held.weights,
                    held.gradients,
                    held.optimiser,
                    held.activations,
                    held.working,
                    reserved,
                    held.total * lost,
                ]
            })
            .collect(),
    }
}

/// When the stages of a simulated step compute or wait for what they send, a lane for each.
pub fn pipeline(recording: &Recording, name: &str) -> Gantt {
    let all = gantt(recording, &format!("A step of {name}, simulated"));
    let lanes: Vec<Lane> = all.lanes.into_iter().filter(|lane| lane.name == PASSES).collect();
    let used = |kind: usize| lanes.iter().flat_map(|lane| &lane.bars).any(|bar| bar.kind == Some(kind));
    let kinds = all.kinds.into_iter().filter(|(kind, _)| used(*kind)).collect();
    Gantt { title: all.title, lanes, kinds, ..Gantt::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::check;
    use stepcast_core::scenario::{Document, Edit, Scenario};

    fn scenario(changes: &[&str]) -> Scenario {
        let text = include_str!("../../../../examples/plan-175b.toml");
        let changes: Vec<Edit> = changes.iter().map(|change| Edit::parse(change).unwrap()).collect();
        Document::new("test", text).scenario(&changes).unwrap()
    }

    /// 4,096 ranks are folded; what is shown is in its place.
    #[test]
    fn large_plans_are_folded() {
        let layout = Layout::of(&scenario(&[])).unwrap();
        let grid = rank_grid(&layout, Role::Pipeline, "gpt3-175b");
        assert_eq!((grid.rows.len(), grid.columns.len(), grid.across), (8, 4, 8));
        assert_eq!(grid.columns.last(), Some(&Some("63".to_owned())));
        assert_eq!(grid.blocks.len(), 8 * 3);
        let last = grid.blocks.last().and_then(|block| block.last()).unwrap();
        assert_eq!(last.words, "rank 4095: stage 7, replica 63, tensor 7, machine 511");
        for role in [Role::Pipeline, Role::Tensor, Role::Data, Role::Node] {
            check::sound(&rank_grid(&layout, role, "gpt3-175b").svg_of(460.0));
        }
    }

    /// The parts of the fullest stage add up to what the forecast says it needs.
    #[test]
    fn memory_adds_up() {
        let layout = Layout::of(&scenario(&[])).unwrap();
        let plot = stage_memory(&layout.split, "gpt3-175b");
        let fullest: f64 = plot.stages[layout.split.memory.stage].iter().map(|part| part.get()).sum();
        assert!((fullest / layout.split.memory.most.get() - 1.0).abs() < 1e-12);
        check::sound(&plot.svg_of(460.0));
    }

    #[test]
    fn the_pipeline_has_a_row_for_every_stage() {
        let scenario = scenario(&["strategy.plan.global-batch=512", "methods.simulate.jitter=0"]);
        let recording =
            stepcast_study::simulate::timeline(&scenario, 1, &|| std::ops::ControlFlow::Continue(()))
                .unwrap();
        let drawn = pipeline(&recording, "gpt3-175b");
        assert_eq!(drawn.lanes.len(), 8);
        let groups: Vec<String> = drawn.lanes.iter().map(|lane| lane.group.clone()).collect();
        assert_eq!(groups, (0..8).map(|stage| format!("stage {stage}")).collect::<Vec<_>>());
        let known = |name: &str| drawn.kinds.iter().any(|(_, kind)| kind == name);
        assert!(known("forward") && known("backward"), "{:?}", drawn.kinds);
        check::sound(&drawn.svg());
    }
}
