//! Levels over time: how loaded stations are, and how many operations wait.

use super::Recording;
use std::collections::BTreeMap;
use stepcast_core::quantity::Seconds;
use stepcast_sim::{Shared, Station};
use stepcast_trace::timeline::{Level, Process};

impl Recording {
    /// How loaded the stations are that workers share.
    pub(super) fn loads(&self, levels: &mut Levels) {
        let mut known: BTreeMap<Shared, [u32; 2]> = BTreeMap::new();
        for (name, &lane) in self.lane_names.iter().zip(&self.program.lane_of[0]) {
            let shared = match self.program.lanes[lane as usize].station {
                Station::Own(_) => continue,
                Station::Pool(pool) => Shared::Pool(pool),
                Station::Tcp { up, .. } => Shared::Tcp { up },
                // The first port is the server's.
                Station::Links(route) => match route.ports().first() {
                    Some(&port) => Shared::Port(port),
                    None => continue,
                },
            };
            known.entry(shared).or_insert_with(|| {
                [
                    levels.add(format!("{name}: used"), "%"),
                    levels.add(format!("{name}: in flight"), "transfers"),
                ]
            });
        }
        for load in &self.observed.loads {
            if let Some([used, in_flight]) = known.get(&load.of) {
                levels.set(*used, load.at, 100.0 * load.share);
                levels.set(*in_flight, load.at, f64::from(load.customers));
            }
        }
    }

    /// How many operations of all workers wait, by local lane.
    pub(super) fn queues(&self, levels: &mut Levels) {
        let mut local = vec![None; self.program.lanes.len()];
        for lanes in &self.program.lane_of {
            for (index, &lane) in lanes.iter().enumerate() {
                local[lane as usize] = Some(index);
            }
        }
        let mut waiting = vec![0; self.program.lanes.len()];
        let mut total = vec![0_u32; self.lane_names.len()];
        let mut level = vec![None; self.lane_names.len()];
        for queue in &self.observed.queues {
            let Some(index) = local[queue.lane as usize].filter(|index| *index < total.len()) else {
                continue;
            };
            let before = std::mem::replace(&mut waiting[queue.lane as usize], queue.operations);
            total[index] = total[index] + queue.operations - before;
            if level[index].is_some() || total[index] > 0 {
                let name = || levels.add(format!("{}: waiting", self.lane_names[index]), "operations");
                let level = *level[index].get_or_insert_with(name);
                levels.set(level, queue.at, f64::from(total[index]));
            }
        }
    }
}

/// Levels of stations that workers share. Values that are replaced at the same moment, or that change nothing, are not kept.
pub(super) struct Levels {
    process: u32,
    names: Vec<(String, &'static str)>,
    pub(super) levels: Vec<Level>,
    /// By level: where its last value stands.
    last: Vec<Option<usize>>,
}

impl Levels {
    pub(super) fn new(process: u32) -> Self {
        Self { process, names: Vec::new(), levels: Vec::new(), last: Vec::new() }
    }

    fn add(&mut self, name: String, unit: &'static str) -> u32 {
        self.names.push((name, unit));
        self.last.push(None);
        self.names.len() as u32 - 1
    }

    fn set(&mut self, level: u32, at: f64, value: f64) {
        let last = &mut self.last[level as usize];
        if let Some(before) = last.map(|last| &mut self.levels[last]) {
            if before.at.get() >= at {
                before.value = value;
                return;
            }
            if before.value.total_cmp(&value).is_eq() {
                return;
            }
        }
        *last = Some(self.levels.len());
        self.levels.push(Level { process: self.process, level, at: Seconds::new(at), value });
    }

    pub(super) fn process(&self) -> Option<Process> {
        let levels = self.names.clone();
        (!levels.is_empty()).then(|| Process { name: "shared".to_owned(), lanes: Vec::new(), levels })
    }
}
