//! `stepcast predict`: one scenario, one method, one forecast, and the timeline of a simulation; `stepcast compare`: one
//! scenario, every method.

use crate::answer::{Answer, Output, check_plot, is_drawing, write_plot};
use crate::numbers::percent;
use crate::render::{Screen, answers};
use crate::request::{DataFlags, ForecastFlags, Request, ScenarioFlags};
use crate::signal::busy;
use clap::{Args, value_parser};
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::scenario::Scenario;
use stepcast_report::format::{name, several};
use stepcast_report::plots::gantt::Gantt;
use stepcast_report::plots::lines::Lines;
use stepcast_report::plots::scaling_curve::ScalingCurve;
use stepcast_report::sentences;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::simulate::{self, Recording};
use stepcast_study::{ForecastOptions, MethodChoice, Stopped, round_timeline};
use stepcast_trace::timeline::{is_perfetto, write_timeline};
use stepcast_trace::write_text;

/// Most events of a timeline; viewers give up on much larger files.
const MAX_EVENTS: u64 = 2_000_000;

/// The closed form that has a timeline: of one round.
const ROUNDS: &str = "zeng2023";

/// Steps of every worker in a plot over time, at most, and its points.
const OVER_TIME: u64 = 1000;
const SLICES: u32 = 60;

/// Flags of `predict`.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    #[command(flatten)]
    asked: ForecastFlags,

    #[command(flatten)]
    data: DataFlags,

    /// Gain in throughput, in percent, below which scaling counts as saturated
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    worth: f64,

    /// Measured runs that correct assumed figures: a CSV table with a column throughput (samples/s) or step-time, and
    /// columns named after keys of the scenario: number of workers, batch, and what else differs between runs
    #[arg(long, value_name = "RUNS.csv")]
    calibrate: Option<PathBuf>,

    /// Show everything: stages, memory, workers, uncertainty, scaling, every change that helps, warnings
    #[arg(long)]
    full: bool,

    /// List every assumed figure with its source, its share of the uncertainty, and how to replace it
    #[arg(long)]
    explain: bool,

    /// Plot throughput over workers to this file
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,

    /// Plot throughput over the time of a simulated run to this file; only with method simulate
    #[arg(long, value_name = "OUT.svg")]
    over_time: Option<PathBuf>,

    /// Write the timeline of the simulated steps to this file, for Perfetto (.pftrace), chrome://tracing
    /// (.json) or as a plot (.svg); only with method simulate, or zeng2023, whose timeline is one round
    #[arg(long, value_name = "OUT")]
    timeline: Option<PathBuf>,

    /// Steps of every worker in the timeline
    #[arg(long, value_name = "N", default_value_t = 5, requires = "timeline", value_parser = value_parser!(u32).range(1..=1_000_000))]
    timeline_steps: u32,
}

impl Predict {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let mut edits = self.asked.edits()?;
        edits.extend(self.data.edits()?);
        let mut request = self.asked.request(edits)?;
        let (_, method) = request.prepare(&self.asked.method)?;
        let calibration =
            self.calibrate.as_deref().map(|path| request.calibrate(path, &self.asked.method)).transpose()?;
        let scenario = request.scenario()?;
        check_plot(self.plot.as_deref())?;
        check_plot(self.over_time.as_deref())?;
        if let Some(path) = &self.over_time {
            only_simulated(&format!("--over-time {}", path.display()), method)?;
        }
        if let Some(path) = self.timeline.as_ref().filter(|_| method.name() != ROUNDS) {
            self.check_timeline(path, method, &scenario)?;
        }
        let given = self.asked.about.workers.as_ref().map(|workers| workers.numbers.clone());
        // A single number is the cluster's; the table then has the usual numbers.
        let workers = given.filter(|numbers| numbers.len() > 1);
        let options = ForecastOptions { method: MethodChoice::One(method), workers, worth: self.worth };
        let forecast = request.forecast(&options)?;
        let mut note = String::new();
        if let Some(path) = &self.timeline {
            let steps = if method.name() == ROUNDS { 1 } else { self.timeline_steps.into() };
            let recording = match method.name() {
                ROUNDS => None,
                _ => Some(recorded(&scenario, steps).map_err(|stopped| refused(&request, stopped))?),
            };
            let (timeline, title) = match &recording {
                Some(recording) => (recording.timeline(), "Steps"),
                None => (round_timeline(&scenario).map_err(|why| request.refused(why))?, "A round"),
            };
            if is_drawing(path) {
                let how = if recording.is_some() { "simulated" } else { "by Zeng 2023" };
                let title = format!("{title} of {}, {how}", name(scenario.name()));
                write_text(path, &Gantt::from_timeline(&timeline, &title).svg())?;
            } else {
                write_timeline(path, &timeline)?;
            }
            note = timeline_note(path, steps, &scenario, &output.screen);
        }
        if self.over_time.is_some() {
            let steps = (MAX_EVENTS / simulate::events_per_step(&scenario)).clamp(1, OVER_TIME);
            let recording = recorded(&scenario, steps).map_err(|stopped| refused(&request, stopped))?;
            let samples = forecast.prediction.samples as f64 / forecast.prediction.workers as f64;
            note += &write_plot(self.over_time.as_deref(), &output.screen, || {
                Lines::over_time(&recording.throughput(samples, SLICES), &name(scenario.name())).svg()
            })?;
        }
        note += &write_plot(self.plot.as_deref(), &output.screen, || {
            ScalingCurve::from_forecast(&forecast, &name(scenario.name())).svg()
        })?;
        let asked = self.asked.method != "auto" || scenario.as_published;
        let by = if asked { sentences::method(method, &scenario) } else { String::new() };
        output.answer(&forecast, |screen| {
            let mut text = match self.full {
                true => answers::forecast(&scenario, method, &forecast, screen),
                false => answers::brief(&scenario, &forecast, &by, options.workers.is_some(), screen),
            };
            if let Some(calibration) = &calibration {
                text += &answers::corrections(calibration, screen);
            }
            if self.explain {
                text += &answers::assumptions(&forecast, screen);
            }
            text + &note
        })
    }

    /// Checks that the method has a timeline, and that it is not too long.
    fn check_timeline(&self, path: &Path, method: &dyn Method, scenario: &Scenario) -> Result<(), Fault> {
        let steps = self.timeline_steps;
        only_simulated(&format!("--timeline {}", path.display()), method)?;
        let each = simulate::events_per_step(scenario);
        if each.saturating_mul(u64::from(steps)) > MAX_EVENTS {
            let reason = format!(
                "{} of {} would be more than {MAX_EVENTS} events",
                several(u64::from(steps), "step"),
                several(scenario.cluster.workers(), "worker")
            );
            let remedy = match MAX_EVENTS / each {
                0 => "use fewer workers".to_owned(),
                most => format!("use at most {most}"),
            };
            return Err(Fault::new(reason, remedy).at(format!("--timeline-steps {steps}")));
        }
        Ok(())
    }
}

/// Refuses closed forms, which have no steps that follow each other.
fn only_simulated(flag: &str, method: &dyn Method) -> Result<(), Fault> {
    match method.name() {
        "simulate" => Ok(()),
        name => {
            let reason = format!("{name} is a closed form: only simulate has a timeline");
            Err(Fault::new(reason, "add `--method simulate`").at(flag.to_owned()))
        }
    }
}

/// The first steps of every worker.
fn recorded(scenario: &Scenario, steps: u64) -> Result<Recording, Stopped> {
    simulate::timeline(scenario, steps, &never_cancelled)
}

fn refused(request: &Request, stopped: Stopped) -> Fault {
    match stopped {
        Stopped::Fault(why) => request.refused(why),
        cancelled => cancelled.into(),
    }
}

/// A note about the file that was written.
fn timeline_note(path: &Path, steps: u64, scenario: &Scenario, screen: &Screen) -> String {
    let viewer = match path {
        path if is_drawing(path) => "a browser",
        path if is_perfetto(path) => "ui.perfetto.dev",
        _ => "ui.perfetto.dev or chrome://tracing",
    };
    let text = format!(
        "The timeline of the first {} of {} is in {}; open it in {viewer}.",
        several(steps, "step"),
        several(scenario.cluster.workers(), "worker"),
        name(&path.display().to_string()),
    );
    format!("\n{}\n{}", screen.title("Timeline"), screen.paragraph(2, &text))
}

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    about: ScenarioFlags,
}

impl Compare {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let scenario = self.about.request()?.scenario()?;
        let compared = busy("predicting by every method", || Comparison::new(&scenario));
        output.answer(&compared, |screen| answers::comparison(&scenario, &compared, screen))
    }
}
