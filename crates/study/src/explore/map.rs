//! Epoch time and minibatch over numbers of nodes and batches: the fastest conditions with the minibatch in a given
//! range (Oyama 2016, section 4.3).

use crate::predict::budget;
use crate::predict::training;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::str::FromStr;
use stepcast_core::fault::{Fault, Remedies, Remedy, RequestOption};
use stepcast_core::machine::{Cluster, WorkerGroup};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Prediction, Warning};
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::{Scenario, ScenarioFile};

const USUAL_BATCHES: u32 = 64;

/// Cells of a map, at most: more would fill the memory before anybody looks at them.
const MOST_CELLS: usize = 1 << 20;

const USUAL_NODES: u32 = 64;

/// A range of minibatches, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct MinibatchRange {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl MinibatchRange {
    /// Whether a minibatch lies in the range, ends included.
    pub fn contains(&self, minibatch: f64) -> bool {
        (self.low..=self.high).contains(&minibatch)
    }
}

impl FromStr for MinibatchRange {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong = || Fault::new(format!("\"{text}\" is no range of minibatches"), "write 104..172");
        let (low, high) = text.split_once("..").ok_or_else(wrong)?;
        let number = |digits: &str| {
            let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
            if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(wrong()) }
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(Fault::new(format!("the range {text} is empty"), format!("write {high}..{low}")));
        }
        Ok(Self { low, high })
    }
}

/// One number of nodes and one batch.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Cell {
    /// Nodes.
    pub nodes: u32,
    /// Samples per worker and step.
    pub batch: u32,
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// One pass over the data.
    #[serde(rename = "epoch_s", with = "InBaseUnits")]
    pub epoch: Seconds,
    /// Samples that enter one update, on average.
    pub minibatch: f64,
    /// Whether the minibatch is in the requested range.
    pub admissible: bool,
}

/// The map over all numbers of nodes and batches.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Map {
    /// The scenario, every default filled in.
    pub scenario: ScenarioFile,
    /// The method that made the predictions.
    pub method: &'static str,
    /// Workers per node.
    pub workers_per_node: u32,
    /// Numbers of nodes, ascending.
    pub nodes: Vec<u32>,
    /// Batches, ascending.
    pub batches: Vec<u32>,
    /// The admissible minibatches; all if none are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minibatch: Option<MinibatchRange>,
    /// The cells, by number of nodes, then by batch.
    pub cells: Vec<Cell>,
    /// Indices of the admissible cells, the shortest epoch first.
    pub ranking: Vec<usize>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
}

/// The extent of a map; defaults come from the scenario.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extent {
    /// Numbers of nodes; by default up to those of the cluster.
    pub nodes: Option<Vec<u32>>,
    /// Batches; by default up to the largest that fits into the devices.
    pub batches: Option<Vec<u32>>,
    /// Admissible minibatches; by default all.
    pub minibatch: Option<MinibatchRange>,
}

/// Receives the numbers of predicted cells and of all cells, and may stop the work.
pub type Watch<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

impl Map {
    /// Predicts every number of nodes with every batch.
    pub fn new(scenario: &Scenario, method: &dyn Method, extent: Extent) -> Result<Self, Fault> {
        Self::watched(scenario, method, extent, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Predicts every number of nodes with every batch, and reports progress to `watch`.
    pub fn watched(
        scenario: &Scenario,
        method: &dyn Method,
        extent: Extent,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Fault> {
        let refuse = |key, reason: &str, remedy: Remedies| Err(Fault::in_key(key, reason, remedy));
        let Some(samples) = scenario.epoch_samples() else {
            return refuse(
                "data",
                "a map shows epoch times, and there is no data set",
                "add `[data]` with `samples`".into(),
            );
        };
        if !method.is_quick() {
            let reason = "a map asks thousands of times, which would take a simulation too long";
            return refuse("strategy", reason, Remedy::method("oyama2016").into());
        }
        let [group] = &scenario.cluster.groups[..] else {
            let reason = "a map varies the number of equal nodes, and the workers differ";
            return refuse("cluster.workers", reason, "keep one group of workers".into());
        };
        let per_node = scenario.cluster.workers_per_node().min(group.count);
        let nodes = extent.nodes.unwrap_or_else(|| (1..=(group.count / per_node).min(USUAL_NODES)).collect());
        let fitting = training::largest_batch(scenario);
        let batches = match extent.batches {
            Some(batches) => batches,
            None => (1..=fitting.unwrap_or(USUAL_BATCHES).min(USUAL_BATCHES)).collect(),
        };
        if batches.is_empty() {
            let reason = "not even a batch of 1 fits into the device's memory";
            let batches = Remedy::option(RequestOption::Batches, "16,32,64");
            let remedy = [Remedy::advice("use a larger device"), batches];
            return refuse("cluster.workers", reason, remedy.into());
        }
        let all = nodes.len().saturating_mul(batches.len());
        if all > MOST_CELLS {
            let (nodes, batches) = (nodes.len(), batches.len());
            let reason = format!("{nodes} numbers of nodes with {batches} batches are {all} cells");
            let most = Remedy::advice(format!("name at most {MOST_CELLS} cells"));
            return Err(Fault::new(reason, Remedies::from(most).or(fewer_cells())));
        }
        let events = all as f64 * budget::prediction(scenario, method) as f64;
        if events > budget::UNASKED as f64 {
            let long = budget::duration(events).human();
            let reason = format!("{all} cells of this many layers would take about {long}");
            return Err(Fault::new(reason, fewer_cells()));
        }
        let mut cells = Vec::with_capacity(all);
        let mut warnings: Vec<Warning> = Vec::new();
        for &count in &nodes {
            for &batch in &batches {
                if watch(cells.len() as u64, all as u64).is_break() {
                    return Err(Fault::new("the map was stopped", "ask again"));
                }
                let workers = count.saturating_mul(per_node);
                let group = WorkerGroup { count: workers, batch: Some(batch), ..group.clone() };
                let cluster = Cluster { groups: vec![group], ..scenario.cluster.clone() };
                let prediction = method.predict(&scenario.on(cluster))?;
                let minibatch = minibatch(&prediction);
                cells.push(Cell {
                    nodes: count,
                    batch,
                    iteration: prediction.iteration,
                    epoch: prediction.throughput.time_for(samples as f64),
                    minibatch,
                    admissible: extent.minibatch.is_none_or(|range| range.contains(minibatch)),
                });
                // Most cells give the same warnings: each is kept once, in the words of the first cell.
                for warning in prediction.warnings {
                    if warnings.iter().all(|known| known.code != warning.code) {
                        warnings.push(warning);
                    }
                }
            }
        }
        warnings.extend(too_large(fitting, &batches));
        let mut ranking: Vec<usize> = (0..cells.len()).filter(|&place| cells[place].admissible).collect();
        ranking.sort_by(|&a, &b| cells[a].epoch.get().total_cmp(&cells[b].epoch.get()));
        Ok(Self {
            scenario: scenario.to_file(),
            method: method.name(),
            workers_per_node: per_node,
            nodes,
            batches,
            minibatch: extent.minibatch,
            cells,
            ranking,
            warnings,
        })
    }

    /// The admissible cell with the shortest epoch.
    pub fn best(&self) -> Option<&Cell> {
        self.ranking.first().map(|&place| &self.cells[place])
    }
}

/// Samples per update: the samples of a step if every step ends with an update.
fn minibatch(prediction: &Prediction) -> f64 {
    prediction.updating.as_ref().map_or(prediction.samples as f64, |updating| updating.minibatch)
}

fn too_large(fitting: Option<u32>, batches: &[u32]) -> Option<Warning> {
    let fitting = fitting.filter(|fitting| batches.last() > Some(fitting))?;
    let message = format!("batches above {fitting} may not fit into the device's memory");
    Some(Warning { code: "memory", message })
}

fn fewer_cells() -> Remedies {
    let nodes = Remedy::option(RequestOption::Nodes, "1,2,4,8");
    [nodes, Remedy::option(RequestOption::Batches, "16,32,64")].into()
}
