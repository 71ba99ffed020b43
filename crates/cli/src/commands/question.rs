//! The scenario of a command: from a file, from standard input or built in, or a profile alone.

use crate::args::ScenarioFlags;
use crate::render::error::in_scenario;
use std::io::{self, Write};
use stepcast_core::fault::Fault;
use stepcast_core::scenario::{Override, Scenario};
use stepcast_study::explore::sweep::{Axis, Variants, VaryError};
use stepcast_study::request;

/// A scenario with the flags that change it.
pub(super) struct Question {
    asked: request::Question,
    /// The overrides as they were written.
    flags: Vec<String>,
}

impl Question {
    /// The scenario that the flags of a command name.
    pub(super) fn of(flags: &ScenarioFlags) -> Result<Self, Fault> {
        Self::read(flags.scenario.as_deref(), &flags.overrides)
    }

    /// Reads the text and the overrides.
    pub(super) fn read(path: Option<&str>, flags: &[String]) -> Result<Self, Fault> {
        let complaint = |error| in_scenario(error, flags);
        let overrides: Result<Vec<Override>, Fault> =
            flags.iter().map(|text| Override::parse(text)).collect();
        let overrides = overrides.map_err(complaint)?;
        let asked = match path {
            None => request::Question::quick_start(overrides),
            Some("-") => {
                request::Question::from_reader("<stdin>", io::stdin().lock(), overrides).map_err(complaint)?
            }
            Some(path) => request::Question::open(path, overrides).map_err(complaint)?,
        };
        Ok(Self { asked, flags: flags.to_vec() })
    }

    /// The scenario, or its first fault.
    pub(super) fn scenario(&self) -> Result<Scenario, Fault> {
        let scenario = self.asked.scenario();
        self.tell_notes();
        scenario.map_err(|error| self.complaint(error))
    }

    /// The scenario at every combination of the axes' values; `flag` is what names an axis.
    pub(super) fn variants(&self, axes: Vec<Axis>, flag: &str) -> Result<Variants<'_>, Fault> {
        let variants = self.asked.variants(axes);
        self.tell_notes();
        variants.map_err(|error| match error {
            VaryError::Axis { axis, fault } => {
                Fault::new(fault.reason, fault.remedy).at(format!("{flag} {axis}"))
            }
            VaryError::Document(error) => self.complaint(error),
        })
    }

    /// The refusal of a method, with the place in the scenario that it refuses.
    pub(super) fn refused(&self, why: Fault) -> Fault {
        self.complaint(self.asked.refused(why))
    }

    fn complaint(&self, error: Fault) -> Fault {
        in_scenario(error, &self.flags)
    }

    fn tell_notes(&self) {
        for note in self.asked.take_notes() {
            // Where standard error is closed, there is no way to report that.
            let _ = writeln!(io::stderr(), "{note}");
        }
    }
}
