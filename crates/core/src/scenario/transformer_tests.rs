//! Transformers in scenarios: by name, by table, by configuration, with another sequence.

use super::{ModelSource, Scenario, ScenarioFile};
use crate::fault::Fault;
use crate::files::Files;
use crate::model::transformer::Transformer;
use crate::model::zoo;
use crate::profile::Profile;

/// A source with one configuration, of GPT-2.
struct Config;

impl Files for Config {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        Err(Fault::new(format!("no profile {path}"), ""))
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        match path {
            "config.json" => Ok(r#"{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
                                    "vocab_size": 50257, "n_positions": 1024}"#
                .to_owned()),
            _ => Err(Fault::new(format!("no file {path}"), "")),
        }
    }
}

fn scenario(model: &str) -> Result<Scenario, Fault> {
    let file: ScenarioFile = toml::from_str(&format!("[model]\n{model}")).unwrap();
    file.resolve_with(&Config)
}

#[test]
fn names_tables_and_configurations_give_the_same_shape() {
    let named = scenario("zoo = \"gpt2\"").unwrap();
    let shape = named.source.transformer().unwrap();
    assert_eq!(shape, zoo::transformer("gpt2").unwrap());
    let table = scenario("transformer = { base = \"gpt2\" }").unwrap();
    let config = scenario("config = \"config.json\"").unwrap();
    for other in [&table, &config] {
        assert_eq!(other.source.transformer(), Some(shape));
        assert_eq!(other.workload.parameters, named.workload.parameters);
        assert_eq!(other.workload.forward, named.workload.forward);
    }
    assert_eq!(scenario("zoo = \"resnet50\"").unwrap().source.transformer(), None);
}

#[test]
fn a_sequence_changes_the_work_but_not_the_parameters() {
    let usual = scenario("zoo = \"llama3-8b\"").unwrap();
    let short = scenario("zoo = \"llama3-8b\"\nsequence = 2048").unwrap();
    assert_eq!(short.source.transformer().unwrap().sequence, 2048);
    assert_eq!(short.workload.parameters, usual.workload.parameters);
    // Attention grows faster than the sequence.
    assert!(usual.workload.forward.get() > 4.0 * short.workload.forward.get());
    assert_eq!(scenario("zoo = \"gpt2\"\nsequence = 512").unwrap().workload.sample.get() as u64, 4 * 512);
    let table = scenario("sequence = 64\ntransformer = { base = \"gpt2\" }").unwrap();
    assert_eq!(table.source.transformer().unwrap().sequence, 64);
}

/// Lengths of both stacks: the target keeps its share of the input unless it is given.
#[test]
fn a_table_beside_a_name_says_what_differs() {
    let shape = |text: &str| scenario(text).unwrap().source.transformer().unwrap();
    let cut = shape("zoo = \"llama3-8b\"\ntransformer = { layers = 4 }");
    assert_eq!(cut, Transformer { layers: 4, ..zoo::transformer("llama3-8b").unwrap() });
    let lengths = |text: &str| (shape(text).sequence, shape(text).target);
    assert_eq!(lengths("zoo = \"t5-base\"\nsequence = 1024"), (1024, 228));
    assert_eq!(
        lengths("zoo = \"t5-base\"\nsequence = 1024\ntransformer = { modules = \"t5\" }"),
        (1024, 228)
    );
    assert_eq!(lengths("zoo = \"t5-base\"\nsequence = 1024\ntransformer = { target = 128 }"), (1024, 128));
    assert_eq!(
        scenario("zoo = \"resnet50\"\ntransformer = { layers = 4 }").unwrap_err().key.to_string(),
        "model.transformer"
    );
}

#[test]
fn scenarios_are_written_back() {
    for model in [
        "zoo = \"llama3-8b\"\nsequence = 2048",
        "zoo = \"gpt2\"",
        "transformer = { base = \"deepseek-v3\", layers = 4, name = \"cut\" }",
        "config = \"config.json\"\nsequence = 256",
    ] {
        let first = scenario(model).unwrap();
        let again = first.to_file().resolve_with(&Config).unwrap();
        assert_eq!(again, first, "{model}");
        assert_eq!(again.to_file(), first.to_file(), "{model}");
    }
    let cut = scenario("transformer = { base = \"gpt2\", name = \"cut\" }").unwrap();
    assert!(matches!(&cut.source, ModelSource::Transformer { name, .. } if name == "cut"));
}

#[test]
fn refusals_name_the_key() {
    let wrong = |model: &str| scenario(model).unwrap_err().key.to_string();
    assert_eq!(wrong("zoo = \"gpt2\"\nsequence = 1025"), "model.sequence");
    assert_eq!(wrong("zoo = \"resnet50\"\nsequence = 8"), "model.sequence");
    assert_eq!(wrong("zoo = \"llama3-8b\"\nsequence = 0"), "model.sequence");
    assert_eq!(wrong("config = \"config.json\"\nsequence = 2048"), "model.sequence");
    assert_eq!(wrong("config = \"other.json\""), "model.config");
    assert_eq!(wrong("transformer = { base = \"gpt2\", heads = 7 }"), "model.transformer.heads");
    assert_eq!(wrong("zoo = \"gpt2\"\ntransformer = { base = \"gpt2\" }"), "model.transformer");
    assert_eq!(wrong("profile = \"a\"\nconfig = \"b\""), "model.profile");
}
