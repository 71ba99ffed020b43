//! Every recording at hand, imported and predicted from; the tables in `docs/import.md` are what comes out.
//!
//! The recordings are not part of the repository; without them these tests say so and pass. `UPDATE_GOLDEN=1` writes the
//! tables anew.

use crate::root;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What the table calls a trace, its files, and the batch where the trace does not tell.
const TRACES: &str = include_str!("../recordings.txt");

/// What is predicted with: how many workers, and how they exchange.
const FORECAST: [&str; 8] = [
    "--workers",
    "2,8,32",
    "--set",
    "strategy.architecture=\"all-reduce\"",
    "--set",
    "strategy.synchronisation=\"bsp\"",
    "--set",
    "cluster.network=\"25gbe\"",
];
/// The device of models, whose files tell no times.
const DEVICE: &str = "cluster.workers=[{device=\"tesla-v100-sxm2-16gb\"}]";

const UNKNOWN: &str = "–";

fn data() -> Option<PathBuf> {
    let data = root().join("../shared/data");
    if data.join("measured/kineto_h200").is_dir() {
        return Some(data);
    }
    println!("skipped: there are no recordings at {}", data.display());
    None
}

fn recordings(data: &Path) -> Vec<PathBuf> {
    let mut folders = vec![data.join("external"), data.join("measured/kineto_h200")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// What is answered, or the error; anything else than these two is a fault.
fn ask(arguments: &[&str]) -> Result<Value, String> {
    let printed = stepcast_cli::run(&[arguments, &["--json"]].concat());
    if printed.code == 0 {
        return Ok(serde_json::from_str(&printed.stdout).unwrap());
    }
    let said = printed.stderr;
    assert_eq!(printed.code, 2, "{arguments:?}: {said}");
    let parts = ["error: ", "--> ", " = help: "];
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), parts.len(), "{arguments:?}: {said}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.starts_with(part), "{arguments:?}: {said}");
    }
    Err(lines[0].trim_start_matches(parts[0]).to_owned())
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |seconds| format!("{:.2}", 1e3 * seconds))
}

/// Steps of [`FORECAST`]'s numbers of workers.
fn forecast(imported: &str, more: &[&str]) -> Result<[String; 3], String> {
    let answer = ask(&[&["predict", imported][..], &FORECAST, more].concat())?;
    Ok([0, 1, 2].map(|place| milliseconds(answer["scaling"][place]["iteration_s"].as_f64())))
}

/// The line of the table for one trace of PyTorch's, and how far the recovered step is from the marks.
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
    let step = found["median_step_s"].as_f64();
    let off = mark.map(|mark| step.unwrap() / mark - 1.0);
    let buckets = found["buckets"].as_array().map_or(0, Vec::len);
    let predicted = forecast(profile, &[]);
    if found["gradients"].as_u64().unwrap() > 0 {
        assert!(predicted.is_ok(), "{name}: {predicted:?}");
    }
    let difference = off.map_or_else(|| UNKNOWN.to_owned(), |off| format!("{:+.1} %", 100.0 * off));
    let mut text = format!(
        "| {name} | {} | {} | {} | {difference} |",
        import["steps"],
        milliseconds(step),
        milliseconds(mark)
    );
    for key in ["forward_s", "backward_s", "rest_s", "exposed_s"] {
        let _ = write!(text, " {} |", milliseconds(found[key].as_f64()));
    }
    let replayed =
        found["replayed_s"].as_f64().map(|replayed| replayed / found["step_s"].as_f64().unwrap() - 1.0);
    let replayed = replayed.map_or_else(|| UNKNOWN.to_owned(), |off| format!("{:+.1} %", 100.0 * off));
    let parameters = found["parameters"].as_u64().map_or_else(|| UNKNOWN.to_owned(), |it| it.to_string());
    let workers = predicted.unwrap_or_else(|_| [0; 3].map(|_| UNKNOWN.to_owned())).join(" | ");
    let _ = write!(text, " {replayed} | {parameters} | {buckets} | {workers} |");
    (text, off, import)
}

/// The line of the table for a recording of another format, or why it cannot be used.
fn other_line(name: &str, file: &Path, folder: &Path) -> Result<String, String> {
    let [profile, model] = ["profile.json", "model.toml"].map(|name| folder.join(name));
    let [file, profile, model] = [file, &profile, &model].map(|path| path.to_str().unwrap());
    let import = ask(&["import", file, "--batch", "32", "-o", profile]);
    let is_model = |error: &String| error.starts_with("a model is written as a scenario");
    if import.as_ref().is_err_and(is_model) {
        let import = ask(&["import", file, "-o", model])?;
        let workers = forecast(model, &["--set", DEVICE])?.join(" | ");
        let unknown = [UNKNOWN; 5].join(" | ");
        return Ok(format!("| {name} | model | {unknown} | {} | {workers} |", import["parameters"]));
    }
    let import = import?;
    let found = &import["found"];
    let format = import["source"].as_str().unwrap().split(',').next().unwrap();
    let mut text = format!(
        "| {name} | {format} | {} | {} |",
        import["steps"],
        milliseconds(import["mean_step_s"].as_f64())
    );
    for key in ["forward_s", "backward_s", "communication_s"] {
        let _ = write!(text, " {} |", milliseconds(found[key].as_f64()));
    }
    let sent = import["resources"].as_array().unwrap().iter().find(|it| it["resource"] == "uplink").unwrap();
    let parameters = sent["bytes"].as_u64().unwrap() / 4;
    let _ = write!(text, " {parameters} | {} |", forecast(profile, &[])?.join(" | "));
    Ok(text)
}

/// What stands in `docs/import.md` is what was found.
fn check_table(called: &str, table: &str) {
    let (begin, end) = (format!("<!-- {called}, made by crates/cli/tests/imports.rs -->\n"), "<!-- end -->");
    let page = root().join("docs/import.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(&begin).unwrap();
    let (written, after) = rest.split_once(end).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(written, table, "UPDATE_GOLDEN=1 writes docs/import.md anew");
    }
}

#[test]
fn every_trace_is_imported_and_predicted_from() {
    let Some(data) = data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::from(
        "| trace | steps | step | marks | off | forward | backward | rest | exposed | parameters | buckets | 2 | 8 | 32 |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for trace in TRACES.lines() {
        let mut cells = trace.split(" | ");
        let name = cells.next().unwrap();
        let files: Vec<PathBuf> = cells.next().unwrap().split(' ').map(|file| data.join(file)).collect();
        let batch = cells.next().map(|batch| batch.parse().unwrap());
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
    check_table("traces", &table);
}

#[test]
fn every_other_recording_is_imported_or_refused_with_a_reason() {
    let Some(data) = data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut used = String::from(
        "| recording | format | steps | step | forward | backward | communication | parameters | 2 | 8 | 32 |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut refused = String::from("| recording | why it cannot be used |\n|---|---|\n");
    let traces: Vec<PathBuf> =
        TRACES.split_whitespace().filter(|word| word.contains('/')).map(|file| data.join(file)).collect();
    for file in recordings(&data).iter().filter(|file| !traces.contains(file)) {
        let name = file.strip_prefix(data.join("external")).unwrap().to_str().unwrap();
        match other_line(name, file, folder.path()) {
            Ok(line) => writeln!(used, "{line}").unwrap(),
            Err(reason) => writeln!(refused, "| {name} | {reason} |").unwrap(),
        }
    }
    for (name, parameters) in [
        ("chakra/feeder_tests_trace.tar.gz", "25557032"),
        ("netx_bk_time_logs/resnet50.bk.log", "25557032"),
        ("netx_bk_time_logs/vgg16.bk.log", "138365992"),
        ("param/resnet_et.json.gz", "25557032"),
        ("pipedream/resnet50.graph.txt", "25557032"),
    ] {
        let line = used.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.contains(parameters), "{line}");
    }
    check_table("other recordings", &used);
    check_table("refused recordings", &refused);
}

#[test]
fn a_look_at_any_recording_tells_something_or_one_error() {
    let Some(data) = data() else { return };
    // Larger ones are imported above: their summaries take as long again.
    let small = |file: &PathBuf| {
        std::env::var_os("STEPCAST_FULL_TESTS").is_some() || file.metadata().unwrap().len() < 1 << 20
    };
    for file in recordings(&data).into_iter().filter(small) {
        match ask(&["import", file.to_str().unwrap(), "--summary"]) {
            Ok(found) => assert!(found["found"].is_object() && found["written"].is_null(), "{found}"),
            Err(reason) => assert!(reason.starts_with("it "), "{}: {reason}", file.display()),
        }
    }
}
