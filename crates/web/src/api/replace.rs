//! Layers whose communication cannot be hidden, and others in their place.

use crate::edit::edits;
use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::fault::Fault;
use stepcast_core::scenario::Document;
use stepcast_report::tables::replacement as tables;
use stepcast_study::replace::{Refusal, ReplacementReport, Substitution, replace};

/// The request to replace layers.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct ReplaceRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The first layer to replace; by default the first fully connected one.
    #[serde(default)]
    from: Option<String>,
    /// The text of a file with the layers in their place (TOML); by default 1×1 convolutions and pooling.
    #[serde(default)]
    with: Option<String>,
}

impl Study for ReplaceRequest {
    type Report = ReplacementReport;

    fn answer(&self, job: &mut Job<'_>) -> Result<(ReplacementReport, Shown), Problem> {
        let request = self.asked.request(job.shared)?;
        let scenario = request.scenario()?;
        let layers = self.with.as_ref().map(|text| Document::new("with", text.clone()).layers());
        // Places in the layers are not places in the scenario.
        let wrong = |fault: Fault| Problem::invalid("with", fault.reason, fault.remedy);
        let with = layers.transpose().map_err(wrong)?;
        let substitution = Substitution { from: self.from.clone(), with, workers: None };
        let report = replace(&scenario, substitution, &|| job.check()).map_err(|refusal| match refusal {
            Refusal::Scenario(why) => request.refused(why).into(),
            Refusal::Cut(fault) => Problem::from(fault).at("from"),
            Refusal::Layers(fault) => wrong(fault),
        })?;
        let shown = job.show(|| {
            let mut shown = Shown::new(&tables::summary(&report.before));
            tables::all(&report).iter().for_each(|table| shown.table(table));
            shown.notes(report.reason.clone());
            shown.warnings(&report.warnings);
            if let Some(replacement) = &report.replacement {
                let edits = edits(job.shared, &self.asked, &scenario.to_file(), &replacement.scenario);
                shown.offer(0, "the model with these layers", edits);
            }
            Ok(shown)
        })?;
        Ok((report, shown))
    }
}
