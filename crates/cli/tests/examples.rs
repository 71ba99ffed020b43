//! The examples run, and what they echo asks the same question again.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside of them

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use stepcast_study::methods;

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files
}

fn run(arguments: &[&str]) -> String {
    let output = Command::cargo_bin("stepcast").unwrap().args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    assert_eq!(stderr, "", "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_example_has_a_question_and_an_answer() {
    for path in examples() {
        let text = fs::read_to_string(&path).unwrap();
        let question = text.lines().next().unwrap_or_default();
        assert!(question.starts_with("# ") && text.contains('?'), "{}: {question}", path.display());
        let answer = run(&["predict", path.to_str().unwrap()]);
        for part in
            ["step time", "Where the time goes", "Workers", "Scaling", "Bottleneck", "What would help"]
        {
            assert!(answer.contains(part), "{}: no {part:?} in\n{answer}", path.display());
        }
        let widest = answer.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{}: {widest:?}\n{answer}", path.display());
    }
}

#[test]
fn the_echoed_scenario_gives_the_same_prediction() {
    let folder = tempfile::tempdir().unwrap();
    for path in examples() {
        for method in methods::all() {
            let first = run(&["predict", path.to_str().unwrap(), "--method", method.name(), "--json"]);
            let first: Value = serde_json::from_str(&first).unwrap();
            let scenario: toml::Table = serde_json::from_value(first["scenario"].clone()).unwrap();
            let echo = folder.path().join("echo.toml");
            fs::write(&echo, toml::to_string(&scenario).unwrap()).unwrap();
            let again = run(&["predict", echo.to_str().unwrap(), "--method", method.name(), "--json"]);
            let again: Value = serde_json::from_str(&again).unwrap();
            for part in ["scenario", "prediction", "advice", "scaling", "training"] {
                let bytes = |value: &Value| serde_json::to_string(&value[part]).unwrap();
                assert_eq!(bytes(&first), bytes(&again), "{}: {part}", path.display());
            }
        }
    }
}

#[test]
fn the_quick_start_is_the_example() {
    let quick_start = examples().into_iter().find(|path| path.ends_with("quickstart.toml")).unwrap();
    assert_eq!(run(&["predict"]), run(&["predict", quick_start.to_str().unwrap()]));
    assert_eq!(run(&["predict", "--json"]), run(&["--json", "predict", quick_start.to_str().unwrap()]));
}

#[test]
fn the_paper_says_2_94_seconds() {
    let path = examples().into_iter().find(|path| path.ends_with("zeng2023-table7.toml")).unwrap();
    let answer = run(&["predict", path.to_str().unwrap(), "--method", "zeng2023", "--json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let seconds = answer["prediction"]["iteration_s"].as_f64().unwrap();
    assert!((seconds - 2.94).abs() < 0.01, "{seconds}");
}

#[test]
fn the_examples_of_the_manual_run() {
    let manual = include_str!("../../../docs/scenario.md");
    let blocks: Vec<&str> =
        manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "{}", blocks.len());
    for block in blocks {
        let output = Command::cargo_bin("stepcast")
            .unwrap()
            .args(["predict", "-"])
            .write_stdin(block)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}\n{block}", String::from_utf8_lossy(&output.stderr));
    }
}
