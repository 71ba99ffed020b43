use super::proto::tests::{TestNode, trace};
use super::*;
use crate::import::testing::imported;
use stepcast_core::model::zoo;
use stepcast_core::pass::Recorded;

const SUM: &[(&str, u64)] = &[("comm_type", 0), ("comm_size", 4000)];
const LARGE_SUM: &[(&str, u64)] = &[("comm_type", 0), ("comm_size", 8000)];

/// Forward 300 µs; backward of two layers, 200 and 100 µs, each with an all-reduce; an optimiser of 50 µs.
const SMALL: &[TestNode<'static>] = &[
    (1, "forward", 4, 300, &[], &[("is_cpu_op", 0)]),
    (2, "backward b", 4, 200, &[1], &[]),
    (3, "ncclKernel_AllReduce", 7, 5000, &[2], SUM),
    (4, "backward a", 4, 100, &[2], &[]),
    (5, "ncclKernel_AllReduce", 7, 5000, &[4, 3], LARGE_SUM),
    (6, "broadcast", 7, 70, &[], &[("comm_type", 5), ("comm_size", 8)]),
    (7, "optimiser", 4, 50, &[3, 5], &[]),
];

#[test]
fn nodes_become_a_pass() {
    let Imported { content: found, summary, notes } = imported("rank.0.et", &trace(SMALL)).unwrap();
    let profile = found.into_profile().unwrap();
    let pass = Recorded::new(&profile).unwrap().steps(1.0).next().unwrap();
    assert!((pass.forward.get() - 500e-6).abs() < 1e-12);
    assert!((pass.layers[1].backward.get() - 100e-6).abs() < 1e-12);
    assert!((pass.update.get() - 50e-6).abs() < 1e-12);
    assert!((pass.gradients().get() - 12_000.0).abs() < 1e-9);
    assert!((profile.steps[0].length - 650e-6).abs() < 1e-12);
    assert!(notes[0].starts_with("1 other collective ignored"), "{notes:?}");
    assert_eq!(summary.figures[0].value, SummaryValue::Count(7));
}

#[test]
fn json_says_the_same() {
    let listed = include_str!("listed.json");
    let printed = include_str!("printed.json");
    let expected = imported("x.et", &trace(SMALL)).unwrap().content.into_profile().unwrap();
    for text in [listed, printed] {
        let profile = imported("x.json", text).unwrap().content.into_profile().unwrap();
        assert_eq!((&profile.operations, &profile.steps), (&expected.operations, &expected.steps), "{text}");
    }
}

#[test]
fn what_is_cut_off_is_said() {
    let whole = trace(SMALL);
    let between: Vec<usize> = (0..SMALL.len()).map(|count| trace(&SMALL[..count]).len()).collect();
    for end in 1..whole.len() {
        match imported("x.et", &whole[..end]) {
            Ok(Imported { notes, .. }) => {
                assert!(
                    notes.iter().any(|note| note.contains("is lost")) != between.contains(&end),
                    "{end} {notes:?}"
                );
            }
            Err(error) => assert!(!error.remedy.is_empty()),
        }
    }
}

#[test]
fn a_trace_without_sizes_is_refused() {
    let bytes = trace(&[(1, "a", 4, 3, &[], &[]), (2, "sum", 7, 3, &[1], &[])]);
    let error = imported("x.et", &bytes).unwrap_err();
    assert!(error.reason.contains("no size of any all-reduce: 2 nodes"), "{error}");
    let error =
        imported("x.json", br#"{"schema": "1.0.2-chakra.0.0.4", "nodes": [{"id": 1, "ctrl_deps": 0}]}"#)
            .unwrap_err();
    assert!(error.reason.contains("neither times nor the layers"), "{error}");
}

#[test]
fn shapes_without_times_become_a_network() {
    let text = include_str!("network.json");
    let Imported { content: found, notes, .. } = imported("net.json", text.as_bytes()).unwrap();
    let Content::Model(model) = found else { panic!("a trace without times gives a model") };
    assert_eq!(model.layers().len(), 6);
    assert_eq!(model.parameters(), 16 * 3 * 9 + 10 * 16384 + 10);
    assert!(notes[0].contains("batches of 8"), "{notes:?}");
    let unknown = text.replace("aten::add", "aten::roll");
    let error = imported("net.json", unknown.as_bytes()).unwrap_err();
    assert!(error.origin().ends_with("aten::flatten") && error.reason.contains("aten::roll"), "{error}");
}

/// The traces of the Chakra and PARAM projects; not part of this repository.
#[test]
fn published_traces_can_be_imported() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/external");
    if !folder.exists() {
        eprintln!("skipped: the published traces are not here");
        return;
    }
    let options = Options { batch: Some(32), ..Options::default() };
    let open = |name: &str| crate::import(&[folder.join(name)], &options);
    let profile = open("chakra/feeder_tests_trace.tar.gz").unwrap().content.into_profile().unwrap();
    let pass = Recorded::new(&profile).unwrap().steps(1.0).next().unwrap();
    // ResNet-50 has 25,557,032 parameters.
    assert!((pass.gradients().get() - 4.0 * 25_557_032.0).abs() < 1.0, "{}", pass.gradients());
    for name in ["param/resnet_et.json.gz", "param/1.1.0-chakra.0.0.4__resnet_2gpu_et.json.gz"] {
        let Content::Model(model) = open(name).unwrap().content else { panic!("{name} tells no times") };
        let known = zoo::build("resnet50").unwrap();
        assert_eq!(model.parameters(), known.parameters());
        assert_eq!(model.layers().len(), known.layers().len());
        assert_eq!(model.cost(), known.cost());
    }
    assert!(open("chakra/json_trace.tar.gz").unwrap_err().reason.contains("no size of any all-reduce"));
    assert!(open("chakra/1.0.2-chakra.0.0.4.tgz").unwrap_err().reason.contains("neither times"));
}
