use super::*;
use crate::{Content, Options};
use stepcast_core::pass::Recorded;
use stepcast_core::quantity::Seconds;

/// A weight goes to the worker, its gradient back; the worker's second operation overlaps the first.
fn timeline(begin: u64, memory: bool) -> String {
    let lane = |pid: u32, device: &str| {
        format!(
            "{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": {pid}, \"args\": {{\"name\": \"{device} Compute\"}}}}"
        )
    };
    let op = |pid: u32, name: &str, start: u64, duration: u64, inputs: &str| {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"Op\", \"name\": \"Op\", \"pid\": {pid}, \"tid\": 0, \"ts\": {}, \
             \"dur\": {duration}, \"args\": {{\"name\": \"{name}\", \"op\": \"Op\"{inputs}}}}}",
            begin + start
        )
    };
    let size = |name: &str, bytes: u32| {
        format!(
            "{{\"ph\": \"O\", \"cat\": \"Tensor\", \"name\": \"{name}\", \"pid\": 9, \"tid\": 0, \"ts\": 1, \"id\": 0, \
             \"args\": {{\"snapshot\": {{\"tensor_description\": \"dtype: DT_FLOAT allocation_description {{ \
             requested_bytes: {bytes} }}\"}}}}}}"
        )
    };
    let mut events = vec![
        lane(1, "/job:worker/replica:0/task:0/device:CPU:0"),
        lane(3, "/job:ps/replica:0/task:0/device:CPU:0"),
        lane(5, "/job:worker/replica:0/task:0/device:GPU:0/stream:all"),
        op(3, "w", 0, 10, ""),
        op(1, "_SOURCE", 0, 3, ""),
        op(1, "forward", 100, 200, ", \"input0\": \"w_S7\""),
        op(1, "side", 150, 200, ", \"input0\": \"forward\", \"input1\": \"gradient\""),
        op(1, "gradient", 350, 300, ", \"input0\": \"forward:1\""),
        op(3, "apply", 900, 20, ", \"input0\": \"w\", \"input1\": \"gradient/_12\""),
        op(5, "kernel", 900, 20, ""),
        "{\"ph\": \"X\", \"pid\": 1, \"ts\": \"x\", \"dur\": 1, \"args\": {\"name\": \"undated\"}}"
            .to_owned(),
    ];
    if memory {
        events.extend([size("w", 4000), size("gradient", 4000)]);
    }
    format!("{{\n \"traceEvents\": [\n{}\n]\n}}", events.join(",\n"))
}

fn imported(files: &[String]) -> Result<Imported<Profile>, Fault> {
    let folder = tempfile::tempdir().unwrap();
    for (index, text) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("step_{index}.json")), text).unwrap();
    }
    let options = Options { batch: Some(32), ..Options::default() };
    crate::import(&[folder.path().to_owned()], &options).map(|imported| {
        imported.map(|found| match found {
            Content::Profile(profile) => profile,
            Content::Model(_) => panic!("a timeline gives a profile"),
        })
    })
}

#[test]
fn operations_and_tensors_become_a_profile() {
    let Imported { content: found, notes, .. } =
        imported(&[timeline(1_000_000, true), timeline(2_000_000, true)]).unwrap();
    let names: Vec<&str> = found.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, ["w", "w to worker 0", "forward", "side", "gradient", "gradient to ps 0", "apply"]);
    let after: Vec<&[u32]> = found.operations.iter().map(|operation| &operation.after[..]).collect();
    assert_eq!(after, [&[][..], &[0], &[1], &[2], &[2], &[4], &[0, 5]]);
    assert_eq!((found.operations[1].bytes, found.operations[5].bytes), (4000, 4000));
    assert_eq!(found.steps.len(), 2);
    // Side overlaps 100 of forward's 200 µs; gradient begins when it ends.
    let pass = Recorded::new(&found).unwrap().steps(1.0).nth(1).unwrap();
    assert!((pass.forward - Seconds::new(550e-6)).get().abs() < 1e-12, "{pass:?}");
    assert_eq!(found.steps[0], found.steps[1]);
    assert!(notes.iter().any(|note| note.contains("input ignored: ready only after")), "{notes:?}");
    assert!(notes.iter().any(|note| note == "2 operations ignored: no readable time"), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("stream:all")), "{notes:?}");
}

#[test]
fn what_is_missing_is_said() {
    let refused = |text: String| imported(&[text]).unwrap_err();
    let error = refused(timeline(0, false));
    assert!(
        error.reason.contains("no size of the 2 tensors") && error.remedy.contains("show_memory"),
        "{error}"
    );
    let error = refused(timeline(0, true).replace("gradient/_12", "x"));
    assert!(error.reason.contains("no tensor goes"), "{error}");
    let error = refused(timeline(0, true).replace("/job:worker", "/job:localhost"));
    assert!(error.reason.contains("no operation of a worker"), "{error}");
    let whole = timeline(0, true);
    let end = whole.rfind(",\n{\"ph\": \"O\"").unwrap();
    let notes = imported(&[whole[..end].to_owned()]).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("is truncated")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("without a recorded size")), "{notes:?}");
    let short = whole.replace("\"side\"", "\"other\"");
    let notes = imported(&[whole, short]).unwrap().notes;
    assert!(
        notes.iter().any(|note| note.starts_with("1 step ignored: without some operations")),
        "{notes:?}"
    );
}

/// A timeline that was published; not part of this repository.
#[test]
fn a_published_timeline_tells_no_sizes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/external");
    let path = folder.join("tf_timeline/timeline_client.json");
    if !path.exists() {
        eprintln!("skipped: the published timeline is not here");
        return;
    }
    let error = crate::import(&[path], &Options { batch: Some(1), ..Options::default() }).unwrap_err();
    assert!(error.reason.contains("no size of the"), "{error}");
}
