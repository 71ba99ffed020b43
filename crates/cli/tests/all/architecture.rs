//! ARCHITECTURE.md against the code: which crates each crate uses, and what pure crates never do. Flags belong to the command
//! line: the crates below the front ends name keys and typed remedies instead.

use crate::{json, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");

/// What a crate that does no input or output, reads no clock, starts no thread and logs nothing must not name.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "println!",
    "rayon::",
    "tokio::",
];

/// Rows of the table of crates: name, crates that it uses, promises.
fn table() -> BTreeMap<String, (Vec<String>, String)> {
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = PAGE.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(cells);
    let names =
        |cell: &str| cell.split(", ").filter(|name| *name != "–").map(|name| name.replace('`', "")).collect();
    rows.map(|row| (row[1].replace('`', ""), (names(&row[2]), row[3].clone()))).collect()
}

fn crates() -> PathBuf {
    root().join("crates")
}

/// The crates under crates/ that a manifest depends on, tests aside.
fn used(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let dependencies =
        manifest.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let ours = dependencies.keys().filter_map(|name| name.strip_prefix("stepcast-"));
    let mut ours: Vec<_> = ours.filter(|name| crates().join(name).is_dir()).map(str::to_owned).collect();
    ours.sort();
    ours
}

/// The Rust files of a folder, without those for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "tests" => sources(&path, found),
            false if name.ends_with(".rs") && !name.ends_with("tests.rs") => found.push(path),
            _ => {}
        }
    }
}

/// Whether a module declares `stem` for tests only.
fn text_declares(module: &str, stem: &str) -> bool {
    ["mod", "pub mod", "pub(crate) mod"]
        .iter()
        .any(|visible| module.contains(&format!("#[cfg(test)]\n{visible} {stem};")))
}

#[test]
fn crates_use_what_the_page_says() {
    let table = table();
    let folders =
        fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut folders: Vec<_> =
        folders.filter(|name| crates().join(name).join("Cargo.toml").is_file()).collect();
    folders.sort();
    assert_eq!(table.keys().cloned().collect::<Vec<_>>(), folders, "every crate has a row");
    for (name, (listed, _)) in &table {
        assert_eq!(&used(name), listed, "{name}");
    }
}

#[test]
fn pure_crates_stay_pure() {
    let table = table();
    let pure: Vec<_> =
        table.iter().filter(|(_, (_, never))| never.contains("pure")).map(|(name, _)| name).collect();
    assert!(pure.len() >= 4, "{pure:?}");
    for name in pure {
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        let read = |file: PathBuf| (fs::read_to_string(&file).unwrap(), file);
        let files: Vec<_> = files.into_iter().map(read).collect();
        for (text, file) in &files {
            let stem = file.file_stem().unwrap().to_string_lossy();
            let for_tests = |module: &str| text_declares(module, &stem);
            if files.iter().any(|(other, _)| for_tests(other)) {
                continue;
            }
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for impure in IMPURE {
                assert!(!code.contains(impure), "{} names {impure}", file.display());
            }
        }
    }
}

/// Folders that read or write the flags of other programs.
const FLAGS_OF_OTHERS: [&str; 3] =
    ["study/src/request/launch", "study/src/explore/plan/measure.rs", "core/src/strategy/plan/dimensions.rs"];

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
    let mut checked = 0;
    for name in ["core", "analytic", "sim", "stats", "fit", "onnx", "trace", "study", "report", "validation"]
    {
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        for path in files {
            let of_others = FLAGS_OF_OTHERS.iter().any(|folder| path.starts_with(crates().join(folder)));
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
    let scenario = root().join("examples/all-reduce.toml");
    let printed = json(&["compare", scenario.to_str().unwrap()]);
    let server = crate::serving::Server::start(1024);
    let body = serde_json::json!({ "scenario": fs::read_to_string(&scenario).unwrap() });
    let answered = server.answer("compare", &body.to_string());
    assert_eq!(printed["rows"], answered["rows"]);
    let texts = printed.to_string();
    assert!(texts.contains("\"kind\":\"use-method\"") && texts.contains("\"kind\":\"set-key\""), "{texts}");
    assert!(!texts.contains("--method"), "{texts}");
    let body = serde_json::json!({ "scenario": "model.zoo = \"vgg61\"" });
    let problem = server.answer("predict", &body.to_string());
    let meant = serde_json::json!([
        { "kind": "did-you-mean", "name": "vgg16" },
        { "kind": "list-names", "list": "models" },
        { "kind": "advice", "text": "describe it by a config.json, an ONNX file or `[model.transformer]`" },
    ]);
    assert_eq!(problem["remedies"], meant);
    let remedy = problem["remedy"].as_str().unwrap();
    assert!(remedy.starts_with("did you mean \"vgg16\"? see the list of models"), "{remedy}");
}
