//! The engine against the closed form, on plans whose links are apart, whose workers differ, or whose steps do.

use stepcast_analytic::transformer::Transformer;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::prediction::PartKind;
use stepcast_core::scenario::Scenario;
use stepcast_study::simulate::{Simulate, timeline};

const CLUSTER: &str = "[[cluster.workers]]\ncount = 64\ndevice = { base = \"h100-sxm5\", efficiency = 0.5 }\n\
    [cluster.network]\nbase = \"infiniband-ndr\"\n\
    [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\nports = 8\n\
    [methods.simulate]\njitter = 0\n";

fn scenario(model: &str, plan: &str, changes: &[&str]) -> Scenario {
    let text = format!("[model]\nzoo = \"{model}\"\nsequence = 2048\n{CLUSTER}[strategy.plan]\n{plan}\n");
    crate::scenario(&text, changes)
}

fn steps(scenario: &Scenario) -> [f64; 2] {
    let closed = Transformer.predict(scenario).unwrap();
    let simulated = Simulate.predict(scenario).unwrap();
    [closed.iteration.get(), simulated.iteration.get()]
}

/// Traffic that shares a link hides beside what the device waits for its host: a step that the host issues slowly enough
/// takes what the host takes.
#[test]
fn the_host_runs_ahead_of_a_device_that_shares_its_links() {
    let plan = "sharding = \"zero-3\"\noverlap = \"fsdp2\"\nglobal-batch = 256";
    let by_parts = ["cluster.workers.0.device=h100-sxm5", "model.sequence=128"];
    let of = |links: &str| {
        let change = format!("strategy.plan.shared-links={links}");
        scenario("gpt2-medium", plan, &[by_parts[0], by_parts[1], &change])
    };
    let [closed, apart] = steps(&of("false"));
    let [_, shared] = steps(&of("true"));
    let prediction = Simulate.predict(&of("true")).unwrap();
    let host = prediction.breakdown.iter().find(|part| part.kind == PartKind::Host).unwrap();
    assert!(host.time.get() > 0.1 * shared, "{host:?} of {shared}");
    assert!((apart / closed - 1.0).abs() < 1e-9 && (shared / closed - 1.0).abs() < 1e-9);
}

const PLAN: &str = "tensor = 4\npipeline = 4\nvirtual-stages = 2\nsharding = \"zero-1\"\nglobal-batch = 32";

#[test]
fn the_breakdown_is_that_of_the_closed_form() {
    let plan = "tensor = 4\npipeline = 4\nsharding = \"zero-1\"\noverlap = \"torchtitan\"\nglobal-batch = 32";
    let scenario = scenario("llama3-8b", &format!("{plan}\nshared-links = false"), &[]);
    let (closed, simulated) = (Transformer.predict(&scenario).unwrap(), Simulate.predict(&scenario).unwrap());
    assert_eq!(closed.breakdown.len(), simulated.breakdown.len(), "{:?}", simulated.breakdown);
    for (closed, simulated) in closed.breakdown.iter().zip(&simulated.breakdown) {
        assert_eq!(closed.kind, simulated.kind);
        assert!((closed.time.get() - simulated.time.get()).abs() < 1e-9, "{closed:?} {simulated:?}");
    }
    let bubbles = [&closed, &simulated].map(|it| it.transformer.as_ref().unwrap().bubble);
    assert!((bubbles[0] - bubbles[1]).abs() < 1e-9, "{bubbles:?}");
}

#[test]
fn computing_beside_traffic_costs_what_the_plan_says() {
    let step = |interference: &str| {
        let change = format!("strategy.plan.interference={interference}");
        steps(&scenario("llama3-8b", PLAN, &[&change]))[1]
    };
    let [free, half] = ["0", "0.5"].map(step);
    assert!(half > free * 1.001 && half < free * 1.5, "{free} {half}");
}

#[test]
fn a_slow_stage_slows_its_stage_alone() {
    let unequal = "cluster.workers=[{count=48,device={base=\"h100-sxm5\",efficiency=0.5}},\
                   {count=16,speed=0.5,device={base=\"h100-sxm5\",efficiency=0.5}}]";
    let plan = format!("{PLAN}\nshared-links = false");
    let equal = scenario("llama3-8b", &plan, &[]);
    let unequal = scenario("llama3-8b", &plan, &[unequal]);
    let [fast, _] = steps(&equal);
    let [closed, last_slow] = steps(&unequal);
    assert!(last_slow > fast * 1.5 && (last_slow / closed - 1.0).abs() < 0.01, "{fast} {last_slow} {closed}");
    let recording = timeline(&unequal, 1, &never_cancelled).unwrap();
    let timeline = recording.timeline();
    let length = |stage: u32| {
        let named = timeline.events.iter().find(|event| event.process == stage && event.name == "F0.0");
        named.map(|event| (event.until - event.since).get()).unwrap()
    };
    assert!((length(3) / length(2) - 2.0).abs() < 1e-6, "{} {}", length(3), length(2));
}

#[test]
fn a_slow_replica_holds_the_others_up() {
    // Data-parallel ranks of a stage are neighbours: the first replica of the first stage is slow.
    let unequal = "cluster.workers=[{count=4,speed=0.5,device={base=\"h100-sxm5\",efficiency=0.5}},\
                   {count=60,device={base=\"h100-sxm5\",efficiency=0.5}}]";
    let plan = format!("{PLAN}\nshared-links = false");
    let [_, fast] = steps(&scenario("llama3-8b", &plan, &[]));
    let [first_slow, one_slow] = steps(&scenario("llama3-8b", &plan, &[unequal]));
    assert!(one_slow > fast * 1.1 && one_slow < first_slow * 1.01, "{fast} {one_slow} {first_slow}");
}

/// Replicas on two kinds of workers end together, whatever of their traffic is hidden; the engine says the same.
#[test]
fn proportional_shares_end_together() {
    let unequal = "cluster.workers=[{count=32,device={base=\"h100-sxm5\",efficiency=0.5}},\
                   {count=32,speed=0.4,device={base=\"h100-sxm5\",efficiency=0.5}}]";
    for (sharding, overlap) in [
        ("none", "none"),
        ("none", "megatron"),
        ("zero-1", "torchtitan"),
        ("zero-1", "megatron"),
        ("hsdp", "fsdp2"),
    ] {
        let group = if sharding == "hsdp" { "sharding-group = 8\n" } else { "" };
        let with = |shares: &str| {
            let plan = format!(
                "tensor = 2\n{group}sharding = \"{sharding}\"\noverlap = \"{overlap}\"\nglobal-batch = 1024\n\
                 shared-links = false\nshares = \"{shares}\""
            );
            scenario("llama3-8b", &plan, &[unequal])
        };
        let [equal, proportional] = ["equal", "proportional"].map(with);
        let [closed, simulated] = steps(&proportional);
        assert!((simulated / closed - 1.0).abs() < 0.03, "{sharding} {overlap}: {closed} {simulated}");
        // Half of the speed of all against that of the slowest: 0.4 of 0.7.
        let [before, _] = steps(&equal);
        let gain = closed / before;
        // Fast replicas wait for sharded weights.
        let most = if sharding == "hsdp" { 0.95 } else { 0.66 };
        assert!(gain > 0.55 && gain < most, "{sharding} {overlap}: {gain}");
        let groups = Transformer.predict(&proportional).unwrap().groups;
        assert_eq!(groups.iter().map(|group| u64::from(group.batch) * 16).sum::<u64>(), 1024);
        let ratio = f64::from(groups[0].batch) / f64::from(groups[1].batch);
        assert!(ratio > if sharding == "hsdp" { 1.2 } else { 2.0 }, "{sharding} {overlap}: {groups:?}");
    }
}

/// Replicas with a pipeline on one kind of workers each end together; the engine says the same, and so do clusters of one kind with
/// the share of each, but for gradients that cross from one to the other.
#[test]
fn pipelines_on_one_kind_have_shares_of_their_own() {
    let group =
        |speed: f64| format!("{{count=32,speed={speed:.1},device={{base=\"h100-sxm5\",efficiency=0.5}}}}");
    let unequal = format!("cluster.workers=[{},{}]", group(1.0), group(0.4));
    for (schedule, sharding, overlap) in [
        ("1f1b", "none", "none"),
        ("1f1b", "zero-1", "megatron"),
        ("zb-h1", "none", "megatron"),
        ("1f1b", "zero-1", "torchtitan"),
    ] {
        let named = format!("{schedule} {sharding} {overlap}");
        let with = |cluster: &str, batch: u64, shares: &str| {
            let plan = format!(
                "tensor = 2\npipeline = 4\nschedule = \"{schedule}\"\nsharding = \"{sharding}\"\n\
                 overlap = \"{overlap}\"\nglobal-batch = {batch}\nshared-links = false\nshares = \"{shares}\""
            );
            scenario("llama3-8b", &plan, &[cluster])
        };
        let proportional = with(&unequal, 1024, "proportional");
        let [closed, simulated] = steps(&proportional);
        assert!((simulated / closed - 1.0).abs() < 0.02, "{named}: {closed} {simulated}");
        let [by_stage, _] = steps(&with(&unequal, 1024, "equal"));
        assert!(closed < 0.75 * by_stage, "{named}: {closed} {by_stage}");
        let groups = Transformer.predict(&proportional).unwrap().groups;
        // Four replicas of each kind.
        let batches: Vec<u64> = groups.iter().map(|group| u64::from(group.batch) * 4).collect();
        assert_eq!(batches.iter().sum::<u64>(), 1024, "{named}");
        let alone = [(1.0, batches[0]), (0.4, batches[1])].map(|(speed, batch)| {
            let [closed, _] = steps(&with(&format!("cluster.workers=[{}]", group(speed)), batch, "equal"));
            closed
        });
        let longer = alone[0].max(alone[1]);
        assert!(closed >= longer * 0.999 && closed < longer * 1.05, "{named}: {closed} {alone:?}");
    }
}

/// What ranks of both kinds exchange with every micro-batch, or what needs a certain number of them, has no shares of its own.
#[test]
fn shares_that_a_plan_cannot_have_are_refused() {
    let unequal = "cluster.workers=[{count=32,device=\"h100-sxm5\"},{count=32,device=\"a100-sxm4-80gb\"}]";
    for (plan, reason) in [
        ("sharding = \"zero-3\"", "with every micro-batch"),
        ("pipeline = 2\nsharding = \"hsdp\"\nsharding-group = 8", "with every micro-batch"),
        ("pipeline = 2\nvirtual-stages = 2", "one chunk on a stage"),
        ("pipeline = 2\nschedule = \"gpipe\"", "`1f1b` or `zb-h1`"),
        ("tensor = 8\npipeline = 8", "not all of one kind"),
    ] {
        let plan = format!("{plan}\nglobal-batch = 1024\nshares = \"proportional\"");
        let refused = Transformer.applies(&scenario("llama3-8b", &plan, &[unequal])).unwrap_err();
        assert!(refused.reason.contains(reason), "{plan}: {refused}");
    }
}

#[test]
fn jitter_lengthens_a_step() {
    let scenario = scenario("llama3-8b", PLAN, &["methods.simulate.jitter=0.05"]);
    let simulated = Simulate.predict(&scenario).unwrap();
    let [_, steady] = {
        let mut steady = scenario.clone();
        steady.methods.simulate.jitter = Some(0.0);
        steps(&steady)
    };
    let longer = simulated.iteration.get() / steady;
    assert!(longer > 1.03 && longer < 1.2, "{longer}");
    let report = simulated.simulation.unwrap();
    assert!(report.steps > 10 && report.step_s.low < report.step_s.high, "{report:?}");
}

/// Both ends of the pipeline wait for each other's gradients of a tied embedding.
#[test]
fn ends_wait_for_each_other_with_a_tied_embedding() {
    let plan = "tensor = 2\npipeline = 4\nglobal-batch = 64\nshared-links = false";
    let [closed, simulated] =
        steps(&scenario("gemma2-9b", plan, &["strategy.plan.stage-layers=[10,10,11,11]"]));
    assert!((simulated / closed - 1.0).abs() < 1e-9, "{closed} {simulated}");
}
