//! Inputs that were made to kill, hang or mislead the program.

use crate::program::{done, fed, process, refused_by};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The only error that the program ends with, soon and without a panic.
fn refused(arguments: &[&str], input: &[u8]) -> String {
    let since = Instant::now();
    let stderr = refused_by(fed(&mut process(arguments), input));
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    stderr
}

#[test]
fn keys_of_thousands_of_parts_are_refused() {
    let key = vec!["a"; 60_000].join(".");
    assert!(refused(&["predict", "--set", &format!("{key}=1")], b"").contains("32 parts"));
    assert!(refused(&["sweep", "--vary", &format!("cluster.{key}=1,2")], b"").contains("32 parts"));
    let value = format!("model={}1{}", "{a.a.a.a.a.a.a.a.a.a=".repeat(75), "}".repeat(75));
    refused(&["predict", "--set", &value], b"");
    let deep = format!("{}1{}", "{a.a.a.a.a.a.a.a.a.a=".repeat(75), "}".repeat(75));
    refused(&["predict", "-"], format!("model = {deep}\n").as_bytes());
    refused(&["predict", "-", "--set", "strategy.batch=1"], format!("model = {deep}\n").as_bytes());
}

/// Eight workers at 10 Gbit/s and a server at 100 Gbit/s: 4.43 Gbit each way at the workers' rate take 0.886 s.
#[test]
fn a_fast_port_of_the_server_is_not_ignored() {
    let scenario = "[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 8\nefficiency = 0.5\n\
                    [cluster.network]\nbandwidth = \"10 Gbit/s\"\ntransport = \"ideal\"\n\
                    [cluster.servers]\nbandwidth = \"100 Gbit/s\"\n";
    let answer = done(fed(&mut process(&["predict", "-", "--json"]), scenario));
    let forecast: Value = serde_json::from_str(&answer).unwrap();
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
    let error = refused(&["import", pipe.to_str().unwrap(), "--summary"], b"");
    assert!(error.contains("pipe") && error.contains("save it to a file"), "{error}");
    let error = refused(&["import", "/dev/stdin", "--summary"], trace);
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
        let asked = ["predict", "-", "--method", "oyama2016", "--json"];
        let forecast: Value = serde_json::from_str(&done(fed(&mut process(&asked), scenario))).unwrap();
        let prediction = &forecast["prediction"];
        ["iteration_s", "throughput_samples_per_s"].map(|key| prediction[key].as_f64().unwrap())
    };
    let one = step("{ count = 4, device = \"tesla-k80\" }");
    let split =
        step("{ count = 1, device = \"tesla-k80\" }, { count = 3, device = \"tesla-k80\", batch = 8 }");
    assert_eq!(split.map(f64::to_bits), one.map(f64::to_bits));
}
