//! Plans by table against the whole step and all its stages, on random plans.

use super::scenario;
use proptest::prelude::*;
use stepcast_analytic::transformer::plans::Table;
use stepcast_analytic::transformer::schedules::has_chunks;
use stepcast_analytic::transformer::stages::Run;
use stepcast_analytic::transformer::{Transformer as Method, on_machines};
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{
    Division, Plan, PlanChoice, Recomputation, Recompute, Recomputed, ScheduleKind, Sharding, has_layers,
};

const MODELS: &[&str] = &["gpt3-175b", "llama3-8b", "gemma2-9b", "mixtral-8x7b", "deepseek-v3"];
const DEVICES: &[&str] =
    &["{ base = \"h100-sxm5\", efficiency = 0.5 }", "h100-sxm5", "a100-sxm4-80gb", "tesla-v100-sxm2-32gb"];
const KINDS: &[ScheduleKind] = ScheduleKind::ALL;
const OFFLOAD: &[&str] = &["[]", "[\"optimiser\"]", "[\"activations\", \"optimiser\"]"];
const OVERLAPS: &[&str] = &["none", "megatron", "torchtitan", "deepspeed", "fsdp2"];

fn divisors(of: u64) -> Vec<u64> {
    (1..=of).filter(|by| of.is_multiple_of(*by)).collect()
}

fn pick<T: Copy>(from: &[T], at: usize) -> T {
    from[at % from.len()]
}

/// A plan by its place in the lists of what is possible; none if there is none.
fn choice(scenario: &Scenario, workers: u64, at: &[usize; 11]) -> Option<PlanChoice> {
    let shape = scenario.source.transformer().unwrap();
    let fits = |t: &u64| {
        workers.is_multiple_of(*t) && (shape.kv_heads.is_multiple_of(*t) || t.is_multiple_of(shape.kv_heads))
    };
    let tensor = pick(&divisors(shape.heads).into_iter().filter(fits).collect::<Vec<_>>(), at[0]);
    let context = if (workers / tensor).is_multiple_of(2) { pick(&[1, 1, 2], at[1]) } else { 1 };
    let rest = workers / tensor / context;
    let fits = |p: &u64| has_layers(shape.layers, [*p, 1], ScheduleKind::OneFOneB);
    let stages: Vec<u64> = divisors(rest).into_iter().filter(fits).collect();
    let pipeline = pick(&stages, at[2]);
    let data = rest / pipeline;
    let schedule = pick(KINDS, at[3]);
    let chunks = match schedule {
        _ if schedule.is_folded() => 2,
        _ if has_chunks(schedule) => {
            // As many as there are layers, so that the ends have none.
            let most = (shape.layers + 2) / pipeline;
            pick(&[most, 2, 3, 4, most], at[4]).clamp(1, most)
        }
        _ => 1,
    };
    if (pipeline == 1 && chunks > 1) || !has_layers(shape.layers, [pipeline, chunks], schedule) {
        return None;
    }
    let micro_batch = pick(&[1, 2], at[5]);
    let micro_batches = match schedule {
        ScheduleKind::Interleaved | ScheduleKind::InterleavedZeroBubble => {
            pipeline * pick(&[1, 2, 3, 7], at[6])
        }
        ScheduleKind::DualPipeV | ScheduleKind::DualPipe => pipeline * pick(&[2, 3, 7], at[6]),
        _ => pick(&[1, 2, 3, 8, 17, 40, 64], at[6]),
    };
    let experts = shape.experts.map_or(1, |experts| experts.count);
    let expert = divisors(experts).into_iter().filter(|x| (tensor * context * data).is_multiple_of(*x));
    let sharding = pick(Sharding::ALL, at[7]);
    let groups: Vec<u64> = divisors(data * context).into_iter().filter(|group| *group > 1).collect();
    let sharding_group = match sharding {
        Sharding::Hsdp if groups.is_empty() => return None,
        Sharding::Hsdp => Some(pick(&groups, at[8])),
        _ => None,
    };
    let layers = (at[9] % 5 > 2).then(|| 1 + at[9] as u64 % (shape.layers / pipeline / chunks).max(1));
    let recompute = match layers {
        Some(_) => {
            Recomputation { what: pick(&[Recompute::Operators, Recompute::Layer], at[9]).into(), layers }
        }
        None => {
            let parts = [at[9], at[10]].map(|at| pick(Recompute::ALL, at));
            parts.into_iter().collect::<Recomputed>().into()
        }
    };
    Some(PlanChoice {
        tensor,
        sequence_parallel: tensor > 1 && at[10].is_multiple_of(2),
        context,
        pipeline,
        virtual_stages: chunks,
        schedule,
        expert: pick(&expert.collect::<Vec<_>>(), at[10]),
        data,
        sharding,
        sharding_group,
        micro_batch,
        micro_batches,
        recompute,
    })
}

/// The shape, and a division that every choice replaces.
fn parts(scenario: &Scenario) -> (Transformer, Division) {
    let shape = scenario.source.transformer().unwrap();
    (shape, Division { data: 1, micro_batches: 1, global_batch: 1 })
}

/// Some machines with a model, and choices for them with their plans.
fn cases() -> impl Strategy<Value = (Scenario, Vec<(PlanChoice, Plan)>)> {
    let one_of = |key, values| prop::sample::select(values).prop_map(move |value| format!("{key}={value}"));
    let changes = [
        one_of("model.zoo", MODELS),
        one_of("cluster.workers.count", &["8", "16", "24", "64"]),
        one_of("cluster.workers.device", DEVICES),
        one_of("strategy.plan.overlap", OVERLAPS),
        one_of("strategy.plan.attention", &["flash", "unfused"]),
        one_of("strategy.plan.offload", OFFLOAD),
    ];
    let usual = [
        "model.sequence=2048",
        "strategy.precision=fp16",
        "strategy.plan.sharding=zero-1",
        "strategy.plan.host-link=2 GB/s",
        "strategy.plan.global-batch=192",
    ];
    let picks = prop::collection::vec(prop::array::uniform11(0..1000_usize), 1..4);
    (changes, picks).prop_map(move |(changes, picks)| {
        let scenario = scenario(&[&usual.map(str::to_owned)[..], &changes].concat()).unwrap();
        let base = scenario.strategy.plan.clone().unwrap();
        let shape = scenario.source.transformer().unwrap();
        let plan = |at| {
            let choice = choice(&scenario, scenario.cluster.workers(), at)?;
            let plan = choice.plan(&base);
            let alone = choice.sharding == Sharding::None && choice.data * choice.context > 1;
            let valid = !(plan.offloaded().optimiser && alone) && plan.check_recompute(&shape).is_ok();
            valid.then_some((choice, plan))
        };
        let plans = picks.iter().filter_map(plan).collect();
        (scenario, plans)
    })
}

proptest! {
    /// The same step, the same memory, and a bound that holds, whatever was asked before.
    #[test]
    fn plans_by_table_are_those_of_the_whole_step((scenario, plans) in cases()) {
        let (shape, division) = parts(&scenario);
        let base = scenario.strategy.plan.clone().unwrap();
        let template = on_machines(&scenario, &shape, &base, division);
        let mut table = Table::new(template);
        for (choice, plan) in plans {
            let division = match plan.divide(&shape, scenario.cluster.workers()) {
                Ok(division) => division,
                Err(fault) => return Err(TestCaseError::fail(format!("{choice:?}: {fault}"))),
            };
            let run = Run { plan: &plan, division, ..template };
            let slow = run.step().unwrap().time.get();
            let bound = table.bound(&choice).get();
            let fast = table.step(&choice).unwrap().get();
            prop_assert!((fast / slow - 1.0).abs() < 1e-9, "{choice:?}: {fast} instead of {slow}");
            prop_assert!(bound <= slow * (1.0 + 1e-12), "{choice:?}: bound {bound} above {slow}");
            let held = run.held();
            let most = (0..choice.pipeline).map(|stage| held.rank(stage).total()).fold(Bytes::ZERO, Bytes::max);
            let found = table.memory(&choice);
            prop_assert!((found.get() / most.get() - 1.0).abs() < 1e-9, "{choice:?}: {found} instead of {most}");
        }
    }

    #[test]
    fn every_plan_adds_up((scenario, plans) in cases()) {
        for (choice, plan) in plans {
            let mut scenario = scenario.clone();
            scenario.strategy.plan = Some(plan);
            let prediction = Method.predict(&scenario).unwrap();
            let parts: Seconds = prediction.breakdown.iter().map(|part| part.time).sum();
            prop_assert!((parts / prediction.iteration - 1.0).abs() < 1e-9, "{choice:?}: {parts}, {}", prediction.iteration);
            let factor = prediction.scaling_factor;
            prop_assert!(factor > 0.0 && factor <= 1.0 + 1e-9, "{choice:?}: {factor}");
            let report = prediction.transformer.unwrap();
            prop_assert!(report.mfu > 0.0 && report.hfu >= report.mfu, "{choice:?}");
            prop_assert!((0.0..1.0).contains(&report.bubble), "{choice:?}: {}", report.bubble);
            prop_assert!(report.memory.least <= report.memory.most, "{choice:?}");
            // More bandwidth never makes a step longer.
            scenario.cluster.network.bandwidth = scenario.cluster.network.bandwidth * 10.0;
            let faster = Method.predict(&scenario).unwrap().iteration;
            prop_assert!(faster <= prediction.iteration * (1.0 + 1e-9), "{choice:?}: {faster}");
        }
    }
}

/// Many micro-batches: the period of a pipeline is found, and skipping it changes nothing.
#[test]
fn long_pipelines_are_skipped_exactly() {
    let scenario = scenario(&["model.zoo=gpt3-175b", "cluster.network.latency=1 ms"]).unwrap();
    let (shape, division) = parts(&scenario);
    let base = scenario.strategy.plan.clone().unwrap();
    let template = on_machines(&scenario, &shape, &base, division);
    let mut table = Table::new(template);
    let kinds = [
        (ScheduleKind::OneFOneB, 1),
        (ScheduleKind::ZbH1, 1),
        (ScheduleKind::Interleaved, 3),
        (ScheduleKind::InterleavedZeroBubble, 2),
    ];
    for (schedule, chunks) in kinds {
        for pipeline in [2, 8, 16] {
            let choice = PlanChoice {
                tensor: 8,
                sequence_parallel: true,
                context: 1,
                pipeline,
                virtual_stages: chunks,
                schedule,
                expert: 1,
                data: 1,
                sharding: Sharding::Zero1,
                sharding_group: None,
                micro_batch: 1,
                micro_batches: 480,
                recompute: Recompute::None.into(),
            };
            let plan = choice.plan(&base);
            let division = plan.divide(&shape, 8 * pipeline).unwrap();
            let slow = Run { plan: &plan, division, ..template }.step().unwrap().time.get();
            let fast = table.step(&choice).unwrap().get();
            assert!((fast / slow - 1.0).abs() < 1e-9, "{choice:?}: {fast} instead of {slow}");
        }
    }
}
