//! The result of an import, a profile or a model, and the file that it is written to.

use crate::json::write_profile;
use crate::model::write_model;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::model::Model;
use stepcast_core::profile::Profile;

/// A profile or a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Measured steps; they have passed `Profile::check`.
    Profile(Profile),
    /// A network.
    Model(Box<Model>),
}

/// Whether `path` has the ending of a profile.
pub fn is_profile(path: &Path) -> bool {
    ends_in(path, &[".json", ".json.gz"])
}

/// Whether `path` has the ending of a scenario.
pub fn is_scenario(path: &Path) -> bool {
    ends_in(path, &[".toml"])
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    endings.iter().any(|ending| name.ends_with(ending))
}

impl Content {
    /// Sets its name.
    pub fn rename(&mut self, name: String) {
        match self {
            Self::Profile(profile) => profile.name = name,
            Self::Model(model) => model.name = name,
        }
    }

    /// Writes a profile as JSON, a model as a scenario; the file name must have the ending of that.
    pub fn write(&self, output: &Path) -> Result<(), Fault> {
        let wrong =
            |reason: &str, remedy: &str| Err(Fault::in_file(output.display().to_string(), reason, remedy));
        match self {
            Self::Profile(_) if !is_profile(output) => wrong(
                "a profile is written as JSON: its name ends in .json or .json.gz",
                "use a name such as profile.json",
            ),
            Self::Profile(profile) => write_profile(output, profile),
            Self::Model(_) if !is_scenario(output) => wrong(
                "a model is written as a scenario: its name ends in .toml",
                "use a name such as model.toml",
            ),
            Self::Model(model) => write_model(output, model),
        }
    }
}

/// The default name of a recording: that of its folder or file. Files called step… or by a number are named after their
/// folder.
pub fn usual_name(trace: &Path) -> Option<String> {
    let full = trace.canonicalize().ok()?;
    let own = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    if full.is_dir() {
        return own(&full);
    }
    let name = own(&full)?;
    let stem = name.split('.').next().unwrap_or_default();
    let folder = || full.parent().and_then(own);
    let is_numbered = stem.starts_with("step") || stem.bytes().all(|byte| byte.is_ascii_digit());
    if is_numbered { folder() } else { Some(stem.to_owned()) }
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
        let content = Content::Model(Box::new(model.clone()));
        assert!(content.write(&folder.path().join("model.json")).is_err());
        content.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: ScenarioFile = toml::from_str(&text).unwrap();
        let again = file.model.custom.unwrap().build().unwrap();
        assert_eq!(again.layers().len(), model.layers().len());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    }
}
