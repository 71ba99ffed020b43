//! Compares the layouts with measured PyTorch runs: shapes of layers, order of gradients, memory.

use super::*;
use serde_json::Value;
use std::process::Command;

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
