//! The plot of a run of the simulation.

use crate::draw::kind::series_of;
use crate::plots::gantt::{Bar, Gantt, Lane};
use stepcast_study::simulate::Recording;

/// The operations of every worker over time, one lane for each resource.
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
    let colours = series_of(&kinds.iter().map(String::as_str).collect::<Vec<_>>());
    for lane in &mut lanes {
        lane.kind = colours[lane.kind];
    }
    for event in &timeline.events {
        let lane =
            first.get(event.process as usize).and_then(|first| lanes.get_mut(first + event.lane as usize));
        if let Some(lane) = lane {
            lane.bars.push(Bar {
                name: event.name.clone().into_owned(),
                since: event.since,
                until: event.until,
            });
        }
    }
    Gantt { title: title.to_owned(), lanes, ..Gantt::default() }
}
