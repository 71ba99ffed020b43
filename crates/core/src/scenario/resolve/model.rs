//! Resolves the model: from the zoo, custom, from an ONNX file, or a profile.

use super::below;
use crate::fault::{Fault, KeyPath};
use crate::files::Files;
use crate::model::{Counting, zoo};
use crate::scenario::ModelSource;
use crate::scenario::sections::ModelSection;
use crate::workload::Workload;
use std::sync::Arc;

/// The model, the kinds of operations that are counted, and the resulting workload.
pub(super) struct Trained {
    pub(super) source: ModelSource,
    pub(super) counting: Counting,
    pub(super) workload: Workload,
}

pub(super) fn model(section: ModelSection, files: &dyn Files) -> Result<Trained, Fault> {
    let counting = counting(section.count.unwrap_or_default())?;
    let trained = |source, workload| Ok(Trained { source, counting, workload });
    if let (None, Some(_)) = (&section.onnx, &section.sizes) {
        let reason = "`sizes` are those of an ONNX file, and none is named";
        return Err(Fault::in_key("sizes", reason, "add `onnx`, or remove `sizes`"));
    }
    match (section.zoo, section.custom, section.profile, section.onnx) {
        (Some(name), None, None, None) => {
            let model = zoo::build(&name).map_err(|error| {
                let list = "run `stepcast models` for the list";
                let remedy = match error.suggestion {
                    Some(suggestion) => format!("did you mean \"{suggestion}\"? {list}"),
                    None => list.to_owned(),
                };
                Fault::in_key("zoo", error.to_string(), remedy)
            })?;
            trained(ModelSource::Zoo(name), Workload::of(&model, counting))
        }
        (None, Some(file), None, None) => {
            let model = file.build().map_err(below("custom"))?;
            trained(ModelSource::Custom(Arc::new(file)), Workload::of(&model, counting))
        }
        (None, None, None, Some(path)) => {
            let sizes = section.sizes.unwrap_or_default();
            let file = files.onnx(&path, &sizes).map_err(below("onnx"))?;
            let model = file.build().map_err(below("onnx"))?;
            let workload = Workload::of(&model, counting);
            trained(ModelSource::Onnx { path, sizes, file: Arc::new(file) }, workload)
        }
        (None, None, Some(path), None) => {
            let profile = files.profile(&path).map_err(below("profile"))?;
            let workload = Workload::of_profile(&profile);
            trained(ModelSource::Profile { path, profile: Arc::new(profile) }, workload)
        }
        (None, None, None, None) => Err(Fault::new(
            "no model is named",
            "add `zoo = \"vgg16\"` (run `stepcast models` for the list), a `[model.custom]` table, an `onnx` file or a \
             `profile`",
        )),
        (zoo, custom, profile, _) => {
            let given = [("custom", zoo.is_some() && custom.is_some()), ("profile", profile.is_some())];
            let second = given.into_iter().find(|(_, is_second)| *is_second).map_or("onnx", |(key, _)| key);
            let reason = "more than one of `zoo`, `custom`, `onnx` and `profile` says what is trained";
            Err(Fault::in_key(second, reason, "keep one of them"))
        }
    }
}

fn counting(names: Vec<String>) -> Result<Counting, Fault> {
    let mut counting = Counting::default();
    for (index, name) in names.iter().enumerate() {
        let slot = match name.as_str() {
            "bias" => &mut counting.bias,
            "activation" => &mut counting.activation,
            "pooling" => &mut counting.pooling,
            "normalisation" => &mut counting.normalisation,
            "elementwise" => &mut counting.elementwise,
            _ => {
                return Err(Fault::in_key(
                    KeyPath::of("count").index(index),
                    format!("\"{name}\" is no kind of operation"),
                    "use \"bias\", \"activation\", \"pooling\", \"normalisation\" or \"elementwise\"",
                ));
            }
        };
        *slot = true;
    }
    Ok(counting)
}
