//! `stepcast fuse`: which gradients to send together.

use super::busy::busy;
use super::request::Request;
use super::{json, plot};
use crate::Answer;
use crate::args::Fuse;
use crate::render::answers;
use crate::render::screen::Screen;
use stepcast_core::fault::Fault;
use stepcast_report::format::name;
use stepcast_report::plots::fusion::FusionComparison;
use stepcast_study::fuse;
use stepcast_study::request::{ALL_REDUCE, is_profile};

pub(super) fn run(flags: &Fuse, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    flags.plot.as_deref().map(plot::check).transpose()?;
    let mut overrides = Vec::new();
    if flags.about.scenario.as_deref().is_none_or(is_profile) {
        overrides.extend(ALL_REDUCE.map(str::to_owned));
    }
    overrides.extend(Request::single(&flags.about)?);
    let request = Request::read(&flags.about, &overrides)?;
    let scenario = request.scenario()?;
    let report =
        busy("comparing fusion rules", || fuse::fuse(&scenario)).map_err(|why| request.refused(why))?;
    let mut note = String::new();
    if let Some(path) = &flags.plot {
        plot::write(path, &FusionComparison::from_report(&report, &name(scenario.name())).svg())?;
        note = plot::note(path, screen);
    }
    if as_json {
        return json(&report);
    }
    Ok((answers::fusion(&scenario, &report, flags.plan, screen) + &note).into())
}
