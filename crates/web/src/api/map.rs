//! Epoch time and minibatch over nodes and batches.

use crate::edit::edits;
use crate::problem::Problem;
use crate::request::{ScenarioBody, method_choice};
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::machine::{Cluster, WorkerGroup};
use stepcast_core::scenario::Scenario;
use stepcast_report::condition_map;
use stepcast_report::format::{self, name};
use stepcast_report::tables::map as tables;
use stepcast_study::explore::map::{Cell, Extent, Map};
use stepcast_study::explore::numbers;

/// Most cells; larger maps are for the command line.
const MOST: usize = 1 << 16;

/// The map request.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct MapRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// Numbers of nodes: "1..16" or "1,2,4"; by default up to those of the cluster.
    #[serde(default)]
    nodes: Option<String>,
    /// Batches of a worker: "1..11" or "1,4,8"; by default up to what fits into the device.
    #[serde(default)]
    batches: Option<String>,
    /// Admissible minibatches: "104..172"; by default all.
    #[serde(default)]
    minibatch: Option<String>,
    /// The method; by default the first that applies.
    #[serde(default)]
    method: Option<String>,
}

impl Study for MapRequest {
    type Report = Map;

    fn answer(&self, job: &mut Job<'_>) -> Result<(Map, Shown), Problem> {
        let extent = Extent {
            nodes: several(self.nodes.as_deref(), "nodes")?,
            batches: several(self.batches.as_deref(), "batches")?,
            minibatch: self.minibatch.as_deref().map(str::parse).transpose().map_err(at("minibatch"))?,
        };
        let count = |numbers: &Option<Vec<u32>>| numbers.as_ref().map_or(1, Vec::len);
        if count(&extent.nodes) * count(&extent.batches) > MOST {
            let reason = format!("the map would have more than {MOST} cells");
            return Err(Problem::invalid("nodes", reason, "give fewer nodes or batches, such as 1,2,4,8"));
        }
        let request = self.asked.request(job.shared)?;
        let choice = method_choice(self.method.as_deref())?;
        let (scenario, method) = (request.scenario()?, request.method(choice)?);
        let map = Map::watched(&scenario, method, extent, &mut |done, of| {
            job.progress(done, Some(of), "conditions", || None)
        })
        .map_err(|why| request.refused(why))?;
        let shown = job.show(|| {
            let mut shown = Shown::new(&tables::summary(&map));
            shown.plot("map", condition_map(&map, &name(scenario.name())));
            let ranking = tables::ranking(&map);
            let places = || map.ranking.iter().take(ranking.rows.len());
            shown.table_of(&ranking, places().map(|place| Some(*place as u64)).collect());
            shown.warnings(&map.warnings);
            let from = scenario.to_file();
            for &place in places() {
                let Cell { nodes, batch, .. } = map.cells[place];
                let to = on(&scenario, nodes.saturating_mul(map.workers_per_node), batch);
                let edits = edits(job.shared, &self.asked, &from, &to.to_file());
                shown.offer(
                    place as u64,
                    format!("{}, batch {batch}", format::several(u64::from(nodes), "node")),
                    edits,
                );
            }
            Ok(shown)
        })?;
        Ok((map, shown))
    }
}

fn at(key: &'static str) -> impl Fn(Fault) -> Problem {
    move |fault| fault.below(KeyPath::of(key)).into()
}

/// Numbers that a field may hold.
pub(super) fn several(text: Option<&str>, key: &'static str) -> Result<Option<Vec<u32>>, Problem> {
    text.map(|text| numbers(text, "")).transpose().map_err(at(key))
}

fn on(scenario: &Scenario, workers: u32, batch: u32) -> Scenario {
    let groups = scenario.cluster.groups.iter();
    let groups = groups.map(|group| WorkerGroup { count: workers, batch: Some(batch), ..group.clone() });
    scenario.on(Cluster { groups: groups.collect(), ..scenario.cluster.clone() })
}
