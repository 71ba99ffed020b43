//! Simulated runs: what they must have in common, their timelines, and what of a file is refused.

use crate::{deep, scenario};
use std::collections::BTreeMap;
use stepcast_analytic::liu2022::passes;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::pass::{Pass, Recorded};
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::scenario::Document;
use stepcast_sim::Station;
use stepcast_study::explore::sweep::on_threads;
use stepcast_study::simulate::{Recording, Simulate, timeline};
use stepcast_trace::timeline::{Flow, Level, Timeline};

fn predicted(changes: &[&str]) -> Prediction {
    let text = "[model]\nzoo = \"resnet50\"\n[cluster.servers]\nsoftware = \"none\"\n[strategy]\nsynchronisation = \"async\"\n[methods.simulate]\nsteps = 60\nwarm-up = 10\n";
    Simulate.predict(&scenario(text, changes)).unwrap()
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let on = |threads| on_threads(Some(threads), || predicted(&[]));
    assert_eq!(on(1), on(3));
}

#[test]
fn staleness_is_the_number_of_others() {
    let simulation = predicted(&[]).simulation.unwrap();
    // Four equal workers: each of the others updates once in between.
    assert!((simulation.mean_staleness - 3.0).abs() < 0.2, "{simulation:?}");
    assert!((simulation.effective_minibatch - 128.0).abs() < 8.0);
    let total: f64 = simulation.staleness_histogram.iter().sum();
    assert!((total - 1.0).abs() < 1e-9);
    let [low, high] = simulation.throughput_interval;
    assert!(low > 0.0 && high < 1.2 * low, "{low} {high}");
}

#[test]
fn waiting_costs_throughput() {
    let wide = "cluster.network.bandwidth=\"100 Gbit/s\"";
    let rate = |how: &str| predicted(&[wide, &format!("strategy.synchronisation={how}")]).throughput.get();
    let (never, bounded, always) = (rate("async"), rate("ssp(3)"), rate("bsp"));
    assert!(never >= 0.99 * bounded && bounded >= 0.99 * always, "{never} {bounded} {always}");
    assert!(predicted(&[wide, "strategy.synchronisation=bsp"]).simulation.unwrap().mean_staleness < 3.0);
}

#[test]
fn every_order_and_transport_has_an_answer() {
    for change in ["order=tic", "order=tac", "order=reverse", "order=random", "transport=tcp"] {
        let prediction = predicted(&[&format!("methods.simulate.{change}")]);
        assert!(prediction.throughput.get() > 0.0, "{change}");
    }
}

#[test]
fn more_servers_are_not_slower_where_links_decide() {
    let narrow = "cluster.network.bandwidth=\"1 Gbit/s\"";
    let rate =
        |servers: u32| predicted(&[narrow, &format!("cluster.servers.count={servers}")]).throughput.get();
    assert!(rate(4) > 1.5 * rate(1), "{} {}", rate(4), rate(1));
}

/// What a budget has no room for, or memory, is refused before anything is made ready for it.
#[test]
fn what_is_too_large_is_refused_at_once() {
    let mut scenario = scenario(&deep(4000, 2), &[]);
    scenario.methods.simulate.budget = 1000;
    assert_eq!(Simulate.predict(&scenario).unwrap_err().key, "methods.simulate.budget");
    let many = scenario.on(scenario.cluster.resized(16_000));
    let refused = Simulate.applies(&many).unwrap_err();
    assert!(refused.reason.contains("memory"), "{refused:?}");
    assert!(Simulate.applies(&crate::scenario(&deep(100, 2), &[])).is_ok());
}

fn recorded(changes: &[&str]) -> Recording {
    let text = "[model]\nzoo = \"alexnet\"\n[strategy]\nsynchronisation = \"async\"\n";
    timeline(&scenario(text, changes), 3, &never_cancelled).unwrap()
}

struct Example;

impl Files for Example {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        let text = include_bytes!("../../../../../examples/one-worker.json");
        Ok(stepcast_trace::parse_profile(text, path).unwrap())
    }
}

/// Units carried over what is called `name`, by its level.
fn carried(timeline: &Timeline<'_>, name: &str, capacity: f64, end: f64) -> f64 {
    let shared = timeline.processes.last().unwrap();
    let level = shared.levels.iter().position(|(level, _)| level == name).unwrap() as u32;
    let of: Vec<&Level> = timeline.levels.iter().filter(|entry| entry.level == level).collect();
    let ends = of.iter().skip(1).map(|next| next.at.get()).chain([end]);
    of.iter().zip(ends).map(|(entry, until)| entry.value / 100.0 * capacity * (until - entry.at.get())).sum()
}

/// Slices of a run have all its steps between them.
#[test]
fn throughput_over_time_adds_up_to_all_steps() {
    let recording = recorded(&[]);
    let records = &recording.observed.steps.records;
    let end = records.iter().map(|record| record.until).fold(0.0, f64::max);
    let slices = recording.throughput(8.0, 10);
    let samples: f64 = slices.iter().map(|(_, rate)| rate.get() * end / 10.0).sum();
    assert!((samples / (8.0 * records.len() as f64) - 1.0).abs() < 1e-6, "{samples} {}", records.len());
}

#[test]
fn levels_of_links_account_for_every_byte() {
    for servers in [1, 2] {
        let recording = recorded(&[&format!("cluster.servers.count={servers}")]);
        let timeline = recording.timeline();
        let end = timeline.events.iter().map(|event| event.until.get()).fold(0.0, f64::max);
        let program = &recording.program;
        let steps = recording.observed.steps.records.len() as f64;
        let mut bytes = 0.0;
        let mut expected = 0.0;
        for (local, name) in recording.lane_names.iter().enumerate() {
            let capacity = match program.lanes[program.lane_of[0][local] as usize].station {
                Station::Pool(pool) => program.pools[pool as usize].capacity,
                Station::Links(route) => program.ports[route.ports()[0] as usize],
                _ => continue,
            };
            bytes += carried(&timeline, &format!("{name}: used"), capacity, end);
            let on = |op: &usize| usize::from(program.graph.lane(*op as u32)) == local;
            let work = &program.steps[0][0].work;
            expected += steps * (0..work.len()).filter(on).map(|op| work[op]).sum::<f64>();
        }
        assert!(expected > 1e9 && (bytes / expected - 1.0).abs() < 1e-6, "{bytes} {expected}");
    }
}

#[test]
fn every_push_leads_to_its_update() {
    let text = "[model]\nprofile = \"one-worker.json\"\n[strategy]\nsynchronisation = \"async\"\n";
    let scenario = Document::new("test", text).scenario_with(&Example, &[]).unwrap();
    let recording = timeline(&scenario, 3, &never_cancelled).unwrap();
    let timeline = recording.timeline();
    let operations = &recording.about.operations;
    let mut begins = BTreeMap::new();
    for event in &timeline.events {
        if let Flow::Begins(id) = event.flow {
            begins.insert(id, event);
        }
    }
    let mut ends = 0;
    for event in &timeline.events {
        let Flow::Ends(id) = event.flow else { continue };
        let push = begins[&id];
        assert!(push.process == event.process && push.until <= event.since, "{push:?} {event:?}");
        let update = operations.iter().find(|operation| operation.name == event.name).unwrap();
        let pushed = update.after.iter().map(|op| &operations[*op as usize]);
        let mut pushed = pushed.filter(|operation| operation.resource == Resource::Uplink);
        assert!(pushed.any(|operation| operation.name == push.name));
        ends += 1;
    }
    let updates = timeline
        .events
        .iter()
        .filter(|event| operations.iter().any(|op| op.resource == Resource::Server && op.name == event.name));
    assert_eq!((ends, begins.len()), (updates.count(), ends));
    assert!(ends > 0);
}

/// What worker 0 computed, and when its gradients were ready, come back from the file.
#[test]
fn a_timeline_of_all_reduce_gives_its_passes_back() {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let changes = [
        "strategy.architecture=all-reduce",
        "strategy.synchronisation=bsp",
        "strategy.all-reduce.overlap=ideal",
        "methods.simulate.jitter=0",
    ];
    let recording = recorded(&changes);
    stepcast_trace::timeline::write_timeline(file.path(), &recording.timeline()).unwrap();
    let imported =
        stepcast_trace::import(&[file.path().to_owned()], &stepcast_trace::Options::default()).unwrap();
    let stepcast_trace::Content::Profile(profile) = imported.content else { panic!("steps give a profile") };
    assert_eq!((profile.steps.len(), profile.batch), (3, 32));
    let read = Recorded::new(&profile).unwrap().mean(1.0);
    let ready = |pass: &Pass| -> Vec<(f64, f64)> {
        let mut now = pass.forward.get();
        let mut moments = Vec::new();
        for layer in &pass.layers {
            now += layer.backward.get();
            if layer.gradients.get() > 0.0 {
                moments.push((now, layer.gradients.get()));
            }
        }
        moments.push((now + pass.update.get(), 0.0));
        moments
    };
    let text = "[model]\nzoo = \"alexnet\"\n";
    let run = ready(&passes(&scenario(text, &changes)).unwrap()[0].1);
    let read = ready(&read);
    assert_eq!(read.len(), run.len());
    for ((time, size), (expected, sent)) in read.into_iter().zip(run) {
        assert!((time - expected).abs() < 1e-7 && (size - sent).abs() < 0.5, "{time} {expected}");
    }
}

#[test]
fn no_profile_is_made_of_sprint() {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let recording = recorded(&["strategy.architecture=all-reduce"]);
    stepcast_trace::timeline::write_timeline(file.path(), &recording.timeline()).unwrap();
    let error = stepcast_trace::import(&[file.path().to_owned()], &stepcast_trace::Options::default());
    assert!(error.unwrap_err().reason.contains("no profile can be made"));
}

#[test]
fn queues_end_empty() {
    for changes in [
        &[][..],
        &["methods.simulate.transport=tcp"],
        &["strategy.architecture=all-reduce", "strategy.synchronisation=bsp"],
    ] {
        let recording = recorded(changes);
        let timeline = recording.timeline();
        let names = timeline.processes.last().map_or(&[][..], |process| &process.levels);
        for (level, _) in (0..).zip(names).filter(|(_, (name, _))| name.ends_with("waiting")) {
            let last = timeline.levels.iter().rfind(|entry| entry.level == level).unwrap();
            assert!(last.value.abs() < 1e-12, "{changes:?}: {last:?} {}", names[level as usize].0);
        }
    }
}
