//! The plot of a run of the simulation.

use crate::draw::kind::series_of;
use crate::plots::gantt::{Bar, Gantt, Lane};
use stepcast_study::simulate::{KINDS, Recording};

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
    let mut used = [false; KINDS.len()];
    let colours = series_of(&kinds.iter().map(String::as_str).collect::<Vec<_>>());
    for lane in &mut lanes {
        lane.kind = colours[lane.kind];
    }
    for event in &timeline.events {
        let lane =
            first.get(event.process as usize).and_then(|first| lanes.get_mut(first + event.lane as usize));
        if let Some(lane) = lane {
            let kind = event.kind.and_then(|kind| KINDS.iter().position(|known| *known == kind));
            if let Some(kind) = kind {
                used[kind] = true;
            }
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
    let kinds = KINDS.iter().enumerate().filter(|(kind, _)| used[*kind]);
    let kinds = kinds.map(|(kind, name)| (kind, (*name).to_owned())).collect();
    Gantt { title: title.to_owned(), lanes, kinds, ..Gantt::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::scenario::Document;
    use stepcast_study::simulate::timeline;

    /// A row of numbered passes for every stage, in the colours of the legend.
    #[test]
    fn a_pipeline_is_drawn_as_in_the_papers() {
        let text = "[model]\nzoo = \"llama3-8b\"\nsequence = 8192\n\
                    [[cluster.workers]]\ncount = 32\ndevice = { base = \"h100-sxm5\", efficiency = 0.5 }\n\
                    [cluster.network]\nbase = \"infiniband-ndr\"\n\
                    [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\nports = 8\n\
                    [strategy.plan]\ntensor = 2\npipeline = 4\nschedule = \"zb-h1\"\nglobal-batch = 32\n\
                    [methods.simulate]\njitter = 0\n";
        let scenario = Document::new("test", text).scenario(&[]).unwrap();
        let recording = timeline(&scenario, 1, &stepcast_study::never_cancelled).unwrap();
        let gantt = gantt(&recording, "A pipeline");
        let passes: Vec<&Lane> = gantt.lanes.iter().filter(|lane| lane.name == "passes").collect();
        assert_eq!(passes.len(), 4);
        for kind in ["forward", "backward", "weight", "communication"] {
            let place = gantt.kinds.iter().find(|(_, known)| known == kind).map(|(colour, _)| *colour);
            assert!(place.is_some(), "{kind}: {:?}", gantt.kinds);
            let of_kind = |lane: &Lane| lane.bars.iter().filter(|bar| bar.kind == place).count();
            if kind != "communication" {
                assert_eq!(passes.iter().map(|lane| of_kind(lane)).collect::<Vec<_>>(), [8; 4], "{kind}");
            }
        }
        let last = passes[3].bars.iter().find(|bar| bar.name == "B7");
        assert_eq!(last.and_then(|bar| bar.label.clone()).as_deref(), Some("7"));
        // One stage computes one thing at a time.
        for lane in passes {
            let ends = lane.bars.windows(2).map(|pair| pair[1].since.get() - pair[0].until.get());
            assert!(ends.into_iter().all(|gap| gap > -1e-12), "{}", lane.group);
        }
    }
}
