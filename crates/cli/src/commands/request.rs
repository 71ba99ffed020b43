//! The request from a command's flags: a scenario from a file, from standard input or built in, or a profile alone.

use crate::args::ScenarioFlags;
use crate::render::error::in_scenario;
use std::io::{self, Write};
use stepcast_core::fault::Fault;
use stepcast_core::scenario::{Override, Scenario};
use stepcast_study::explore::sweep::{Axis, Variants, VaryError};
use stepcast_study::{Extent, Forecast, MethodChoice, Prepared, Stopped, unwatched};

/// A request, with the flags that make it.
pub(super) struct Request {
    inner: stepcast_study::Request,
    /// The overrides as they were written.
    flags: Vec<String>,
}

impl Request {
    /// The request that the flags of a command make.
    pub(super) fn of(flags: &ScenarioFlags) -> Result<Self, Fault> {
        Self::read(flags.scenario.as_deref(), &flags.overrides)
    }

    /// Reads the text and the overrides.
    pub(super) fn read(path: Option<&str>, flags: &[String]) -> Result<Self, Fault> {
        let placed = |fault| in_scenario(fault, flags);
        let overrides: Result<Vec<Override>, Fault> =
            flags.iter().map(|text| Override::parse(text)).collect();
        let overrides = overrides.map_err(placed)?;
        let inner = match path {
            None => stepcast_study::Request::quick_start(overrides),
            Some("-") => stepcast_study::Request::from_reader("<stdin>", io::stdin().lock(), overrides)
                .map_err(placed)?,
            Some(path) => stepcast_study::Request::open(path, overrides).map_err(placed)?,
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

    /// The forecast of what was prepared.
    pub(super) fn forecast(&self, prepared: &Prepared, extent: &Extent) -> Result<Forecast, Fault> {
        self.inner.forecast(prepared, extent, &unwatched).map_err(|stopped| match stopped {
            Stopped::Fault(fault) => self.placed(fault),
            Stopped::Cancelled => Fault::new(stopped.to_string(), ""),
        })
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
            let _ = writeln!(io::stderr(), "{note}");
        }
    }
}

/// The method that `--method` names.
pub(super) fn method_choice(name: &str) -> Result<MethodChoice, Fault> {
    MethodChoice::named(name).map_err(|fault| fault.at(format!("--method {name}")))
}
