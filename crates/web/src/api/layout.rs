//! How the plan of a scenario splits its transformer: ranks, pipeline, memory.

use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use crate::work;
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::name;
use stepcast_report::plots::gantt::Gantt;
use stepcast_report::plots::rank_grid::RankGrid;
use stepcast_report::plots::stacked::StackedBars;
use stepcast_report::tables::{plan as tables, transformer};
use stepcast_study::predict::layout::{Layout, Role};
use stepcast_study::simulate;
use tokio_util::sync::CancellationToken;

const MOST_EVENTS: u64 = 40_000;

/// Width of plots that stand side by side, or on a small screen.
const NARROW: f64 = 460.0;

/// The request for a layout.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct LayoutRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The role that colours ranks; by default the stage, or another role with more than one value.
    #[serde(default)]
    role: Option<Role>,
}

impl Study for LayoutRequest {
    type Report = Layout;

    fn answer(&self, job: &mut Job<'_>) -> Result<(Layout, Shown), Problem> {
        let request = self.asked.request(job.shared)?;
        let scenario = request.scenario()?;
        let layout = Layout::of(&scenario).map_err(|why| request.refused(why))?;
        let shown = job.show(|| self.shown(&scenario, &layout, job.token()))?;
        Ok((layout, shown))
    }
}

impl LayoutRequest {
    fn shown(
        &self,
        scenario: &Scenario,
        layout: &Layout,
        token: &CancellationToken,
    ) -> Result<Shown, Problem> {
        let called = name(scenario.name());
        let mut shown = Shown::new(&tables::layout_summary(layout));
        let all = [Role::Pipeline, Role::Tensor, Role::Data, Role::Context];
        let usual = all.into_iter().find(|role| layout.count(*role) > 1).unwrap_or(Role::Node);
        let grid = RankGrid::from_layout(layout, self.role.unwrap_or(usual), &called);
        shown.plot("ranks", grid.svg_of(NARROW));
        shown.plot("memory", StackedBars::from_split(&layout.split, &called).svg_of(NARROW));
        if simulate::events_per_step(scenario) <= MOST_EVENTS {
            // A plan that cannot be simulated has no pipeline to show; its forecast says why.
            if let Ok(recording) = simulate::timeline(scenario, 1, &|| work::check(token)) {
                shown.plot("pipeline", Gantt::from_pipeline(&recording, &called).svg());
            }
        } else {
            shown.notes(["The pipeline has too many operations to be drawn here.".to_owned()]);
        }
        shown.table(&tables::groups(layout));
        for mut table in transformer::all(&layout.split) {
            table.folded = true;
            shown.table(&table);
        }
        Ok(shown)
    }
}
