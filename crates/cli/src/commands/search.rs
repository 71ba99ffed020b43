//! `stepcast search`: the best configuration within constraints.

use super::sweep::{axes, progress};
use crate::answer::{Answer, End, Output, check_plot, write_plot};
use crate::render::answers;
use crate::request::{DataFlags, ScenarioFlags, method_choice};
use crate::signal;
use clap::{Args, value_parser};
use std::path::{Path, PathBuf};
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::machine::catalog;
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_report::format::name;
use stepcast_report::plots::pareto::Pareto;
use stepcast_study::explore::search::{Constraint, Effort, Goal, Objective, SearchStrategy, search};
use stepcast_study::explore::sweep::on_threads;

/// Message if Ctrl-C comes before there is anything to report.
const STOPPED: &str = "Stopped before anything was found.";

/// Flags of `search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    #[command(flatten)]
    about: ScenarioFlags,

    #[command(flatten)]
    data: DataFlags,

    /// Objective: iteration, epoch, time, cost or cost-time
    #[arg(long, alias = "minimise", value_name = "WHAT")]
    minimize: Objective,

    /// Constraint, such as 'minibatch<=1024' or any-memory; may be repeated
    #[arg(long, value_name = "CONSTRAINT")]
    subject_to: Vec<String>,

    /// A key and its values, as for sweep; may be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    vary: Vec<String>,

    /// Devices of the catalog: one group of workers for each replaces the groups of the scenario
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    devices: Vec<String>,

    /// Numbers of workers with each device
    #[arg(long, value_name = "RANGE", default_value = "0..8", requires = "devices")]
    count: String,

    /// Price of a worker with this device for one hour; may be repeated
    #[arg(long, value_name = "DEVICE=PRICE", requires = "devices")]
    price: Vec<String>,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,

    /// Search algorithm: exhaustive, bound or heuristic [default: chosen by the number of configurations]
    #[arg(long, value_name = "WAY")]
    how: Option<SearchStrategy>,

    /// Most predictions of a search by bound or heuristic
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    budget: Option<u64>,

    /// Seed of the heuristic's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Plot time against cost to this file: the best configurations, the front and the chosen one
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Search {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        check_plot(self.plot.as_deref())?;
        let constraint = |text: &String| {
            Constraint::parse(text).map_err(|fault| complaint(fault).at(format!("--subject-to {text}")))
        };
        let constraints: Vec<Constraint> =
            self.subject_to.iter().map(constraint).collect::<Result<_, _>>()?;
        let mut vary = Vec::new();
        let mut edits = self.about.single_edits()?;
        edits.extend(self.data.edits()?);
        if !self.devices.is_empty() {
            edits.push(self.groups()?);
            for group in 0..self.devices.len() {
                vary.push(format!("cluster.workers.{group}.count={}", self.count));
            }
        }
        vary.extend(self.vary.iter().cloned());
        let request = self.about.request_with(edits)?;
        let variants = request.variants(axes(&vary)?, "--vary")?;
        let goal = Goal { objective: self.minimize, constraints };
        if let Some(path) = self.plot.as_ref().filter(|_| !goal.is_about_cost()) {
            has_costs(variants.first(), path)?;
        }
        let effort = Effort { how: self.how, budget: self.budget, seed: self.seed };
        let choice = method_choice(&self.method)?;
        signal::listen(STOPPED);
        let bar = progress(u64::try_from(variants.grid().points()).unwrap_or(u64::MAX));
        let report = on_threads(self.threads, || {
            search(&variants, choice, &goal, effort, &signal::check, &mut |progress| {
                bar.set_position(progress.done);
            })
        });
        bar.finish_and_clear();
        if report.is_err() && signal::interrupted() {
            return Ok(signal::stopped(STOPPED));
        }
        let report = report.map_err(|fault| refused(fault, &self.about.place()))?;
        let end = if signal::interrupted() && report.gap != Some(0.0) { End::Interrupted } else { End::Done };
        let draw = || Pareto::from_search(&report, &name(variants.first().name())).svg();
        let note = write_plot(self.plot.as_deref(), &output.screen, draw)?;
        Ok(Answer { end, ..output.answer(&report, |screen| answers::search(&report, screen) + &note)? })
    }

    fn groups(&self) -> Result<Edit, Fault> {
        let mut prices = Vec::new();
        for text in &self.price {
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
            if !self.devices.iter().any(|known| known == device.trim()) {
                return wrong(format!("\"{device}\" is not among --devices"), "name one of them");
            }
            prices.push((device.trim(), number));
        }
        let mut groups = Vec::new();
        for device in &self.devices {
            catalog::device(device).map_err(|fault| complaint(fault).at(format!("--devices {device}")))?;
            let price = prices.iter().find(|(name, _)| name == device);
            let price = price.map_or(String::new(), |(_, price)| format!(", price = {price:?}"));
            groups.push(format!("{{ device = {device:?}{price} }}"));
        }
        Edit::parse(&format!("cluster.workers=[{}]", groups.join(", ")))
    }
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
fn refused(fault: Fault, place: &str) -> Fault {
    let root = fault.key == KeyPath::root();
    complaint(fault).at(if root { "--vary, --subject-to" } else { place })
}
