//! Which gradients to send together.

use crate::edit::edits;
use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::name;
use stepcast_report::plots::fusion::FusionComparison;
use stepcast_report::tables::fusion as tables;
use stepcast_study::fuse::{Family, FusionReport, Line, fuse_while};

/// The fusion request.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct FuseRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
}

impl Study for FuseRequest {
    type Report = FusionReport;

    fn answer(&self, job: &mut Job<'_>) -> Result<(FusionReport, Shown), Problem> {
        let request = self.asked.request(job.shared)?;
        let scenario = request.scenario()?;
        let report = fuse_while(&scenario, &|| job.check()).map_err(|why| request.refused(why))?;
        let shown = job.show(|| {
            let mut shown = Shown::new(&tables::summary(&report));
            shown.plot("fusion", FusionComparison::from_report(&report, &name(scenario.name())).svg());
            let from = scenario.to_file();
            let number =
                |line: &Line| report.lines.iter().position(|other| other == line).map(|place| place as u64);
            let rows = tables::rule_rows(&report);
            let usable = |line: &&&Line| line.family != Family::Own;
            for line in rows.iter().filter(usable) {
                let mut to = Scenario::clone(&scenario);
                to.strategy.exchange.fusion = line.fusion().clone();
                if let Some(number) = number(line) {
                    let edits = edits(job.shared, &self.asked, &from, &to.to_file());
                    shown.offer(number, line.rule.clone(), edits);
                }
            }
            let rows = rows.iter().map(|line| Some(*line).filter(|line| usable(&line)).and_then(number));
            let all = tables::all(&report, false);
            if let Some((rules, others)) = all.split_first() {
                shown.table_of(rules, rows.collect());
                others.iter().for_each(|table| shown.table(table));
            }
            shown.warnings(&report.warnings);
            Ok(shown)
        })?;
        Ok((report, shown))
    }
}
