//! `stepcast search`: the best configuration within constraints.

use super::request::{Request, method_choice};
use super::sweep::{axes, progress};
use super::{json, plot, signal};
use crate::args::Search;
use crate::render::answers;
use crate::render::screen::Screen;
use crate::{Answer, End};
use std::path::Path;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::machine::catalog;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::name;
use stepcast_report::plots::pareto::Pareto;
use stepcast_study::explore::search::{Constraint, Effort, Goal, search};
use stepcast_study::explore::sweep::on_threads;
use stepcast_study::request::QUICK_START_NAME;

/// Said if Ctrl-C comes before there is anything to report.
const STOPPED: &str = "Stopped before anything was found.";

pub(super) fn run(flags: &Search, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    flags.plot.as_deref().map(plot::check).transpose()?;
    let constraint = |text: &String| {
        Constraint::parse(text).map_err(|fault| complaint(fault).at(format!("--subject-to {text}")))
    };
    let constraints: Vec<Constraint> = flags.subject_to.iter().map(constraint).collect::<Result<_, _>>()?;
    let mut vary = Vec::new();
    let mut overrides = Request::single(&flags.about)?;
    if !flags.devices.is_empty() {
        overrides.push(groups(flags)?);
        for group in 0..flags.devices.len() {
            vary.push(format!("cluster.workers.{group}.count={}", flags.count));
        }
    }
    vary.extend(flags.vary.iter().cloned());
    let request = Request::read(&flags.about, &overrides)?;
    let variants = request.variants(axes(&vary)?, "--vary")?;
    if let Some(path) = &flags.plot {
        has_costs(variants.first(), path)?;
    }
    let goal = Goal { objective: flags.minimize, constraints };
    let effort = Effort { how: flags.how, budget: flags.budget, seed: flags.seed };
    let choice = method_choice(&flags.method)?;
    signal::listen(STOPPED);
    let bar = progress(u64::try_from(variants.grid().points()).unwrap_or(u64::MAX));
    let report = on_threads(flags.threads, || {
        search(&variants, choice, &goal, effort, &signal::wanted, &mut |progress| {
            bar.set_position(progress.done);
        })
    });
    bar.finish_and_clear();
    if report.is_err() && signal::interrupted() {
        return Ok(signal::stopped(STOPPED));
    }
    let report = report.map_err(|fault| refused(fault, flags.about.scenario.as_deref()))?;
    let end = if signal::interrupted() && report.gap != Some(0.0) { End::Interrupted } else { End::Done };
    let mut note = String::new();
    if let Some(path) = &flags.plot {
        plot::write(path, &Pareto::from_search(&report, &name(variants.first().name())).svg())?;
        note = plot::note(path, screen);
    }
    if as_json {
        return json(&report).map(|answer| Answer { end, ..answer });
    }
    Ok(Answer { text: answers::search(&report, screen) + &note, end })
}

/// Whether there is a front of time and cost to draw.
fn has_costs(scenario: &Scenario, path: &Path) -> Result<(), Fault> {
    if scenario.data.is_some() && scenario.hourly_cost().is_some() {
        return Ok(());
    }
    let reason = "the plot shows time against cost of training, and the scenario has no costs";
    let remedy = "add --set data.samples=1281167 and --set price.worker-hour=2.5, with your own figures";
    Err(Fault::new(reason, remedy).at(format!("--plot {}", path.display())))
}

fn complaint(fault: Fault) -> Fault {
    let path = fault.key.to_string();
    let reason = if path.is_empty() { fault.reason } else { format!("{path}: {}", fault.reason) };
    Fault::new(reason, fault.remedy)
}

/// A fault of the whole search: of the scenario, or of the flags.
fn refused(fault: Fault, scenario: Option<&str>) -> Fault {
    let root = fault.key == KeyPath::root();
    complaint(fault).at(if root { "--vary, --subject-to" } else { scenario.unwrap_or(QUICK_START_NAME) })
}

/// The override that has one group of workers for every device.
fn groups(flags: &Search) -> Result<String, Fault> {
    let mut prices = Vec::new();
    for text in &flags.price {
        let wrong =
            |reason: String, remedy: &str| Err(Fault::new(reason, remedy).at(format!("--price {text}")));
        let Some((device, price)) = text.split_once('=') else {
            return wrong("there is no \"=\"".to_owned(), "write DEVICE=PRICE, such as tesla-t4=0.4");
        };
        let Some(number) =
            price.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0)
        else {
            return wrong(format!("\"{price}\" is not a price"), "write a number such as 0.4");
        };
        if !flags.devices.iter().any(|known| known == device.trim()) {
            return wrong(format!("\"{device}\" is not among --devices"), "name one of them");
        }
        prices.push((device.trim(), number));
    }
    let mut groups = Vec::new();
    for device in &flags.devices {
        catalog::device(device).map_err(|fault| complaint(fault).at(format!("--devices {device}")))?;
        let price = prices.iter().find(|(name, _)| name == device);
        let price = price.map_or(String::new(), |(_, price)| format!(", price = {price:?}"));
        groups.push(format!("{{ device = {device:?}{price} }}"));
    }
    Ok(format!("cluster.workers=[{}]", groups.join(", ")))
}
