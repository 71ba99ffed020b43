//! How the program behaves towards files, pipes, terminals and programs.

use crate::program::{answer, done, example, fed, json, process, refused, refused_by};
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = process(&["validate", "zeng2023", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(stderr, "");
}

#[test]
fn what_is_no_scenario_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(refused(&["predict", path]).contains("is a directory"));
    assert!(refused(&["predict", "no-such-file.toml"]).contains("--> no-such-file.toml"));
    let large = folder.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; (16 << 20) + 1]).unwrap();
    let large = large.to_str().unwrap();
    assert!(refused(&["predict", large]).contains("larger than 16 MiB"));
    let stderr = refused_by(fed(&mut process(&["predict", "-"]), [b'\n', 0xff, 0xfe]));
    assert!(stderr.contains("not UTF-8") && stderr.contains("<stdin>:2"), "{stderr}");
    assert!(refused_by(fed(&mut process(&["predict", "-"]), "zoo = 1")).contains("<stdin>:1:1"));
}

#[test]
fn standard_input_is_a_scenario() {
    let text = include_str!("../../../../examples/quickstart.toml");
    let quick_start = answer(&["predict"]);
    assert_eq!(done(fed(&mut process(&["predict", "-"]), text)), quick_start);
    assert_eq!(answer(&["predict", &example("quickstart.toml")]), quick_start);
    // It is read once, also where the scenario has no plan and gets one.
    let text = "[model]\nzoo = \"gpt2\"\n[[cluster.workers]]\ncount = 2\ndevice = \"h100-sxm5\"\n[plan]\nglobal-batch = 8\n";
    assert!(done(fed(&mut process(&["plan", "-"]), text)).contains("Best plan"));
}

#[test]
fn the_same_question_gives_the_same_bytes() {
    let question = ["predict", "--json", "--workers", "1..64"];
    assert_eq!(answer(&question), done(process(&question).output().unwrap()));
}

#[test]
fn every_json_is_json() {
    for arguments in [
        vec!["predict"],
        vec!["compare"],
        vec!["models"],
        vec!["models", "show", "resnet50", "--layers"],
        vec!["devices"],
        vec!["devices", "tesla-t4"],
        vec!["networks"],
        vec!["networks", "10gbe"],
        vec!["methods"],
        vec!["validate", "zeng2023"],
        vec!["validate", "liu2022"],
    ] {
        let value = json(&arguments);
        assert!(value.is_object() || value.is_array(), "{arguments:?}");
    }
}

#[test]
fn there_are_no_escape_sequences_without_a_terminal() {
    for arguments in
        [vec!["predict"], vec!["models"], vec!["validate", "zeng2023"], vec!["predict", "--set", "x=1"]]
    {
        let output = process(&arguments).output().unwrap();
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{arguments:?}");
    }
}

#[test]
fn names_of_a_scenario_cannot_control_the_terminal() {
    let text = "[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 2\n\
                device = { base = \"tesla-t4\", name = \"\\u001b[2Jx\" }\n";
    let answer = done(fed(&mut process(&["predict", "-"]), text));
    assert!(!answer.contains('\u{1b}'), "{answer}");
}

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        "predict", "compare", "sweep", "search", "import", "models", "devices", "networks", "methods",
        "replace", "validate",
    ] {
        let text = answer(&[command, "--help"]);
        assert!(text.contains("Examples:\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

#[test]
fn a_million_workers_are_predicted() {
    let value = json(&["predict", "--set", "cluster.workers=[{ count = 1_000_000 }]"]);
    assert_eq!(value["prediction"]["workers"], 1_000_000);
}

/// A network exported to ONNX is forecast like the zoo's, and what is unknown in a file is said beside the answer.
#[test]
fn an_onnx_file_is_a_model() {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../onnx/tests/models");
    let predicted = |model: &str| {
        let scenario = format!("[model]\n{model}\n[strategy]\nbatch = 64\n");
        let answer = done(fed(&mut process(&["predict", "-", "--json"]), scenario));
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    for (name, sizes) in [("resnet50", ""), ("bert-base", "sizes = { sequence = 128 }")] {
        let zoo = predicted(&format!("zoo = \"{name}\""));
        let onnx = predicted(&format!("onnx = \"{files}/{name}.script17.onnx.gz\"\n{sizes}"));
        for key in ["iteration_s", "throughput_samples_per_s"] {
            assert!(zoo["prediction"][key].is_number(), "{key}");
            assert_eq!(onnx["prediction"][key], zoo["prediction"][key], "{name}");
        }
    }
}
