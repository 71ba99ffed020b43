//! Models as scenario files: `[model.custom]`, one line for each layer.

use crate::write::write_whole;
use std::fmt::Display;
use std::io::{Error, Result, Write};
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::model::{Model, ModelFile};
use toml::Value;

/// Writes `model` to `path` as a scenario that contains only a model: `stepcast predict` reads it.
pub fn write_model(path: &Path, model: &Model) -> std::result::Result<(), Fault> {
    write_whole(path, |mut out| print_model(model, &mut out))
}

/// Prints a model as a scenario.
pub fn print_model(model: &Model, out: &mut impl Write) -> Result<()> {
    let file = ModelFile::from_model(model);
    let comment = |text: &str| text.replace(['\n', '\r'], " ");
    writeln!(out, "# {}: {}\n[model.custom]", comment(&model.name), comment(&model.source))?;
    writeln!(out, "name = {}", inline(Value::try_from(&file.name))?)?;
    writeln!(out, "input = {}\nlayers = [", inline(Value::try_from(&file.input))?)?;
    for layer in &file.layers {
        writeln!(out, "  {},", inline(Value::try_from(layer))?)?;
    }
    writeln!(out, "]")
}

fn inline<E: Display>(value: std::result::Result<Value, E>) -> Result<String> {
    value.map(|value| value.to_string()).map_err(|error| Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::model::zoo;
    use stepcast_core::scenario::ScenarioFile;

    #[test]
    fn what_is_printed_is_a_scenario_of_the_same_model() {
        for name in ["resnet50", "bert-base", "inception-v3"] {
            let model = zoo::build(name).unwrap();
            let mut text = Vec::new();
            print_model(&model, &mut text).unwrap();
            let scenario: ScenarioFile = toml::from_str(std::str::from_utf8(&text).unwrap()).unwrap();
            let again = scenario.model.custom.unwrap().build().unwrap();
            assert_eq!(again.layers(), model.layers(), "{name}");
        }
    }
}
