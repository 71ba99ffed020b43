//! What cannot be imported is refused with a reason; nothing panics.

use super::*;
use proptest::prelude::*;

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
    fn random_bytes_do_not_panic(steps in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4),
                                 graph in prop::collection::vec(any::<u8>(), 0..200)) {
        let steps: Vec<&[u8]> = steps.iter().map(Vec::as_slice).collect();
        prop_assert!(from_run_metadata(&steps, Some(&graph), 8).is_err());
    }

    #[test]
    fn changed_recordings_do_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
                                       cut in prop::option::of(any::<prop::sample::Index>()),
                                       in_graph in any::<bool>()) {
        let mut parts = [small_step(0, 0).bytes(), small_graph()];
        let part = &mut parts[usize::from(in_graph)];
        for (place, value) in &changes {
            let place = place.index(part.len());
            part[place] = *value;
        }
        if let Some(cut) = cut {
            part.truncate(cut.index(part.len()));
        }
        let second = small_step(500, 3).bytes();
        if let Ok(Imported { content: profile, .. }) = from_run_metadata(&[&parts[0], &second], Some(&parts[1]), 8) {
            prop_assert!(profile.check().is_ok());
        }
    }

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
