//! Profiles as JSON and models as scenarios, in files that are written completely or not at all.

use crate::import::{profile_fault, system_fault};
use crate::source::unpacked;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::path::Path;
use stepcast_core::fault::{Fault, Remedies, Remedy};
use stepcast_core::model::{Model, ModelFile};
use stepcast_core::profile::Profile;
use toml::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Measured steps; they have passed `Profile::check`.
    Profile(Profile),
    Model(Box<Model>),
}

pub fn is_profile(path: &Path) -> bool {
    ends_in(path, &[".json", ".json.gz"])
}

pub fn is_scenario(path: &Path) -> bool {
    ends_in(path, &[".toml"])
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    endings.iter().any(|ending| name.ends_with(ending))
}

impl Content {
    pub fn into_profile(self) -> Option<Profile> {
        match self {
            Self::Profile(profile) => Some(profile),
            Self::Model(_) => None,
        }
    }

    pub fn rename(&mut self, name: String) {
        match self {
            Self::Profile(profile) => profile.name = name,
            Self::Model(model) => model.name = name,
        }
    }

    /// Writes a profile as JSON, a model as a scenario; the file name must have the matching ending.
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

/// The default name of a recording: the name of its folder or file. Files called step… or by a number are named after their
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

/// Reads and checks the profile at `path`, compressed with gzip or not.
pub fn read_profile(path: &Path) -> Result<Profile, Fault> {
    parse_profile(&unpacked(path)?, &path.display().to_string())
}

/// Why a text is not valid JSON, without the position.
pub fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

/// Text among the first bytes of every trace of PyTorch's profiler.
const TRACE_KEY: &[u8] = b"\"schemaVersion\"";
const TRACE_HEAD: usize = 256;

/// Reads and checks a profile; `name` is its place in faults.
pub fn parse_profile(json: &[u8], name: &str) -> Result<Profile, Fault> {
    let profile: Profile = serde_json::from_slice(json).map_err(|error| {
        let place = format!("{name}:{}:{}", error.line(), error.column());
        let is_trace =
            json[..json.len().min(TRACE_HEAD)].windows(TRACE_KEY.len()).any(|bytes| bytes == TRACE_KEY);
        if is_trace {
            return Fault::in_file(name, "this is a trace, not a profile", Remedy::ImportRecording);
        }
        let remedy = if error.is_eof() {
            Remedies::from("the file ends too early; copy or import it again")
        } else {
            [Remedy::advice("see docs/profile.md for the format"), Remedy::ImportRecording].into()
        };
        Fault::in_file(place, json_reason(&error), remedy)
    })?;
    profile.check().map_err(|error| profile_fault(name, error))?;
    Ok(profile)
}

/// Checks `profile` and writes it to `path`, compressed if the name ends in `.gz`; whole or not at all.
pub fn write_profile(path: &Path, profile: &Profile) -> Result<(), Fault> {
    profile.check().map_err(|error| profile_fault(&path.display().to_string(), error))?;
    write_whole(path, |mut out| print_profile(profile, &mut out))
}

pub fn print_profile(profile: &Profile, out: &mut impl Write) -> std::io::Result<()> {
    let text = |value: &str| serde_json::to_string(value);
    writeln!(out, "{{\n\"format\": {},", text(&profile.format)?)?;
    writeln!(out, "\"name\": {},", text(&profile.name)?)?;
    writeln!(out, "\"source\": {},", text(&profile.source)?)?;
    writeln!(out, "\"batch\": {},", profile.batch)?;
    if let Some(rate) = profile.link_rate {
        writeln!(out, "\"link-rate\": {rate},")?;
    }
    print_list("operations", &profile.operations, out)?;
    writeln!(out, ",")?;
    print_list("steps", &profile.steps, out)?;
    writeln!(out, "\n}}")
}

fn print_list<T: serde::Serialize>(name: &str, items: &[T], out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "\"{name}\": [")?;
    for (index, item) in items.iter().enumerate() {
        writeln!(out, "{}", if index == 0 { "" } else { "," })?;
        serde_json::to_writer(&mut *out, item)?;
    }
    write!(out, "\n]")
}

/// Writes `model` to `path` as a scenario that contains only a model: `stepcast predict` reads it.
pub fn write_model(path: &Path, model: &Model) -> Result<(), Fault> {
    write_whole(path, |mut out| print_model(model, &mut out))
}

pub fn print_model(model: &Model, out: &mut impl Write) -> io::Result<()> {
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

fn inline<E: Display>(value: Result<Value, E>) -> io::Result<String> {
    value.map(|value| value.to_string()).map_err(|error| io::Error::other(error.to_string()))
}

pub fn write_text(path: &Path, text: &str) -> Result<(), Fault> {
    write_whole(path, |file| file.write_all(text.as_bytes()))
}

/// Writes what `print` prints to `path`, compressed if the name ends in `.gz`: beside it first, then renamed, so that
/// `path` never holds half of it.
pub(crate) fn write_whole(
    path: &Path,
    print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Fault> {
    let Some(name) = path.file_name() else {
        let remedy = "give the name of a file";
        return Err(Fault::in_file(path.display().to_string(), "it is not the name of a file", remedy));
    };
    let name = name.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written =
        write_to(&beside, print, name.ends_with(".gz")).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // A failure to remove the rest would hide the reason.
        let _ = std::fs::remove_file(&beside);
        system_fault(path, &error, "check that the folder exists and can be written to")
    })
}

fn write_to(
    path: &Path,
    print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    compress: bool,
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    if compress {
        let mut encoder = GzEncoder::new(file, Compression::default());
        print(&mut encoder)?;
        file = encoder.finish()?;
    } else {
        print(&mut file)?;
    }
    file.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::model::zoo;
    use stepcast_core::profile::{Operation, Resource, Step};
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

    fn sample() -> Profile {
        let weights = Operation::new("weights", Resource::Downlink, 4_000_000, &[]);
        let operations = vec![weights, Operation::new("forward", Resource::Worker, 0, &[0])];
        let steps = vec![Step { start: vec![0.0, 0.1 + 0.2], end: vec![1e-9, 1.0 / 3.0], length: 0.5 }];
        let profile = Profile::new("two \"layers\"", "by hand", 8, operations, steps);
        Profile { link_rate: Some(9.78e7), ..profile }
    }

    #[test]
    fn a_profile_survives_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["profile.json", "profile.json.gz"] {
            let path = folder.path().join(name);
            write_profile(&path, &sample()).unwrap();
            assert_eq!(read_profile(&path).unwrap(), sample());
            let first = std::fs::read(&path).unwrap();
            write_profile(&path, &sample()).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), first);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
    }

    #[test]
    fn what_is_printed_has_one_line_per_operation_and_step() {
        let mut text = Vec::new();
        print_profile(&sample(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 2 + 5 + 2 + 1 + 2 + 2, "{text}");
        assert!(text.contains("\n{\"name\":\"forward\",\"resource\":\"worker\",\"after\":[0]}\n"));
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.json");
        assert!(write_profile(&path, &Profile { batch: 0, ..sample() }).is_err());
        assert!(!path.exists());
        let error = write_profile(&folder.path().join("absent").join("p.json"), &sample()).unwrap_err();
        assert!(error.remedy.contains("folder"), "{error}");
        assert!(write_profile(Path::new("/"), &sample()).is_err());
    }
}
