//! `stepcast map`: epoch time and minibatch over nodes and batches, as a ranking and as a plot.

use crate::answer::{Answer, Output, check_plot, write_plot};
use crate::numbers::Numbers;
use crate::render::answers;
use crate::request::ScenarioFlags;
use crate::signal::busy;
use clap::Args;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_report::format::name;
use stepcast_study::explore::map::{self, Extent, MinibatchRange};

/// Cells that one map may have: a few seconds.
const MAX_CELLS: usize = 1 << 18;

/// Flags of `map`.
#[derive(Debug, Args)]
pub(crate) struct Map {
    #[command(flatten)]
    about: ScenarioFlags,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,

    /// Numbers of nodes: 1..16 or 1,2,4 [default: up to those of the cluster]
    #[arg(long)]
    nodes: Option<Numbers>,

    /// Batch sizes of a worker: 1..11 or 1,4,8 [default: up to what fits into the device]
    #[arg(long)]
    batches: Option<Numbers>,

    /// Admissible minibatches, such as 104..172 [default: all]
    #[arg(long, value_name = "LOW..HIGH")]
    minibatch: Option<MinibatchRange>,

    /// Plot the map to this file
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
}

impl Map {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        check_plot(self.plot.as_deref())?;
        let request = self.about.request()?;
        let (scenario, method) = request.prepare(&self.method)?;
        let numbers = |numbers: &Option<Numbers>| numbers.as_ref().map(|numbers| numbers.0.clone());
        let extent = Extent {
            nodes: numbers(&self.nodes),
            batches: numbers(&self.batches),
            minibatch: self.minibatch,
        };
        let count = |numbers: &Option<Vec<u32>>| numbers.as_ref().map_or(1, Vec::len);
        if count(&extent.nodes) * count(&extent.batches) > MAX_CELLS {
            let reason = format!("the map would have more than {MAX_CELLS} cells");
            let remedy = "give fewer nodes or batches, such as 1,2,4,8";
            return Err(Fault::new(reason, remedy).at("--nodes, --batches"));
        }
        let map = busy("mapping", || map::Map::new(&scenario, method, extent));
        let map = map.map_err(|why| request.refused(why))?;
        let draw = || stepcast_report::condition_map(&map, &name(scenario.name()));
        let note = write_plot(self.plot.as_deref(), &output.screen, draw)?;
        output.answer(&map, |screen| answers::map(&scenario, &map, screen) + &note)
    }
}
