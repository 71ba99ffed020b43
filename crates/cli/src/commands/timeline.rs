//! `--timeline`: the events of a simulation as a file for trace viewers.

use super::plot::is_drawing;
use super::request::Request;
use crate::render::screen::Screen;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::method::{Method, never_cancelled};
use stepcast_core::scenario::Scenario;
use stepcast_report::format::{name, several};
use stepcast_report::plots::gantt::Gantt;
use stepcast_study::simulate;
use stepcast_trace::timeline::{is_perfetto, write_timeline};
use stepcast_trace::write_text;

/// Viewers give up on much larger files.
const MAX_EVENTS: u64 = 2_000_000;

/// Why a timeline could not be written.
pub(super) enum Failure {
    Refused(Fault),
    Unwritten(Fault),
}

impl Failure {
    pub(super) fn complaint(self, request: &Request) -> Fault {
        match self {
            Self::Refused(why) => request.refused(why),
            Self::Unwritten(error) => error,
        }
    }
}

/// Whether there is a timeline to write, and not too long a one.
pub(super) fn check(path: &Path, steps: u32, method: &dyn Method, scenario: &Scenario) -> Result<(), Fault> {
    if method.name() != "simulate" {
        let reason = format!("{} is a closed form: only simulate has a timeline", method.name());
        let flag = format!("--timeline {}", path.display());
        return Err(Fault::new(reason, "add `--method simulate`").at(flag));
    }
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

/// Simulates the first steps of every worker and writes them down, or draws them.
pub(super) fn write(path: &Path, steps: u64, scenario: &Scenario) -> Result<(), Failure> {
    let recording = simulate::timeline(scenario, steps, &never_cancelled)
        .map_err(|stopped| Failure::Refused(stopped.into()))?;
    let written = if is_drawing(path) {
        let title = format!("Steps of {}, simulated", name(scenario.name()));
        write_text(path, &Gantt::from_recording(&recording, &title).svg())
    } else {
        write_timeline(path, &recording.timeline())
    };
    written.map_err(Failure::Unwritten)
}

/// A note about the file that was written.
pub(super) fn note(path: &Path, steps: u64, scenario: &Scenario, screen: &Screen) -> String {
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
