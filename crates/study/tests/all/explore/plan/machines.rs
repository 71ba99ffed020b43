//! Plans on machines to choose from, on two kinds of them, what they draw, and what to measure of them.

use super::{OFFERS, fault, scenario};
use crate::{fastest, go};
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_core::machine::Reliability;
use stepcast_core::method::Method as _;
use stepcast_core::prior::Priors;
use stepcast_core::strategy::Shares;
use stepcast_study::explore::plan::{
    Aim, COLLECTIVES, SHARED, applied, energy, is_of_gpu, plan, plan_exhaustively, plan_within,
};

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
    let found = fastest(&asked);
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
    let apart = fastest(&scenario(&[&narrow[..4], &[slow.as_str()]].concat()));
    assert!(apart.best.step > found.best.step);
    let everything = plan_exhaustively(&asked, Aim::Time, &mut go).unwrap();
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
        fastest(&scenario(&[&narrow[..], more].concat()))
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

/// 18 bytes for each of 70.6 billion parameters are half of the memory of 3.8 machines; with the deadline it takes 59 of them.
#[test]
fn offers_without_numbers_are_tried_where_they_fit() {
    let numbers = |changes: &[&str]| {
        let cluster = "cluster={ machine = \"dgx-h100\", machines = 1 }";
        let offers = "plan.offers=[{ machine = \"dgx-h100\" }, { machine = \"p5.48xlarge\" }]";
        let asked = scenario(&[&["model.zoo=llama3-70b", cluster, offers], changes].concat());
        let families = plan_within(SHARED, &asked, Aim::Time, &mut go).unwrap().families;
        let numbers = families.iter().filter(|family| family.property == "nodes");
        numbers.map(|family| family.value.parse().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!(numbers(&[]), [4, 8, 16]);
    assert_eq!(numbers(&["plan.tokens=1e12", "plan.deadline=30d"]), [64, 128, 256]);
    assert_eq!(numbers(&["plan.nodes=[3]"]), [3]);
}

#[test]
fn experiments_know_the_groups_that_they_measure() {
    let groups = &Priors::shipped().unwrap().groups;
    assert!(COLLECTIVES.iter().all(|name| groups.iter().any(|group| group.name == *name)));
    assert!(groups.iter().filter(|group| is_of_gpu(group)).count() >= 4);
}

/// Machines of eight under load: publisher, device, watts from the mains (MLPerf power, v4.0 to v5.0). Two runs of SMC that rest
/// between short steps, 5.1 and 5.8 kW, are no load of a whole machine.
const MACHINES: [(&str, &str, f64); 11] = [
    ("SMC", "h100-sxm5", 7159.0),
    ("SMC", "h100-sxm5", 6850.0),
    ("SMC", "h100-sxm5", 7088.0),
    ("SMC", "h100-sxm5", 7086.0),
    ("SMC", "h100-sxm5", 6840.0),
    ("SMC", "h100-sxm5", 7217.0),
    ("Dell", "h100-sxm5", 7129.0),
    ("Lenovo", "b200", 9580.0),
    ("Lenovo", "b200", 9761.0),
    ("Lenovo", "b200", 9568.0),
    ("Lenovo", "b200", 10044.0),
];

/// Machines draw what is predicted within 5 %, with their publisher left out of the hosts' share too, and lie in the interval.
#[test]
fn machines_of_publishers_left_out_draw_what_is_predicted() {
    let assumed = Reliability::shipped().unwrap();
    let of_devices = |device: &str| {
        let text = format!(
            "[model]\nzoo = \"gpt2\"\n[[cluster.workers]]\ncount = 8\ndevice = \"{device}\"\n[cluster.nodes]\nworkers = 8\n\
             [energy]\npue = 1.0\n[strategy.plan]\n"
        );
        let scenario = crate::scenario(&text, &[]);
        let rated = scenario.cluster.groups[0].device.power.unwrap().get() * 8.0;
        (energy(&scenario, 3600.0, None).unwrap().unwrap(), rated * assumed.supply.value)
    };
    for (publisher, device, watts) in MACHINES {
        let (report, devices) = of_devices(device);
        let others: Vec<f64> = MACHINES
            .iter()
            .filter(|(other, ..)| *other != publisher)
            .map(|(_, device, watts)| watts - of_devices(device).1)
            .collect();
        let host = others.iter().sum::<f64>() / others.len() as f64;
        for predicted in [report.kwh * 1000.0, devices + host] {
            assert!((predicted / watts - 1.0).abs() < 0.05, "{publisher} {device}: {predicted} {watts}");
        }
        let [least, most] = report.kwh_range.unwrap().map(|kwh| kwh * 1000.0);
        assert!((least..=most).contains(&watts), "{least} {watts} {most}");
    }
}
