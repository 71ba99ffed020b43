//! Stages chosen one by one against trying every division of the layers with every number of recomputed ones.

use super::scenario;
use stepcast_analytic::transformer::on_machines;
use stepcast_analytic::transformer::stages::Run;
use stepcast_analytic::transformer::stagewise::stagewise;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Division, Plan, Recompute, ScheduleKind};

const MICRO_BATCHES: u64 = 5;

fn division(plan: &Plan) -> Division {
    Division { data: 1, micro_batches: MICRO_BATCHES, global_batch: MICRO_BATCHES * plan.micro_batch }
}

/// A model of few layers, and a plan with this many stages.
fn small(model: &str, layers: u64, pipeline: u64, schedule: ScheduleKind) -> (Scenario, Transformer, Plan) {
    let changes = [format!("model.zoo={model}"), "model.sequence=2048".to_owned()];
    let scenario = scenario(&changes).unwrap();
    let mut shape = scenario.source.transformer().unwrap();
    shape.layers = layers;
    if let Some(experts) = &mut shape.experts {
        experts.dense_layers = 2;
    }
    let base = scenario.strategy.plan.clone().unwrap();
    let plan = Plan { pipeline, schedule: Some(schedule), recompute: vec![Recompute::Layer], ..base };
    (scenario, shape, plan)
}

fn totals(run: &Run<'_>) -> Vec<Bytes> {
    let held = run.held();
    (0..run.plan.pipeline).map(|stage| held.rank(stage).total()).collect()
}

/// All lists of `count` numbers from `least` on that make up `sum`.
fn divisions(sum: u64, count: u64, least: u64) -> Vec<Vec<u64>> {
    if count == 1 {
        return if sum >= least { vec![vec![sum]] } else { Vec::new() };
    }
    let behind = |first: u64| {
        let rest = divisions(sum - first, count - 1, least);
        rest.into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (least..=sum).flat_map(behind).collect()
}

fn recomputed(layers: &[u64]) -> Vec<Vec<u64>> {
    layers.iter().fold(vec![Vec::new()], |lists, &most| {
        let longer = |list: Vec<u64>| (0..=most).map(move |next| [list.clone(), vec![next]].concat());
        lists.into_iter().flat_map(longer).collect()
    })
}

fn by_trying_all(run: &Run<'_>, capacity: Bytes) -> Option<f64> {
    let mut best: Option<f64> = None;
    for layers in divisions(run.shape.layers, run.plan.pipeline, 1) {
        for again in recomputed(&layers) {
            let plan =
                Plan { stage_layers: Some(layers.clone()), stage_recompute: Some(again), ..run.plan.clone() };
            let run = Run { plan: &plan, ..*run };
            if totals(&run).into_iter().all(|total| total <= capacity) {
                let step = run.step().unwrap().time.get();
                best = Some(best.map_or(step, |best| best.min(step)));
            }
        }
    }
    best
}

#[test]
fn no_division_of_the_layers_is_faster() {
    let cases = [
        ("gpt3-2.7b", 7, 3, ScheduleKind::OneFOneB),
        ("gpt3-2.7b", 7, 3, ScheduleKind::Gpipe),
        ("gpt3-2.7b", 6, 3, ScheduleKind::ZbH1),
        ("gemma2-9b", 6, 3, ScheduleKind::OneFOneB),
        ("deepseek-v3", 6, 2, ScheduleKind::OneFOneB),
    ];
    for (model, layers, pipeline, schedule) in cases {
        let (scenario, shape, plan) = small(model, layers, pipeline, schedule);
        let run = on_machines(&scenario, &shape, &plan, division(&plan));
        // From what fits with everything recomputed to what fits with nothing.
        let widest = |recompute: Vec<Recompute>| {
            let mut given = vec![layers / pipeline; pipeline as usize];
            given[0] += layers % pipeline;
            let plan = Plan { recompute, stage_layers: Some(given), ..plan.clone() };
            totals(&Run { plan: &plan, ..run }).into_iter().fold(Bytes::ZERO, Bytes::max)
        };
        let [least, most] = [widest(vec![Recompute::Layer]), widest(Vec::new())];
        for share in [-0.02, 0.1, 0.4, 0.8, 1.5] {
            let capacity = least + (most - least) * share;
            let fits = |total: Bytes| total <= capacity;
            let found = stagewise(&run, &fits, Seconds::new(f64::INFINITY));
            let expected = by_trying_all(&run, capacity);
            let case = format!("{model} {schedule} {share}");
            let (Some(found), Some(expected)) = (&found, expected) else {
                assert!(found.is_none() && expected.is_none(), "{case}: {found:?} {expected:?}");
                continue;
            };
            let step = found.step.get();
            assert!((step / expected - 1.0).abs() < 1e-9, "{case}: {step} instead of {expected}: {found:?}");
            assert_eq!(found.least, found.step, "{case}");
            let chosen = found.plan(&plan);
            let run = Run { plan: &chosen, ..run };
            assert_eq!(run.step().unwrap().time, found.step, "{case}");
            let fullest = totals(&run).into_iter().fold(Bytes::ZERO, Bytes::max);
            assert!(fullest <= capacity, "{case}: {fullest} above {capacity}");
            assert!((fullest.get() / found.memory.get() - 1.0).abs() < 1e-12, "{case}");
        }
    }
}

/// Later stages of 1F1B hold fewer micro-batches, so that only early ones recompute.
#[test]
fn only_early_stages_recompute() {
    let (scenario, shape, plan) = small("gpt3-2.7b", 16, 4, ScheduleKind::OneFOneB);
    let plan = Plan { micro_batch: 8, ..plan };
    let chunks = Plan { virtual_stages: 2, schedule: Some(ScheduleKind::Interleaved), ..plan.clone() };
    for plan in [plan, chunks] {
        let division = Division { data: 1, micro_batches: 8, global_batch: 64 };
        let run = on_machines(&scenario, &shape, &plan, division);
        let none = Plan { recompute: Vec::new(), ..plan.clone() };
        let most = totals(&Run { plan: &none, ..run });
        // Room for what the last two stages need without recomputation, and the first does not have.
        let capacity = most[2].max(most[3]);
        assert!(most[0] > capacity, "{most:?}");
        let uniform = run.step().unwrap().time;
        let found = stagewise(&run, &|total| total <= capacity, uniform).unwrap();
        assert!(found.step < uniform && found.least <= found.step);
        assert_eq!(found.layers.iter().sum::<u64>(), 16);
        let chosen = found.plan(&plan);
        let own = Run { plan: &chosen, ..run };
        assert!(totals(&own).into_iter().all(|total| total <= capacity));
        assert_eq!(own.step().unwrap().time, found.step);
        assert!(found.again[0] > 0 && found.again[3] == 0, "{found:?}");
        if plan.virtual_stages == 2 {
            assert_eq!(found.layers, [2; 8]);
            assert!(found.again[..4] == found.again[4..], "{found:?}");
        }
    }
}
