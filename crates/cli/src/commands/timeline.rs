//! `--timeline`: what the simulation does when, as a file for trace viewers.

use super::question::Question;
use crate::render::error::Complaint;
use crate::render::{Screen, several};
use std::path::Path;
use stepcast_core::method::{Inapplicable, Method};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_study::simulate::{self, Recording};
use stepcast_trace::TraceError;
use stepcast_trace::chrome::{self, Event, Process};

/// Viewers give up on much larger files.
const MAX_EVENTS: u64 = 2_000_000;

/// Operations that a layer becomes: parameters, forward, backward, gradients, update.
const PER_LAYER: u64 = 5;

/// Why a timeline could not be written.
pub(super) enum Failure {
    Refused(Inapplicable),
    Unwritten(TraceError),
}

impl Failure {
    pub(super) fn complaint(self, question: &Question) -> Complaint {
        match self {
            Self::Refused(why) => question.refused(why),
            Self::Unwritten(error) => Complaint::in_trace(error),
        }
    }
}

/// Whether there is a timeline to write, and not too long a one.
pub(super) fn check(
    path: &Path,
    steps: u32,
    method: &dyn Method,
    scenario: &Scenario,
) -> Result<(), Complaint> {
    if method.name() != "simulate" {
        let reason =
            format!("{} is a closed form: it has no timeline, only the simulation has one", method.name());
        let flag = format!("--timeline {}", path.display());
        return Err(Complaint::new(reason, "add `--method simulate`").at(flag));
    }
    let operations = match scenario.profile() {
        Some(profile) => profile.operations.len() as u64,
        None => PER_LAYER * scenario.workload.layers.len() as u64,
    };
    let each = scenario.cluster.workers().saturating_mul(operations).max(1);
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
        return Err(Complaint::new(reason, remedy).at(format!("--timeline-steps {steps}")));
    }
    Ok(())
}

/// Simulates the first steps of every worker and writes them down.
pub(super) fn write(path: &Path, steps: u64, scenario: &Scenario) -> Result<(), Failure> {
    let Recording { program, lane_names: names, timeline } =
        simulate::timeline(scenario, steps).map_err(Failure::Refused)?;
    let local = |worker: u32, lane: u32| program.lane_of[worker as usize].iter().position(|&own| own == lane);
    // Chunks that take no time, and lanes that have no others, would only be in the way.
    let chunks: Vec<_> = timeline
        .chunks
        .iter()
        .filter(|chunk| chunk.until > chunk.since)
        .filter_map(|chunk| Some((chunk, local(chunk.worker, chunk.lane)?)))
        .collect();
    let mut used = vec![false; names.len()];
    for &(_, lane) in &chunks {
        if let Some(used) = used.get_mut(lane) {
            *used = true;
        }
    }
    // Steps come first; lanes that are not used get no number.
    let mut lanes = vec!["steps".to_owned()];
    let mut number = vec![0; names.len()];
    for (lane, name) in names.into_iter().enumerate().filter(|(lane, _)| used[*lane]) {
        number[lane] = lanes.len() as u32;
        lanes.push(name);
    }
    let process = |worker| Process { name: format!("worker {worker}"), lanes: lanes.clone() };
    let processes: Vec<Process> = (0..program.workers()).map(process).collect();

    let mut done = vec![0_u64; program.workers()];
    let records = &timeline.steps.records;
    let titles: Vec<String> = records
        .iter()
        .map(|step| {
            let index = &mut done[step.worker as usize];
            *index += 1;
            format!("step {}", *index - 1)
        })
        .collect();
    let steps = records.iter().zip(&titles).map(|(step, name)| Event {
        process: step.worker,
        lane: 0,
        name,
        since: Seconds::new(step.since),
        until: Seconds::new(step.until),
        figure: Some(("staleness", step.stale)),
    });
    let chunks = chunks.iter().map(|(chunk, lane)| Event {
        process: chunk.worker,
        lane: number.get(*lane).copied().unwrap_or(0),
        name: program.graph.name(chunk.op),
        since: Seconds::new(chunk.since),
        until: Seconds::new(chunk.until),
        figure: None,
    });
    chrome::write_timeline(path, &processes, steps.chain(chunks)).map_err(Failure::Unwritten)
}

/// What was written, for people.
pub(super) fn note(path: &Path, steps: u64, scenario: &Scenario, screen: &Screen) -> String {
    let text = format!(
        "The first {} of {} {} in {}: open it in ui.perfetto.dev or chrome://tracing.",
        several(steps, "step"),
        several(scenario.cluster.workers(), "worker"),
        if steps == 1 { "is" } else { "are" },
        crate::render::name(&path.display().to_string())
    );
    format!("\n{}\n{}", screen.title("Timeline"), screen.paragraph(2, &text))
}
