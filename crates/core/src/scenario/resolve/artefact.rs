//! Fitted models that a scenario names.

use crate::artefact::{Artefact, Kind};
use crate::invalid::{Invalid, KeyPath};
use crate::scenario::Files;

/// The artefact called `path`; errors stand at the root, for the caller to place.
pub(in crate::scenario) fn load(path: &str, files: &dyn Files) -> Result<Artefact, Invalid> {
    Artefact::from_toml(&files.text(path)?).map_err(|reason| {
        let remedy = "name a file that `stepcast fit` has written";
        Invalid::new(KeyPath::root(), format!("{path} is no fitted artefact: {reason}"), remedy)
    })
}

/// The complaint about an artefact of a kind that is not wanted here.
pub(in crate::scenario) fn unwanted(path: &str, found: Kind, wanted: &[Kind]) -> Invalid {
    let commands: Vec<String> = wanted.iter().map(|kind| format!("`stepcast fit {kind}`")).collect();
    let reason = format!("{path} was written by `stepcast fit {found}`, which has no use here");
    Invalid::new(KeyPath::root(), reason, format!("name a file of {}", commands.join(" or ")))
}
