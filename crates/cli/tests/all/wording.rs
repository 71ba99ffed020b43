//! Flags belong to the command line: the crates below the front ends name keys and typed remedies instead.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that read or write the flags of other programs.
const FLAGS_OF_OTHERS: [&str; 3] =
    ["study/src/request/launch", "study/src/explore/plan/measure.rs", "core/src/strategy/plan/dimensions.rs"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !name.ends_with("tests") {
            found.push(path);
        }
    }
}

/// The string literals of a source file, without those of its tests. Escapes stay as they are.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let tail = &rest[at..];
        rest = if tail.starts_with("//") {
            tail.find('\n').map_or("", |end| &tail[end..])
        } else if tail.starts_with("'\"'") || tail.starts_with("'\\'") {
            &tail[3..]
        } else if let Some(text) = tail.strip_prefix('"') {
            let mut escaped = false;
            let end = text.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let (literal, after) = text.split_at(end.unwrap_or(text.len()));
            found.push(literal.to_owned());
            after.strip_prefix('"').unwrap_or("")
        } else {
            &tail[1..]
        };
    }
    found
}

fn names_a_flag(text: &str, of_others: bool) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase();
    let flags = text.match_indices("--").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| " `('[".contains(c)) && text[at + 2..].starts_with(is_word)
    });
    let ours = |flag: &str| {
        ["set ", "method ", "workers ", "machine ", "model ", "json", "budget"]
            .iter()
            .any(|own| flag.starts_with(own))
    };
    flags.clone().any(|(at, _)| !of_others || ours(&text[at + 2..])) || text.contains("`stepcast ")
}

#[test]
fn no_message_below_the_front_ends_names_a_flag() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut checked = 0;
    for name in ["core", "analytic", "sim", "stats", "fit", "onnx", "trace", "study", "report", "validation"]
    {
        let mut files = Vec::new();
        let folder = crates.join(name).join("src");
        if folder.exists() {
            sources(&folder, &mut files);
        }
        for path in files {
            let of_others = FLAGS_OF_OTHERS.iter().any(|folder| path.starts_with(crates.join(folder)));
            for text in literals(&fs::read_to_string(&path).unwrap()) {
                checked += 1;
                // Comments of files that a command writes tell which command did.
                let is_comment = text.trim_start_matches(['\\', '\n']).starts_with('#');
                assert!(is_comment || !names_a_flag(&text, of_others), "{}: {text}", path.display());
            }
        }
    }
    assert!(checked > 5_000, "only {checked} texts were read");
}

#[test]
fn flags_are_recognised() {
    for text in ["use `--method x`", "--set a=1", "run `stepcast models`", "(--json)"] {
        assert!(names_a_flag(text, false), "{text}");
    }
    assert!(!names_a_flag("--num-layers 3", true) && names_a_flag("use --set a=1", true));
    assert!(!names_a_flag("a – b, 3--4, ---", false));
    let source = "let a = \"one \\\" two\"; // \"three\"\nlet b = '\"'; f(\"four\")\n#[cfg(test)]\nmod tests { \"five\" }";
    assert_eq!(literals(source), ["one \\\" two", "four"]);
}

/// The refusals of `compare`, by the command line and by the API. (python/tests/test_same_as_cli.py adds the third road.)
#[test]
fn remedies_are_the_same_data_by_every_road() {
    let program = env!("CARGO_BIN_EXE_stepcast");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let scenario = root.join("examples/all-reduce.toml");
    let printed =
        std::process::Command::new(program).arg("compare").arg(&scenario).arg("--json").output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let server = super::serving::Server::start(1024);
    let body = serde_json::json!({ "scenario": fs::read_to_string(&scenario).unwrap() });
    let answered = server.answer("/api/v1/compare", &body.to_string());
    assert_eq!(printed["rows"], answered["rows"]);
    let texts = printed.to_string();
    assert!(texts.contains("\"kind\":\"use-method\"") && texts.contains("\"kind\":\"set-key\""), "{texts}");
    assert!(!texts.contains("--method"), "{texts}");
    let body = serde_json::json!({ "scenario": "model.zoo = \"vgg61\"" });
    let problem = server.answer("/api/v1/predict", &body.to_string());
    let meant = serde_json::json!([
        { "kind": "did-you-mean", "name": "vgg16" },
        { "kind": "list-names", "list": "models" },
        { "kind": "advice", "text": "describe it by a config.json, an ONNX file or `[model.transformer]`" },
    ]);
    assert_eq!(problem["remedies"], meant);
    let remedy = problem["remedy"].as_str().unwrap();
    assert!(remedy.starts_with("did you mean \"vgg16\"? see the list of models"), "{remedy}");
}
