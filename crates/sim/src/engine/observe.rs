//! Observers of a run. The engine is compiled for each kind of observer, so one that ignores events takes no time.

/// A station that lanes share.
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

/// Is shown every event of a run.
pub trait Observer {
    /// Whether loads and queues are shown too, which slows the engine down more than the rest.
    const LEVELS: bool = false;

    /// Whether every worker is simulated, even if another one does the same at the same moments.
    const EVERY_WORKER: bool = false;

    /// From `at` on, `share` of a station's capacity is used, by so many customers.
    fn load(&mut self, _of: Shared, _at: f64, _share: f64, _customers: u32) {}

    /// From `at` on, so many operations wait in a lane, the one being served apart.
    fn waiting(&mut self, _lane: u32, _at: f64, _operations: u32) {}

    /// A chunk of an operation was served.
    fn chunk(&mut self, _worker: u32, _op: u32, _lane: u32, _since: f64, _until: f64) {}

    /// Workers negotiated what to send next.
    fn negotiated(&mut self, _since: f64, _until: f64) {}

    /// A worker ended a step, `stale` updates of others having been made since it began.
    fn step(&mut self, _worker: u32, _since: f64, _until: f64, _stale: u64) {}
}

impl<O: Observer> Observer for &mut O {
    const LEVELS: bool = O::LEVELS;
    const EVERY_WORKER: bool = O::EVERY_WORKER;

    fn load(&mut self, of: Shared, at: f64, share: f64, customers: u32) {
        (**self).load(of, at, share, customers);
    }

    fn waiting(&mut self, lane: u32, at: f64, operations: u32) {
        (**self).waiting(lane, at, operations);
    }

    fn chunk(&mut self, worker: u32, op: u32, lane: u32, since: f64, until: f64) {
        (**self).chunk(worker, op, lane, since, until);
    }

    fn negotiated(&mut self, since: f64, until: f64) {
        (**self).negotiated(since, until);
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        (**self).step(worker, since, until, stale);
    }
}

/// Ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blind;

impl Observer for Blind {}

/// One step of one worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRecord {
    /// The worker.
    pub worker: u32,
    /// When it began.
    pub since: f64,
    /// When it ended.
    pub until: f64,
    /// Updates that other workers made in between.
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
    /// The worker.
    pub worker: u32,
    /// The operation.
    pub op: u32,
    /// The lane that served it.
    pub lane: u32,
    /// When it began.
    pub since: f64,
    /// When it ended.
    pub until: f64,
}

/// The load of a station from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadRecord {
    /// The station.
    pub of: Shared,
    /// From when.
    pub at: f64,
    /// Share of the capacity that is used.
    pub share: f64,
    /// Customers that use it.
    pub customers: u32,
}

/// The length of a lane's queue from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueRecord {
    /// The lane.
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
    const EVERY_WORKER: bool = true;

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
