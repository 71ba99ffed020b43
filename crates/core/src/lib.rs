//! The domain of Stepcast: quantities, models, devices, clusters, strategies, scenarios and predictions. No input or
//! output, no clock, no threads, no logging: text in, values out.
//!
//! The modules stand on four floors, and a module uses only those above it in the list (a test checks it):
//!
//! 1. plain values and how files write them: `quantity` to `precision`;
//! 2. words of the field: `fitted` (models fitted to measurements), `machine`, `strategy`, `prediction`;
//! 3. what devices reach before anything is measured: `prior`, and the work of a model in a step;
//! 4. the file and what follows from it: `scenario`, `compute` (what the workers of a scenario reach), `method`.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

pub mod compute;
pub mod fault;
pub mod files;
pub mod fitted;
pub mod keys;
pub mod machine;
pub mod method;
pub mod model;
pub mod pass;
mod peak;
pub mod precision;
pub mod prediction;
pub mod prior;
pub mod profile;
pub mod quantity;
pub mod scenario;
pub mod speed;
pub mod strategy;
pub mod suggest;
pub mod text;
pub mod uncertain;
pub mod workload;

/// Names of an enumeration's variants, in order: the list of variants, the name of each, the one with a name, and `Display`.
#[macro_export]
macro_rules! variant_names {
    ($type:ident { $($variant:ident = $name:literal,)* }) => {
        #[allow(dead_code, reason = "few enumerations need all of them")]
        impl $type {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|own| own.name() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

#[cfg(test)]
mod tests {
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
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        for path in files.iter().filter(|path| !name(path).contains("tests") && name(path) != "lib.rs") {
            let first = path.strip_prefix(&root).unwrap().components().next().unwrap();
            let module = first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
            let floor = ORDER.iter().position(|line| line.contains(&module.as_str()));
            let floor = floor.unwrap_or_else(|| panic!("{module} has no place in ORDER"));
            let text = std::fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            for used in code.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(uses) {
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
}
