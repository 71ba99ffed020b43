//! Looking on while the engine runs. Observers cost nothing where they do nothing.

/// Is told what happens.
pub trait Observer {
    /// A chunk of an operation was served.
    fn chunk(&mut self, _worker: u32, _op: u32, _lane: u32, _since: f64, _until: f64) {}

    /// Workers agreed on what to send next.
    fn agreed(&mut self, _since: f64, _until: f64) {}

    /// A worker ended a step, `stale` updates of others having been made since it began.
    fn step(&mut self, _worker: u32, _since: f64, _until: f64, _stale: u64) {}
}

/// Looks at nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blind;

impl Observer for Blind {}

/// One step of one worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRecord {
    /// Whose.
    pub worker: u32,
    /// When it began.
    pub since: f64,
    /// When it ended.
    pub until: f64,
    /// Updates of others in between.
    pub stale: u64,
}

/// Keeps all steps, in the order in which they end.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// The steps.
    pub records: Vec<StepRecord>,
}

impl Observer for Steps {
    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.records.push(StepRecord { worker, since, until, stale });
    }
}

/// One served chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkRecord {
    /// Whose.
    pub worker: u32,
    /// Of which operation.
    pub op: u32,
    /// On which lane.
    pub lane: u32,
    /// From when.
    pub since: f64,
    /// Until when.
    pub until: f64,
}

/// Keeps all steps and all chunks: a timeline.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The steps.
    pub steps: Steps,
    /// The chunks, in the order in which they end.
    pub chunks: Vec<ChunkRecord>,
}

impl Observer for Timeline {
    fn chunk(&mut self, worker: u32, op: u32, lane: u32, since: f64, until: f64) {
        self.chunks.push(ChunkRecord { worker, op, lane, since, until });
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.steps.step(worker, since, until, stale);
    }
}
