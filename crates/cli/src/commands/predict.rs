//! `stepcast predict`: one scenario, one method, one forecast.

use super::request::Request;
use super::{json, plot, timeline};
use crate::Answer;
use crate::args::Predict;
use crate::render::answers;
use crate::render::screen::Screen;
use stepcast_core::fault::Fault;
use stepcast_report::plots::scaling_curve::ScalingCurve;
use stepcast_study::{Extent, Prepared};

pub(super) fn run(flags: &Predict, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let request = Request::simulated(&flags.about, &flags.simulation)?;
    let mut prepared = request.prepare(&flags.method)?;
    let calibration =
        flags.calibrate.as_deref().map(|path| request.calibrate(&mut prepared, path)).transpose()?;
    let Prepared { scenario, method } = &prepared;
    flags.plot.as_deref().map(plot::check).transpose()?;
    if let Some(path) = &flags.timeline {
        timeline::check(path, flags.timeline_steps, *method, scenario)?;
    }
    let given = flags.about.workers.as_ref().map(|workers| workers.numbers.clone());
    // One number that sets the cluster leaves the table to the usual numbers.
    let workers = given.filter(|numbers| numbers.len() > 1 || !flags.about.sets_workers());
    let forecast = request.forecast(&prepared, &Extent { workers, worth: flags.worth })?;
    let mut note = String::new();
    if let Some(path) = &flags.timeline {
        let steps = u64::from(flags.timeline_steps);
        timeline::write(path, steps, scenario).map_err(|why| why.complaint(&request))?;
        note = timeline::note(path, steps, scenario, screen);
    }
    if let Some(path) = &flags.plot {
        let curve = ScalingCurve::from_forecast(&forecast, &stepcast_report::format::name(scenario.name()));
        plot::write(path, &curve.svg())?;
        note += &plot::note(path, screen);
    }
    if as_json {
        return json(&forecast);
    }
    let mut text = answers::forecast(scenario, *method, &forecast, screen);
    if let Some(calibration) = &calibration {
        text += &answers::corrections(calibration, screen);
    }
    if flags.explain {
        text += &answers::assumptions(&forecast, screen);
    }
    Ok((text + &note).into())
}
