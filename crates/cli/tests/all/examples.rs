//! The examples and the commands of the book run, and what they echo asks the same question again.

use crate::{QUICK, answer, done, example, fed, json, process, root};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
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
            let workers = match path.rsplit('/').next().unwrap() {
                "deepseek-v3.toml" => "1024,2048",
                "gpt-oss-nvl72.toml" => "64,320",
                "lora.toml" => "1,2",
                _ if text.contains("[strategy.plan]") => "64,128",
                _ => "2,4",
            };
            let ask = ["--method", method, "--workers", workers];
            let first = json(&[&["predict", path][..], &ask, &QUICK].concat());
            let scenario: toml::Table = serde_json::from_value(first["scenario"].clone()).unwrap();
            let echo = folder.path().join("echo.toml");
            fs::write(&echo, toml::to_string(&scenario).unwrap()).unwrap();
            let again = json(&[&["predict", echo.to_str().unwrap()][..], &ask].concat());
            // Other numbers of workers have plans of their own where none was given.
            let is_planned = first["assumed"]["plan"] != true;
            let parts = ["scenario", "prediction", "advice", "training", "scaling"];
            for part in parts.into_iter().filter(|part| is_planned || *part != "scaling") {
                let bytes = |value: &Value| serde_json::to_string(&value[part]).unwrap();
                assert_eq!(bytes(&first), bytes(&again), "{path}, {method}: {part}");
            }
        }
    }
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

/// A folder with the examples, also in a folder of their own, a log, and steps of several ranks.
#[cfg(unix)]
fn folder_of_a_reader() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("docs/plots")).unwrap();
    fs::create_dir_all(folder.path().join("examples/launch")).unwrap();
    for entry in fs::read_dir(root().join("examples/launch")).unwrap() {
        let (from, name) = (entry.as_ref().unwrap().path(), entry.as_ref().unwrap().file_name());
        fs::copy(from, folder.path().join("examples/launch").join(name)).unwrap();
    }
    for path in fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_file() {
            let name = path.file_name().unwrap();
            fs::copy(&path, folder.path().join(name)).unwrap();
            fs::copy(&path, folder.path().join("examples").join(name)).unwrap();
        }
    }
    let log: String = (1..=40)
        .map(|step| format!("iteration {step}: elapsed time per iteration (ms): 160.{step}\n"))
        .collect();
    fs::write(folder.path().join("train.log"), log).unwrap();
    fs::create_dir(folder.path().join("ranks")).unwrap();
    let ranks = root().join("crates/study/tests/ranks/slow-rank.csv");
    fs::copy(ranks, folder.path().join("ranks/steps.csv")).unwrap();
    folder
}

/// The commands of the read-me and the book as they are printed, in a folder with the examples; those with output are
/// transcripts of their own.
#[cfg(unix)]
#[test]
fn the_commands_of_the_book_run() {
    let mut pages: Vec<_> =
        fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|kind| kind == "md"));
    pages.sort();
    pages.insert(0, root().join("README.md"));
    // Files of the reader's own, servers, clusters, sets that tests run anyway, and a long search that the read-me has too.
    let own = [
        "trace.json.gz",
        "model.onnx",
        "steps.jsonl.gz",
        "machine.jsonl",
        "pretrain.sh",
        "FILE",
        "…",
        "serve",
        "--dask",
        "--follow",
        "examples/plan-175b.toml",
        "validate",
    ];
    let mut run = 0;
    for page in pages {
        let folder = folder_of_a_reader();
        let text = fs::read_to_string(&page).unwrap();
        let joined: Vec<&str> = text.split("\\\n").map(str::trim_end).collect();
        let text = joined.iter().map(|part| part.trim_start_matches(' ')).collect::<Vec<_>>().join(" ");
        let commands = text.lines().filter_map(|line| line.strip_prefix("    stepcast "));
        let printed = commands.map(|line| line.split("   ").next().unwrap_or(line));
        for command in printed.filter(|line| !own.iter().any(|word| line.contains(word))) {
            let program = env!("CARGO_BIN_EXE_stepcast");
            let output = Command::new("sh")
                .args(["-c", &format!("{program} {command}")])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: stepcast {command}: {error}", page.display());
            run += 1;
        }
    }
    assert!(run >= 35, "{run}");
}

#[test]
fn the_job_of_the_readme_is_the_example() {
    let readme = include_str!("../../../../README.md");
    let job = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let example = fs::read_to_string(root().join("examples/job.toml")).unwrap();
    assert!(example.ends_with(job), "examples/job.toml differs from the read-me");
}

/// `docs/walkthrough.md`, command by command; `TRYCMD=overwrite` writes its output anew.
#[test]
fn from_a_trace_to_a_decision() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let predict = ["predict", &example("profile.toml"), "--set", "cluster.workers=[{count=1}]"];
    answer(&[&predict[..], &["--timeline-steps", "20", "--timeline", trace.to_str().unwrap()]].concat());
    let page = root().join("docs/walkthrough.md").canonicalize().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    trycmd::TestCases::new().case(page).run();
    let report = fs::read_to_string("report.html").unwrap();
    assert!(report.contains("Reproduce this report") && report.contains("<svg"));
}
