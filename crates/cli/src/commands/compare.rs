//! `stepcast compare`: one scenario, every method.

use super::busy::busy;
use super::json;
use super::request::Request;
use crate::Answer;
use crate::args::Compare;
use crate::render::answers;
use crate::render::screen::Screen;
use stepcast_core::fault::Fault;
use stepcast_study::predict::compare::Comparison;

pub(super) fn run(flags: &Compare, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    Request::single(&flags.about)?;
    let mut scenario = Request::read(&flags.about, &flags.about.changes())?.scenario()?;
    // Groups keep their proportions.
    if let Some(workers) = flags.about.workers.as_ref().and_then(|workers| workers.single()) {
        scenario = scenario.on(scenario.cluster.resized(workers));
    }
    let compared = busy("predicting by every method", || Comparison::new(&scenario));
    if as_json {
        return json(&compared);
    }
    Ok(answers::comparison(&scenario, &compared, screen).into())
}
