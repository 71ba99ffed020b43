//! `stepcast check`: logs against forecasts.

use crate::{fed, json_of, process, refused_by};
use serde_json::Value;
use std::fs;

const JOB: [&str; 8] =
    ["--model", "resnet50", "--device", "tesla-v100-sxm2-16gb", "--workers", "2x8", "--network", "25gbe"];

/// The answer of a command about the job.
fn asked(command: &str, flags: &[&str], input: &str) -> Value {
    json_of(&[&[command][..], &JOB, flags].concat(), input)
}

/// The one error of a command about the job.
fn refused(flags: &[&str], input: &str) -> String {
    refused_by(fed(process(&["check"]).args(JOB).args(flags), input))
}

/// The time of a step of the job.
fn step(flags: &[&str]) -> f64 {
    asked("predict", flags, "")["prediction"]["iteration_s"].as_f64().unwrap()
}

#[test]
fn a_log_is_held_against_the_forecast_and_kept_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("runs.csv");
    let log = " iteration 1/ 9 | elapsed time per iteration (ms): 900.0 |\n".repeat(9);
    let flags = ["--measured", "-", "--steps-left", "1000", "--keep", kept.to_str().unwrap()];
    let check = asked("check", &flags, &log);
    assert_eq!(check["verdict"], "slower");
    assert_eq!(check["rest"]["time_s"], 900.0);
    let calibrated = step(&["--calibrate", kept.to_str().unwrap()]);
    assert!((calibrated / check["corrected_s"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!(calibrated > step(&[]));
    let corrected = check["corrected_s"].as_f64().unwrap();
    assert!((corrected / 0.9 - 1.0).abs() < 0.021 && corrected <= 0.9, "{corrected}");
    let names = |causes: &Value| -> Vec<String> {
        causes.as_array().unwrap().iter().map(|cause| cause["name"].as_str().unwrap().to_owned()).collect()
    };
    let assumed = &asked("predict", &[], "")["interval"]["by_assumption"];
    assert_eq!(names(&check["suspects"]), names(assumed));
    let shares = check["suspects"].as_array().unwrap().iter().map(|cause| cause["share"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    asked("check", &flags, &log);
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
    let log = format!("{} s\n", step(&["--batch", "32"])).repeat(9);
    asked("check", &["--batch", "32", "--measured", "-", "--keep", kept], &log);
    let [before, after] = [step(&["--batch", "256"]), step(&["--batch", "256", "--calibrate", kept])];
    assert!((after / before - 1.0).abs() < 1e-6, "{before} {after}");
}

/// Caught: a table, a text, a log and the scenario were replaced without a word.
#[test]
fn only_tables_of_runs_are_written_to() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["notes\n", "41 ms\n42 ms\n", "step,step-time\n1,41 ms\n", "[model]\nzoo = \"resnet50\"\n"] {
        let path = folder.path().join("kept.csv");
        fs::write(&path, text).unwrap();
        let errors = refused(&["--measured", "-", "--keep", path.to_str().unwrap()], &"0.2 s\n".repeat(9));
        assert!(errors.contains("no table of runs"), "{errors}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn what_is_no_log_is_refused() {
    for (log, reason) in [("hello\n", "no step times were found"), ("tps: 1,234\n", "counts tokens")] {
        let errors = refused(&["--measured", "-"], log);
        assert!(errors.contains(reason), "{errors}");
    }
}

#[test]
fn a_contract_is_kept_broken_or_not_decided() {
    let folder = tempfile::tempdir().unwrap();
    let [terms, page] = ["contract.toml", "contract.md"].map(|name| folder.path().join(name));
    let files = ["-o", terms.to_str().unwrap(), "--page", page.to_str().unwrap()];
    let contract = asked("contract", &files, "");
    let longest = contract["expected"][0]["interval"][1].as_f64().unwrap();
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("# Acceptance test: resnet50") && page.contains("[model]"), "{page}");
    let outcome = |slowness: f64, steps: usize| {
        let log = format!("{} s\n", slowness * longest).repeat(steps);
        let check = asked("check", &["--measured", "-", "--contract", terms.to_str().unwrap()], &log);
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
    let asked = |flags: &[&str]| json_of(&[&["check", &job][..], flags].concat(), "");
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
