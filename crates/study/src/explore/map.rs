//! Epoch time and minibatch over numbers of nodes and batches: the fastest conditions with the minibatch in a given
//! range (Oyama 2016, section 4.3).

use crate::cost;
use crate::predict::training;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
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
    fn contains(&self, minibatch: f64) -> bool {
        (self.low..=self.high).contains(&minibatch)
    }
}

impl FromStr for MinibatchRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no range of minibatches; write 104..172");
        let (low, high) = text.split_once("..").ok_or_else(wrong)?;
        let number = |digits: &str| {
            let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
            if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(wrong()) }
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(format!("the range {text} is empty; write {high}..{low}"));
        }
        Ok(Self { low, high })
    }
}

/// One number of nodes and one batch.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Cell {
    /// Nodes.
    pub nodes: u32,
    /// Samples per worker and step.
    pub batch: u32,
    /// Time of one step.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// One pass over the data.
    #[serde(rename = "epoch_s")]
    #[serde_as(as = "InBaseUnits")]
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

/// Receives the number of cells that have been predicted and that of all, and may stop the work.
pub type Watch<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

impl Map {
    /// Predicts every number of nodes with every batch.
    pub fn new(scenario: &Scenario, method: &dyn Method, extent: Extent) -> Result<Self, Fault> {
        Self::watched(scenario, method, extent, &mut |_, _| ControlFlow::Continue(()))
    }

    /// The same, watched.
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
        let events = all as f64 * cost::prediction(scenario, method) as f64;
        if events > cost::UNASKED as f64 {
            let long = cost::duration(events).human();
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

/// Samples per update: those of a step if every step ends with an update.
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

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_analytic::layerwise::Layerwise;
    use stepcast_analytic::oyama2016::Oyama2016;
    use stepcast_core::scenario::{Document, Edit};

    fn scenario(changes: &[&str]) -> Scenario {
        let text = include_str!("../../../../examples/sprint.toml");
        Document::new("sprint.toml", text).scenario(&Edit::parse_all(changes).unwrap()).unwrap()
    }

    fn extent(minibatch: Option<MinibatchRange>) -> Extent {
        Extent { nodes: Some((1..=16).collect()), batches: Some(vec![1, 4, 8, 11]), minibatch }
    }

    #[test]
    fn every_cell_is_the_prediction_of_its_scenario() {
        let range = MinibatchRange { low: 103.5, high: 172.5 };
        let map = Map::new(&scenario(&[]), &Oyama2016, extent(Some(range))).unwrap();
        assert_eq!(map.cells.len(), 16 * 4);
        let cell = map.cells[4 * 7 + 2];
        assert_eq!((cell.nodes, cell.batch), (8, 8));
        let alone = Oyama2016.predict(&scenario(&["strategy.batch=8"])).unwrap();
        assert_eq!(cell.iteration, alone.iteration);
        assert_eq!(cell.minibatch.to_bits(), alone.updating.unwrap().minibatch.to_bits());
    }

    #[test]
    fn the_ranking_holds_all_admissible_cells_by_epoch() {
        let range = MinibatchRange { low: 103.5, high: 172.5 };
        let map = Map::new(&scenario(&[]), &Oyama2016, extent(Some(range))).unwrap();
        let admissible = map.cells.iter().filter(|cell| range.contains(cell.minibatch)).count();
        assert!(admissible > 1 && admissible < map.cells.len());
        assert_eq!(map.ranking.len(), admissible);
        assert!(map.ranking.windows(2).all(|pair| map.cells[pair[0]].epoch <= map.cells[pair[1]].epoch));
        assert!(map.best().unwrap().admissible);
        let all = Map::new(&scenario(&[]), &Oyama2016, extent(None)).unwrap();
        assert_eq!(all.ranking.len(), all.cells.len());
        let none = MinibatchRange { low: 1e9, high: 2e9 };
        assert_eq!(Map::new(&scenario(&[]), &Oyama2016, extent(Some(none))).unwrap().best(), None);
    }

    #[test]
    fn synchronous_steps_have_the_minibatch_of_all_workers() {
        let changes = ["strategy.architecture=parameter-server", "strategy.synchronisation=bsp"];
        let map = Map::new(&scenario(&changes), &Layerwise, extent(None)).unwrap();
        let cell = map.cells[4 * 2 + 1];
        assert_eq!((cell.nodes, cell.batch, cell.minibatch as u64), (3, 4, 3 * 8 * 4));
    }

    #[test]
    fn a_map_can_be_stopped() {
        let mut seen = Vec::new();
        let stopped = Map::watched(&scenario(&[]), &Oyama2016, extent(None), &mut |done, of| {
            seen.push((done, of));
            if done < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(stopped.unwrap_err().reason, "the map was stopped");
        assert_eq!(seen, [(0, 64), (1, 64), (2, 64), (3, 64)]);
    }

    #[test]
    fn a_map_of_too_many_cells_is_refused_before_it_begins() {
        let numbers = Some((1..=4096).collect());
        let extent = Extent { nodes: numbers.clone(), batches: numbers, minibatch: None };
        let refused = Map::watched(&scenario(&[]), &Oyama2016, extent, &mut |_, _| unreachable!());
        assert!(refused.unwrap_err().reason.contains("16777216 cells"));
    }

    #[test]
    fn minibatches_are_ranges() {
        let range = |low, high| Ok(MinibatchRange { low, high });
        assert_eq!("103.5..172.5".parse(), range(103.5, 172.5));
        assert_eq!("64 .. 64".parse(), range(64.0, 64.0));
        for text in ["", "64", "..", "1..", "2..1", "-1..5", "nan..1", "1..inf", "a..b"] {
            assert!(text.parse::<MinibatchRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn batches_go_as_far_as_the_memory() {
        let map = Map::new(&scenario(&[]), &Oyama2016, Extent::default()).unwrap();
        assert_eq!(map.nodes, (1..=8).collect::<Vec<_>>());
        // The paper ran sub-batches of up to 11 on a K80 and of up to 5 on a K20X.
        let largest = *map.batches.last().unwrap();
        assert_eq!(largest, 11);
        let older = scenario(&["cluster.workers.0.device=tesla-k20x"]);
        assert_eq!(Map::new(&older, &Oyama2016, Extent::default()).unwrap().batches, [1, 2, 3, 4, 5]);
        let memory = scenario(&[]).cluster.smallest_memory();
        assert!(training::needed(&scenario(&[]), largest) <= memory);
        assert!(training::needed(&scenario(&[]), largest + 1) > memory);
        let small = scenario(&["cluster.workers.0.device={base=\"tesla-k80\", memory=\"100 MB\"}"]);
        assert_eq!(Map::new(&small, &Oyama2016, Extent::default()).unwrap_err().key, "cluster.workers");
    }
}
