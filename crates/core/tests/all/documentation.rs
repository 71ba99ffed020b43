//! Checks that the tables of docs/scenario.md, the keywords of the Python package and the schema match the declarations of the keys.

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use stepcast_core::precision::Precision;
use stepcast_core::scenario::{SectionDoc, documentation};
use stepcast_core::strategy::WireFormat;

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
    up_to_date("docs/scenario.md", |page| {
        renewed(page).expect("docs/scenario.md has a place for the table of every section")
    });
}

/// Keys above all sections, sections, and keys of sections that stand at the top.
#[test]
fn keywords_of_python_are_up_to_date() {
    let names = |section: &SectionDoc| {
        let keys = section.keys.iter().map(|key| key.name.replace('-', "_"));
        keys.chain([section.path.to_owned()]).collect::<Vec<_>>()
    };
    let (mut anywhere, mut apart) = (BTreeSet::from(["as_published".to_owned()]), BTreeSet::new());
    for section in documentation().iter().filter(|section| !section.path.contains('.')) {
        if section.path == "plan" { &mut apart } else { &mut anywhere }.extend(names(section));
    }
    apart.extend(["count", "model", "workers"].map(str::to_owned));
    let listed = |names: &mut dyn Iterator<Item = &String>| {
        names.map(|name| format!("    {name}: Any\n")).collect::<String>()
    };
    let text = format!(
        "\"\"\"Keywords of scenarios; written from the declarations of their keys.\"\"\"\n\nfrom typing import Any, TypedDict\n\n\n\
         class Keywords(TypedDict, total=False):\n    \"\"\"Keys of a scenario that every call takes by name.\"\"\"\n\n{}\n\n\
         class ScenarioKeywords(Keywords, total=False):\n    \"\"\"Those, and names that some calls use for parameters of their own.\"\"\"\n\n{}",
        listed(&mut anywhere.difference(&apart)),
        listed(&mut apart.iter()),
    );
    up_to_date("python/stepcast/keywords.py", |_| text);
}

/// Compares a file with what it should be, or writes that.
fn up_to_date(path: &str, renewed: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let now = fs::read_to_string(&path).unwrap_or_default();
    let renewed = renewed(&now);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &renewed).unwrap();
        return;
    }
    assert!(now == renewed, "run `UPDATE_DOCS=1 cargo test -p stepcast-core --test all documentation`");
}

#[test]
fn keys_of_a_few_names_offer_them() {
    let choices = |path: &str, name: &str| {
        let sections = documentation();
        let section = sections.iter().find(|section| section.path == path).unwrap();
        section.keys.iter().find(|key| key.name == name).unwrap().choices.clone()
    };
    assert_eq!(choices("strategy", "precision"), ["fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16"]);
    assert_eq!(choices("strategy", "architecture"), ["parameter-server", "all-reduce", "stand-alone"]);
    assert_eq!(choices("cluster.servers", "placement"), ["greedy", "even"]);
    assert!(choices("strategy", "batch").is_empty());
}

/// The names in the schema of a type, and those of them that stand for another.
fn names<T: JsonSchema>() -> (BTreeSet<String>, BTreeSet<String>) {
    let schema = schema_for!(T);
    let all = schema.get("oneOf").and_then(Value::as_array).unwrap().clone();
    let name = |one: &Value| one["const"].as_str().unwrap().to_owned();
    let others = all.iter().filter(|one| one.get("x-alias-of").is_some());
    (all.iter().map(name).collect(), others.map(name).collect())
}

fn permits_what_is_parsed<T: JsonSchema + DeserializeOwned>(others: &[&str]) {
    let (all, found) = names::<T>();
    let parsed = |name: &str| from_value::<T>(name.into()).map(drop).map_err(|error| error.to_string());
    // "unknown variant `fp23`, expected one of `fp32`, …"
    let refused = parsed("fp23").unwrap_err();
    let accepted: BTreeSet<String> = refused.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert_eq!(all, accepted, "{refused}");
    assert_eq!(found, others.iter().map(|name| (*name).to_owned()).collect());
    assert!(all.iter().all(|name| parsed(name).is_ok()));
}

#[test]
fn a_schema_permits_what_the_parser_accepts() {
    permits_what_is_parsed::<Precision>(&["float32", "float16", "half", "bfloat16", "amp", "mixed"]);
    permits_what_is_parsed::<WireFormat>(&["bf16"]);
}
