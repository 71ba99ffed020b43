//! What an import found, under a name and in a file.

use crate::import::Found;
use crate::{write_model, write_profile};
use std::path::Path;
use stepcast_core::fault::Fault;

/// Whether a profile may be called so.
pub fn is_profile(path: &Path) -> bool {
    ends_in(path, &[".json", ".json.gz"])
}

/// Whether a scenario may be called so.
pub fn is_scenario(path: &Path) -> bool {
    ends_in(path, &[".toml"])
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    endings.iter().any(|ending| name.ends_with(ending))
}

impl Found {
    /// Calls it `name`.
    pub fn rename(&mut self, name: String) {
        match self {
            Self::Profile(profile) => profile.name = name,
            Self::Model(model) => model.name = name,
        }
    }

    /// Writes it under a name that tells what it is.
    pub fn write(&self, output: &Path) -> Result<(), Fault> {
        let wrong =
            |reason: &str, remedy: &str| Err(Fault::in_file(output.display().to_string(), reason, remedy));
        match self {
            Self::Profile(_) if !is_profile(output) => {
                wrong("the name of a profile ends in .json or .json.gz", "use a name such as profile.json")
            }
            Self::Profile(profile) => write_profile(output, profile),
            Self::Model(_) if !is_scenario(output) => wrong(
                "a model is written as a scenario: its name ends in .toml",
                "use a name such as model.toml",
            ),
            Self::Model(model) => write_model(output, model),
        }
    }
}

/// What a recording is called if nobody says: the name of its folder or file; files called step… or by a number say nothing, so
/// their folder's.
pub fn usual_name(trace: &Path) -> Option<String> {
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
        assert!(found.write(&folder.path().join("model.json")).is_err());
        found.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: ScenarioFile = toml::from_str(&text).unwrap();
        let again = file.model.custom.unwrap().build().unwrap();
        assert_eq!(again.layers().len(), model.layers().len());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    }
}
