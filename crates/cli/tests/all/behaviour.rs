//! How the program behaves towards files, pipes, terminals and programs; what it draws; and that a question has one answer by
//! every road: flags, a file, single keys, and the programming interface that the page and the Python package use.

use crate::{answer, done, example, fed, json, json_of, process, refused, refused_by};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::request::Folder;
use stepcast_study::{ForecastOptions, Observer, Request, forecast};
use toml::Table;

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
    fs::write(&large, vec![b'#'; (16 << 20) + 1]).unwrap();
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
    let predicted =
        |model: &str| json_of(&["predict", "-"], format!("[model]\n{model}\n[strategy]\nbatch = 64\n"));
    for (name, sizes) in [("resnet50", ""), ("bert-base", "sizes = { sequence = 128 }")] {
        let zoo = predicted(&format!("zoo = \"{name}\""));
        let onnx = predicted(&format!("onnx = \"{files}/{name}.script17.onnx.gz\"\n{sizes}"));
        for key in ["iteration_s", "throughput_samples_per_s"] {
            assert!(zoo["prediction"][key].is_number(), "{key}");
            assert_eq!(onnx["prediction"][key], zoo["prediction"][key], "{name}");
        }
    }
}

fn stepcast(folder: &Path, args: &str) -> std::process::Output {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
    let args = args.split(' ').map(|arg| arg.replace("EXAMPLES/", examples));
    process(&[]).current_dir(folder).args(args).output().unwrap()
}

/// What is drawn by `args`, twice.
fn drawn(args: &str) -> String {
    let once = || {
        let folder = tempfile::tempdir().unwrap();
        let output = stepcast(folder.path(), args);
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8(output.stdout).unwrap().contains("x.svg"), "{args}");
        let files: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["x.svg"], "nothing is left beside it");
        fs::read_to_string(folder.path().join("x.svg")).unwrap()
    };
    let svg = once();
    assert_eq!(svg, once());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    svg
}

#[test]
fn every_command_draws_what_it_answers() {
    let bars = |svg: &str| svg.matches("<g><title>").count();
    let scaling = drawn("predict --workers 1,2,4,8 --plot x.svg");
    assert_eq!(bars(&scaling), 4);
    assert!(scaling.contains("this cluster: 3"));
    let line = drawn("sweep --vary batch=8,16,32 --plot x.svg");
    assert_eq!(bars(&line), 3);
    let names = drawn("sweep --vary network=1gbe,10gbe --plot x.svg");
    assert!(names.contains(">10gbe</text>"));
    let map = drawn("sweep --vary batch=8,16,32 --vary workers.count=1..4 --plot x.svg");
    assert_eq!(map.matches("class=\"cell").count(), 12);
    let fusion = drawn("fuse EXAMPLES/all-reduce.toml --plot x.svg");
    assert!(fusion.contains(">▸ best plan</text>"));
    let front = drawn("search EXAMPLES/search.toml --minimize cost --vary workers.count=1..8 --plot x.svg");
    assert!(front.contains(">chosen</text>"));
    let steps = drawn(
        "predict EXAMPLES/async.toml --workers 4 --set methods.simulate.steps=20 --set methods.simulate.warm-up=5 \
         --timeline x.svg --timeline-steps 1",
    );
    assert!(steps.contains(">step 0</text>") && steps.contains(">worker 0</text>"));
}

const QUESTIONS: &str = include_str!("../roads/questions.json");

#[derive(serde::Deserialize)]
struct Question {
    flags: String,
    keys: Table,
}

/// Words of a shell, with single quotes.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(place, text)| match place % 2 {
        0 => text.split_whitespace().map(str::to_owned).collect(),
        _ => vec![text.to_owned()],
    });
    words.collect()
}

fn file(keys: &Table) -> String {
    let mut root = Table::new();
    for (key, value) in keys {
        let parts: Vec<&str> = key.split('.').collect();
        let (last, sections) = parts.split_last().unwrap();
        let mut table = &mut root;
        for section in sections {
            let inner = table.entry(*section).or_insert_with(|| match *section {
                "workers" => toml::Value::Array(vec![toml::Value::Table(Table::new())]),
                _ => toml::Value::Table(Table::new()),
            });
            table = match inner {
                toml::Value::Array(groups) => groups[0].as_table_mut().unwrap(),
                inner => inner.as_table_mut().unwrap(),
            };
        }
        table.insert((*last).to_owned(), value.clone());
    }
    toml::to_string(&root).unwrap()
}

#[test]
fn a_question_has_one_answer() {
    let questions: Vec<Question> = serde_json::from_str(QUESTIONS).unwrap();
    assert_eq!(questions.len(), 32);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("question.toml");
    let empty = folder.path().join("empty.toml");
    fs::write(&empty, "").unwrap();
    for Question { flags, keys } in &questions {
        let asked = words(flags);
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let by_flags = answer(&[&["predict", "--json"][..], &asked].concat());
        let text = file(keys);
        fs::write(&path, &text).unwrap();
        assert!(by_flags == answer(&["predict", "--json", path.to_str().unwrap()]), "{flags}\n{text}");
        let sets: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let sets = sets.iter().flat_map(|set| ["--set", set.as_str()]);
        let by_keys = ["predict", "--json", empty.to_str().unwrap()].into_iter().chain(sets);
        assert!(by_flags == answer(&by_keys.collect::<Vec<_>>()), "{flags}");
        let edits = keys.iter().map(|(key, value)| Edit::set(key.as_str(), value.clone())).collect();
        let request = Request::new(Document::new("scenario", ""), Folder::default(), edits);
        let forecast = forecast(&request, &ForecastOptions::default(), &Observer::none()).unwrap();
        assert!(by_flags == stepcast_report::json::pretty(&forecast).unwrap(), "{flags}");
    }
}
