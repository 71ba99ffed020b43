//! Resolves the model: from the zoo, custom, a transformer, from an ONNX file, or a profile.

use super::below;
use crate::fault::{Fault, KeyPath, NameList, Remedy};
use crate::files::Files;
use crate::model::transformer::{Transformer, Tuning, hugging_face};
use crate::model::{Builder, Counting, Model, zoo};
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

pub(super) fn model(mut section: ModelSection, files: &dyn Files) -> Result<Trained, Fault> {
    if let (Some(name), Some(adapters)) = (&section.zoo, &mut section.adapters) {
        adapters.base = adapters.base.or_else(|| zoo::stored_format(name));
    }
    // `[model.transformer]` beside a transformer of the zoo overrides parts of it.
    let named = section.zoo.as_deref().is_some_and(|name| zoo::transformer(name).is_some());
    if let Some(table) = section.transformer.as_mut().filter(|table| named && table.base.is_none()) {
        table.base = section.zoo.take();
    }
    let counting = counting(section.count.unwrap_or_default())?;
    let trained = |source, workload| Ok(Trained { source, counting, workload });
    if let (None, Some(_)) = (&section.onnx, &section.sizes) {
        let reason = "`sizes` are those of an ONNX file, and none is named";
        return Err(Fault::in_key("sizes", reason, "add `onnx`, or remove `sizes`"));
    }
    let sequence = section.sequence;
    let given = [
        ("zoo", section.zoo.is_some()),
        ("custom", section.custom.is_some()),
        ("transformer", section.transformer.is_some()),
        ("config", section.config.is_some()),
        ("onnx", section.onnx.is_some()),
        ("profile", section.profile.is_some()),
    ];
    let mut given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key);
    match (given.next(), given.next()) {
        (Some(_), Some(second)) => {
            let reason = "more than one of `zoo`, `custom`, `transformer`, `config`, `onnx` and `profile` says what \
                          is trained";
            return Err(Fault::in_key(second, reason, "keep one of them"));
        }
        (Some(key @ ("custom" | "onnx" | "profile")), None) if sequence.is_some() => {
            let reason = format!("`{key}` has lengths of its own");
            return Err(Fault::in_key("sequence", reason, "remove `sequence`"));
        }
        _ => {}
    }
    let (adapters, frozen) = (section.adapters, section.frozen);
    let tuned = |shape: Transformer| {
        let tuning = Tuning::resolve(adapters.as_ref(), frozen.as_ref(), &shape)?;
        Ok::<_, Fault>(Transformer { tuning, ..shape })
    };
    let only_whole = |key: &'static str| match (&adapters, &frozen) {
        (None, None) => Ok(()),
        _ => {
            let reason = format!(
                "`{key}` is not known as a transformer, and only its matrices have adapters or are frozen"
            );
            Err(Fault::in_key(
                key,
                reason,
                "name a transformer of the zoo, or give `[model.transformer]` or a `config`",
            ))
        }
    };
    if let Some(name) = section.zoo {
        let model = of_zoo(&name, sequence)?;
        let tuning = match zoo::transformer(&name) {
            Some(shape) => tuned(shape)?.tuning,
            None => only_whole("zoo").map(|()| Tuning::default())?,
        };
        trained(ModelSource::Zoo { name, sequence, tuning }, Workload::from_model(&model, counting))
    } else if let Some(file) = section.custom {
        only_whole("custom")?;
        let model = file.build().map_err(below("custom"))?;
        trained(ModelSource::Custom(Arc::new(file)), Workload::from_model(&model, counting))
    } else if let Some(mut table) = section.transformer {
        table.sequence = sequence.or(table.sequence);
        let (name, shape) = table.resolve().map_err(below("transformer"))?;
        let shape = tuned(shape)?;
        let model = laid_out(&name, &shape, "transformer")?;
        trained(ModelSource::Transformer { name, shape }, Workload::from_model(&model, counting))
    } else if let Some(path) = section.config {
        let remedy = "name a `config.json` of Hugging Face, relative to the scenario";
        let text = files.text(&path).map_err(|fault| Fault { remedy: remedy.into(), ..fault });
        let text = text.map_err(below("config"))?;
        let (name, shape) = hugging_face::read(&text).map_err(below("config"))?;
        let shape = shape.with_sequence(sequence.unwrap_or(shape.sequence));
        shape.check()?;
        let shape = tuned(shape)?;
        let name = name.unwrap_or_else(|| path.clone());
        let model = laid_out(&name, &shape, "config")?;
        trained(ModelSource::Config { path, name, shape }, Workload::from_model(&model, counting))
    } else if let Some(path) = section.onnx {
        only_whole("onnx")?;
        let sizes = section.sizes.unwrap_or_default();
        let file = files.onnx(&path, &sizes).map_err(below("onnx"))?;
        let model = file.build().map_err(below("onnx"))?;
        let workload = Workload::from_model(&model, counting);
        trained(ModelSource::Onnx { path, sizes, file: Arc::new(file) }, workload)
    } else if let Some(path) = section.profile {
        only_whole("profile")?;
        let profile = files.profile(&path).map_err(below("profile"))?;
        let workload = Workload::from_profile(&profile);
        trained(ModelSource::Profile { path, profile: Arc::new(profile) }, workload)
    } else {
        Err(Fault::new(
            "no model is named",
            [
                Remedy::set("model.zoo", "vgg16"),
                Remedy::advice(
                    "add a `[model.custom]` or `[model.transformer]` table, a `config`, an `onnx` file or a `profile`",
                ),
                Remedy::ListNames { list: NameList::Models },
            ],
        ))
    }
}

fn of_zoo(name: &str, sequence: Option<u64>) -> Result<Model, Fault> {
    let model = zoo::build_for(name, sequence);
    model.map_err(|error| match (error.fault, sequence) {
        (Some(fault), Some(_)) => Fault::in_key("sequence", fault.reason, fault.remedy),
        (fault, _) => {
            let error = zoo::UnknownModel { fault, ..error };
            Fault::in_key("zoo", error.to_string(), error.remedy)
        }
    })
}

fn laid_out(name: &str, shape: &Transformer, key: &str) -> Result<Model, Fault> {
    let model = shape.layout(Builder::new(name, "the scenario"));
    model.map_err(|error| Fault::in_key(key, error.to_string(), error.remedy))
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
