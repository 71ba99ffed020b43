//! The search for plans against trying everything, and its answers to questions without one.

mod chosen;
mod machines;

use crate::{fastest, go};
use std::collections::HashSet;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::method::Method as _;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Plan, PlanChoice, Recompute, ScheduleKind, Sharding};
use stepcast_study::explore::plan::{
    Aim, Confirmation, Counts, PlanReport, applied, choices, join, part, parts, plan, plan_exhaustively,
    plan_within,
};
use stepcast_study::explore::sweep::on_threads;
use stepcast_study::simulate::Simulate;

const SMALL: &str = include_str!("../plan.toml");

/// Two kinds of machines: slow and cheap, fast and dear.
const OFFERS: &str = "plan.offers=[{ machine = \"dgx-a100-320gb\", nodes = [1, 2], worker-hour = 1.0 }, \
                      { machine = \"dgx-h100\", name = \"new\", nodes = [1], node-hour = 24.0 }]";

fn scenario(changes: &[&str]) -> Scenario {
    crate::scenario(SMALL, changes)
}

fn fault(changes: &[&str]) -> Fault {
    plan(&scenario(changes), Aim::Time, &mut go).unwrap_err()
}

/// Every plan of the grid that the checks of plans accept is in the space, once, and nothing else.
#[test]
fn the_space_is_what_the_checks_accept() {
    for (model, batch, workers) in [("gpt3-2.7b", 12, 8), ("mixtral-8x7b", 8, 8)] {
        let zoo = format!("model.zoo={model}");
        let global = format!("plan.global-batch={batch}");
        let count = format!("cluster.workers.0.count={workers}");
        let scenario = scenario(&[&zoo, &global, &count, "plan.tensor-across-nodes=true"]);
        let (base, shape) =
            (scenario.strategy.plan.as_ref().unwrap(), scenario.transformer_of_plan().unwrap());
        let base = &Plan { global_batch: Some(batch), ..base.clone() };
        let mut found = HashSet::new();
        for choice in choices(&scenario).unwrap() {
            assert!(found.insert(choice), "twice: {choice:?}");
        }
        for choice in &found {
            let plan = choice.plan(base);
            let division = plan.divide(&shape, workers).unwrap();
            assert_eq!(division.data, choice.data);
            assert_eq!(division.micro_batches, choice.micro_batches);
        }
        let mut expected = 0;
        let numbers = || 1..=batch.max(workers);
        let layers = shape.layers;
        let experts = shape.experts.map_or(1, |experts| experts.count);
        for [t, c, p] in
            numbers().flat_map(|t| numbers().flat_map(move |c| numbers().map(move |p| [t, c, p])))
        {
            if !workers.is_multiple_of(t * c * p) {
                continue;
            }
            let data = workers / (t * c * p);
            for schedule in [ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::Zbv] {
                for (v, b) in (1..=layers).flat_map(|v| (1..=batch).map(move |b| (v, b))) {
                    // A single chunk is no interleaving, and a single stage no schedule.
                    let odd = (schedule == ScheduleKind::Interleaved && v == 1)
                        || (p == 1 && (v > 1 || schedule != ScheduleKind::OneFOneB));
                    // Others are too many to try.
                    let even = [layers, layers + 2].iter().any(|all| all.is_multiple_of(p * v));
                    if odd || !(even || [1, 2, 4].contains(&v)) || !batch.is_multiple_of(data * b) {
                        continue;
                    }
                    for x in 1..=experts {
                        let choice = PlanChoice {
                            tensor: t,
                            sequence_parallel: false,
                            context: c,
                            pipeline: p,
                            virtual_stages: v,
                            schedule,
                            expert: x,
                            data,
                            sharding: Sharding::None,
                            sharding_group: None,
                            micro_batch: b,
                            micro_batches: batch / data / b,
                            recompute: Recompute::None.into(),
                        };
                        if choice.plan(base).divide(&shape, workers).is_ok() {
                            expected += 1;
                            assert!(found.contains(&choice), "missing: {choice:?}");
                        }
                    }
                }
            }
        }
        let plain = |choice: &&PlanChoice| {
            let kind = matches!(
                choice.schedule,
                ScheduleKind::OneFOneB | ScheduleKind::Interleaved | ScheduleKind::Zbv
            );
            kind && !choice.sequence_parallel
                && choice.sharding == Sharding::None
                && choice.recompute == Recompute::None.into()
        };
        assert_eq!(found.iter().filter(plain).count(), expected, "{model}");
    }
}

/// What bounds leave out changes neither the best plan, nor the front, nor what any family costs.
#[test]
fn bounds_leave_out_nothing_that_matters() {
    let cases: [&[&str]; 6] = [
        &[],
        &[OFFERS, "plan.offload=[[], [\"optimiser\"]]", "plan.virtual-stages=[1]", "plan.context=[1]"],
        &["plan.recompute-some=true", "plan.virtual-stages=[1]", "plan.nodes=[2]"],
        &["plan.nodes=[1, 2, 4]", "plan.schedule=[\"1f1b\", \"interleaved\", \"gpipe\"]"],
        &["plan.deadline=40 d", "plan.nodes=[2, 4]", "plan.virtual-stages=[1, 2]"],
        &[
            "model.zoo=mixtral-8x7b",
            "plan.nodes=[8]",
            "plan.global-batch=32",
            "plan.virtual-stages=[1]",
            "plan.may-fit=true",
        ],
    ];
    for changes in cases {
        let scenario = scenario(changes);
        for aim in [Aim::Time, Aim::Cost] {
            let pruned = plan(&scenario, aim, &mut go).unwrap();
            let all = plan_exhaustively(&scenario, aim, &mut go).unwrap();
            assert_eq!(pruned.best, all.best, "{changes:?}");
            assert_eq!(pruned.families, all.families, "{changes:?}");
            let figures = |report: &PlanReport| -> Vec<(f64, f64)> {
                report.front.iter().map(|entry| (entry.step.get(), entry.memory.get())).collect()
            };
            assert_eq!(figures(&pruned), figures(&all), "{changes:?}");
            let Counts { plans, too_large, too_slow, too_dear, bounded, evaluated } = pruned.counts;
            assert!(bounded > 0 && evaluated < all.counts.evaluated, "{:?}", pruned.counts);
            assert!(plans <= too_large + too_slow + too_dear + bounded + evaluated);
            assert_eq!(all.counts.plans - all.counts.too_large, all.counts.evaluated);
        }
    }
}

/// The best plan is what the method predicts of it, and its section says the same.
#[test]
fn the_best_plan_is_predicted_alike() {
    let scenario = scenario(&[]);
    let report = fastest(&scenario);
    let predicted = report.prediction.iteration.get();
    assert!((report.best.step.get() / predicted - 1.0).abs() < 1e-9);
    let text = SMALL.replace("[strategy.plan]\n", &report.toml);
    let again = crate::scenario(&text, &[]);
    let step = Method.predict(&again).unwrap().iteration.get();
    assert!((step / predicted - 1.0).abs() < 1e-12, "{}", report.toml);
    let training = report.training.unwrap();
    assert!(training.goodput < 1.0 && training.goodput > 0.9, "{training:?}");
    assert!(training.time > training.without_interruptions);
    assert!(report.families.iter().any(|family| family.chosen && family.more == Some(0.0)));
}

#[test]
fn answers_do_not_depend_on_threads() {
    let scenario = scenario(&["plan.nodes=[2, 4]"]);
    let with = |threads: u16| on_threads(Some(threads), || plan(&scenario, Aim::Time, &mut go)).unwrap();
    let one = with(1);
    assert_eq!(one, with(3));
    assert_eq!(one, with(8));
}

/// Parts that were written, read and joined are the whole search.
#[test]
fn parts_make_up_the_whole() {
    let scenario = scenario(&["plan.nodes=[1, 2, 4, 3]"]);
    for aim in [Aim::Time, Aim::Cost] {
        let whole = plan(&scenario, aim, &mut go).unwrap();
        let parts = parts(&scenario, aim).unwrap();
        assert_eq!(parts, 4);
        let travelled = (0..parts).map(|place| {
            let part = part(&scenario, aim, place, &mut go).unwrap();
            serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap()
        });
        assert_eq!(join(&scenario, aim, travelled.collect()).unwrap(), whole);
    }
}

/// However little may be spent: a plan, and a bound below the best of all.
#[test]
fn a_search_within_a_budget_says_how_much_better_a_plan_could_be() {
    let scenario = scenario(&["plan.nodes=[1, 2, 4]"]);
    let all = fastest(&scenario);
    assert_eq!(all.gap.to_bits(), 0.0_f64.to_bits());
    for budget in [300_000, 3_000_000, 1_000_000_000] {
        let some = plan_within(budget, &scenario, Aim::Time, &mut go).unwrap();
        let gap = some.gap;
        let [best, found] = [&all, &some].map(|report| report.best.training.unwrap().get());
        assert!(
            // A simpler plan may be up to half a percent slower.
            found * (1.0 - gap) <= best * (1.0 + 1e-9) && best <= found * 1.005,
            "{budget}: {best} {found} {gap}"
        );
        let counts = some.counts;
        assert!(20 * counts.plans + 200 * counts.evaluated <= 2 * budget + 3 * 1024 * 200, "{counts:?}");
    }
}

/// The engine runs the winner, and says the same within 3 %.
#[test]
fn the_engine_confirms_the_winner() {
    let examples = ["plan-175b", "mixtral-experts"];
    let restricted = [
        "plan.tensor=[4, 8]",
        "plan.context=[1]",
        "plan.pipeline=[2, 4, 8]",
        "plan.virtual-stages=[1, 2]",
        "plan.sharding=[\"zero-1\"]",
        "plan.micro-batch=[1]",
        "plan.recompute=[\"none\", \"layer\"]",
    ];
    for example in examples {
        let text = crate::example(&format!("{example}.toml"));
        let report = fastest(&crate::scenario(&text, &restricted));
        let Confirmation { step, difference, confirmed, .. } = report.confirmation;
        assert!(confirmed, "{example}: {step:?} {difference:?}");
    }
}

/// Computing beside traffic takes twice as long, which the closed form does not know: the engine ranks the finalists.
#[test]
fn the_engine_ranks_where_it_does_not_confirm() {
    let changes = [
        "methods.simulate.jitter=0",
        "strategy.plan.interference=1",
        "plan.nodes=[2]",
        "plan.pipeline=[1, 2, 4]",
    ];
    let scenario = scenario(&changes);
    let report = fastest(&scenario);
    let ranked = report.confirmation.ranked.unwrap();
    assert!(ranked > 1, "{:?}", report.confirmation);
    // The plan with the shortest step of the closed form is no shorter by the engine.
    let first = &report.front[0];
    let other = Simulate.predict(&applied(&scenario, first).unwrap()).unwrap().iteration;
    assert!(other >= report.confirmation.step.unwrap() * (1.0 - 1e-9), "{}", first.words);
}

#[test]
fn questions_without_an_answer_say_why() {
    let heads = fault(&["plan.tensor=[3]"]);
    assert!(heads.key == KeyPath::of("plan.tensor"), "{heads}");
    // Two machines cost less, and four are done earlier.
    let narrow = ["plan.pipeline=[1]", "plan.nodes=[2, 4]", "plan.recompute=[\"none\"]", "failures.rate=0"];
    let cheapest = plan(&scenario(&narrow), Aim::Cost, &mut go).unwrap().best;
    let fastest = fastest(&scenario(&narrow)).best;
    assert!(fastest.nodes == 4 && cheapest.nodes == 2, "{fastest:?} {cheapest:?}");
    let deadline = format!("plan.deadline={} s", 1.01 * fastest.training.unwrap().get());
    let budget = format!("plan.budget={}", 1.0001 * cheapest.cost.unwrap());
    let both = fault(&[&narrow[..], &[deadline.as_str(), budget.as_str()]].concat());
    assert!(both.reason.contains("both it and the budget") && both.reason.contains("the cheapest"), "{both}");
    let many = fault(&["plan.nodes=[1000000000]"]);
    assert!(many.reason.contains("1000000000 machines"), "{many}");
    let unknown = fault(&["plan.offers=[{ machine = \"dgx-h1000\" }]"]);
    assert!(unknown.key == KeyPath::of("plan.offers").index(0).key("machine"), "{unknown}");
    let twice =
        fault(&["plan.offers=[{ machine = \"dgx-h100\" }, { machine = \"dgx-h100\", worker-hour = 1.0 }]"]);
    assert!(twice.key == KeyPath::of("plan.offers").index(1).key("name"), "{twice}");
    assert!(fault(&["plan.offers=[]"]).reason.contains("no machines"));
    assert!(fault(&["plan.nodes=[]"]).reason.contains("no number"));
    assert!(fault(&["plan.nodes=[0]"]).reason.contains("0 machines"));
}

#[test]
fn more_plans_than_anybody_waits_for_are_refused() {
    let nodes: Vec<String> = (1..=4096).map(|nodes| nodes.to_string()).collect();
    let nodes = format!("plan.nodes=[{}]", nodes.join(","));
    let refused = fault(&[&nodes, "plan.global-batch=735134400", "plan.tensor-across-nodes=true"]);
    assert!(refused.reason.starts_with("there are more than 50000000 plans"), "{refused:?}");
}
