//! The search against trying everything, and its answers to questions without one.

use super::*;
use crate::explore::sweep::on_threads;
use std::collections::HashSet;
use stepcast_core::fault::KeyPath;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::scenario::{Document, Edit};
use stepcast_core::strategy::PlanChoice;
use stepcast_core::strategy::{ScheduleKind, Sharding};

const SMALL: &str = include_str!("small.toml");

/// Two kinds of machines: slow and cheap, fast and dear.
pub(super) const OFFERS: &str = "plan.offers=[{ machine = \"dgx-a100-320gb\", nodes = [1, 2], worker-hour = 1.0 }, \
                      { machine = \"dgx-h100\", name = \"new\", nodes = [1], node-hour = 24.0 }]";

pub(super) fn scenario(changes: &[&str]) -> Scenario {
    Document::new("test", SMALL).scenario(&Edit::parse_all(changes).unwrap()).unwrap()
}

pub(super) fn go(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(super) fn fault(changes: &[&str]) -> Fault {
    plan(&scenario(changes), Aim::Time, &mut go).unwrap_err()
}

/// Every plan of the grid that the checks of plans accept is in the space, once, and nothing else.
#[test]
fn the_space_is_what_the_checks_accept() {
    for (model, batch, workers) in [("gpt3-2.7b", 12, 8), ("mixtral-8x7b", 8, 8)] {
        let zoo = format!("model.zoo={model}");
        let global = format!("plan.global-batch={batch}");
        let scenario = scenario(&[&zoo, &global, "plan.tensor-across-nodes=true"]);
        let question = PlanQuestion::of(&scenario, Aim::Time).unwrap();
        let space = PlanSpace { workers, ..question.space(&scenario, &question.base, None) };
        let mut found = HashSet::new();
        for ranks in space.ranks() {
            space.each(ranks, |alike| {
                alike.iter().for_each(|choice| assert!(found.insert(*choice), "twice: {choice:?}"));
            });
        }
        assert_eq!(space.count(u64::MAX), found.len() as u64);
        for choice in &found {
            let plan = choice.plan(&question.base);
            let division = plan.divide(&question.shape, workers).unwrap();
            assert_eq!(division.data, choice.data);
            assert_eq!(division.micro_batches, choice.micro_batches);
        }
        let mut expected = 0;
        let numbers = || 1..=batch.max(workers);
        let layers = question.shape.layers;
        let experts = question.shape.experts.map_or(1, |experts| experts.count);
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
                        if choice.plan(&question.base).divide(&question.shape, workers).is_ok() {
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
            let question = PlanQuestion::of(&scenario, aim).unwrap();
            let pruned = question.answer(Pruning::Beaten, &mut go).unwrap();
            let all = question.answer(Pruning::Nothing, &mut go).unwrap();
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
    let report = plan(&scenario, Aim::Time, &mut go).unwrap();
    let predicted = report.prediction.iteration.get();
    assert!((report.best.step.get() / predicted - 1.0).abs() < 1e-9);
    let text = SMALL.replace("[strategy.plan]\n", &report.toml);
    let again = Document::new("test", text).scenario(&[]).unwrap();
    let step = Method.predict(&again).unwrap().iteration.get();
    assert!((step / predicted - 1.0).abs() < 1e-12, "{}", report.toml);
    let training = report.training.unwrap();
    assert!(training.goodput < 1.0 && training.goodput > 0.9, "{training:?}");
    assert!(training.time > training.without_interruptions);
    assert!(report.families.iter().any(|family| family.chosen && family.more == Some(0.0)));
}

/// Of plans that fit only with recomputation, some with fewer layers are faster than those with all, and no number of
/// layers below the chosen one fits.
#[test]
fn no_more_layers_are_recomputed_than_have_to_be() {
    let changes = [
        "plan.micro-batch=[16]",
        "plan.recompute=[\"layer\"]",
        "plan.schedule=[\"1f1b\"]",
        "plan.pipeline=[2]",
    ];
    let all = plan(&scenario(&changes), Aim::Time, &mut go).unwrap();
    let some =
        plan(&scenario(&[&changes[..], &["plan.recompute-some=true"]].concat()), Aim::Time, &mut go).unwrap();
    assert!(some.best.step < all.best.step, "{} {}", some.best.step, all.best.step);
    let layers = some.best.plan.recompute_layers.unwrap();
    let verdict = |layers: u64| {
        let mut scenario = scenario(&changes);
        let section =
            stepcast_core::strategy::PlanSection { recompute_layers: Some(layers), ..some.best.plan.clone() };
        scenario.strategy.plan = Some(section.resolve(&NoFiles).unwrap());
        Method.predict(&scenario).unwrap().transformer.unwrap().memory.verdict
    };
    assert_eq!(verdict(layers), Verdict::Fits);
    assert!((1..layers).all(|fewer| verdict(fewer) != Verdict::Fits));
}

/// Where layers are recomputed, stages of their own are faster, and they are predicted, fit and written as they are said to.
#[test]
fn stages_of_their_own_gain_where_layers_are_recomputed() {
    let changes = [
        "plan.micro-batch=[16]",
        "plan.recompute=[\"layer\"]",
        "plan.schedule=[\"1f1b\"]",
        "plan.pipeline=[4]",
    ];
    let report = plan(&scenario(&changes), Aim::Time, &mut go).unwrap();
    let stages = report.stages.unwrap();
    assert!(stages.entry.step < report.best.step && stages.gain > 0.0, "{stages:?}");
    assert!(stages.least <= stages.entry.step);
    let again = stages.entry.plan.stage_recompute.clone().unwrap();
    assert!(again[0] > again[3], "{again:?}");
    let text = SMALL.replace("[strategy.plan]\n", &stages.toml);
    let own = Document::new("test", text).scenario(&[]).unwrap();
    let predicted = Method.predict(&own).unwrap();
    assert!((predicted.iteration / stages.entry.step - 1.0).abs() < 1e-12, "{}", stages.toml);
    let memory = predicted.transformer.unwrap().memory;
    assert_eq!(memory.verdict, Verdict::Fits);
    assert!((memory.most / stages.entry.memory - 1.0).abs() < 1e-9);
    assert!(stages.confirmation.confirmed, "{:?}", stages.confirmation);
    let alike =
        plan(&scenario(&[&changes[..], &["plan.per-stage=false"]].concat()), Aim::Time, &mut go).unwrap();
    assert!(alike.stages.is_none() && alike.best == report.best && alike.families == report.families);
}

/// Where no plan with equal stages fits, one whose last stage has fewer layers beside the output layer may.
#[test]
fn stages_of_their_own_fit_where_equal_ones_do_not() {
    let changes =
        ["plan.pipeline=[4]", "plan.schedule=[\"1f1b\"]", "plan.tensor=[1]", "plan.micro-batch=[2]"];
    let wide = scenario(&changes);
    let question = PlanQuestion::of(&wide, Aim::Time).unwrap();
    let part = question.part(&question.setups[0], Pruning::Beaten, &mut go).unwrap();
    let (least, _, _) = part.found.families.least().unwrap();
    let memory = format!("cluster.workers.0.device.memory={} B", (0.999 * least) as u64);
    let report = plan(&scenario(&[&changes[..], &[memory.as_str()]].concat()), Aim::Time, &mut go).unwrap();
    assert_eq!(report.counts.plans, report.counts.too_large);
    let layers = report.best.plan.stage_layers.clone().unwrap();
    assert_eq!(layers.iter().sum::<u64>(), 32);
    assert!(report.stages.is_none() && report.toml.contains("stage-layers"), "{}", report.toml);
    assert!(report.best.memory.get() <= 0.999 * least);
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
        let path = format!("{}/../../examples/{example}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let scenario = Document::new(example, text).scenario(&Edit::parse_all(&restricted).unwrap()).unwrap();
        let report = plan(&scenario, Aim::Time, &mut go).unwrap();
        let Confirmation { step, difference, confirmed, .. } = report.confirmation;
        assert!(confirmed, "{example}: {step:?} {difference:?}");
    }
}

/// Computing beside traffic takes twice as long, which the closed form does not know: the engine ranks the finalists.
#[test]
fn the_engine_ranks_where_it_does_not_confirm() {
    let changes = ["strategy.plan.interference=1", "plan.nodes=[2]", "plan.pipeline=[1, 2, 4]"];
    let scenario = scenario(&changes);
    let report = plan(&scenario, Aim::Time, &mut go).unwrap();
    let ranked = report.confirmation.ranked.unwrap();
    assert!(ranked > 1, "{:?}", report.confirmation);
    // The plan with the shortest step of the closed form is no shorter by the engine.
    let first = &report.front[0];
    let other = report::by_engine(&applied(&scenario, first).unwrap(), first.step.get());
    assert!(other.step.unwrap() >= report.confirmation.step.unwrap() * (1.0 - 1e-9), "{}", first.words);
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

#[test]
fn questions_without_an_answer_say_why() {
    let heads = fault(&["plan.tensor=[3]"]);
    assert!(heads.key == KeyPath::of("plan.tensor"), "{heads}");
    // Two machines cost less, and four are done earlier.
    let narrow = ["plan.pipeline=[1]", "plan.nodes=[2, 4]", "plan.recompute=[\"none\"]", "failures.rate=0"];
    let cheapest = plan(&scenario(&narrow), Aim::Cost, &mut go).unwrap().best;
    let fastest = plan(&scenario(&narrow), Aim::Time, &mut go).unwrap().best;
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

/// Without interruptions nothing is lost, whatever else the section says.
#[test]
fn runs_without_failures_lose_nothing() {
    for changes in [
        &["failures.rate=0"][..],
        &["failures.rate=0", "failures.interval=1 h", "failures.repair=1 d"],
        &["failures.rate=0", "failures.rate-range=[0, 0]", "failures.spares=2"],
    ] {
        let report =
            plan(&scenario(&[&["plan.pipeline=[1]"][..], changes].concat()), Aim::Time, &mut go).unwrap();
        let training = report.training.unwrap();
        assert!(training.interruptions == 0.0 && training.between_interruptions.is_none(), "{changes:?}");
        assert!(training.time.get().is_finite() && training.goodput > 0.98, "{changes:?}: {training:?}");
        assert!(training.time >= training.without_interruptions);
    }
}

#[test]
fn more_plans_than_anybody_waits_for_are_refused() {
    let nodes: Vec<String> = (1..=4096).map(|nodes| nodes.to_string()).collect();
    let nodes = format!("plan.nodes=[{}]", nodes.join(","));
    let refused = fault(&[&nodes, "plan.global-batch=735134400", "plan.tensor-across-nodes=true"]);
    assert!(refused.reason.starts_with("there are more than 50000000 plans"), "{refused:?}");
}

/// A search over offers finds what searches on the machines of each find, at their prices.
#[test]
fn the_best_offer_is_the_best_of_all_machines() {
    let narrow = ["plan.virtual-stages=[1]", "plan.context=[1]", "plan.recompute=[\"none\"]"];
    let best = |aim| plan(&scenario(&[&narrow[..], &[OFFERS]].concat()), aim, &mut go).unwrap();
    let alone = |machine: &str, nodes: u32, price: &str, aim| {
        let nodes = format!("cluster={{ machine = \"{machine}\", machines = {nodes} }}");
        plan(&scenario(&[&narrow[..], &[nodes.as_str(), price]].concat()), aim, &mut go).unwrap()
    };
    let cheap = "price.worker-hour=1.0";
    let single = alone("dgx-a100-320gb", 1, cheap, Aim::Cost);
    let double = alone("dgx-a100-320gb", 2, cheap, Aim::Time);
    let dear = alone("dgx-h100", 1, "price={ node-hour = 24.0 }", Aim::Time);
    assert!(dear.best.step < double.best.step && single.best.cost < dear.best.cost);
    let (fastest, cheapest) = (best(Aim::Time), best(Aim::Cost));
    assert_eq!(fastest.best.machine.as_deref(), Some("new"));
    assert_eq!(fastest.best.machines, "1 × new");
    assert_eq!(cheapest.best.machine.as_deref(), Some("dgx-a100-320gb"));
    assert_eq!((fastest.best.step, fastest.best.cost), (dear.best.step, dear.best.cost));
    assert_eq!((cheapest.best.step, cheapest.best.cost), (single.best.step, single.best.cost));
    assert!(fastest.toml.starts_with("[cluster]\nmachine = \"dgx-h100\"\nmachines = 1\n\n[strategy.plan]"));
    let again = applied(&scenario(&[OFFERS]), &fastest.best).unwrap();
    assert_eq!(Method.predict(&again).unwrap().iteration, fastest.prediction.iteration);
    let families: Vec<&str> = fastest.families.iter().map(|family| family.words.as_str()).collect();
    assert!(families.contains(&"dgx-a100-320gb") && families.contains(&"new"), "{families:?}");
}

/// What does not fit otherwise fits with optimiser states in the host's memory, and takes longer where both fit.
#[test]
fn offloading_is_chosen_where_it_helps() {
    let changes = ["plan.nodes=[1]", "plan.recompute=[\"layer\"]", "plan.virtual-stages=[1]"];
    let both = "plan.offload=[[], [\"optimiser\"]]";
    let report = plan(&scenario(&[&changes[..], &[both]].concat()), Aim::Time, &mut go).unwrap();
    let of = |words: &str| report.families.iter().find(|family| family.words == words).unwrap();
    let (without, with) = (of("without offloading"), of("offloading optimiser"));
    assert!(without.chosen && with.more.unwrap() > 0.0 && with.memory < without.memory);
    let between = 0.5 * (without.memory.get() + with.memory.get());
    let small = format!("cluster.workers.0.device.memory={between} B");
    let tight = plan(&scenario(&[&changes[..], &[both, &small]].concat()), Aim::Time, &mut go).unwrap();
    assert!(tight.best.words.ends_with("offloading optimiser"), "{}", tight.best.words);
    assert!(tight.best.plan.offload == Some(vec![stepcast_core::strategy::Offload::Optimiser]));
}

/// Listed values of a dimension are searched as if each were a search of its own.
#[test]
fn listed_values_are_searched() {
    let narrow =
        ["plan.nodes=[1]", "plan.virtual-stages=[1]", "plan.context=[1]", "plan.recompute=[\"none\"]"];
    let best =
        |own: &[&str]| plan(&scenario(&[&narrow[..], own].concat()), Aim::Time, &mut go).unwrap().best.step;
    let none = "plan.sharding=[\"none\"]";
    let sizes = [1_000, 10_000_000, 100_000_000_000_u64];
    let each = sizes.map(|size| best(&[none, &format!("strategy.plan.bucket={size}")]));
    // Starts of many messages, a balance, and nothing hidden.
    assert!(each[1] < each[0] && each[1] < each[2], "{each:?}");
    assert_eq!(best(&[none, &format!("plan.bucket={sizes:?}")]), each[1]);

    let sharded = "plan.sharding=[\"zero-3\"]";
    let [ahead, late] =
        ["true", "false"].map(|text| best(&[sharded, &format!("strategy.plan.overlap-prefetch={text}")]));
    assert!(ahead < late, "{ahead:?} {late:?}");
    let both = plan(
        &scenario(&[&narrow[..], &[sharded, "plan.overlap-prefetch=[false, true]"]].concat()),
        Aim::Time,
        &mut go,
    )
    .unwrap();
    assert_eq!((both.best.step, both.best.plan.overlap_prefetch), (ahead, Some(true)));
    assert!(both.families.iter().any(|family| family.words == "weights gathered when needed"));
    assert!(both.families.iter().all(|family| family.property != "loss"));

    let losses = "plan.loss=[\"eager\", \"chunked\"]";
    let report = plan(&scenario(&[&narrow[..], &[losses]].concat()), Aim::Time, &mut go).unwrap();
    let memory = |words: &str| report.families.iter().find(|family| family.words == words).unwrap().memory;
    assert!(memory("chunked loss") <= memory("eager loss"));
}

/// However little may be spent: a plan, and a bound below the best of all.
#[test]
fn a_search_within_a_budget_says_how_much_better_a_plan_could_be() {
    let scenario = scenario(&["plan.nodes=[1, 2, 4]"]);
    let all = plan(&scenario, Aim::Time, &mut go).unwrap();
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
