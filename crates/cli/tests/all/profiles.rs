//! From recordings to profiles, from profiles to predictions and timelines, and what is refused on the way.

use crate::{QUICK, answer, done, example, fed, json, process, refused, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::files::{Files, NoFiles};
use stepcast_core::profile::{Profile, Step};
use stepcast_core::scenario::Document;
use stepcast_study::simulate;

fn fixture(name: &str) -> String {
    root().join("crates/trace/tests/fixtures").join(name).to_str().unwrap().to_owned()
}

#[test]
fn recordings_become_a_profile_that_predicts() {
    let folder = tempfile::tempdir().unwrap();
    let (steps, graphs) = (fixture("steps.tar.xz"), fixture("graphs.pb.gz"));
    let import = ["import", &steps, "--graphs", &graphs, "--batch", "32"];
    for name in ["profile.json", "profile.json.gz"] {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        let text = answer(&[&import[..], &["--name", "small", "-o", path]].concat());
        assert!(text.starts_with("small: 3 steps of 7 operations\n"), "{text}");
        assert!(text.contains("downlink           1   4 kB") && text.contains("Written to "), "{text}");
        let profile = stepcast_trace::read_profile(Path::new(path)).unwrap();
        assert_eq!((profile.name.as_str(), profile.batch, profile.steps.len()), ("small", 32, 3));
        let text = answer(&[&["predict", path, "--workers", "1,2"][..], &QUICK].concat());
        assert!(text.contains("small on 4 workers") && text.contains("few-steps"), "{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
}

#[test]
fn every_format_gives_something_that_predicts() {
    let folder = tempfile::tempdir().unwrap();
    let seed = |name: &str| root().join("fuzz/seeds").join(name).to_str().unwrap().to_owned();
    for (name, output) in [
        ("horovod/three_steps.json", "profile.json"),
        ("chakra/small.et", "profile.json"),
        ("chakra/pytorch.json", "model.toml"),
        ("tensorflow_timeline/with_sizes.json", "profile.json"),
        ("layers/plain.csv", "profile.json"),
        ("layers/pipedream.txt", "profile.json"),
    ] {
        let path = folder.path().join(output);
        let path = path.to_str().unwrap();
        answer(&["import", &seed(name), "--batch", "32", "-o", path]);
        let predict = [&["predict", path, "--workers", "2,8"][..], &QUICK].concat();
        let all_reduce = ["strategy.architecture=all-reduce", "strategy.synchronisation=bsp"];
        let all_reduce = [&predict[..], &["--set", all_reduce[0], "--set", all_reduce[1]]].concat();
        for arguments in [predict, all_reduce] {
            let value = json(&arguments);
            let scaling = value["scaling"].as_array().unwrap();
            let time = |index: usize| scaling[index]["iteration_s"].as_f64().unwrap();
            assert!(time(0) > 0.0 && time(1) > 0.0, "{name}: {value}");
        }
    }
}

#[test]
fn recordings_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let graphs = fixture("graphs.pb.gz");
    let good = fs::read(fixture("steps.tar.xz")).unwrap();
    let out = folder.path().join("profile.json");
    let out = out.to_str().unwrap();
    let traces = [
        at("garbage.pb", b"this is no protobuf at all"),
        at("zeros.pb", &[0; 64]),
        at("empty.pb", b""),
        at("cut.tar.xz", &good[..good.len() / 2]),
        at("cut-graphs.pb", &fs::read(&graphs).unwrap()[..40]),
        folder.path().join("absent").to_str().unwrap().to_owned(),
    ];
    for trace in &traces {
        let stderr = refused(&["import", trace, "--graphs", &graphs, "--batch", "32", "-o", out]);
        assert!(stderr.contains("--> ") && stderr.contains("= help: "), "{stderr}");
    }
    let steps = fixture("steps.tar.xz");
    let stderr = refused(&["import", &steps, "--graphs", &traces[0], "--batch", "32", "-o", out]);
    assert!(stderr.contains("garbage.pb"), "{stderr}");
    let stderr = refused(&["import", &steps, "--batch", "32", "-o", out]);
    assert!(stderr.contains("partition graphs"), "{stderr}");
    assert!(!Path::new(out).exists());
}

#[test]
fn profiles_lie_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::copy(example("one-worker.json"), inner.join("one-worker.json")).unwrap();
    let text = "[model]\nprofile = \"one-worker.json\"\n[strategy]\nsynchronisation = \"async\"\n";
    fs::write(inner.join("scenario.toml"), text).unwrap();
    let ask = |arguments: &[&str], current: &Path, stdin: &str| {
        let more = ["--workers", "1,2", "--json"];
        let mut predict = process(&[arguments, &more, &QUICK].concat());
        serde_json::from_str::<Value>(&done(fed(predict.current_dir(current), stdin))).unwrap()
    };
    let by_file = ask(&["predict", "inner/scenario.toml"], folder.path(), "");
    assert_eq!(by_file["prediction"]["method"], "simulate");
    assert_eq!(by_file["scenario"]["model"]["profile"], "one-worker.json");
    assert_eq!(by_file["scenario"]["strategy"]["batch"], 64);
    // Standard input and a profile given alone: from the current folder.
    assert_eq!(ask(&["predict", "-"], &inner, text), by_file);
    assert_eq!(ask(&["predict", "one-worker.json"], &inner, ""), by_file);
    let outside = ask(&["predict", "inner/one-worker.json"], folder.path(), "");
    assert_eq!(outside["prediction"], by_file["prediction"]);
    assert_eq!(outside["scenario"]["model"]["profile"], "inner/one-worker.json");
}

#[test]
fn a_profile_given_alone_may_have_an_odd_name() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a \"b\"\u{1b}.json");
    fs::copy(example("one-worker.json"), &odd).unwrap();
    let odd = odd.to_str().unwrap();
    answer(&[&["predict", odd, "--workers", "1,2"][..], &QUICK].concat());
}

struct Examples;

impl Files for Examples {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        Ok(stepcast_trace::read_profile(Path::new(&example(path))).unwrap())
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        NoFiles.text(path)
    }
}

#[test]
fn a_timeline_is_what_was_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("timeline.json");
    let out = out.to_str().unwrap();
    for name in ["profile.toml", "stale-synchronous.toml"] {
        let flags = ["--workers", "1,2", "--timeline", out, "--timeline-steps", "3"];
        let text = answer(&[&["predict", &example(name)][..], &flags, &QUICK].concat());
        assert!(text.contains("Timeline\n") && text.contains("3 steps"), "{text}");
        let value: Value = serde_json::from_str(&fs::read_to_string(out).unwrap()).unwrap();
        let events = value["traceEvents"].as_array().unwrap();

        let document = Document::new(name, fs::read_to_string(example(name)).unwrap());
        let scenario = document.scenario_with(&Examples, &[]).unwrap();
        let recording = simulate::timeline(&scenario, 3, &stepcast_study::never_cancelled).unwrap();
        let chunks = recording.observed.chunks.iter().filter(|chunk| chunk.until > chunk.since);
        let mut expected: Vec<(u64, String, f64, f64)> = chunks
            .map(|chunk| {
                let name = recording.program.graph.name(chunk.op).to_owned();
                (u64::from(chunk.worker), name, chunk.since, chunk.until)
            })
            .collect();
        let mut done = BTreeMap::<u32, usize>::new();
        for step in &recording.observed.steps.records {
            let index = done.entry(step.worker).or_default();
            expected.push((u64::from(step.worker), format!("step {index}"), step.since, step.until));
            *index += 1;
        }
        assert!(done.values().all(|&steps| steps == 3), "{done:?}");
        let complete: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let mut found: Vec<(u64, String, f64, f64)> = complete
            .iter()
            .map(|event| {
                let (since, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                let name = event["name"].as_str().unwrap().to_owned();
                (event["pid"].as_u64().unwrap() - 1, name, since / 1e6, (since + length) / 1e6)
            })
            .collect();
        let order = |a: &(u64, String, f64, f64), b: &(u64, String, f64, f64)| {
            (a.0, &a.1).cmp(&(b.0, &b.1)).then(a.2.total_cmp(&b.2))
        };
        expected.sort_by(order);
        found.sort_by(order);
        assert_eq!(expected.len(), found.len());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!((expected.0, &expected.1), (found.0, &found.1));
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + a.abs());
            assert!(near(expected.2, found.2) && near(expected.3, found.3), "{expected:?} {found:?}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn a_timeline_can_be_imported_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut written = Vec::new();
    for (timeline, profile) in [("t.json", "json.json"), ("t.pftrace", "pftrace.json")] {
        let flags = ["--workers", "3", "--timeline", &at(timeline), "--timeline-steps", "4"];
        answer(&[&["predict", &example("one-worker.json")][..], &flags, &QUICK].concat());
        answer(&["import", &at(timeline), "-o", &at(profile), "--name", "again"]);
        written.push(fs::read_to_string(at(profile)).unwrap());
    }
    assert_eq!(written[0], written[1]);
    let again = stepcast_trace::read_profile(Path::new(&at("json.json"))).unwrap();
    let first = stepcast_trace::read_profile(Path::new(&example("one-worker.json"))).unwrap();
    assert_eq!((again.steps.len(), again.batch), (4, first.batch));
    assert_eq!(again.operations, first.operations);
    // Every simulated step was drawn from the measured ones: computing takes what it took there.
    for step in &again.steps {
        let computing = |op: &usize| !first.operations[*op].resource.is_transfer();
        let drawn_from = |measured: &Step| {
            let equal = |op| (measured.duration(op) - step.duration(op)).get().abs() < 3e-9;
            (0..first.operations.len()).filter(computing).all(equal)
        };
        assert!(first.steps.iter().any(drawn_from), "{step:?}");
    }
    let forecast = answer(&[&["predict", &at("json.json")][..], &QUICK].concat());
    assert!(forecast.contains("samples/s"), "{forecast}");
}
