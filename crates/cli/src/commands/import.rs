//! `stepcast import`: recorded steps to a profile, and what was found in them.

use super::json;
use crate::Answer;
use crate::args::Import;
use crate::render::error::Complaint;
use crate::render::{Screen, import};
use serde::Serialize;
use std::path::Path;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::{Seconds, number};
use stepcast_trace::Imported;

/// What a recording holds.
#[derive(Serialize)]
pub(crate) struct Summary {
    /// The profile that was written, if any.
    pub(crate) written: Option<String>,
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) batch: u32,
    pub(crate) steps: usize,
    #[serde(rename = "mean_step_s", serialize_with = "number")]
    pub(crate) mean: Seconds,
    /// Standard deviation.
    #[serde(rename = "step_deviation_s", serialize_with = "number")]
    pub(crate) deviation: Seconds,
    #[serde(rename = "shortest_step_s", serialize_with = "number")]
    pub(crate) shortest: Seconds,
    #[serde(rename = "longest_step_s", serialize_with = "number")]
    pub(crate) longest: Seconds,
    pub(crate) resources: Vec<Usage>,
    /// What was repaired, left out or looks odd.
    pub(crate) notes: Vec<String>,
}

/// One resource in a mean step.
#[derive(Serialize)]
pub(crate) struct Usage {
    pub(crate) resource: Resource,
    pub(crate) operations: usize,
    /// Payload; transfers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Time that its operations take together; computing only, because transfers wait for each other.
    #[serde(rename = "busy_s", skip_serializing_if = "Option::is_none")]
    pub(crate) busy: Option<f64>,
}

pub(super) fn run(flags: &Import, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    if let Some(output) = &flags.output {
        check_name(output)?;
    }
    let Imported { mut profile, notes } =
        stepcast_trace::tensorflow(&flags.trace, flags.graphs.as_deref(), flags.batch)
            .map_err(Complaint::in_trace)?;
    if let Some(name) = flags.name.clone().or_else(|| usual_name(&flags.trace)) {
        profile.name = name;
    }
    if let Some(output) = &flags.output {
        stepcast_trace::write_profile(output, &profile).map_err(Complaint::in_trace)?;
    }
    let written = flags.output.as_ref().map(|path| path.display().to_string());
    let summary = Summary::of(&profile, notes, written);
    if as_json { json(&summary) } else { Ok(import::render(&summary, screen).into()) }
}

/// Only what `predict` knows to be a profile by its name.
fn check_name(output: &Path) -> Result<(), Complaint> {
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.ends_with(".json") || name.ends_with(".json.gz") {
        return Ok(());
    }
    let reason = "the name of a profile ends in .json or .json.gz";
    Err(Complaint::new(reason, "use a name such as profile.json").at(format!("-o {}", output.display())))
}

/// The name of the folder or file; files called step… say nothing, so their folder's.
fn usual_name(trace: &Path) -> Option<String> {
    let full = trace.canonicalize().ok()?;
    let own = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    if full.is_dir() {
        return own(&full);
    }
    let name = own(&full)?;
    let stem = name.split('.').next().unwrap_or_default();
    let folder = || full.parent().and_then(own);
    if stem.is_empty() || stem.starts_with("step") { folder() } else { Some(stem.to_owned()) }
}

impl Summary {
    fn of(profile: &Profile, notes: Vec<String>, written: Option<String>) -> Self {
        let lengths = || profile.steps.iter().map(|step| step.length);
        let mean = profile.mean_step();
        let squares: f64 = lengths().map(|length| (length - mean.get()).powi(2)).sum();
        let freedom = profile.steps.len().saturating_sub(1).max(1) as f64;
        let resources = [Resource::Downlink, Resource::Worker, Resource::Uplink, Resource::Server];
        Self {
            written,
            name: profile.name.clone(),
            source: profile.source.clone(),
            batch: profile.batch,
            steps: profile.steps.len(),
            mean,
            deviation: Seconds::new((squares / freedom).sqrt()),
            shortest: Seconds::new(lengths().fold(f64::INFINITY, f64::min)),
            longest: Seconds::new(lengths().fold(0.0, f64::max)),
            resources: resources.map(|resource| Usage::of(profile, resource)).into(),
            notes,
        }
    }
}

impl Usage {
    fn of(profile: &Profile, resource: Resource) -> Self {
        let indices =
            || (0..profile.operations.len()).filter(|&op| profile.operations[op].resource == resource);
        let busy: Seconds =
            indices().flat_map(|op| profile.steps.iter().map(move |step| step.duration(op))).sum();
        let bytes = indices().map(|op| profile.operations[op].bytes).fold(0, u64::saturating_add);
        let transfer = resource.is_transfer();
        Self {
            resource,
            operations: indices().count(),
            bytes: transfer.then_some(bytes),
            busy: (!transfer).then(|| busy.get() / profile.steps.len() as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_called_after_what_was_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let vgg = folder.path().join("vgg16");
        std::fs::create_dir(&vgg).unwrap();
        for name in ["steps.tar.xz", "alexnet.tar.gz"] {
            std::fs::write(vgg.join(name), "").unwrap();
        }
        assert_eq!(usual_name(&vgg).as_deref(), Some("vgg16"));
        assert_eq!(usual_name(&vgg.join("steps.tar.xz")).as_deref(), Some("vgg16"));
        assert_eq!(usual_name(&vgg.join("alexnet.tar.gz")).as_deref(), Some("alexnet"));
        assert_eq!(usual_name(&vgg.join("absent")), None);
    }
}
