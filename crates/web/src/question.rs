//! What is asked: the text of a scenario, changes to it, and what it names among the uploads.

use crate::problem::Problem;
use crate::uploads::Uploads;
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::scenario::{Document, Override, Scenario};
use stepcast_core::suggest;
use stepcast_study::explore::sweep::{Axis, Variants};
use stepcast_study::predict::methods;

/// A scenario, and what is changed in it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Asked {
    /// The text of a scenario file (TOML). Files that it names are uploads.
    pub(crate) scenario: String,
    /// Values to set, as `--set` has them: "strategy.batch=64".
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

/// A question that can be answered.
pub(crate) struct Question {
    document: Document,
    overrides: Vec<Override>,
}

impl Question {
    pub(crate) fn new(asked: &Asked) -> Result<Self, Problem> {
        let overrides: Result<_, _> = asked.set.iter().map(|text| Override::parse(text)).collect();
        Ok(Self { document: Document::new("scenario", asked.scenario.clone()), overrides: overrides? })
    }

    pub(crate) fn scenario(&self, uploads: &Uploads) -> Result<Scenario, Problem> {
        Ok(self.document.scenario_with(uploads, &self.overrides)?)
    }

    pub(crate) fn variants<'a>(
        &'a self,
        uploads: &'a Uploads,
        axes: Vec<Axis>,
    ) -> Result<Variants<'a>, Problem> {
        Ok(Variants::new(&self.document, uploads, &self.overrides, axes)?)
    }

    /// What a method's refusal is.
    pub(crate) fn refused(&self, why: Fault) -> Problem {
        if why.key.steps().is_empty() {
            return Problem::stopped();
        }
        self.document.located(why, &self.overrides).into()
    }

    /// The method called `name`, or the first that applies.
    pub(crate) fn method(
        &self,
        name: Option<&str>,
        scenario: &Scenario,
    ) -> Result<&'static dyn Method, Problem> {
        match name {
            None | Some("auto") => methods::choose(scenario).map_err(|why| self.refused(why)),
            Some(name) => methods::find(name).ok_or_else(|| {
                let known: Vec<&str> = methods::all().iter().map(|method| method.name()).collect();
                let remedy = suggest::remedy(
                    name,
                    known.iter().copied(),
                    &format!("the methods are {}", known.join(", ")),
                );
                Problem::invalid("method", format!("there is no method \"{name}\""), remedy)
            }),
        }
    }
}
