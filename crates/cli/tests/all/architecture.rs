//! ARCHITECTURE.md against the code: which crates each crate uses, and what pure crates never do.

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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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
