//! A small job imported, and recordings that are refused with a reason; nothing panics.

use super::{Steps, decode, profile as profile_of};
use crate::Imported;
use crate::source::Memory;
use fixture::{StepBuilder, WORKER, edge, graphs, node, server, small_graph, small_step};
use proptest::prelude::*;
use stepcast_core::fault::Fault;
use stepcast_core::profile::{Operation, Profile, Resource};

mod fixture;

fn import(steps: &[StepBuilder], graphs: &[u8]) -> Result<Imported<Profile>, Fault> {
    let bytes: Vec<Vec<u8>> = steps.iter().map(StepBuilder::bytes).collect();
    let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    from_run_metadata(&slices, Some(graphs), 8)
}

fn from_run_metadata(steps: &[&[u8]], graphs: Option<&[u8]>, batch: u32) -> Result<Imported<Profile>, Fault> {
    let names: Vec<String> = (0..steps.len()).map(|index| format!("step {index}")).collect();
    let memory = Memory::new(1 << 30);
    let mut all = Steps::default();
    if let Some(bytes) = graphs {
        all.graphs = Some(("graphs".to_owned(), decode("graphs", bytes, &memory)?.partition_graphs));
    }
    for (name, bytes) in names.iter().zip(steps) {
        all.take(name, bytes, graphs.is_some(), &memory)?;
    }
    profile_of(all, batch, "steps", "steps")
}

fn three_steps() -> [StepBuilder; 3] {
    [small_step(0, 0), small_step(500, 10), small_step(1010, 20)]
}

fn index(profile: &Profile, name: &str) -> usize {
    profile.operations.iter().position(|operation| operation.name == name).unwrap()
}

fn operation<'a>(profile: &'a Profile, name: &str) -> &'a Operation {
    &profile.operations[index(profile, name)]
}

fn after<'a>(profile: &'a Profile, name: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = operation(profile, name)
        .after
        .iter()
        .map(|&before| profile.operations[before as usize].name.as_str())
        .collect();
    names.sort_unstable();
    names
}

/// Start and end in whole microseconds.
fn time(profile: &Profile, step: usize, name: &str) -> (i64, i64) {
    let (step, index) = (&profile.steps[step], index(profile, name));
    let micros = |seconds: f64| (seconds * 1e6).round() as i64;
    (micros(step.start[index]), micros(step.end[index]))
}

fn micros(lengths: impl Iterator<Item = f64>) -> Vec<i64> {
    lengths.map(|length| (length * 1e6).round() as i64).collect()
}

#[test]
fn a_small_job() {
    let Imported { content: profile, notes, .. } = import(&three_steps(), &small_graph()).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let names: Vec<&str> = profile.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["weight", "weight/read", "edge_1", "forward", "backward", "edge_2", "update"]);
    assert_eq!(operation(&profile, "edge_1").resource, Resource::Downlink);
    assert_eq!(operation(&profile, "edge_1").bytes, 4000);
    assert_eq!(operation(&profile, "edge_2").resource, Resource::Uplink);
    assert_eq!(operation(&profile, "update").resource, Resource::Server);
    assert_eq!(after(&profile, "edge_1"), ["weight/read"]);
    assert_eq!(after(&profile, "backward"), ["edge_1", "forward"]);
    assert_eq!(after(&profile, "update"), ["edge_2", "weight"]);
    assert_eq!(time(&profile, 1, "edge_2"), (385, 435));
    // The gaps are 60 and 60: the last step is as long as its records, 460, plus 60.
    assert_eq!(micros(profile.steps.iter().map(|step| step.length)), [500, 510, 520]);
    assert_eq!(profile.batch, 8);
}

#[test]
fn the_order_of_files_does_not_matter() {
    let [first, second, third] = three_steps();
    let sorted = import(&three_steps(), &small_graph()).unwrap();
    assert_eq!(import(&[third, first, second], &small_graph()).unwrap(), sorted);
}

#[test]
fn what_was_not_recorded_is_contracted() {
    let ps = server(0);
    let nodes = graphs(&[
        &[
            edge("_Recv", "edge_1", &ps, WORKER, &[]),
            node("silent", "NoOp", WORKER, &["edge_1_Recv", "^ready"]),
            node("silent/too", "Identity", WORKER, &["silent:1"]),
            node("ready", "Const", WORKER, &[]),
            node("forward", "MatMul", WORKER, &["silent/too:2", "^silent", "gone"]),
            edge("_Send", "loss", WORKER, WORKER, &["forward"]),
        ],
        &[
            node("weight", "VariableV2", &ps, &[]),
            node("weight/read", "Identity", &ps, &["weight"]),
            edge("_Send", "edge_1", &ps, WORKER, &["weight/read"]),
        ],
    ]);
    let step = StepBuilder::at(0)
        .ran(&ps, "weight", 0, 5, 10)
        .ran(WORKER, "ready", 0, 1, 0)
        .got("edge_1", &ps, WORKER, 6, 50, 40)
        .ran(WORKER, "forward", 60, 90, 1);
    let Imported { content: profile, notes, .. } = import(&[step], &nodes).unwrap();
    assert_eq!(profile.operations.len(), 4);
    assert_eq!(after(&profile, "forward"), ["edge_1", "ready"]);
    assert_eq!(after(&profile, "edge_1"), ["weight"]);
    assert!(notes[0].starts_with("1 input ignored: from nodes missing"), "{notes:?}");
}

#[test]
fn loops_do_not_wait_for_their_last_iteration() {
    let ps = server(0);
    let nodes = graphs(&[&[
        edge("_Recv", "edge_1", &ps, WORKER, &[]),
        node("merge", "Merge", WORKER, &["edge_1_Recv", "next"]),
        node("body", "MatMul", WORKER, &["merge"]),
        node("next", "NextIteration", WORKER, &["body"]),
    ]]);
    let mut step = StepBuilder::at(0).got("edge_1", &ps, WORKER, 0, 10, 4);
    for start in [20, 50, 80] {
        step = step
            .ran(WORKER, "merge", start, start + 1, 1)
            .ran(WORKER, "body", start + 2, start + 12, 1)
            .ran(WORKER, "next", start + 13, start + 14, 1);
    }
    let Imported { content: profile, notes, .. } = import(&[step], &nodes).unwrap();
    assert_eq!(after(&profile, "merge"), ["edge_1"]);
    assert_eq!(after(&profile, "next"), ["body"]);
    assert_eq!(time(&profile, 0, "body"), (22, 52), "three times 10 µs");
    assert!(notes.iter().any(|note| note.contains("6 records joined")), "{notes:?}");
}

#[test]
fn a_tensor_recorded_twice_is_there_when_the_last_part_is() {
    let ps = server(0);
    let step = small_step(0, 0).got("edge_1", &ps, WORKER, 25, 65, 4000);
    let Imported { content: profile, notes, .. } = import(&[step], &small_graph()).unwrap();
    assert_eq!(time(&profile, 0, "edge_1"), (20, 65));
    assert!(notes[0].contains("1 record joined"), "{notes:?}");
}

#[test]
fn a_missing_record_is_estimated_from_the_other_steps() {
    let [first, second, third] = three_steps();
    let steps = [first, second.without("edge_2"), third];
    let Imported { content: profile, notes, .. } = import(&steps, &small_graph()).unwrap();
    // As in the other steps, 5 µs after "backward" and 5 µs before "update".
    assert_eq!(time(&profile, 1, "edge_2"), (385, 435));
    assert!(
        notes[0].contains("estimated from the other steps: 1 (1 of transfers) in 1 of 3 steps"),
        "{notes:?}"
    );
    let [first, second, third] = three_steps();
    let Imported { content: profile, .. } =
        import(&[first, second.without("update"), third], &small_graph()).unwrap();
    assert_eq!(time(&profile, 1, "update"), (440, 450), "nothing waits for it: 10 µs as in the other steps");
}

#[test]
fn a_tensor_that_was_never_recorded_has_the_size_of_what_was_made() {
    let steps = three_steps().map(|step| step.without("edge_2"));
    let Imported { content: profile, notes, .. } = import(&steps, &small_graph()).unwrap();
    assert_eq!(operation(&profile, "edge_2").bytes, 4000);
    assert_eq!(time(&profile, 0, "edge_2"), (370, 430));
    assert!(notes.iter().any(|note| note.contains("edge_2 was never recorded as received")), "{notes:?}");
}

#[test]
fn a_step_of_another_kind_is_left_out() {
    let other = StepBuilder::at(1550).ran(WORKER, "save", 0, 400, 1).ran(WORKER, "forward", 400, 500, 1);
    let [first, second, third] = three_steps();
    let steps = [first, second, third, other];
    let Imported { content: profile, notes, .. } = import(&steps, &small_graph()).unwrap();
    assert_eq!(profile.steps.len(), 3);
    assert!(notes[0].starts_with("step 3 lacks 7 of 8 usual records"), "{notes:?}");
    assert!(profile.operations.iter().all(|operation| operation.name != "save"));
}

#[test]
fn steps_that_do_not_follow_each_other_are_as_long_as_their_records() {
    let steps = [small_step(0, 0), small_step(500, 0), small_step(90_000, 0)];
    let Imported { content: profile, notes, .. } = import(&steps, &small_graph()).unwrap();
    assert_eq!(micros(profile.steps.iter().map(|step| step.length)), [500, 500, 500]);
    assert!(notes[0].starts_with("1 of 2 steps are not followed"), "{notes:?}");
    let same = [small_step(0, 0), small_step(0, 0)];
    let Imported { content: profile, .. } = import(&same, &small_graph()).unwrap();
    assert_eq!(micros(profile.steps.iter().map(|step| step.length)), [440, 440]);
}

#[test]
fn several_servers_have_numbers() {
    let (ps1, ps4) = (server(1), server(4));
    let worker = "/job:worker/replica:0/task:3/device:CPU:0";
    let half = |ps: &str, name: &str| {
        vec![
            node(name, "VariableV2", ps, &[]),
            edge("_Send", &format!("edge_{name}"), ps, worker, &[name]),
            edge("_Recv", &format!("edge_up_{name}"), worker, ps, &[]),
            node("update", "Assign", ps, &[name, &format!("edge_up_{name}_Recv")]),
        ]
    };
    let on_worker = [
        edge("_Recv", "edge_a", &ps1, worker, &[]),
        edge("_Recv", "edge_b", &ps4, worker, &[]),
        node("work", "MatMul", worker, &["edge_a_Recv", "edge_b_Recv"]),
        edge("_Send", "edge_up_a", worker, &ps1, &["work"]),
        edge("_Send", "edge_up_b", worker, &ps4, &["work"]),
    ];
    let nodes = graphs(&[&half(&ps4, "b"), &on_worker, &half(&ps1, "a")]);
    let step = StepBuilder::at(0)
        .ran(&ps1, "a", 0, 5, 10)
        .ran(&ps4, "b", 1, 5, 20)
        .got("edge_a", &ps1, worker, 6, 50, 40)
        .got("edge_b", &ps4, worker, 7, 60, 80)
        .ran(worker, "work", 60, 90, 1)
        .got("edge_up_a", worker, &ps1, 91, 100, 40)
        .got("edge_up_b", worker, &ps4, 92, 101, 80)
        .ran(&ps1, "update", 101, 102, 10)
        .ran(&ps4, "update", 103, 104, 20);
    let Imported { content: profile, notes, .. } = import(&[step], &nodes).unwrap();
    let server = |name| operation(&profile, name).server;
    assert_eq!(["a", "edge_a", "edge_up_a", "update (2)"].map(server), [0; 4]);
    assert_eq!(["b", "edge_b", "edge_up_b", "update"].map(server), [1; 4]);
    assert_eq!(after(&profile, "update"), ["b", "edge_up_b"]);
    assert_eq!(after(&profile, "update (2)"), ["a", "edge_up_a"]);
    assert!(notes.iter().all(|note| note.contains("no two steps")), "{notes:?}");
}

#[test]
fn only_one_worker_is_imported() {
    let other = "/job:worker/replica:0/task:1/device:CPU:0";
    let steps = three_steps().map(|step| step.ran(other, "forward", 5, 9, 1));
    let Imported { content: profile, notes, .. } = import(&steps, &small_graph()).unwrap();
    assert_eq!(time(&profile, 0, "forward"), (70, 170));
    assert!(notes.iter().any(|note| note.ends_with("1 other worker ignored")), "{notes:?}");
}

#[test]
fn records_of_kernels_are_named_as_unused() {
    let stream = "/job:worker/replica:0/task:0/device:GPU:0/stream:all";
    let steps = three_steps().map(|step| step.ran(stream, "forward:MatMul", 5, 900, 1));
    let Imported { content: profile, notes, .. } = import(&steps, &small_graph()).unwrap();
    assert_eq!(time(&profile, 0, "forward"), (70, 170));
    assert!(notes[0].contains("not those of the kernels"), "{notes:?}");
}

#[test]
fn clocks_that_differ_are_noticed() {
    let ps = server(0);
    let steps = three_steps().map(|step| step.without("update").ran(&ps, "update", 300, 310, 1));
    let notes = import(&steps, &small_graph()).unwrap().notes;
    assert!(notes[0].starts_with("3 of 21 recorded operations started more than 50 µs before"), "{notes:?}");
}

fn fails(steps: &[StepBuilder], graphs: &[u8]) -> Fault {
    import(steps, graphs).unwrap_err()
}

#[test]
fn a_message_that_is_cut_short() {
    let whole = small_step(0, 0).bytes();
    let error = from_run_metadata(&[&whole, &whole[..whole.len() - 3]], None, 8).unwrap_err();
    assert_eq!(error.origin(), "step 1");
    assert!(error.reason.contains("not a whole RunMetadata"), "{error}");
    let graph = small_graph();
    let error = from_run_metadata(&[&whole], Some(&graph[..graph.len() - 3]), 8).unwrap_err();
    assert_eq!(error.origin(), "graphs");
}

#[test]
fn graphs_that_are_absent() {
    let whole = small_step(0, 0).bytes();
    let error = from_run_metadata(&[&whole], None, 8).unwrap_err();
    assert!(error.reason.contains("no partition graphs") && error.remedy.contains("output_partition_graphs"));
    assert_eq!(from_run_metadata(&[&whole], Some(&whole), 8).unwrap_err().origin(), "graphs");
    // A step may carry them itself: protobuf messages are joined by putting one behind the other.
    let both = [whole, small_graph()].concat();
    assert_eq!(from_run_metadata(&[&both], None, 8).unwrap().content.operations.len(), 7);
}

#[test]
fn graphs_of_another_job() {
    let ps = server(0);
    let other = graphs(&[&[
        node("weight", "VariableV2", &ps, &[]),
        edge("_Send", "edge_9", &ps, WORKER, &["weight"]),
        edge("_Recv", "edge_9", &ps, WORKER, &[]),
    ]]);
    let error = fails(&three_steps(), &other);
    assert!(error.reason.contains("recorded names are not in the graphs"), "{error}");
}

#[test]
fn steps_without_records_worker_or_transfers() {
    assert!(from_run_metadata(&[], Some(&small_graph()), 8).unwrap_err().remedy.contains("FULL_TRACE"));
    assert!(fails(&[StepBuilder::at(0)], &small_graph()).remedy.contains("FULL_TRACE"));
    let only_server = StepBuilder::at(0).ran(&server(0), "weight", 0, 1, 1);
    assert!(fails(&[only_server], &small_graph()).reason.contains("no operation of a worker"));
    let alone = StepBuilder::at(0).ran(WORKER, "work", 0, 1, 1);
    let nodes = graphs(&[&[node("work", "MatMul", WORKER, &[])]]);
    assert!(fails(&[alone], &nodes).reason.contains("no tensor moves"));
}

#[test]
fn operations_in_a_circle() {
    let ps = server(0);
    let nodes = graphs(&[&[
        edge("_Recv", "edge_1", &ps, WORKER, &[]),
        node("forward", "MatMul", WORKER, &["edge_1_Recv", "backward"]),
        node("backward", "MatMul", WORKER, &["forward"]),
    ]]);
    let step = small_step(0, 0).without("weight").without("weight/read").without("update").without("edge_2");
    assert!(fails(&[step], &nodes).reason.contains("circle"));
}

#[test]
fn steps_that_have_nothing_in_common() {
    let of = |at, name: &str| {
        (0..4).fold(StepBuilder::at(at), |step, i| step.ran(WORKER, &format!("{name}{i}"), i, i + 1, 1))
    };
    assert!(fails(&[of(0, "a"), of(10, "b")], &small_graph()).reason.contains("the steps differ"));
}

#[test]
fn a_batch_of_none() {
    let step = small_step(0, 0).bytes();
    assert_eq!(from_run_metadata(&[&step], Some(&small_graph()), 0).unwrap_err().origin(), "steps, batch");
}

proptest! {
    #[test]
    fn extreme_times_do_not_panic(times in prop::collection::vec((any::<i64>(), any::<i64>()), 7), count in 1_usize..4) {
        use crate::tensorflow::proto::RunMetadata;
        use prost::Message;
        let mut metadata = RunMetadata::decode(&small_step(0, 0).bytes()[..]).unwrap();
        let stats = metadata.step_stats.as_mut().unwrap();
        let records = stats.devices.iter_mut().flat_map(|device| &mut device.records);
        for (record, (start, length)) in records.zip(times) {
            (record.all_start_nanos, record.all_end_rel_nanos) = (start, length);
            (record.all_start_micros, record.all_end_rel_micros) = (start, length);
        }
        let bytes = metadata.encode_to_vec();
        let _ = from_run_metadata(&vec![&bytes[..]; count], Some(&small_graph()), 8);
    }
}
