//! Every file of `tests/broken-fit/` is refused by `stepcast fit` with one error that says where and what to do.
//!
//! The first word of a file's name says what it is fitted as; the expected text stands beside it.
//! `UPDATE_GOLDEN=1 cargo test -p stepcast-cli --test broken_fit` writes it anew.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside of them

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken-fit");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "csv" || end == "jsonl")).collect();
    files.sort();
    files
}

#[test]
fn broken_measurements_are_refused_with_one_error_place_and_remedy() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let folder = tempfile::tempdir().unwrap();
    let mut differing = Vec::new();
    for path in corpus() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let kind = name.split('-').next().unwrap();
        let output = folder.path().join("fit.toml");
        let run = Command::cargo_bin("stepcast")
            .unwrap()
            .current_dir(path.parent().unwrap())
            .args(["fit", kind, name, "-o"])
            .arg(&output)
            .args(if kind == "efficiency" { &["--device", "h200-sxm"][..] } else { &[] })
            .output()
            .unwrap();
        let stderr = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{name}: {stderr}");
        assert!(run.stdout.is_empty() && !output.exists(), "{name}");
        assert_eq!(stderr.lines().filter(|line| line.starts_with("error")).count(), 1, "{name}: {stderr}");
        assert!(stderr.contains("= help: ") && stderr.contains(&format!("--> {name}")), "{name}: {stderr}");
        let golden = path.with_extension("stderr");
        if update {
            fs::write(&golden, &stderr).unwrap();
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(&stderr) {
            differing.push(format!("{name}:\n{stderr}"));
        }
    }
    assert!(differing.is_empty(), "differ from their .stderr (see the header):\n{}", differing.join("\n"));
}

#[test]
fn a_fit_is_written_once_and_again_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), "bytes,time_us\n1000,11\n10000,20\n100000,110\n1000000,1010\n")
        .unwrap();
    let fit = |more: &[&str]| {
        let mut command = Command::cargo_bin("stepcast").unwrap();
        command.current_dir(folder.path()).args(["fit", "transfer", "t.csv", "-o", "t.toml"]).args(more);
        command.output().unwrap()
    };
    let first = fit(&["--json"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let text = fs::read_to_string(folder.path().join("t.toml")).unwrap();
    for part in ["formula", "source", "date", "startup = \"", "bandwidth = \"", "third-quartile", "meaning"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let second = fit(&[]);
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("--force"));
    assert!(fit(&["--force"]).status.success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
}
