//! The zoo against published counts, and against measured PyTorch runs: shapes of layers, order of gradients, memory.

use serde_json::Value;
use std::process::Command;
use stepcast_core::model::transformer::BaseFormat;
use stepcast_core::model::zoo::{
    build, build_for, entries, find, names, stored_format, transformer, transformers,
};
use stepcast_core::model::{Counting, Model};
use stepcast_core::text;

/// Counts that were published, by network and column.
const PUBLISHED: &str = include_str!("../../models/published.csv");

#[test]
fn counts_are_those_published() {
    let mut lines = PUBLISHED.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(','));
    let columns: Vec<&str> = lines.next().unwrap().collect();
    for line in lines {
        let row: Vec<&str> = line.collect();
        let model = build(row[0]).unwrap();
        let operations = model.forward(Counting::default()).get();
        for (column, text) in columns.iter().zip(&row).skip(1).filter(|(_, text)| !text.is_empty()) {
            let counted = match *column {
                "parameters" => model.parameters().to_string(),
                "gradients" => model.gradients().len().to_string(),
                "operations" => (operations as u64).to_string(),
                "weights" => model.weights().to_string(),
                "biases" => model.biases().to_string(),
                "pushes" => model.published().pushes.map_or("none".to_owned(), |pushes| pushes.to_string()),
                "giga multiply-adds" => {
                    let [giga, tolerance] = [text, &row[5]].map(|text| text.parse::<f64>().unwrap());
                    assert!((operations / 2e9 - giga).abs() <= tolerance, "{}: {operations}", row[0]);
                    continue;
                }
                _ => continue,
            };
            assert_eq!(counted, *text, "{}: {column}", row[0]);
        }
        assert!(model.adjustments().iter().all(|adjustment| !adjustment.reason.is_empty()));
    }
}

/// The products of both stacks of T5, and its pairs of queries and keys.
#[test]
fn t5_computes_both_stacks() {
    let (width, inner, mlp, depth, vocabulary) = (768, 768, 3072, 12, 32_128);
    for (sequence, target) in [(512, 114), (1024, 228)] {
        let encoder = sequence * (4 * width * inner + 2 * width * mlp) + 2 * sequence * sequence * inner;
        let own = target * (6 * width * inner + 2 * width * mlp) + target * (target + 1) * inner;
        let cross = 2 * sequence * width * inner + 2 * target * sequence * inner;
        let products = depth * (encoder + own + cross) + target * width * vocabulary;
        let model = build_for("t5-base", Some(sequence)).unwrap();
        assert_eq!(model.forward(Counting::default()).get() as u64, 2 * products);
    }
}

#[test]
fn checkpoints_of_a_hub_are_models_of_the_zoo() {
    for (checkpoint, model) in [
        ("meta-llama/Llama-3.1-8B", "llama3-8b"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama3-70b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama2-7b"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4-scout"),
        ("unsloth/Llama-3.2-1B", "llama3.2-1b"),
        ("mistralai/Mistral-7B-Instruct-v0.1", "mistral-7b"),
        ("mistralai/Mistral-Nemo-Base-2407", "mistral-nemo-12b"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3-235b-a22b"),
        ("google/gemma-3-4b-it", "gemma3-4b"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("allenai/OLMo-2-1124-7B-Instruct", "olmo2-7b"),
        ("openai-community/gpt2-xl", "gpt2-xl"),
        ("microsoft/resnet-50", "resnet50"),
        ("microsoft/Phi-3.5-mini-instruct", "phi3-mini"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama3-8b"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "llama3-8b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-r1-distill-qwen-1.5b"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-32b"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-30b-a3b"),
        ("facebook/opt-1.3b", "opt-1.3b"),
        ("facebook/opt-13b", "opt-13b"),
        ("microsoft/phi-1_5", "phi-1"),
        ("internlm/internlm2_5-7b-chat", "internlm2-7b"),
        ("THUDM/glm-4-9b-chat-hf", "glm4-9b"),
        ("unsloth/GLM-4-9B-0414-bnb-4bit", "glm4-9b-0414"),
        ("CohereForAI/c4ai-command-r-plus-08-2024", "command-r-plus"),
        ("google/gemma-7b-it", "gemma-7b"),
        ("EleutherAI/pythia-1.4b-deduped", "pythia-1.4b"),
        ("codellama/CodeLlama-7b-Python-hf", "llama2-7b"),
        ("OPT 13B", "opt-13b"),
        ("google-bert/bert-base-cased", "bert-base-cased"),
    ] {
        assert_eq!(find(checkpoint).map(|model| model.name.as_str()), Some(model), "{checkpoint}");
    }
    // Other shapes than their names begin with.
    for other in [
        "opt_1_3b",
        "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        "llava-hf/llava-v1.6-mistral-7b-hf",
        "Qwen/Qwen2.5-Math-PRM-7B",
        "cognitivecomputations/dolphin-2.9-llama3-8b",
        "mistralai/Mistral-Small-Instruct-2501",
        "mistralai/Mistral-7B-v0.4",
        "bert-base-german-cased",
        "it",
        "/",
        "base-it",
    ] {
        assert!(find(other).is_none(), "{other}");
    }
}

#[test]
fn names_of_checkpoints_say_how_their_matrices_are_stored() {
    let stored =
        ["bnb-4bit", "bnb-8bit", "Instruct"].map(|end| stored_format(&format!("unsloth/Llama-3.2-3B-{end}")));
    assert_eq!(stored, [Some(BaseFormat::Nf4), Some(BaseFormat::Int8), None]);
}

#[test]
fn every_entry_builds_under_its_names() {
    for entry in entries() {
        let model = entry.build().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert_eq!(
            (model.name.as_str(), model.source.as_str()),
            (entry.name.as_str(), entry.source.as_str())
        );
        for alias in &entry.aliases {
            assert_eq!(build(alias).unwrap().name, entry.name);
        }
        assert!(!entry.description.is_empty());
    }
    let mut names: Vec<_> =
        entries().flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases)).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is taken twice");
}

#[test]
fn gradients_hold_all_parameters() {
    for entry in entries() {
        let model = entry.build().unwrap();
        let elements: u64 = model.gradients().iter().map(|gradient| gradient.elements).sum();
        assert_eq!(elements, model.parameters(), "{}", entry.name);
    }
}

#[test]
fn names_are_found_loosely_and_suggested() {
    assert_eq!(build("ViT_B_16").unwrap().name, "vit-b-16");
    let unknown = build("resnet51").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no model \"resnet51\" in the zoo");
    assert!(unknown.remedy.contains("did you mean \"resnet"), "{unknown:?}");
    assert!(build("quux").unwrap_err().remedy.to_string().starts_with("see the list of models"));
    assert_eq!(
        build("convnext").unwrap_err().remedy.to_string(),
        "use one of convnext-tiny, convnext-small, convnext-base, convnext-large"
    );
}

/// The list of names, which is made without parsing, is that of the parsed files.
#[test]
fn every_file_is_read_whole() {
    assert!(names().eq(entries().map(|model| model.name.as_str())));
    for name in transformers() {
        assert!(transformer(name).is_some(), "{name}: its shape");
    }
    for text in stepcast_catalog::MODELS {
        let family: toml::Table = text::parse(text).unwrap();
        for base in family["model"].as_array().unwrap().iter().filter_map(|model| model.get("base")) {
            assert!(base.as_str().and_then(find).is_some(), "{base}");
        }
    }
}

#[test]
fn alexnet_with_sigmoids_is_the_count_of_the_other_tables() {
    let model = build("zeng2023/alexnet").unwrap();
    let sigmoids = Counting { activation: true, ..Counting::default() };
    assert_eq!(model.forward(sigmoids).get() as u64, 1_720_390_328);
    assert_eq!(model.published().forward, Some(1_720_390_328));
    assert_eq!(model.published().shipped, Some(63_380_347));
}

#[test]
fn pooling_is_not_counted_twice() {
    let model = build("zeng2023/vgg16d").unwrap();
    let pooling = Counting { pooling: true, ..Counting::default() };
    assert_eq!(model.forward(pooling), model.forward(Counting::default()));
}

const STEPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/steps/steps_h200.jsonl.gz");

fn steps() -> Vec<Value> {
    let out = Command::new("gzip").args(["-dc", STEPS]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn zoo_model(step: &Value) -> Model {
    match step["model"].as_str().unwrap() {
        // Measured with the head for masked language modelling.
        "bert-base" => build("bert-base-mlm").unwrap(),
        name => build(name).unwrap(),
    }
}

fn zoo_name(name: &str) -> &str {
    match name.strip_prefix("m.").unwrap_or(name) {
        "cls.predictions.bias" => "cls.predictions.decoder.bias",
        name => name.strip_prefix("bert.").or(name.strip_prefix("transformer.")).unwrap_or(name),
    }
}

/// In 32 bits; with automatic casts to 16 bits, linear layers return the gradient of their weight before that of
/// their bias.
#[test]
fn gradients_come_as_measured() {
    for step in steps().iter().filter(|step| step["precision"] == "fp32") {
        let model = zoo_model(step);
        assert_eq!(model.parameters(), step["params"].as_u64().unwrap(), "{}", model.name);
        let measured: Vec<(&str, u64)> = step["profile"]["grads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gradient| {
                let dims = gradient["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap());
                (zoo_name(gradient["name"].as_str().unwrap()), dims.product())
            })
            .collect();
        let gradients = model.gradients();
        let counted: Vec<(&str, u64)> =
            gradients.iter().map(|gradient| (gradient.name.as_str(), gradient.elements)).collect();
        assert_eq!(counted, measured, "{}", model.name);
    }
}

#[test]
fn layers_put_out_the_measured_shapes() {
    for step in steps() {
        let model = zoo_model(&step);
        let mut compared = 0;
        for measured in step["profile"]["layers"].as_array().unwrap() {
            // A module that runs more than once is recorded only once.
            if measured["type"] == "ReLU" {
                continue;
            }
            let name = zoo_name(measured["name"].as_str().unwrap());
            let Some(layer) = model.layers().iter().find(|layer| layer.name == name) else { continue };
            let output: Vec<u64> =
                measured["out"].as_array().unwrap()[1..].iter().map(|dim| dim.as_u64().unwrap()).collect();
            assert_eq!(layer.output.dims(), output, "{}: {name}", model.name);
            compared += 1;
        }
        let parameterised = model.layers().iter().filter(|layer| layer.cost.weights > 0).count();
        assert!(compared >= parameterised, "{}: only {compared} layers compared", model.name);
    }
}

/// Peak memory grows with the batch by the activations of a sample, if the loss and the temporary memory of the
/// backward pass are small in comparison. This does not hold for AlexNet and for large vocabularies.
#[test]
fn activations_take_the_measured_memory() {
    let steps = steps();
    let convolutional =
        ["vgg11", "vgg16", "resnet18", "resnet50", "googlenet", "densenet121", "mobilenet_v2"];
    for name in convolutional {
        let peaks: Vec<(f64, f64)> = steps
            .iter()
            .filter(|step| step["precision"] == "fp32" && step["model"] == name)
            .map(|step| (step["batch"].as_f64().unwrap(), step["mem"].as_f64().unwrap()))
            .collect();
        let [(small, low), (large, high)] = peaks[..] else { continue };
        let measured = (high - low) / (large - small);
        let ratio = build(name).unwrap().activation_bytes().get() / measured;
        assert!((0.92..1.03).contains(&ratio), "{name}: {ratio} of the measured {measured} bytes");
    }
}
