//! Checks that the tables of docs/scenario.md match the declarations of the keys.

use std::fs;
use std::path::Path;
use stepcast_core::scenario::documentation;

/// The markers around the table of a section.
fn markers(path: &str) -> [String; 2] {
    [format!("<!-- keys of {path} -->\n"), "<!-- end of keys -->".to_owned()]
}

/// The page with every table generated from the declarations; none if a section has no table.
fn renewed(page: &str) -> Option<String> {
    let mut page = page.to_owned();
    for section in documentation() {
        let [begin, end] = markers(section.path);
        let from = page.find(&begin)? + begin.len();
        let to = from + page[from..].find(&end)?;
        page.replace_range(from..to, &format!("\n{}\n", section.markdown()));
    }
    Some(page)
}

#[test]
fn tables_of_keys_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let page = fs::read_to_string(&path).unwrap();
    let renewed = renewed(&page).expect("docs/scenario.md has a place for the table of every section");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &renewed).unwrap();
        return;
    }
    assert!(page == renewed, "run `UPDATE_DOCS=1 cargo test -p stepcast-core --test documentation`");
}
