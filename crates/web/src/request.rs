//! A request from the text of a scenario, overrides, and the uploads that it names.

use crate::Shared;
use crate::problem::Problem;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::model::ModelFile;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::request::Source;
use stepcast_study::{MethodChoice, Request};

/// Most values that a request sets: each is checked with all before it.
const MOST_CHANGES: usize = 256;

/// A scenario and overrides.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ScenarioBody {
    /// The text of a scenario file (TOML). Files that it names are uploads.
    pub(crate) scenario: String,
    /// Values to set, as with `--set`: "strategy.batch=64".
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

impl ScenarioBody {
    /// The request for this scenario.
    pub(crate) fn request(&self, shared: &Arc<Shared>) -> Result<Request<Uploaded>, Problem> {
        few(self.set.len(), "set")?;
        let overrides: Result<_, _> = self.set.iter().map(|text| Edit::parse(text)).collect();
        let document = Document::new("scenario", self.scenario.clone());
        Ok(Request::new(document, Uploaded(Arc::clone(shared)), overrides?))
    }
}

/// Refuses more changes than a request may make.
pub(crate) fn few(changes: usize, key: &str) -> Result<(), Problem> {
    if changes > MOST_CHANGES {
        let reason = format!("{changes} changes are too many");
        let remedy = format!("make at most {MOST_CHANGES}, or write them into the scenario");
        return Err(Problem::invalid(key, reason, remedy));
    }
    Ok(())
}

/// The method called `name`, or the preferred one.
pub(crate) fn method_choice(name: Option<&str>) -> Result<MethodChoice, Problem> {
    Ok(MethodChoice::named(name.unwrap_or("auto"))?)
}

/// The uploads as the files of a scenario.
pub(crate) struct Uploaded(Arc<Shared>);

impl Source for Uploaded {}

impl Files for Uploaded {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        self.0.uploads.profile(path)
    }

    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Fault> {
        self.0.uploads.onnx(path, sizes)
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        Files::text(&self.0.uploads, path)
    }
}
