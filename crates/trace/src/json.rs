//! Profiles as JSON files, plain or gzip: one line per operation and per step.

use crate::error::profile_fault;
use crate::source::unpacked;
use crate::write::write_whole;
use std::io::Write;
use std::path::Path;
use stepcast_core::fault::{Fault, Remedies, Remedy};
use stepcast_core::profile::Profile;

/// Reads and checks the profile at `path`, compressed with gzip or not.
pub fn read_profile(path: &Path) -> Result<Profile, Fault> {
    parse_profile(&unpacked(path)?, &path.display().to_string())
}

/// Reads and checks a profile; `name` is its place in faults.
pub fn parse_profile(json: &[u8], name: &str) -> Result<Profile, Fault> {
    let profile: Profile = serde_json::from_slice(json).map_err(|error| {
        let place = format!("{name}:{}:{}", error.line(), error.column());
        let text = error.to_string();
        let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
        let remedy = if error.is_eof() {
            Remedies::from("the file ends too early; copy or import it again")
        } else {
            [Remedy::advice("see docs/profile.md for the format"), Remedy::ImportRecording].into()
        };
        Fault::in_file(place, reason, remedy)
    })?;
    profile.check().map_err(|error| profile_fault(name, error))?;
    Ok(profile)
}

/// Checks `profile` and writes it to `path`, compressed if the name ends in `.gz`; whole or not at all.
pub fn write_profile(path: &Path, profile: &Profile) -> Result<(), Fault> {
    profile.check().map_err(|error| profile_fault(&path.display().to_string(), error))?;
    write_whole(path, |mut out| print_profile(profile, &mut out))
}

/// Prints a profile as JSON.
pub fn print_profile(profile: &Profile, out: &mut impl Write) -> std::io::Result<()> {
    let text = |value: &str| serde_json::to_string(value);
    writeln!(out, "{{\n\"format\": {},", text(&profile.format)?)?;
    writeln!(out, "\"name\": {},", text(&profile.name)?)?;
    writeln!(out, "\"source\": {},", text(&profile.source)?)?;
    writeln!(out, "\"batch\": {},", profile.batch)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::profile::{FORMAT, Operation, Resource, Step};

    fn sample() -> Profile {
        let operation = |name: &str, resource, bytes, after| Operation {
            name: name.to_owned(),
            resource,
            bytes,
            after,
            server: 0,
        };
        Profile {
            format: FORMAT.to_owned(),
            name: "two \"layers\"".to_owned(),
            source: "by hand".to_owned(),
            batch: 8,
            operations: vec![
                operation("weights", Resource::Downlink, 4_000_000, vec![]),
                operation("forward", Resource::Worker, 0, vec![0]),
            ],
            steps: vec![Step { start: vec![0.0, 0.1 + 0.2], end: vec![1e-9, 1.0 / 3.0], length: 0.5 }],
        }
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
        assert_eq!(text.lines().count(), 2 + 4 + 2 + 1 + 2 + 2, "{text}");
        assert!(text.contains("\n{\"name\":\"forward\",\"resource\":\"worker\",\"after\":[0]}\n"));
    }

    #[test]
    fn errors_name_the_place() {
        let fails = |json: &str| parse_profile(json.as_bytes(), "p.json").unwrap_err();
        let error = fails("{\n\"format\": 3}");
        assert!(error.origin().starts_with("p.json:2:"), "{error}");
        assert!(!error.reason.contains("line"), "{error}");
        assert!(fails("{\"format\"").remedy.contains("too early"));
        let mut text = Vec::new();
        print_profile(&sample(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(fails(&text.replace("\"batch\": 8", "\"batch\": 0")).origin(), "p.json, batch");
        assert!(fails(&text.replace("[0]}", "[7]}")).origin().contains("forward"));
        assert!(fails(&text.replace("\"batch\"", "\"size\"")).reason.contains("size"));
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
