//! `stepcast plan`: the best way to split a transformer.

use super::request::Request;
use super::{json, signal};
use crate::args::Plan;
use crate::render::answers;
use crate::render::screen::Screen;
use crate::{Answer, End};
use indicatif::ProgressBar;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_report::format::count;
use stepcast_study::explore::plan::{OPEN, plan};
use stepcast_study::explore::sweep::on_threads;
use stepcast_study::request::launch::emit;

/// Said if Ctrl-C comes before there is anything to report.
const STOPPED: &str = "Stopped before anything was found.";

pub(super) fn run(flags: &Plan, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let mut changes = Request::single(&flags.about)?;
    changes.extend(flags.changes());
    if flags.about.scenario.is_none() && flags.about.model.is_some() {
        changes.insert(0, OPEN.to_owned());
    }
    let mut request = Request::read(&flags.about, &changes)?;
    let mut scenario = request.scenario()?;
    if scenario.strategy.plan.is_none() && scenario.source.transformer().is_some() {
        let open: Vec<String> = changes.iter().cloned().chain([OPEN.to_owned()]).collect();
        request = Request::read(&flags.about, &open)?;
        scenario = request.scenario()?;
    }
    signal::listen(STOPPED);
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    let report = on_threads(flags.threads, || {
        plan(&scenario, flags.minimize, &mut |plans| {
            bar.set_message(format!("{} plans", count(plans)));
            signal::wanted()
        })
    });
    bar.finish_and_clear();
    if report.is_err() && signal::interrupted() {
        return Ok(signal::stopped(STOPPED));
    }
    let report = report.map_err(|fault| request.refused(fault))?;
    let end = if report.interrupted { End::Interrupted } else { End::Done };
    if let Some(framework) = flags.emit {
        let text = emit(&scenario, &report, framework).map_err(|fault| fault.at("--emit"))?;
        return Ok(Answer { text, end });
    }
    if as_json {
        return json(&report).map(|answer| Answer { end, ..answer });
    }
    Ok(Answer { text: answers::plan(&report, screen), end })
}
