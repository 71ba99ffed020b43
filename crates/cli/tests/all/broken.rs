//! Every file of `tests/broken/` is refused with one error that says where and what to do.
//!
//! The expected text stands beside each file. `UPDATE_GOLDEN=1 cargo test -p stepcast-cli --test broken` writes
//! it anew.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside of them

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

/// Errors about what is not in the file, or not about one line of it.
const WITHOUT_A_LINE: [&str; 3] = ["empty.toml", "no-model.toml", "only-a-comment.toml"];

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_scenario(path))
        .collect();
    files.sort();
    files
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn predict(path: &Path) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("stepcast")
        .unwrap()
        .current_dir(path.parent().unwrap())
        .arg("predict")
        .arg(path.file_name().unwrap())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn broken_scenarios_are_refused_with_one_error_place_and_remedy() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut differing = Vec::new();
    for path in corpus() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (code, stdout, stderr) = predict(&path);
        assert_eq!(code, Some(2), "{name}: {stderr}");
        assert_eq!(stdout, "", "{name}");
        assert!(!stderr.contains("panicked"), "{name}: {stderr}");
        assert_eq!(stderr.lines().filter(|line| line.starts_with("error")).count(), 1, "{name}: {stderr}");
        assert!(stderr.contains("= help: "), "{name}: {stderr}");
        assert!(stderr.chars().all(|c| c == '\n' || !c.is_control()), "{name}: {stderr:?}");
        let place = format!("--> {name}");
        let line = stderr.split_once(&place).map(|(_, rest)| rest.starts_with(':'));
        assert_eq!(line, Some(!WITHOUT_A_LINE.contains(&name)), "{name}: {stderr}");
        let golden = path.with_extension("stderr");
        if update {
            fs::write(&golden, &stderr).unwrap();
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(&stderr) {
            differing.push(format!("{name}:\n{stderr}"));
        }
    }
    let count = differing.len();
    assert!(
        differing.is_empty(),
        "{count} differ from their .stderr (see the header):\n{}",
        differing.join("\n")
    );
}

#[test]
fn the_corpus_is_large_and_has_no_strays() {
    let files = corpus();
    assert!(files.len() >= 90, "{}", files.len());
    let folder = files[0].parent().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(is_scenario(&path) || path.with_extension("toml").exists(), "{}", path.display());
    }
}
