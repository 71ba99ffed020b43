//! `stepcast plan`: the best way to split a transformer.

use super::request::Request;
use super::{json, signal};
use crate::args::Plan;
use crate::render::plan as text;
use crate::render::screen::Screen;
use crate::{Answer, End};
use indicatif::ProgressBar;
use std::ops::ControlFlow;
use std::time::Duration;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::count;
use stepcast_study::explore::plan::emit::{Framework, Launch};
use stepcast_study::explore::plan::{OPEN, PlanReport, plan};
use stepcast_study::explore::sweep::on_threads;

pub(super) fn run(flags: &Plan, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let changes = flags.changes();
    let mut request = Request::read(&flags.about, &changes)?;
    let mut scenario = request.scenario()?;
    if scenario.strategy.plan.is_none() && scenario.source.transformer().is_some() {
        let open: Vec<String> = changes.iter().cloned().chain([OPEN.to_owned()]).collect();
        request = Request::read(&flags.about, &open)?;
        scenario = request.scenario()?;
    }
    signal::listen("Stopped before anything was found.");
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    let report = on_threads(flags.threads, || {
        plan(&scenario, flags.minimize, &mut |plans| {
            bar.set_message(format!("{} plans", count(plans)));
            if signal::interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    bar.finish_and_clear();
    let report = report.map_err(|fault| request.refused(fault))?;
    let end = if report.interrupted { End::Interrupted } else { End::Done };
    if let Some(framework) = flags.emit {
        return Ok(Answer { text: emitted(&scenario, &report, framework)?, end });
    }
    if as_json {
        return json(&report).map(|answer| Answer { end, ..answer });
    }
    Ok(Answer { text: text::render(&report, screen), end })
}

/// The best plan in the words of a framework.
fn emitted(scenario: &Scenario, report: &PlanReport, framework: Framework) -> anyhow::Result<String> {
    let shape = scenario.transformer_of_plan()?;
    let best = &report.best;
    let launch = Launch {
        shape: &shape,
        plan: &best.plan.clone().resolve(&NoFiles)?,
        nodes: best.nodes,
        workers_per_node: scenario.cluster.workers_per_node().into(),
        data: best.data,
        micro_batches: best.micro_batches,
    };
    Ok(launch.emit(framework).map_err(|fault| fault.at("--emit"))?)
}
