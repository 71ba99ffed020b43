//! Searches over kinds of machines and ways to offload, against searches on each of them.

use super::tests::{OFFERS, go, scenario};
use super::*;

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

/// Sizes of buckets and gathers ahead are searched as if each were a search of its own.
#[test]
fn buckets_and_gathers_ahead_are_searched() {
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
}
