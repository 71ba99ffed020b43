//! The request from a command's flags: a scenario from a file, from standard input or built in, or a profile alone.

use crate::args::{ScenarioFlags, SimulationFlags};
use crate::render::error::in_scenario;
use crate::render::screen::Screen;
use crate::words;
use indicatif::ProgressBar;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_report::format::count;
use stepcast_study::check::{self, Check, Reading};
use stepcast_study::explore::sweep::{Axis, Variants, VaryError};
use stepcast_study::predict::calibrate::{self, Calibration};
use stepcast_study::{Extent, Forecast, MethodChoice, Prepared, Progress, unwatched};

/// A request, with the flags that make it.
pub(super) struct Request {
    inner: stepcast_study::Request,
    /// The overrides as they were written.
    flags: Vec<String>,
}

impl Request {
    /// The request that the flags of a command make.
    pub(super) fn of(flags: &ScenarioFlags) -> Result<Self, Fault> {
        Self::read(flags, &Self::single(flags)?)
    }

    /// The same with flags for simulations.
    pub(super) fn simulated(flags: &ScenarioFlags, simulation: &SimulationFlags) -> Result<Self, Fault> {
        Self::read(flags, &simulation.changes(flags))
    }

    /// The changes of a command that has no scaling table: `--workers` is one number for every group.
    pub(super) fn single(flags: &ScenarioFlags) -> Result<Vec<String>, Fault> {
        let mut changes = flags.changes();
        if let Some(workers) = &flags.workers {
            let Some(number) = workers.single() else {
                let reason = "this command predicts one number of workers";
                return Err(
                    Fault::new(reason, "give one number; `stepcast predict` takes several").at("--workers")
                );
            };
            if !flags.sets_workers() {
                changes.insert(0, format!("cluster.workers.count={number}"));
            }
        }
        Ok(changes)
    }

    /// Reads the scenario that the flags choose, with these changes in place of theirs.
    pub(super) fn read(about: &ScenarioFlags, flags: &[String]) -> Result<Self, Fault> {
        let placed = |fault| in_scenario(fault, flags);
        let overrides: Result<Vec<Edit>, Fault> = flags.iter().map(|text| Edit::parse(text)).collect();
        let overrides = overrides.map_err(placed)?;
        let inner = match (about.scenario.as_deref(), &about.model) {
            (None, Some(model)) => stepcast_study::Request::of_model(model, overrides).map_err(placed)?,
            (None, None) => stepcast_study::Request::quick_start(overrides),
            (Some("-"), _) => stepcast_study::Request::from_reader("<stdin>", io::stdin().lock(), overrides)
                .map_err(placed)?,
            (Some(path), _) => stepcast_study::Request::open(path, overrides).map_err(placed)?,
        };
        Ok(Self { inner, flags: flags.to_vec() })
    }

    /// The scenario, or what is wrong with it.
    pub(super) fn scenario(&self) -> Result<Scenario, Fault> {
        let scenario = self.inner.scenario();
        self.print_notes();
        scenario.map_err(|fault| self.placed(fault))
    }

    /// The scenario, and the method of `--method` that is to answer it.
    pub(super) fn prepare(&self, method: &str) -> Result<Prepared, Fault> {
        let choice = match method_choice(method) {
            Ok(choice) => choice,
            // A fault of the scenario goes before that of the flag.
            Err(fault) => return Err(self.scenario().err().unwrap_or(fault)),
        };
        let prepared = self.inner.prepare(choice);
        self.print_notes();
        prepared.map_err(|fault| self.placed(fault))
    }

    /// Corrects what is assumed by the measured runs in the file at `path`, and says how.
    pub(super) fn calibrate(&self, prepared: &mut Prepared, path: &Path) -> Result<Calibration, Fault> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Fault::in_file(&name, format!("cannot read the runs: {error}"), "check the path")
        })?;
        let calibration = calibrate::calibrate(&self.inner, &calibrate::read_runs(&name, &text)?)?;
        prepared.scenario.priors = calibration.priors.clone();
        Ok(calibration)
    }

    /// The forecast of what was prepared. On a terminal, estimates show until they have settled.
    pub(super) fn forecast(&self, prepared: &Prepared, extent: &Extent) -> Result<Forecast, Fault> {
        let line = ProgressBar::new_spinner();
        let watch = |progress: Progress<'_>| {
            match progress {
                Progress::Working => line.tick(),
                Progress::Estimate(prediction) => line.set_message(settling(prediction)),
                Progress::Predicted(prediction) => {
                    let (figures, workers) = (figures(prediction), count(prediction.workers));
                    line.set_message(format!("workers: {workers}, {figures}"));
                }
            }
            ControlFlow::Continue(())
        };
        let forecast = self.inner.forecast(prepared, extent, &watch);
        line.finish_and_clear();
        forecast.map_err(|stopped| self.placed(stopped.into()))
    }

    /// Measured steps against the forecast of what was prepared.
    pub(super) fn check(
        &self,
        prepared: &Prepared,
        readings: &[Reading],
        steps_left: Option<u64>,
    ) -> Result<Check, Fault> {
        let checked = check::check(&self.inner, prepared, readings, steps_left, &unwatched);
        checked.map_err(|stopped| self.placed(stopped.into()))
    }

    /// The scenario at every combination of the axes' values; `flag` is what names an axis.
    pub(super) fn variants(&self, axes: Vec<Axis>, flag: &str) -> Result<Variants<'_>, Fault> {
        let variants = self.inner.variants(axes);
        self.print_notes();
        variants.map_err(|error| match error {
            VaryError::Axis { axis, fault } => {
                Fault::new(fault.reason, fault.remedy).at(format!("{flag} {axis}"))
            }
            VaryError::Document(fault) => self.placed(fault),
        })
    }

    /// A method's refusal, with the place of what it refuses.
    pub(super) fn refused(&self, refusal: Fault) -> Fault {
        self.placed(self.inner.refused(refusal))
    }

    fn placed(&self, fault: Fault) -> Fault {
        in_scenario(fault, &self.flags)
    }

    fn print_notes(&self) {
        for note in self.inner.take_notes() {
            // If standard error is closed, the note cannot be reported.
            let _ = write!(io::stderr(), "{}", Screen::of_stderr().paragraph(0, &note.worded(words::remedy)));
        }
    }
}

/// The method that `--method` names.
pub(super) fn method_choice(name: &str) -> Result<MethodChoice, Fault> {
    MethodChoice::named(name).map_err(|fault| fault.at(format!("--method {name}")))
}

/// The figures of a prediction, in brief.
fn figures(prediction: &Prediction) -> String {
    format!("{}, {} a step", prediction.throughput.human(), prediction.iteration.human())
}

/// An estimate that is being refined, with its interval.
fn settling(prediction: &Prediction) -> String {
    let width = prediction.simulation.as_deref().map(|simulation| {
        let [low, high] = simulation.throughput_interval;
        format!(" ±{:.1} %", 50.0 * (high - low) / prediction.throughput.get())
    });
    format!("{}{}: refining", figures(prediction), width.unwrap_or_default())
}
