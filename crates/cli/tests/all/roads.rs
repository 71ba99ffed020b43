//! The same question by every road: flags, a file, single keys, and the programming interface that the page and the Python
//! package use. One answer, byte for byte.

use crate::program::answer;
use std::fs;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::request::Folder;
use stepcast_study::{ForecastOptions, Observer, Request, forecast};
use toml::{Table, Value};

const QUESTIONS: &str = include_str!("../roads/questions.json");

#[derive(serde::Deserialize)]
struct Question {
    flags: String,
    keys: Table,
}

/// Words of a shell, with single quotes.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(place, text)| match place % 2 {
        0 => text.split_whitespace().map(str::to_owned).collect(),
        _ => vec![text.to_owned()],
    });
    words.collect()
}

fn file(keys: &Table) -> String {
    let mut root = Table::new();
    for (key, value) in keys {
        let parts: Vec<&str> = key.split('.').collect();
        let (last, sections) = parts.split_last().unwrap();
        let mut table = &mut root;
        for section in sections {
            let inner = table.entry(*section).or_insert_with(|| match *section {
                "workers" => Value::Array(vec![Value::Table(Table::new())]),
                _ => Value::Table(Table::new()),
            });
            table = match inner {
                Value::Array(groups) => groups[0].as_table_mut().unwrap(),
                inner => inner.as_table_mut().unwrap(),
            };
        }
        table.insert((*last).to_owned(), value.clone());
    }
    toml::to_string(&root).unwrap()
}

#[test]
fn a_question_has_one_answer() {
    let questions: Vec<Question> = serde_json::from_str(QUESTIONS).unwrap();
    assert_eq!(questions.len(), 30);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("question.toml");
    let empty = folder.path().join("empty.toml");
    fs::write(&empty, "").unwrap();
    for Question { flags, keys } in &questions {
        let asked = words(flags);
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let by_flags = answer(&[&["predict", "--json"][..], &asked].concat());
        let text = file(keys);
        fs::write(&path, &text).unwrap();
        assert!(by_flags == answer(&["predict", "--json", path.to_str().unwrap()]), "{flags}\n{text}");
        let sets: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let sets = sets.iter().flat_map(|set| ["--set", set.as_str()]);
        let by_keys = ["predict", "--json", empty.to_str().unwrap()].into_iter().chain(sets);
        assert!(by_flags == answer(&by_keys.collect::<Vec<_>>()), "{flags}");
        let edits = keys.iter().map(|(key, value)| Edit::set(key.as_str(), value.clone())).collect();
        let request = Request::new(Document::new("scenario", ""), Folder::default(), edits);
        let forecast = forecast(&request, &ForecastOptions::default(), &Observer::none()).unwrap();
        assert!(by_flags == stepcast_report::json::pretty(&forecast).unwrap(), "{flags}");
    }
}
