//! Sweeps and searches: files that grow in order, the same bytes on any number of threads, an end by Ctrl-C.

use crate::{example, process, refused_by};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const AXES: [&str; 4] = ["--vary", "workers.0.count=0..3", "--vary", "batch=1..60"];

fn stepcast(command: &str, arguments: &[&str]) -> Output {
    process(&[command, &example("search.toml")]).args(arguments).output().unwrap()
}

fn swept(path: &Path, more: &[&str]) -> Output {
    stepcast("sweep", &[&AXES[..], &["-o", path.to_str().unwrap()], more].concat())
}

fn refused(output: &Output) -> String {
    let stderr = refused_by(output.clone());
    assert!(stderr.contains("= help: "), "{stderr}");
    stderr
}

#[test]
fn the_number_of_threads_and_interruptions_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sweep.csv", "sweep.jsonl"] {
        let path = folder.path().join(name);
        assert!(swept(&path, &["--threads", "1"]).status.success());
        let whole = fs::read(&path).unwrap();
        let titles = usize::from(name.ends_with(".csv"));
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), titles + 240);
        assert!(swept(&path, &["--threads", "3", "--force"]).status.success());
        assert_eq!(fs::read(&path).unwrap(), whole);
        // Cut anywhere: within the header, within a row, behind one.
        for cut in [0, 20, whole.len() / 2, whole.len() - 1, whole.len()] {
            fs::write(&path, &whole[..cut]).unwrap();
            let resumed = swept(&path, &["--resume"]);
            if cut == 20 && titles == 1 {
                assert!(refused(&resumed).contains("another sweep"));
                continue;
            }
            assert!(resumed.status.success(), "{cut}: {}", String::from_utf8_lossy(&resumed.stderr));
            assert_eq!(fs::read(&path).unwrap(), whole, "{cut}");
        }
        fs::write(&path, &whole[..whole.len() / 3]).unwrap();
        assert!(swept(&path, &["--limit", "130", "--resume"]).status.success());
        let part = fs::read(&path).unwrap();
        assert!(whole.starts_with(&part) && part.ends_with(b"\n"));
    }
}

#[test]
fn only_rows_of_the_sweep_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sweep.csv", "sweep.jsonl"] {
        let path = folder.path().join(name);
        assert!(swept(&path, &["--limit", "20"]).status.success());
        let whole = fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let rows = &lines[lines.len() - 20..];
        let written = |rows: &[&[u8]]| [lines[..lines.len() - 20].concat(), rows.concat()].concat();
        let foreign: [(&str, Vec<u8>); 5] = [
            ("a row twice", written(&[rows[0], rows[1], rows[1]])),
            ("rows in another order", written(&[rows[1], rows[0]])),
            ("a row left out", written(&[rows[0], rows[2]])),
            ("something in between", written(&[rows[0], b"nonsense\n", rows[1]])),
            ("half a row in between", written(&[rows[0], &rows[1][..rows[1].len() / 2], b"\n", rows[2]])),
        ];
        for (what, bytes) in foreign {
            fs::write(&path, &bytes).unwrap();
            assert!(
                refused(&swept(&path, &["--limit", "20", "--resume"])).contains("its row "),
                "{name}: {what}"
            );
            assert_eq!(fs::read(&path).unwrap(), bytes, "{name}: {what}");
        }
        // A last row that is not whole is cut off, also if a line end follows.
        for torn in [&rows[5][..rows[5].len() - 1], &rows[5][..10], &[&rows[5][..10], b"\n"].concat()[..]] {
            fs::write(&path, [&written(&rows[..5])[..], torn].concat()).unwrap();
            assert!(swept(&path, &["--limit", "20", "--resume"]).status.success(), "{name}");
            assert_eq!(fs::read(&path).unwrap(), whole, "{name}");
        }
    }
}

#[test]
fn a_file_is_not_written_over_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep.csv");
    assert!(swept(&path, &["--limit", "5"]).status.success());
    assert!(refused(&swept(&path, &[])).contains("exists already"));
    let other = swept(&path, &["--resume", "--set", "cluster.servers.count=3"]);
    assert!(refused(&other).contains("another sweep"));
    assert!(refused(&swept(&path, &["--resume", "--method", "zeng2023"])).contains("another sweep"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Ctrl-C in the middle of simulations leaves complete rows, and the sweep goes on from there.
#[cfg(unix)]
#[test]
fn an_interrupted_sweep_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep.jsonl");
    let file = path.to_str().unwrap();
    let quick = ["--set", "model.zoo=alexnet", "--set", "methods.simulate.steps=50"];
    let simulate = ["--vary", "batch=1..500", "--method", "simulate", "-o", file];
    let simulate = [&simulate[..], &quick, &["--set", "methods.simulate.warm-up=5"]].concat();
    let mut child =
        process(&["sweep", &example("search.toml")]).args(&simulate).stdout(Stdio::piped()).spawn().unwrap();
    let rows = || fs::read_to_string(&path).unwrap_or_default().matches('\n').count();
    let since = Instant::now();
    while rows() < 3 && since.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() < 501, "{}", text.lines().count());
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let two_more = (text.lines().count() + 2).to_string();
    let resumed = stepcast("sweep", &[&simulate[..], &["--resume", "--limit", &two_more]].concat());
    assert!(resumed.status.success());
    let longer = fs::read_to_string(&path).unwrap();
    assert!(longer.starts_with(&text) && longer.lines().count() == text.lines().count() + 2);
}

/// The end of a search by Ctrl-C, at a moment when it is as it should be: busy machines need longer to come that far.
#[cfg(unix)]
fn interrupted_search(arguments: &str, is_right: fn(&Output) -> bool) -> Output {
    let after = |seconds: u64| {
        let child = process(&["search", "--minimize", "iteration", "--method", "simulate"])
            .args(arguments.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(seconds));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        child.wait_with_output().unwrap()
    };
    [2, 8, 32].into_iter().map(after).find(is_right).unwrap()
}

/// Ctrl-C within a search prints the best until then, and within its first prediction that there is none.
#[cfg(unix)]
#[test]
fn an_interrupted_search_prints_what_it_has_found() {
    let small = "--set model.zoo=alexnet --set methods.simulate.steps=50 \
                 --vary batch=1..64 --vary workers.count=1..64 --vary servers.count=1..16 --budget 100000";
    let found = interrupted_search(small, |output| !output.stdout.is_empty());
    assert_eq!(found.status.code(), Some(130));
    let words = String::from_utf8(found.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("The search ended because it was interrupted."), "{words}");
    let endless = "--set methods.simulate.budget=1000000000000 --set methods.simulate.precision=0.000000001 \
                   --set methods.simulate.steps=1000000 --vary batch=1..4";
    let nothing = interrupted_search(endless, |output| output.status.code() == Some(130));
    assert!(nothing.stdout.is_empty());
    assert_eq!(String::from_utf8(nothing.stderr).unwrap(), "Stopped before anything was found.\n");
}

#[test]
fn a_search_has_devices_of_the_catalog_with_prices() {
    let asked = "--minimize cost --devices tesla-t4,tesla-v100-sxm2-16gb --count 0..3 \
                 --price tesla-t4=0.4 --price tesla-v100-sxm2-16gb=2.5 --subject-to memory --json";
    let output = stepcast("search", &asked.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["configurations"], 16);
    assert_eq!(report["refused"], 1);
    let best = &report["best"][0];
    assert_eq!(best["values"]["cluster.workers.1.count"], "0");
    let hours = best["training_s"].as_f64().unwrap() / 3600.0;
    let workers: f64 = best["values"]["cluster.workers.0.count"].as_str().unwrap().parse().unwrap();
    let cost = hours * (0.4 * workers + 2.0 * 0.3);
    assert!((best["cost"].as_f64().unwrap() / cost - 1.0).abs() < 1e-9, "{best}");
}
