//! Every PyTorch trace there is, imported and predicted from; the table in `docs/import.md` is what comes out.
//!
//! The traces are not part of the repository; without them this test says so and passes. `UPDATE_GOLDEN=1` writes the
//! table anew.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, and it says what it skipped")]

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What the table calls a trace, its files, and the batch where the trace does not tell.
const TRACES: [(&str, &[&str], Option<u32>); 12] = [
    ("h200 alexnet", &["measured/kineto_h200/alexnet_b32.json.gz"], None),
    ("h200 resnet50", &["measured/kineto_h200/resnet50_b32.json.gz"], None),
    ("h200 vgg16", &["measured/kineto_h200/vgg16_b32.json.gz"], None),
    ("hta nccl_parser_config", &["external/hta/nccl_parser_config__nccl_data.json.gz"], Some(32)),
    (
        "hta ns_resolution",
        &["external/hta/ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"],
        Some(32),
    ),
    ("hta df_index_resolver", &["external/hta/df_index_resolver__df_index_resolver.json.gz"], Some(32)),
    (
        "hta trace_filter, 2 ranks",
        &[
            "external/hta/trace_filter__sampled_rank-0.json.gz",
            "external/hta/trace_filter__sampled_rank-1.json.gz",
        ],
        Some(32),
    ),
    (
        "hta critical_path",
        &["external/hta/critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz"],
        Some(32),
    ),
    (
        "kineto resnet50",
        &["external/kineto/resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz"],
        None,
    ),
    ("param dlrm, 8 ranks", &["external/param/dlrm_kineto.tar.gz"], Some(32)),
    ("param linear", &["external/param/linear_kineto.json.gz"], Some(32)),
    ("param resnet", &["external/param/resnet_kineto.json.gz"], Some(32)),
];

const BEGIN: &str = "<!-- made by crates/cli/tests/imports.rs -->\n";
const END: &str = "<!-- end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ask(arguments: &[&str]) -> Result<Value, String> {
    let output = Command::cargo_bin("stepcast").unwrap().args(arguments).arg("--json").output().unwrap();
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn milliseconds(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), |seconds| format!("{:.2}", 1e3 * seconds))
}

/// The line of the table for one trace, and how far the recovered step is from the marks.
fn line(name: &str, files: &[PathBuf], batch: Option<u32>, folder: &Path) -> (String, Option<f64>, Value) {
    let profile = folder.join("profile.json");
    let profile = profile.to_str().unwrap();
    let batch = batch.map(|batch| batch.to_string());
    let mut arguments = vec!["import", "-o", profile];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    arguments.extend(batch.as_deref().map(|batch| ["--batch", batch]).into_iter().flatten());
    let import = ask(&arguments).unwrap();
    let found = &import["found"];
    let mark = ["device_mark_s", "host_mark_s"].iter().find_map(|key| found[*key].as_f64());
    let off = mark.map(|mark| found["median_step_s"].as_f64().unwrap() / mark - 1.0);
    let buckets = found["buckets"].as_array().map_or(0, Vec::len);
    let all_reduce = [
        "strategy.architecture=\"all-reduce\"",
        "strategy.synchronisation=\"bsp\"",
        "cluster.network=\"25gbe\"",
    ];
    let mut arguments = vec!["predict", profile, "--workers", "2,8,32"];
    arguments.extend(all_reduce.iter().flat_map(|setting| ["--set", setting]));
    let predicted = ask(&arguments);
    let step = |place: usize| match &predicted {
        Ok(forecast) => milliseconds(&forecast["scaling"][place]["iteration_s"]),
        Err(_) => "–".to_owned(),
    };
    if found["gradients"].as_u64().unwrap() > 0 {
        assert!(predicted.is_ok(), "{name}: {predicted:?}");
    }
    let mut text = format!("| {name} | {} |", import["steps"]);
    for (value, decimals) in [(found["median_step_s"].as_f64(), 2), (mark, 2)] {
        let _ = write!(
            text,
            " {} |",
            value.map_or_else(|| "–".to_owned(), |it| format!("{:.decimals$}", 1e3 * it))
        );
    }
    let _ = write!(text, " {} |", off.map_or_else(|| "–".to_owned(), |off| format!("{:+.1} %", 100.0 * off)));
    for key in ["forward_s", "backward_s", "rest_s", "exposed_s"] {
        let _ = write!(text, " {} |", milliseconds(&found[key]));
    }
    let parameters = found["parameters"].as_u64().map_or_else(|| "–".to_owned(), |it| it.to_string());
    let _ = write!(text, " {parameters} | {buckets} | {} | {} | {} |", step(0), step(1), step(2));
    (text, off, import)
}

#[test]
fn every_trace_is_imported_and_predicted_from() {
    let data = root().join("../shared/data");
    if !data.join("measured/kineto_h200").is_dir() {
        println!("skipped: there are no traces at {}", data.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::from(
        "| trace | steps | step | marks | off | forward | backward | rest | exposed | parameters | buckets | 2 | 8 | 32 |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, files, batch) in TRACES {
        let files: Vec<PathBuf> = files.iter().map(|file| data.join(file)).collect();
        let (text, off, import) = line(name, &files, batch, folder.path());
        let _ = writeln!(table, "{text}");
        if let Some(off) = off {
            assert!(off.abs() < 0.02, "{name}: the median step is {:+.1} % off the marks", 100.0 * off);
        }
        let found = &import["found"];
        let parameters = |count: u64| assert_eq!(found["parameters"], count, "{name}");
        match name {
            "h200 alexnet" => parameters(61_100_840),
            "h200 vgg16" => parameters(138_357_544),
            "h200 resnet50" | "kineto resnet50" | "hta ns_resolution" => parameters(25_557_032),
            "hta nccl_parser_config" => {
                parameters(25_557_032);
                let elements: Vec<u64> = found["buckets"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| it["elements"].as_u64().unwrap())
                    .collect();
                assert_eq!(elements, [2_049_000, 7_875_584, 6_563_840, 6_637_568, 2_431_040]);
            }
            "hta df_index_resolver" => assert_eq!(found["buckets"].as_array().unwrap().len(), 404),
            "param dlrm, 8 ranks" => assert_eq!(found["ranks"].as_array().unwrap().len(), 8),
            _ => {}
        }
        if name.starts_with("h200") {
            assert_eq!(import["batch"], 32, "{name}: from recorded shapes");
        }
    }
    let page = root().join("docs/import.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(written, table, "UPDATE_GOLDEN=1 writes docs/import.md anew");
    }
}
