//! `stepcast predict`: one scenario, one method, one forecast.

use super::question::Question;
use super::{json, plot, timeline};
use crate::Answer;
use crate::args::Predict;
use crate::render::forecast;
use crate::render::screen::Screen;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_report::adapters;
use stepcast_study::predict::methods;
use stepcast_study::{Forecast, usual_workers};

pub(super) fn run(flags: &Predict, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let question = Question::of(&flags.about)?;
    let scenario = question.scenario()?;
    let refused = |why| question.refused(why);
    let method = match flags.method.as_str() {
        "auto" => methods::choose(&scenario).map_err(refused)?,
        name => method(name)?,
    };
    flags.plot.as_deref().map(plot::check).transpose()?;
    if let Some(path) = &flags.timeline {
        timeline::check(path, flags.timeline_steps, method, &scenario)?;
    }
    let workers = match &flags.workers {
        Some(workers) => workers.0.clone(),
        None => usual_workers(&scenario, method),
    };
    let forecast = Forecast::new(&scenario, method, &workers, flags.worth).map_err(refused)?;
    let mut note = String::new();
    if let Some(path) = &flags.timeline {
        let steps = u64::from(flags.timeline_steps);
        timeline::write(path, steps, &scenario).map_err(|why| why.complaint(&question))?;
        note = timeline::note(path, steps, &scenario, screen);
    }
    if let Some(path) = &flags.plot {
        let curve = adapters::scaling_curve(&forecast, &stepcast_report::format::name(scenario.name()));
        plot::write(path, &curve.svg())?;
        note += &plot::note(path, screen);
    }
    if as_json {
        return json(&forecast);
    }
    Ok((forecast::render(&scenario, method, &forecast, screen) + &note).into())
}

/// The method of that name.
pub(super) fn method(name: &str) -> Result<&'static dyn Method, Fault> {
    methods::named(name).map_err(|fault| fault.at(format!("--method {name}")))
}
