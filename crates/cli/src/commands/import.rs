//! `stepcast import`: recordings to a profile or a model, and what was found in them.

mod progress;

use super::json;
use crate::Answer;
use crate::args::{Import, Size};
use crate::render::error::Complaint;
use crate::render::{Screen, import};
use progress::Bar;
use std::path::Path;
use stepcast_trace::{Found, Options, Overview};

pub(super) fn run(flags: &Import, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    if let Some(output) = &flags.output {
        check_name(output)?;
    }
    let bar = Bar::new(&flags.traces);
    let options = Options {
        batch: flags.batch,
        graphs: flags.graphs.as_deref(),
        sizes: &flags.sizes.iter().map(|Size(name, length)| (name.clone(), *length)).collect(),
        watch: &|progress| bar.show(progress),
    };
    let mut imported = stepcast_trace::import(&flags.traces, &options).map_err(Complaint::in_trace)?;
    bar.finish();
    let name = flags.name.clone().or_else(|| flags.traces.first().and_then(|trace| usual_name(trace)));
    if let Some(name) = name {
        match &mut imported.found {
            Found::Profile(profile) => profile.name = name,
            Found::Model(model) => model.name = name,
        }
    }
    if let Some(output) = &flags.output {
        write(&imported.found, output)?;
    }
    let written = flags.output.as_ref().map(|path| path.display().to_string());
    let overview = Overview::of(&imported, written);
    if as_json { json(&overview) } else { Ok(import::render(&overview, screen).into()) }
}

const PROFILE: [&str; 2] = [".json", ".json.gz"];
const SCENARIO: &str = ".toml";

fn ends_in(output: &Path, endings: &[&str]) -> bool {
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether anything could be written under this name, before a large file is read.
fn check_name(output: &Path) -> Result<(), Complaint> {
    if ends_in(output, &PROFILE) || ends_in(output, &[SCENARIO]) {
        return Ok(());
    }
    let reason = "the name of a profile ends in .json or .json.gz, that of a scenario with a model in .toml";
    Err(Complaint::new(reason, "use a name such as profile.json").at(format!("-o {}", output.display())))
}

/// Writes under a name that `predict` knows for what it is.
fn write(found: &Found, output: &Path) -> anyhow::Result<()> {
    let wrong = |reason: &str, remedy: &str| {
        Err(Complaint::new(reason, remedy).at(format!("-o {}", output.display())).into())
    };
    match found {
        Found::Profile(_) if !ends_in(output, &PROFILE) => {
            wrong("the name of a profile ends in .json or .json.gz", "use a name such as profile.json")
        }
        Found::Profile(profile) => {
            Ok(stepcast_trace::write_profile(output, profile).map_err(Complaint::in_trace)?)
        }
        Found::Model(_) if !ends_in(output, &[SCENARIO]) => {
            wrong("a model is written as a scenario: its name ends in .toml", "use a name such as model.toml")
        }
        Found::Model(model) => Ok(stepcast_trace::write_model(output, model).map_err(Complaint::in_trace)?),
    }
}

/// The name of the folder or file; files called step… or by a number say nothing, so their folder's.
fn usual_name(trace: &Path) -> Option<String> {
    let full = trace.canonicalize().ok()?;
    let own = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    if full.is_dir() {
        return own(&full);
    }
    let name = own(&full)?;
    let stem = name.split('.').next().unwrap_or_default();
    let folder = || full.parent().and_then(own);
    let says_nothing = stem.starts_with("step") || stem.bytes().all(|byte| byte.is_ascii_digit());
    if says_nothing { folder() } else { Some(stem.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::model::zoo;
    use stepcast_core::scenario::ScenarioFile;

    #[test]
    fn profiles_are_called_after_what_was_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let vgg = folder.path().join("vgg16");
        std::fs::create_dir(&vgg).unwrap();
        for name in ["steps.tar.xz", "alexnet.tar.gz", "1.1.0-trace.json"] {
            std::fs::write(vgg.join(name), "").unwrap();
        }
        assert_eq!(usual_name(&vgg).as_deref(), Some("vgg16"));
        assert_eq!(usual_name(&vgg.join("steps.tar.xz")).as_deref(), Some("vgg16"));
        assert_eq!(usual_name(&vgg.join("1.1.0-trace.json")).as_deref(), Some("vgg16"));
        assert_eq!(usual_name(&vgg.join("alexnet.tar.gz")).as_deref(), Some("alexnet"));
        assert_eq!(usual_name(&vgg.join("absent")), None);
    }

    #[test]
    fn a_model_is_written_as_a_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.toml");
        let model = zoo::build("alexnet").unwrap();
        let found = Found::Model(Box::new(model.clone()));
        assert!(write(&found, &folder.path().join("model.json")).is_err());
        write(&found, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: ScenarioFile = toml::from_str(&text).unwrap();
        let again = file.model.custom.unwrap().build().unwrap();
        assert_eq!(again.layers().len(), model.layers().len());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    }
}
