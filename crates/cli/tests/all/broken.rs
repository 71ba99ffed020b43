//! Every file of `tests/broken/` is refused by `predict`, and every one of `tests/broken-fit/` by `fit`, with one error that says
//! where and what to do. The expected text stands beside each file; `UPDATE_GOLDEN=1 cargo test -p stepcast-cli broken` writes it
//! anew. All run in this process, and one of each kind also as a process.

use crate::program::{done, process, refused, refused_by};
use std::fs;
use std::path::{Path, PathBuf};

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
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
