//! The examples run, and what they echo asks the same question again.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside of them

use crate::program::{QUICK, answer, done, fed, json, process, root};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use stepcast_study::predict::methods;

fn examples() -> Vec<PathBuf> {
    let folder = root().join("examples");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml")
        })
        .collect();
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    files
}

/// The methods that have an answer.
fn answering(path: &str) -> Vec<String> {
    let answer = json(&[&["compare", path][..], &QUICK].concat());
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), methods::all().len());
    let applying = rows.iter().filter(|row| row["iteration_s"].is_number());
    applying.map(|row| row["method"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_example_has_a_question_and_an_answer() {
    for path in examples() {
        let text = fs::read_to_string(&path).unwrap();
        let question = text.lines().next().unwrap_or_default();
        assert!(question.starts_with("# ") && text.contains('?'), "{}: {question}", path.display());
        let predict = [&["predict", path.to_str().unwrap()][..], &QUICK].concat();
        let brief = answer(&predict);
        for part in ["step time", "Where the time goes", "90 % interval", "--full"] {
            assert!(brief.contains(part), "{}: no {part:?} in\n{brief}", path.display());
        }
        assert!(brief.lines().count() <= 30, "{}: more than a screen:\n{brief}", path.display());
        let answer = answer(&[&predict[..], &["--full"]].concat());
        for part in ["step time", "Where the time goes", "Workers", "Scaling", "Bottleneck"] {
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
        // What a scenario names lies beside it.
        fs::copy(path.with_file_name("one-worker.json"), folder.path().join("one-worker.json")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let path = path.to_str().unwrap();
        // By default only the method that is chosen by itself.
        let full = std::env::var_os("STEPCAST_FULL_TESTS").is_some();
        let methods = if full { answering(path) } else { vec!["auto".to_owned()] };
        assert!(!methods.is_empty(), "{path}");
        for method in &methods {
            // A plan divides only multiples of its ranks.
            let workers = if text.contains("[strategy.plan]") { "64,128" } else { "2,4" };
            let ask = ["--method", method, "--workers", workers];
            let first = json(&[&["predict", path][..], &ask, &QUICK].concat());
            let scenario: toml::Table = serde_json::from_value(first["scenario"].clone()).unwrap();
            let echo = folder.path().join("echo.toml");
            fs::write(&echo, toml::to_string(&scenario).unwrap()).unwrap();
            let again = json(&[&["predict", echo.to_str().unwrap()][..], &ask].concat());
            for part in ["scenario", "prediction", "advice", "scaling", "training"] {
                let bytes = |value: &Value| serde_json::to_string(&value[part]).unwrap();
                assert_eq!(bytes(&first), bytes(&again), "{path}, {method}: {part}");
            }
        }
    }
}

#[test]
fn the_paper_says_2_94_seconds() {
    let path = examples().into_iter().find(|path| path.ends_with("zeng2023-table7.toml")).unwrap();
    let answer = json(&["predict", path.to_str().unwrap(), "--method", "zeng2023"]);
    let seconds = answer["prediction"]["iteration_s"].as_f64().unwrap();
    assert!((seconds - 2.94).abs() < 0.01, "{seconds}");
}

#[test]
fn the_examples_of_the_manual_run() {
    let manual = include_str!("../../../../docs/scenario.md");
    let blocks: Vec<&str> =
        manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 4, "{}", blocks.len());
    for block in blocks {
        let mut predict = process(&["predict", "-"]);
        done(fed(predict.args(QUICK).current_dir(root().join("examples")), block));
    }
}

/// The commands of the read-me that need no files of the reader's own, run where it says.
#[test]
fn the_commands_of_the_readme_run() {
    let readme = include_str!("../../../../README.md");
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let own = ["trace.json.gz", "model.onnx", "steps.jsonl.gz", "serve", "validate"];
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    stepcast "))
        .filter_map(|line| line.split("   ").next())
        .filter(|line| !own.iter().any(|word| line.contains(word)))
        .collect();
    assert!(commands.len() >= 15, "{commands:?}");
    for command in commands {
        let words = command.split_whitespace().map(|word| word.trim_matches('\''));
        let output = process(&[]).current_dir(folder.path()).args(words).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "stepcast {command}: {stderr}");
    }
    let job = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let example = fs::read_to_string(folder.path().join("job.toml")).unwrap();
    assert!(example.ends_with(job), "examples/job.toml differs from the read-me");
}
