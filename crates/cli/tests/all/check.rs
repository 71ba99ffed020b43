//! `stepcast check`: logs against forecasts.

use crate::program::{fed, process};
use serde_json::Value;
use std::fs;

fn stepcast(arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = fed(&mut process(arguments), input);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const JOB: [&str; 8] =
    ["--model", "resnet50", "--device", "tesla-v100-sxm2-16gb", "--workers", "2x8", "--network", "25gbe"];

#[test]
fn a_log_is_held_against_the_forecast_and_kept_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("runs.csv");
    let log = " iteration 1/ 9 | elapsed time per iteration (ms): 900.0 |\n".repeat(9);
    let flags = ["--measured", "-", "--steps-left", "1000", "--keep", kept.to_str().unwrap(), "--json"];
    let (code, answer, errors) = stepcast(&[&["check"][..], &JOB, &flags].concat(), &log);
    assert_eq!(code, 0, "{errors}");
    let check: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(check["verdict"], "slower");
    assert_eq!(check["rest"]["time_s"], 900.0);
    let forecast = |more: &[&str]| {
        let (code, answer, errors) = stepcast(&[&["predict"][..], &JOB, more, &["--json"]].concat(), "");
        assert_eq!(code, 0, "{errors}");
        let forecast: Value = serde_json::from_str(&answer).unwrap();
        forecast["prediction"]["iteration_s"].as_f64().unwrap()
    };
    let calibrated = forecast(&["--calibrate", kept.to_str().unwrap()]);
    assert!((calibrated / check["corrected_s"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!(calibrated > forecast(&[]));
    let corrected = check["corrected_s"].as_f64().unwrap();
    assert!((corrected / 0.9 - 1.0).abs() < 0.021 && corrected <= 0.9, "{corrected}");
    let names = |causes: &Value| -> Vec<String> {
        causes.as_array().unwrap().iter().map(|cause| cause["name"].as_str().unwrap().to_owned()).collect()
    };
    let (_, predicted, _) = stepcast(&[&["predict"][..], &JOB, &["--json"]].concat(), "");
    let predicted: Value = serde_json::from_str(&predicted).unwrap();
    assert_eq!(names(&check["suspects"]), names(&predicted["interval"]["by_assumption"]));
    let shares = check["suspects"].as_array().unwrap().iter().map(|cause| cause["share"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    let (code, _, errors) = stepcast(&[&["check"][..], &JOB, &flags].concat(), &log);
    assert_eq!(code, 0, "{errors}");
    let table = fs::read_to_string(kept).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((lines.len(), lines[1]), (3, lines[2]), "{table}");
    for word in ["scenario", "whole", "model.zoo", "resnet50", "0.9 s", "tesla-v100-sxm2-16gb"] {
        assert!(table.contains(word), "{word}: {table}");
    }
}

/// Caught: a run of batch 32 was taken for one of batch 256.
#[test]
fn a_kept_run_is_not_taken_for_another_batch() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("runs.csv");
    let kept = kept.to_str().unwrap();
    let predicted = |more: &[&str]| {
        let (code, answer, errors) = stepcast(&[&["predict"][..], &JOB, more, &["--json"]].concat(), "");
        assert_eq!(code, 0, "{errors}");
        let forecast: Value = serde_json::from_str(&answer).unwrap();
        forecast["prediction"]["iteration_s"].as_f64().unwrap()
    };
    let log = format!("{} s\n", predicted(&["--batch", "32"])).repeat(9);
    let flags = ["--batch", "32", "--measured", "-", "--keep", kept];
    assert_eq!(stepcast(&[&["check"][..], &JOB, &flags].concat(), &log).0, 0);
    let [before, after] =
        [predicted(&["--batch", "256"]), predicted(&["--batch", "256", "--calibrate", kept])];
    assert!((after / before - 1.0).abs() < 1e-6, "{before} {after}");
}

/// Caught: a table, a text, a log and the scenario were replaced without a word.
#[test]
fn only_tables_of_runs_are_written_to() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["notes\n", "41 ms\n42 ms\n", "step,step-time\n1,41 ms\n", "[model]\nzoo = \"resnet50\"\n"] {
        let path = folder.path().join("kept.csv");
        fs::write(&path, text).unwrap();
        let flags = ["--measured", "-", "--keep", path.to_str().unwrap()];
        let (code, _, errors) = stepcast(&[&["check"][..], &JOB, &flags].concat(), &"0.2 s\n".repeat(9));
        assert_eq!(code, 2, "{text}");
        assert!(errors.contains("no table of runs"), "{errors}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn what_is_no_log_is_refused() {
    let (code, _, errors) = stepcast(&[&["check"][..], &JOB, &["--measured", "-"]].concat(), "hello\n");
    assert_eq!(code, 2);
    assert!(errors.contains("no step times were found"), "{errors}");
    let (code, _, errors) = stepcast(&[&["check"][..], &JOB, &["--measured", "-"]].concat(), "tps: 1,234\n");
    assert_eq!(code, 2);
    assert!(errors.contains("counts tokens"), "{errors}");
}

#[test]
fn a_contract_is_kept_broken_or_not_decided() {
    let folder = tempfile::tempdir().unwrap();
    let [terms, page] = ["contract.toml", "contract.md"].map(|name| folder.path().join(name));
    let files = ["-o", terms.to_str().unwrap(), "--page", page.to_str().unwrap(), "--json"];
    let (code, answer, errors) = stepcast(&[&["contract"][..], &JOB, &files].concat(), "");
    assert_eq!(code, 0, "{errors}");
    let contract: Value = serde_json::from_str(&answer).unwrap();
    let longest = contract["expected"][0]["interval"][1].as_f64().unwrap();
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("# Acceptance test: resnet50") && page.contains("[model]"), "{page}");
    let outcome = |slowness: f64, steps: usize| {
        let log = format!("{} s\n", slowness * longest).repeat(steps);
        let flags = ["--measured", "-", "--contract", terms.to_str().unwrap(), "--json"];
        let (code, answer, errors) = stepcast(&[&["check"][..], &JOB, &flags].concat(), &log);
        assert_eq!(code, 0, "{errors}");
        let check: Value = serde_json::from_str(&answer).unwrap();
        check["acceptance"]["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome(0.95, 200), "kept");
    assert_eq!(outcome(1.1, 200), "broken");
    assert_eq!(outcome(1.02, 15), "open");
}

#[test]
fn recordings_of_ranks_name_the_slow_one_and_logs_tell_the_end() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let job = format!("{root}/examples/job.toml");
    let asked = |flags: &[&str]| -> Value {
        let (code, answer, errors) = stepcast(&[&["check", &job, "--json"][..], flags].concat(), "");
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&answer).unwrap()
    };
    let found = asked(&["--measured", &format!("{root}/crates/study/tests/ranks/slow-link.csv")]);
    let cause = &found["slowness"]["causes"][0];
    assert_eq!(
        (cause["kind"].as_str(), cause["name"].as_str()),
        (Some("link"), Some("rank 3 (node-1) – rank 4 (node-2)"))
    );
    assert!(found["distribution"]["tails_s"].as_array().unwrap().len() == 3);
    let log = format!("{root}/crates/cli/tests/logs/megatron.log");
    let running = &asked(&["--follow", &log, "--deadline", "6 h", "--updates", "1"])["running"];
    assert_eq!((running["done"].as_u64(), running["restarts"].as_u64()), (Some(9000), Some(1)));
    let figure = |key: &str| running[key].as_f64().unwrap();
    assert!(
        figure("goodput") < 0.5 && figure("cost") > 0.0 && (0.0..1.0).contains(&figure("in_time")),
        "{running}"
    );
}
