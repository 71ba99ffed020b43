//! Two kinds of machines in one job.

use super::tests::{OFFERS, fault, go, scenario};
use super::*;
use stepcast_core::method::Method as _;
use stepcast_core::strategy::Shares;

/// Two kinds of machines in one job: shares of the batch and layers of stages go by their speed, and the search finds what trying
/// everything finds.
#[test]
fn machines_of_two_kinds_work_in_one_job() {
    let mixed = OFFERS.replace(
        "node-hour = 24.0 }]",
        "node-hour = 24.0 }, { machine = \"dgx-h100\", name = \"both\", beside = \"dgx-a100-320gb\", beside-nodes = 2, \
         nodes = [1], node-hour = 24.0 }]",
    );
    let narrow = [
        "plan.virtual-stages=[1]",
        "plan.context=[1]",
        "plan.recompute=[\"none\"]",
        "plan.global-batch=96",
        &mixed,
    ];
    let asked = scenario(&narrow);
    let found = plan(&asked, Aim::Time, &mut go).unwrap();
    assert_eq!(found.best.machines, "1 × dgx-h100 + 2 × dgx-a100-320gb", "{}", found.best.words);
    assert_eq!(found.best.workers, 24);
    let alone = |name: &str| found.families.iter().find(|family| family.words == name).unwrap().more.unwrap();
    assert!(alone("new") > 0.2 && alone("dgx-a100-320gb") > 0.2);
    let again = Method.predict(&applied(&asked, &found.best).unwrap()).unwrap();
    assert!((again.iteration.get() / found.best.step.get() - 1.0).abs() < 1e-9);
    // 24 dollars for one machine, 8 for each of the others.
    let training = found.training.unwrap();
    let hourly = training.cost.unwrap() / training.time.get() * 3600.0;
    assert!((hourly - 40.0).abs() < 1e-6, "{hourly}");
    let slow = mixed.replace("beside-nodes = 2", "beside-nodes = 2, link = \"1 Gbit/s\"");
    let apart = plan(&scenario(&[&narrow[..4], &[slow.as_str()]].concat()), Aim::Time, &mut go).unwrap();
    assert!(apart.best.step > found.best.step);
    let everything = PlanQuestion::of(&asked, Aim::Time).unwrap().answer(Pruning::Nothing, &mut go).unwrap();
    assert_eq!(everything.best.step, found.best.step);
    let nobody = mixed.replace("beside = \"dgx-a100-320gb\"", "beside = \"old\"");
    assert!(fault(&[&nobody]).reason.contains("no offer \"old\""));
}

/// Replicas with their pipelines on one kind of machines each are tried beside pipelines whose stages differ by kind, and both
/// kinds beside each alone: the best of all is never worse than either.
#[test]
fn pipelines_on_machines_of_one_kind_are_tried() {
    let offer = |machine: &str, more: &str| format!("{{ machine = \"{machine}\", {more} }}");
    let alone = [offer("dgx-a100", "nodes = [2]"), offer("dgx-h100", "nodes = [2]")];
    let both = offer("dgx-h100", "name = \"both\", beside = \"dgx-a100\", beside-nodes = 2, nodes = [2]");
    let found = |offers: &[&str], more: &[&str]| {
        let offers = format!("plan.offers=[{}]", offers.join(", "));
        let narrow = [
            "model.zoo=llama3-8b",
            "plan.pipeline=[4]",
            "plan.virtual-stages=[1]",
            "plan.context=[1]",
            "plan.global-batch=96",
            &offers,
        ];
        plan(&scenario(&[&narrow[..], more].concat()), Aim::Time, &mut go).unwrap()
    };
    let [old, new] = alone.each_ref().map(|offer| found(&[offer], &[]).best.step);
    let all = [alone[0].as_str(), &alone[1], &both];
    let best = found(&all, &[]);
    assert!(best.best.step <= old.min(new));
    assert_eq!(best.best.plan.shares, Some(Shares::Proportional), "{}", best.best.words);
    assert!(best.confirmation.confirmed, "{:?}", best.confirmation);
    let by_stage = found(&all, &["plan.shares=[\"equal\"]", "plan.per-stage=false"]);
    assert!(best.best.step < by_stage.best.step);
}
