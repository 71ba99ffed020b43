//! The graph of one step: operations on lanes, with dependencies, laid out for speed.
//!
//! Struct of arrays, `u32` ids, successors in compressed rows. All workers run the same graph; what differs
//! between workers and steps is the amount of work, which is not here.

/// Index of an operation in its graph.
pub type OpId = u32;

/// Index of a lane as a worker sees it: "my downlink", "my computing unit".
pub type LocalLane = u16;

#[derive(Debug, Clone, PartialEq)]
pub struct OpSpec {
    pub name: String,
    pub lane: LocalLane,
    pub after: Vec<OpId>,
    /// The lock that it releases at its end.
    pub releases: Option<LocalLane>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error("a step needs at least one operation")]
    Empty,
    #[error("operation \"{name}\" waits for operation {missing}, which does not exist")]
    Dangling { name: String, missing: OpId },
    #[error("operation \"{name}\" is on lane {lane}, which does not exist")]
    NoSuchLane { name: String, lane: LocalLane },
    #[error("operations wait for each other in a circle: {}", .names.join(", "))]
    Cycle {
        /// The first few of them.
        names: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepGraph {
    names: Vec<String>,
    lanes: Vec<LocalLane>,
    /// By operation: the number of its prerequisites.
    waiting: Vec<u32>,
    releases: Vec<Option<LocalLane>>,
    /// By operation: where its successors begin.
    row: Vec<u32>,
    successors: Vec<OpId>,
    sources: Vec<OpId>,
    local_lanes: u16,
    /// By operation, empty without versions: the lane to which it publishes a version, and the lane it subscribes to.
    publishes: Vec<Option<LocalLane>>,
    subscribes: Vec<Option<LocalLane>>,
}

impl StepGraph {
    /// Checks and lays out the operations; `local_lanes` is how many lanes a worker has.
    pub fn new(specs: &[OpSpec], local_lanes: u16) -> Result<Self, GraphError> {
        if specs.is_empty() {
            return Err(GraphError::Empty);
        }
        let mut counts = vec![0u32; specs.len() + 1];
        for spec in specs {
            let lanes = std::iter::once(spec.lane).chain(spec.releases);
            if let Some(lane) = lanes.into_iter().find(|lane| *lane >= local_lanes) {
                return Err(GraphError::NoSuchLane { name: spec.name.clone(), lane });
            }
            for &before in &spec.after {
                let slot = counts.get_mut(before as usize + 1).filter(|_| (before as usize) < specs.len());
                let dangling = || GraphError::Dangling { name: spec.name.clone(), missing: before };
                *slot.ok_or_else(dangling)? += 1;
            }
        }
        for index in 1..counts.len() {
            counts[index] += counts[index - 1];
        }
        let row = counts.clone();
        let mut next = counts;
        let mut successors = vec![0; row[specs.len()] as usize];
        for (index, spec) in specs.iter().enumerate() {
            for &before in &spec.after {
                let slot = &mut next[before as usize];
                successors[*slot as usize] = index as OpId;
                *slot += 1;
            }
        }
        let waiting: Vec<u32> = specs.iter().map(|spec| spec.after.len() as u32).collect();
        let graph = Self {
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            lanes: specs.iter().map(|spec| spec.lane).collect(),
            sources: (0..specs.len() as OpId).filter(|&op| waiting[op as usize] == 0).collect(),
            releases: specs.iter().map(|spec| spec.releases).collect(),
            waiting,
            row,
            successors,
            local_lanes,
            publishes: Vec::new(),
            subscribes: Vec::new(),
        };
        graph.check_cycles()?;
        Ok(graph)
    }

    /// The graph with versions: an operation of `publishing` makes a new version of its lane when it ends, and an
    /// operation of `subscribing` takes no time unless its lane has a version that is new to the worker. Pairs whose
    /// operation or lane does not exist are left out.
    #[must_use]
    pub fn with_versions(
        mut self,
        publishing: &[(OpId, LocalLane)],
        subscribing: &[(OpId, LocalLane)],
    ) -> Self {
        let laid_out = |pairs: &[(OpId, LocalLane)]| {
            let mut by_op = vec![None; self.len()];
            for &(op, lane) in pairs.iter().filter(|(_, lane)| *lane < self.local_lanes) {
                if let Some(slot) = by_op.get_mut(op as usize) {
                    *slot = Some(lane);
                }
            }
            by_op
        };
        (self.publishes, self.subscribes) = (laid_out(publishing), laid_out(subscribing));
        self
    }

    fn check_cycles(&self) -> Result<(), GraphError> {
        let mut waiting = self.waiting.clone();
        let mut ready = self.sources.clone();
        let mut done = 0;
        while let Some(op) = ready.pop() {
            done += 1;
            for &next in self.successors(op) {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    ready.push(next);
                }
            }
        }
        if done == self.len() {
            return Ok(());
        }
        let stuck = (0..self.len()).filter(|&op| waiting[op] > 0).take(5);
        Err(GraphError::Cycle { names: stuck.map(|op| self.names[op].clone()).collect() })
    }

    /// Number of operations.
    #[expect(clippy::len_without_is_empty, reason = "a graph is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    #[inline]
    pub fn local_lanes(&self) -> u16 {
        self.local_lanes
    }

    pub fn name(&self, op: OpId) -> &str {
        &self.names[op as usize]
    }

    #[inline]
    pub fn lane(&self, op: OpId) -> LocalLane {
        self.lanes[op as usize]
    }

    /// Operations that wait for nothing, in order.
    pub fn sources(&self) -> &[OpId] {
        &self.sources
    }

    #[inline]
    pub fn successors(&self, op: OpId) -> &[OpId] {
        &self.successors[self.row[op as usize] as usize..self.row[op as usize + 1] as usize]
    }

    /// By operation: the number of its prerequisites.
    #[inline]
    pub(crate) fn waiting(&self) -> &[u32] {
        &self.waiting
    }

    #[inline]
    pub(crate) fn publishes(&self, op: OpId) -> Option<LocalLane> {
        self.publishes.get(op as usize).copied().flatten()
    }

    #[inline]
    pub(crate) fn subscribes(&self, op: OpId) -> Option<LocalLane> {
        self.subscribes.get(op as usize).copied().flatten()
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        !self.subscribes.is_empty()
    }

    #[inline]
    pub(crate) fn releases(&self, op: OpId) -> Option<LocalLane> {
        self.releases[op as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str, after: &[OpId]) -> OpSpec {
        OpSpec { name: name.to_owned(), lane: 0, after: after.to_vec(), releases: None }
    }

    #[test]
    fn lays_out_successors() {
        let graph = StepGraph::new(&[op("a", &[]), op("b", &[0]), op("c", &[0, 1])], 1).unwrap();
        assert_eq!(graph.successors(0), [1, 2]);
        assert_eq!(graph.successors(1), [2]);
        assert_eq!(graph.sources(), [0]);
    }

    #[test]
    fn refuses_what_cannot_run() {
        assert_eq!(StepGraph::new(&[], 1), Err(GraphError::Empty));
        let cycle = StepGraph::new(&[op("a", &[]), op("b", &[2]), op("c", &[1])], 1).unwrap_err();
        assert_eq!(cycle, GraphError::Cycle { names: vec!["b".into(), "c".into()] });
        let dangling = StepGraph::new(&[op("a", &[7])], 1).unwrap_err();
        assert_eq!(dangling, GraphError::Dangling { name: "a".into(), missing: 7 });
        let lane = StepGraph::new(&[OpSpec { lane: 3, ..op("a", &[]) }], 1).unwrap_err();
        assert_eq!(lane, GraphError::NoSuchLane { name: "a".into(), lane: 3 });
    }
}
