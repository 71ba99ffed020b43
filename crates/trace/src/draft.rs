//! A profile under construction: operations in the order in which they start, with their times in every step; and topological
//! orders.

use crate::import::profile_fault;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use stepcast_core::fault::Fault;
use stepcast_core::profile::{Operation, Profile, Resource, Step};

/// Operations that are added one after the other.
pub(crate) struct Draft {
    operations: Vec<Operation>,
    steps: Vec<Step>,
    /// How often each name has been used.
    names: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Label {
    /// For faults; its last part names the profile.
    pub(crate) place: String,
    /// "Horovod timeline", for the profile's source.
    pub(crate) format: &'static str,
    pub(crate) batch: u32,
}

impl Draft {
    pub(crate) fn new(steps: usize) -> Self {
        let step = Step { start: Vec::new(), end: Vec::new(), length: 0.0 };
        Self { operations: Vec::new(), steps: vec![step; steps], names: HashMap::new() }
    }

    /// Adds an operation with its start and end in every step, and gives its index. A name that is taken gets a number.
    pub(crate) fn add(
        &mut self,
        name: &str,
        resource: Resource,
        bytes: u64,
        after: Vec<u32>,
        mut span: impl FnMut(usize) -> (f64, f64),
    ) -> u32 {
        let unique = self.unique(name);
        for (index, step) in self.steps.iter_mut().enumerate() {
            let (start, end) = span(index);
            step.start.push(start);
            step.end.push(end);
            step.length = step.length.max(end);
        }
        self.operations.push(Operation { name: unique, resource, bytes, after, server: 0 });
        self.operations.len() as u32 - 1
    }

    fn unique(&mut self, name: &str) -> String {
        let mut number = self.names.get(name).copied().unwrap_or(0);
        loop {
            number += 1;
            let candidate = if number == 1 { name.to_owned() } else { format!("{name} ({number})") };
            if number == 1 || !self.names.contains_key(&candidate) {
                self.names.insert(name.to_owned(), number);
                self.names.entry(candidate.clone()).or_insert(1);
                return candidate;
            }
        }
    }

    /// Assigns the last operation to a server.
    pub(crate) fn on_server(&mut self, server: u32) {
        if let Some(last) = self.operations.last_mut() {
            last.server = server;
        }
    }

    /// Adds computing that starts when the last computing ended in every step.
    pub(crate) fn compute(&mut self, name: &str, after: Vec<u32>, duration: impl Fn(usize) -> f64) -> u32 {
        let ends = self.computed();
        self.add(name, Resource::Worker, 0, after, |step| (ends[step], ends[step] + duration(step)))
    }

    /// Adds a gradient that is ready when all computing so far has ended.
    pub(crate) fn gradient(&mut self, name: &str, bytes: u64, maker: u32) -> u32 {
        let ends = self.computed();
        self.add(name, Resource::Uplink, bytes, vec![maker], |step| (ends[step], ends[step]))
    }

    /// Adds a weight that comes down at the start of a step.
    pub(crate) fn weight(&mut self, name: &str, bytes: u64) -> u32 {
        self.add(name, Resource::Downlink, bytes, Vec::new(), |_| (0.0, 0.0))
    }

    /// When computing has ended so far, in every step.
    fn computed(&self) -> Vec<f64> {
        let last = self.operations.iter().rposition(|operation| operation.resource == Resource::Worker);
        let end = |step: &Step| last.map_or(0.0, |last| step.end[last]);
        self.steps.iter().map(end).collect()
    }

    /// The checked profile; a step is as long as its last operation.
    pub(crate) fn finish(self, label: &Label) -> Result<Profile, Fault> {
        let file = label.place.rsplit(['/', '\\']).next().unwrap_or(&label.place);
        let (name, source) = (file.split('.').next().unwrap_or(file), format!("{}, {file}", label.format));
        let profile = Profile::new(name, source, label.batch, self.operations, self.steps);
        profile.check().map_err(|error| profile_fault(&label.place, error))?;
        Ok(profile)
    }
}

/// The successors of each of `count` things, given the prerequisites of each; missing prerequisites are left out.
pub(crate) fn followers<B: IntoIterator<Item = usize>>(
    count: usize,
    before: impl Fn(usize) -> B,
) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); count];
    for index in 0..count {
        for before in before(index) {
            if let Some(followers) = followers.get_mut(before) {
                followers.push(index);
            }
        }
    }
    followers
}

/// Things after their prerequisites, otherwise in order. Cycles, and things with missing prerequisites, are left out.
pub(crate) fn topological_order<B: IntoIterator<Item = usize>>(
    count: usize,
    before: impl Fn(usize) -> B,
) -> Vec<usize> {
    let followers = followers(count, &before);
    let mut waiting: Vec<usize> = (0..count).map(|index| before(index).into_iter().count()).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..count).filter(|&index| waiting[index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &follower in &followers[index] {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                ready.push(Reverse(follower));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(place: &str) -> Label {
        Label { place: place.to_owned(), format: "Format", batch: 3 }
    }

    #[test]
    fn computing_covers_the_step() {
        let mut draft = Draft::new(2);
        let weight = draft.weight("w", 8);
        let forward = draft.compute("layer", vec![weight], |step| 1.0 + step as f64);
        draft.gradient("g", 8, forward);
        draft.compute("layer", vec![forward], |_| 0.5);
        let profile = draft.finish(&label("a/b.json")).unwrap();
        assert_eq!((profile.name.as_str(), profile.source.as_str()), ("b", "Format, b.json"));
        assert_eq!(profile.operations[3].name, "layer (2)");
        assert_eq!(profile.steps[1].start, [0.0, 0.0, 2.0, 2.0]);
        assert_eq!((profile.steps[0].length, profile.steps[1].length), (1.5, 2.5));
        assert!(Draft::new(1).finish(&label("x")).is_err());
    }
}
