//! Modules use only modules that stand above them.

use std::path::{Path, PathBuf};

/// A module uses only modules of its own line and of lines before it. Models are read by keys, and files that keys
/// name give models: these three stand on one line.
const ORDER: [&[&str]; 20] = [
    &["quantity"],
    &["uncertain"],
    &["fault"],
    &["text"],
    &["suggest"],
    &["profile"],
    &["model", "files", "keys"],
    &["precision"],
    &["fitted"],
    &["machine"],
    &["strategy"],
    &["prediction"],
    &["peak"],
    &["prior"],
    &["workload"],
    &["speed"],
    &["pass"],
    &["scenario"],
    &["compute"],
    &["method"],
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn arrows_between_modules_go_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    for path in files.iter().filter(|path| !path.ends_with("lib.rs")) {
        let first = path.strip_prefix(&root).unwrap().components().next().unwrap();
        let module = first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        let floor = ORDER.iter().position(|line| line.contains(&module.as_str()));
        let floor = floor.unwrap_or_else(|| panic!("{module} has no place in ORDER"));
        let text = std::fs::read_to_string(path).unwrap();
        for used in text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(uses) {
            let above = ORDER[floor + 1..].iter().any(|line| line.contains(&used));
            assert!(!above, "{} uses {used}, which stands above {module}", path.display());
        }
    }
}

/// The modules that a line names by `crate::`.
fn uses(line: &str) -> impl Iterator<Item = &str> {
    let names = line.split("crate::").skip(1);
    names.map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(""))
}
