//! `stepcast map`: epoch time and minibatch over nodes and batches, as a ranking and as a plot.

use super::busy::busy;
use super::request::Request;
use super::{json, plot};
use crate::Answer;
use crate::args::Map as Flags;
use crate::render::answers;
use crate::render::screen::Screen;
use stepcast_core::fault::Fault;
use stepcast_study::Prepared;
use stepcast_study::explore::map::{Extent, Map};

/// Cells that one map may have: a few seconds.
const MAX_CELLS: usize = 1 << 18;

pub(super) fn run(flags: &Flags, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    flags.plot.as_deref().map(plot::check).transpose()?;
    let request = Request::of(&flags.about)?;
    let Prepared { scenario, method } = request.prepare(&flags.method)?;
    let extent = Extent {
        nodes: flags.nodes.as_ref().map(|numbers| numbers.0.clone()),
        batches: flags.batches.as_ref().map(|numbers| numbers.0.clone()),
        minibatch: flags.minibatch,
    };
    let count = |numbers: &Option<Vec<u32>>| numbers.as_ref().map_or(1, Vec::len);
    if count(&extent.nodes) * count(&extent.batches) > MAX_CELLS {
        let reason = format!("the map would have more than {MAX_CELLS} cells");
        let remedy = "give fewer nodes or batches, such as 1,2,4,8";
        return Err(Fault::new(reason, remedy).at("--nodes, --batches"));
    }
    let drawn = busy("mapping", || Map::new(&scenario, method, extent));
    let drawn = drawn.map_err(|why| request.refused(why))?;
    if let Some(path) = &flags.plot {
        let svg = stepcast_report::condition_map(&drawn, &stepcast_report::format::name(scenario.name()));
        plot::write(path, &svg)?;
    }
    if as_json {
        return json(&drawn);
    }
    let note = flags.plot.as_deref().map_or(String::new(), |path| plot::note(path, screen));
    Ok((answers::map(&scenario, &drawn, screen) + &note).into())
}
