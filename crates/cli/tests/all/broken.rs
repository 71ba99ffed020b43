//! Every file of `tests/broken/` is refused by `predict`, and every one of `tests/broken-fit/` by `fit`, with one error that says
//! where and what to do. The expected text stands beside each file; `UPDATE_GOLDEN=1 cargo test -p stepcast-cli broken` writes it
//! anew. All run in this process, and one of each kind also as a process. And inputs that were made to kill, hang or mislead the
//! program.

use crate::{done, fed, json_of, process, refused, refused_by};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Errors about what is not in the file, or not about one line of it.
const WITHOUT_A_LINE: [&str; 3] = ["empty.toml", "no-model.toml", "only-a-comment.toml"];

/// The inputs of a folder, which hold what its other files belong to.
fn corpus(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let is_input = |path: &PathBuf| endings.iter().any(|end| path.extension().is_some_and(|own| own == *end));
    let (mut inputs, others): (Vec<PathBuf>, Vec<PathBuf>) =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).partition(is_input);
    for path in others {
        let belongs = endings.iter().any(|end| path.with_extension(end).exists());
        assert!(belongs, "{} belongs to no input", path.display());
    }
    inputs.sort();
    inputs
}

/// Checks the errors of all inputs against the files beside them.
fn check(inputs: &[PathBuf], arguments: impl Fn(&Path) -> Vec<String>) {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut differing = Vec::new();
    for path in inputs {
        let name = path.file_name().unwrap().to_str().unwrap();
        let arguments = arguments(path);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // As a reader sees it who stands in the folder.
        let folder = format!("{}/", path.parent().unwrap().display());
        let stderr = refused(&words).replace(&folder, "");
        assert!(stderr.contains("= help: "), "{name}: {stderr}");
        assert!(stderr.chars().all(|c| c == '\n' || !c.is_control()), "{name}: {stderr:?}");
        let place = stderr.split_once(&format!("--> {name}")).map(|(_, rest)| rest.starts_with(':'));
        assert!(place.is_some(), "{name}: {stderr}");
        if name.ends_with(".toml") {
            assert_eq!(place, Some(!WITHOUT_A_LINE.contains(&name)), "{name}: {stderr}");
        }
        let golden = path.with_extension("stderr");
        if update {
            fs::write(&golden, &stderr).unwrap();
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(&stderr) {
            differing.push(format!("{name}:\n{stderr}"));
        }
    }
    assert!(differing.is_empty(), "differ from their .stderr (see the header):\n{}", differing.join("\n"));
    let first = &inputs[0];
    let arguments = arguments(Path::new(first.file_name().unwrap()));
    let mut process = process(&[]);
    let output = process.current_dir(first.parent().unwrap()).args(arguments).output().unwrap();
    assert_eq!(refused_by(output), fs::read_to_string(first.with_extension("stderr")).unwrap());
}

#[test]
fn broken_scenarios_are_refused_with_one_error_place_and_remedy() {
    let inputs = corpus("broken", &["toml"]);
    assert!(inputs.len() >= 90, "{}", inputs.len());
    check(&inputs, |path| vec!["predict".to_owned(), path.to_str().unwrap().to_owned()]);
}

#[test]
fn broken_measurements_are_refused_with_one_error_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("fit.toml");
    // The first word of a file's name says what it is fitted as.
    check(&corpus("broken-fit", &["csv", "jsonl"]), |path| {
        let kind = path.file_name().unwrap().to_str().unwrap().split('-').next().unwrap();
        let words = ["fit", kind, path.to_str().unwrap(), "-o", output.to_str().unwrap()];
        let device = if kind == "efficiency" { &["--device", "h200-sxm"][..] } else { &[] };
        words.iter().chain(device).map(|word| (*word).to_owned()).collect()
    });
    assert!(!output.exists());
}

#[test]
fn a_fit_is_written_once_and_again_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), "bytes,time_us\n1000,11\n10000,20\n100000,110\n1000000,1010\n")
        .unwrap();
    let fit = |more: &[&str]| {
        process(&["fit", "transfer", "t.csv", "-o", "t.toml"])
            .current_dir(folder.path())
            .args(more)
            .output()
            .unwrap()
    };
    done(fit(&["--json"]));
    let text = fs::read_to_string(folder.path().join("t.toml")).unwrap();
    for part in ["formula", "source", "date", "startup = \"", "bandwidth = \"", "third-quartile", "meaning"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(refused_by(fit(&[])).contains("--force"));
    done(fit(&["--force"]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
}

#[test]
fn bad_questions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let folders = [
        ("EXAMPLES", format!("{tests}/../../../examples")),
        ("FIXTURES", format!("{tests}/../../trace/tests/fixtures")),
        ("BROKEN", format!("{tests}/broken")),
        ("OUT", folder.path().to_str().unwrap().to_owned()),
    ];
    for line in include_str!("../refused.txt").lines().filter(|line| !line.starts_with('#')) {
        let line = folders.iter().fold(line.to_owned(), |line, (name, path)| line.replace(name, path));
        let mut parts = line.split(" | ");
        let arguments: Vec<&str> = parts.next().unwrap().split(' ').collect();
        let told = refused(&arguments);
        for part in parts {
            assert!(told.contains(part), "{line}: {told}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The only error that the program ends with, soon and without a panic.
fn refused_soon(arguments: &[&str], input: &[u8]) -> String {
    let since = Instant::now();
    let stderr = refused_by(fed(&mut process(arguments), input));
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    stderr
}

#[test]
fn keys_of_thousands_of_parts_are_refused() {
    let key = vec!["a"; 60_000].join(".");
    assert!(refused_soon(&["predict", "--set", &format!("{key}=1")], b"").contains("32 parts"));
    assert!(refused_soon(&["sweep", "--vary", &format!("cluster.{key}=1,2")], b"").contains("32 parts"));
    let value = format!("model={}1{}", "{a.a.a.a.a.a.a.a.a.a=".repeat(75), "}".repeat(75));
    refused_soon(&["predict", "--set", &value], b"");
    refused_soon(&["predict", "-"], value.as_bytes());
    refused_soon(&["predict", "-", "--set", "strategy.batch=1"], value.as_bytes());
}

/// Eight workers at 10 Gbit/s and a server at 100 Gbit/s: 4.43 Gbit each way at the workers' rate take 0.886 s.
#[test]
fn a_fast_port_of_the_server_is_not_ignored() {
    let scenario = "[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 8\nefficiency = 0.5\n\
                    [cluster.network]\nbandwidth = \"10 Gbit/s\"\ntransport = \"ideal\"\n\
                    [cluster.servers]\nbandwidth = \"100 Gbit/s\"\n";
    let forecast = json_of(&["predict", "-"], scenario);
    let parts = forecast["prediction"]["breakdown"].as_array().unwrap();
    let exchanged: f64 = parts
        .iter()
        .filter(|part| ["push", "queueing", "pull"].contains(&part["name"].as_str().unwrap()))
        .map(|part| part["time_s"].as_f64().unwrap())
        .sum();
    assert!((exchanged / 0.8855 - 1.0).abs() < 0.01, "{exchanged}");
    assert_eq!(forecast["prediction"]["bottleneck"], "worker-link");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_read_twice() {
    let trace = include_bytes!("../../../../fuzz/seeds/kineto/alone.json");
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = refused_soon(&["import", pipe.to_str().unwrap(), "--summary"], b"");
    assert!(error.contains("pipe") && error.contains("save it to a file"), "{error}");
    let error = refused_soon(&["import", "/dev/stdin", "--summary"], trace);
    assert!(error.contains("pipe"), "{error}");
}

/// Groups of workers that differ in nothing but their counts are one group.
#[test]
fn split_groups_are_the_same_as_one() {
    let step = |groups: &str| {
        let scenario = format!(
            "[model]\nzoo = \"alexnet\"\n[cluster]\nnodes = {{ workers = 2 }}\nworkers = [{groups}]\n\
             [strategy]\narchitecture = \"all-reduce\"\nsynchronisation = \"async\"\nbatch = 8\n"
        );
        let prediction = &json_of(&["predict", "-", "--method", "oyama2016"], scenario)["prediction"];
        ["iteration_s", "throughput_samples_per_s"].map(|key| prediction[key].as_f64().unwrap())
    };
    let one = step("{ count = 4, device = \"tesla-k80\" }");
    let split =
        step("{ count = 1, device = \"tesla-k80\" }, { count = 3, device = \"tesla-k80\", batch = 8 }");
    assert_eq!(split.map(f64::to_bits), one.map(f64::to_bits));
}
