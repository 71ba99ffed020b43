//! What to measure before an offer is taken.

use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_report::tables::advise as tables;
use stepcast_study::advise::MeasurementAdvice;
use stepcast_study::explore::plan::{Aim, SHARED, plan_within};

/// The request for advice: a scenario whose `[plan]` has offers and tokens.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct AdviseRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
}

impl Study for AdviseRequest {
    type Report = MeasurementAdvice;

    fn answer(&self, job: &mut Job<'_>) -> Result<(MeasurementAdvice, Shown), Problem> {
        let request = self.asked.request(job.shared)?.for_planning();
        let scenario = request.scenario()?;
        let watch = &mut |plans| job.progress(plans, None, "plans", || None);
        let report = plan_within(SHARED, &scenario, Aim::Cost, watch).map_err(|why| request.refused(why))?;
        let Some(advice) = report.advice else {
            let reason = "there is nothing to choose: one offer, or no number of tokens";
            return Err(Problem::invalid(
                "plan.offers",
                reason,
                "choose among several machines, and say how much to train on",
            ));
        };
        let shown = job.show(|| {
            let mut shown = Shown::new(&tables::verdict(&advice));
            shown.table(&tables::candidates(&advice));
            shown.table(&tables::experiments(&advice));
            if let Some(best) = advice.best() {
                shown.notes(tables::choices(&advice, best));
                shown.text(best.command.clone());
            }
            Ok(shown)
        })?;
        Ok((advice, shown))
    }
}
