//! A request as one self-contained text that can be processed elsewhere: the scenario and the files that it names.

use super::Request;
use super::folder::{Folder, Kept};
use serde::{Deserialize, Serialize};
use stepcast_core::fault::Fault;
use stepcast_core::scenario::Document;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, Deserialize)]
struct Packed {
    stepcast: String,
    scenario: String,
    files: Kept,
    only_profile: bool,
    unwritten: bool,
}

/// The part of a packed text that identifies the program that packed it.
#[derive(Deserialize)]
struct Label {
    stepcast: String,
}

impl Request {
    /// The request as a text, independent of comments and layout. Only files that were read are packed: call
    /// [`scenario`](Self::scenario) or [`variants`](Self::variants) first.
    pub fn packed(&self) -> Result<String, Fault> {
        let cannot = |error: String| {
            Fault::in_file("scenario", format!("it cannot be packed: {error}"), "report this")
        };
        let packed = Packed {
            stepcast: VERSION.to_owned(),
            scenario: toml::to_string(&self.file()?).map_err(|error| cannot(error.to_string()))?,
            files: self.files.kept(),
            only_profile: self.only_profile,
            unwritten: !self.document.is_written(),
        };
        serde_json::to_string(&packed).map_err(|error| cannot(error.to_string()))
    }

    /// Restores the request from the text that [`packed`](Self::packed) made.
    pub fn unpack(text: &str) -> Result<Self, Fault> {
        let damaged = |error: serde_json::Error| {
            Fault::in_file(
                "packed scenario",
                format!("it is damaged: {error}"),
                "make it again from its file",
            )
        };
        let label: Label = serde_json::from_str(text).map_err(damaged)?;
        if label.stepcast != VERSION {
            let reason = format!("it is of version {}, and this is {VERSION}", label.stepcast);
            let remedy = "make it again from its file, or install the same version everywhere";
            return Err(Fault::in_file("packed scenario", reason, remedy));
        }
        let packed: Packed = serde_json::from_str(text).map_err(damaged)?;
        let document = Document::new("packed scenario", packed.scenario);
        let document = match packed.unwritten {
            true => Document::from_file("packed scenario", document.file(&[])?),
            false => document,
        };
        let request = Self::new(document, Folder::from_kept(packed.files), Vec::new());
        Ok(Self { only_profile: packed.only_profile, ..request })
    }
}
