//! The plot of a run of the simulation.

use crate::plots::gantt::{Bar, Gantt, Lane};
use stepcast_study::simulate::Recording;

/// The operations of every worker over time, one lane for each resource; of a pipeline, those of every stage, with the
/// number of their micro-batch.
pub fn gantt(recording: &Recording, title: &str) -> Gantt {
    let timeline = recording.timeline();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut kinds: Vec<String> = Vec::new();
    // The index of the first lane of every process.
    let mut first = Vec::new();
    for process in &timeline.processes {
        first.push(lanes.len());
        for name in &process.lanes {
            // A lane for operations that overlap in another one has its name and a number.
            let base = name.split_once(" (").map_or(name.as_str(), |(base, _)| base).to_owned();
            let kind = kinds.iter().position(|known| *known == base).unwrap_or_else(|| {
                kinds.push(base);
                kinds.len() - 1
            });
            lanes.push(Lane { group: process.name.clone(), name: name.clone(), kind, bars: Vec::new() });
        }
    }
    let mut colours: Vec<String> = Vec::new();
    for event in &timeline.events {
        let lane =
            first.get(event.process as usize).and_then(|first| lanes.get_mut(first + event.lane as usize));
        if let Some(lane) = lane {
            let kind = event.kind.map(|kind| {
                colours.iter().position(|known| known == kind).unwrap_or_else(|| {
                    colours.push(kind.to_owned());
                    colours.len() - 1
                })
            });
            let number = event.figure.filter(|_| kind.is_some()).map(|(_, number)| number.to_string());
            lane.bars.push(Bar {
                name: event.name.clone().into_owned(),
                label: number,
                kind,
                since: event.since,
                until: event.until,
            });
        }
    }
    Gantt { title: title.to_owned(), lanes, window: None, kinds: colours }
}
