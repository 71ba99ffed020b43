//! Looking on while the engine runs. Observers cost nothing where they do nothing.

/// What lanes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    /// An equally shared pool.
    Pool(u32),
    /// A port that links cross.
    Port(u32),
    /// All TCP connections of one direction.
    Tcp {
        /// To the server, or from it.
        up: bool,
    },
}

/// Is told what happens.
pub trait Observer {
    /// Whether it wants to be told about loads and queues, which takes the engine more than the rest.
    const LEVELS: bool = false;

    /// From `at` on, `share` of a capacity is used, by so many at once.
    fn load(&mut self, _of: Shared, _at: f64, _share: f64, _customers: u32) {}

    /// From `at` on, so many operations wait in a lane, the one being served apart.
    fn waiting(&mut self, _lane: u32, _at: f64, _operations: u32) {}

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

/// A level that holds from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadRecord {
    /// Of what.
    pub of: Shared,
    /// From when.
    pub at: f64,
    /// Share of the capacity that is used.
    pub share: f64,
    /// By how many.
    pub customers: u32,
}

/// The length of a lane's queue from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueRecord {
    /// Whose.
    pub lane: u32,
    /// From when.
    pub at: f64,
    /// Operations that wait.
    pub operations: u32,
}

/// Keeps all steps, chunks and levels: a timeline.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The steps.
    pub steps: Steps,
    /// The chunks, in the order in which they end.
    pub chunks: Vec<ChunkRecord>,
    /// Loads, in order of time for each; of several at one moment the last holds.
    pub loads: Vec<LoadRecord>,
    /// Queues, likewise.
    pub queues: Vec<QueueRecord>,
}

impl Observer for Timeline {
    const LEVELS: bool = true;

    fn load(&mut self, of: Shared, at: f64, share: f64, customers: u32) {
        self.loads.push(LoadRecord { of, at, share, customers });
    }

    fn waiting(&mut self, lane: u32, at: f64, operations: u32) {
        self.queues.push(QueueRecord { lane, at, operations });
    }

    fn chunk(&mut self, worker: u32, op: u32, lane: u32, since: f64, until: f64) {
        self.chunks.push(ChunkRecord { worker, op, lane, since, until });
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.steps.step(worker, since, until, stale);
    }
}
