//! `stepcast check`: logs against forecasts.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside of them

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
    assert_eq!(fs::read_to_string(kept).unwrap(), "step-time\n0.9 s\n");
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
