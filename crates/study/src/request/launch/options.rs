//! What is emitted has only options that frameworks have, and keeps what they assert of them.
//!
//! Both tables name their sources. `.ci/frameworks` writes the rows of torchtitan and Accelerate from their packages.

use super::tests::{launch, plans};
use super::{Framework, keys::Keys, shell, yaml};
use serde_json::Value;
use std::collections::BTreeMap;
use stepcast_core::model::zoo;

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.splitn(3, ',').collect())
}

/// The options of an emitted file, with their values.
fn options(text: &str, framework: Framework) -> BTreeMap<String, String> {
    let keys = match framework {
        Framework::Megatron => {
            let own = text.split_once("pretrain_gpt.py").unwrap().1;
            let mut keys = shell::flags(own);
            if let Some((_, rest)) = text.split_once("CUDA_DEVICE_MAX_CONNECTIONS=") {
                keys.set("CUDA_DEVICE_MAX_CONNECTIONS", Value::from(rest.split(' ').next().unwrap()));
            }
            keys
        }
        Framework::Torchtitan => {
            let mut keys = Keys::default();
            for line in text.lines() {
                if let Some((key, value)) =
                    line.trim().strip_prefix("config.").and_then(|it| it.split_once(" = "))
                {
                    keys.set(key, Value::from(value));
                }
            }
            keys
        }
        Framework::Deepspeed => Keys::of_tree(serde_json::from_str(text).unwrap()),
        _ => yaml::keys(text).unwrap(),
    };
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    keys.all().map(|(key, value)| (key, text(value))).collect()
}

/// Whether options have what a condition says: `name`, `!name`, `name=value` (one of several) or `name>number`.
fn holds(term: &str, options: &BTreeMap<String, String>) -> bool {
    if let Some(term) = term.strip_prefix('!') {
        return !holds(term, options);
    }
    let value = |name: &str| options.get(name);
    match (term.split_once('='), term.split_once('>')) {
        (Some((name, wanted)), _) => {
            value(name).is_some_and(|value| value.split(' ').any(|word| word == wanted))
        }
        (None, Some((name, least))) => {
            let number = |text: &str| text.parse::<u64>().unwrap();
            value(name).is_some_and(|value| number(value) > number(least))
        }
        (None, None) => value(term).is_some(),
    }
}

#[test]
fn emitted_options_exist_and_keep_assertions() {
    let known: Vec<[&str; 2]> = rows(include_str!("options.csv")).map(|row| [row[0], row[1]]).collect();
    let assertions: Vec<Vec<&str>> = rows(include_str!("assertions.csv")).collect();
    for framework in Framework::ALL.iter().copied() {
        let own = framework.to_string();
        for model in ["gpt3-2.7b", "llama3-8b", "mixtral-8x7b", "deepseek-v3"] {
            let shape = zoo::transformer(model).unwrap();
            for plan in plans(&shape, framework).into_iter().step_by(7) {
                let Ok(text) = launch(model, &shape, &plan).emit(framework) else { continue };
                let options = options(&text, framework);
                for name in options.keys().filter(|name| !name.starts_with("CUDA")) {
                    assert!(known.contains(&[own.as_str(), name]), "{framework}: {name}\n{text}");
                }
                for assertion in assertions.iter().filter(|_| framework == Framework::Megatron) {
                    let all = |terms: &str| terms.split(' ').all(|term| holds(term, &options));
                    assert!(!all(assertion[0]) || all(assertion[1]), "{assertion:?}\n{text}");
                }
            }
        }
    }
}
