//! A job of two ranks and two gradients, written after the format that Horovod's writer produces.

use super::*;
use crate::import::testing::imported_profile;
use std::fmt::Write;
use stepcast_core::pass::Recorded;

/// Start of each step's forward pass in microseconds, and what a step looks like: b is ready 300 µs after it, a 500 µs.
fn timeline(steps: &[u64]) -> String {
    let mut text = String::from(
        "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \
         \"args\": {\"start_time_since_epoch_in_micros\":1600000000000000}},\n",
    );
    for (pid, name) in [(1, "grad/b"), (2, "grad/a")] {
        writeln!(text, "{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": {pid}, \"args\": {{\"name\": \"{name}\"}}}},")
            .unwrap();
    }
    for &start in steps {
        for (pid, ready, shape) in [(1, start + 300, "[100]"), (2, start + 500, "[50, 4]")] {
            let mut event = |fields: String| writeln!(text, "{{{fields}, \"pid\": {pid}}},").unwrap();
            event(format!("\"ph\": \"B\", \"name\": \"NEGOTIATE_ALLREDUCE\", \"ts\": {}", ready - 20));
            event(format!("\"ph\": \"X\", \"name\": \"1\", \"ts\": {}, \"dur\": 0", ready - 20));
            event(format!("\"ph\": \"X\", \"name\": \"0\", \"ts\": \"{ready}\", \"dur\": 0"));
            event(format!("\"ph\": \"E\", \"ts\": {}", ready + 5));
            event(format!("\"ph\": \"B\", \"name\": \"ALLREDUCE\", \"ts\": {}", start + 510));
            for (name, from, to) in [("MEMCPY_IN_FUSION_BUFFER", 515, 520), ("NCCL_ALLREDUCE", 520, 560)] {
                event(format!("\"ph\": \"B\", \"name\": \"{name}\", \"ts\": {}", start + from));
                event(format!("\"ph\": \"E\", \"ts\": {}", start + to));
            }
            let args = format!("\"args\": {{\"dtype\": \"float32\", \"shape\": \"{shape}\"}}");
            event(format!("\"ph\": \"E\", \"ts\": {}, {args}", start + 600));
        }
        writeln!(text, "{{\"ph\": \"i\", \"name\": \"CYCLE_START\", \"ts\": {start}, \"s\": \"g\"}},")
            .unwrap();
    }
    text
}

fn imported(text: &str) -> Result<Imported<Profile>, Fault> {
    imported_profile("timeline.json", text)
}

#[test]
fn readiness_becomes_computing() {
    // Steps of 600 µs, 10 µs apart: the second and third follow another.
    let Imported { content: found, summary, notes } = imported(&timeline(&[1000, 1610, 2230])).unwrap();
    assert_eq!((found.steps.len(), found.batch), (2, 32));
    let names: Vec<&str> = found.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(
        names,
        ["grad/b, weight", "grad/a, weight", "grad/b, computing", "grad/b", "grad/a, computing", "grad/a"]
    );
    let passes = Recorded::new(&found).unwrap();
    for ((step, pass), gap) in found.steps.iter().zip(passes.steps(1.0)).zip([10e-6, 20e-6]) {
        assert!((pass.forward.get() - 300e-6 - gap).abs() < 1e-12, "{pass:?}");
        assert!((pass.layers[1].backward.get() - 200e-6).abs() < 1e-12, "{pass:?}");
        assert!((step.length - 600e-6 - gap).abs() < 1e-12);
        assert!((pass.gradients().get() - 1200.0).abs() < 1e-9);
    }
    let figure = |key: &str| &summary.figures.iter().find(|figure| figure.key == key).unwrap().value;
    assert_eq!((figure("ranks"), figure("messages")), (&SummaryValue::Count(2), &SummaryValue::Count(1)));
    assert!(matches!(figure("cycle"), SummaryValue::Time(time) if (time.get() - 620e-6).abs() < 1e-12));
    assert_eq!(summary.tables[0].rows.len(), 4);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("is truncated") && notes[1].contains("no computing"), "{notes:?}");
}

#[test]
fn a_tensor_that_waits_for_the_device_is_ready_when_it_is_computed() {
    let text = timeline(&[1000, 1610]);
    let late = text.replace(
        "{\"ph\": \"B\", \"name\": \"MEMCPY_IN_FUSION_BUFFER\", \"ts\": 2125, \"pid\": 1},",
        "{\"ph\": \"B\", \"name\": \"WAIT_FOR_DATA\", \"ts\": 1920, \"pid\": 1},{\"ph\": \"E\", \"ts\": 2100, \"pid\": 1},\
         {\"ph\": \"B\", \"name\": \"MEMCPY_IN_FUSION_BUFFER\", \"ts\": 2125, \"pid\": 1},",
    );
    assert_ne!(text, late);
    let first = |text: &str| imported(text).unwrap().content.steps[0].end[2];
    assert!((first(&text) - 310e-6).abs() < 1e-12);
    assert!((first(&late) - 500e-6).abs() < 1e-12);
}

#[test]
fn what_is_missing_is_said() {
    let error = imported(&timeline(&[1000])).unwrap_err();
    assert!(error.remedy.contains("at least two whole steps"), "{error}");
    let error = imported(&timeline(&[1000, 1610]).replace("dtype", "type")).unwrap_err();
    assert!(error.reason.contains("no size of grad/b, nor of 2 of its 2"), "{error}");
    let error = imported("[{\"ph\": \"i\", \"name\": \"CYCLE_START\", \"ts\": 1}]").unwrap_err();
    assert!(error.reason.contains("no reduction"), "{error}");
}

#[test]
fn every_cut_gives_a_profile_or_an_error() {
    let text = timeline(&[1000, 1610, 2230]);
    let step = if std::env::var_os("STEPCAST_FULL_TESTS").is_some() { 1 } else { 7 };
    for end in (1..text.len()).step_by(step) {
        match imported(&text[..end]) {
            Ok(imported) => assert!(imported.notes.iter().any(|note| note.contains("is truncated")), "{end}"),
            Err(error) => assert!(!error.remedy.is_empty()),
        }
    }
    // A step whose last reduction is cut off is left out.
    let end = text.rfind("\"dtype\"").unwrap();
    assert_eq!(imported(&text[..end]).unwrap().content.steps.len(), 1);
}
