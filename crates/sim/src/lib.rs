//! The event engine: executes step graphs on lanes, pools and links, for any number of workers.
//!
//! No input or output, no clock, no threads, no logging. The same program and seed give the same events.

mod allreduce;
mod coordinate;
mod engine;
mod gather;
mod graph;
mod heap;
mod lane;
pub mod measure;
mod network;
mod observe;
mod pool;
mod program;
mod replay;
mod sample;
pub mod sprint;
mod synthesise;
mod tcp;

pub use allreduce::{AllReduce, Bucket, Interference, Messages, Role};
pub use coordinate::Coordination;
pub use engine::{End, Limits, Outcome, run};
pub use gather::{GatheringSpec, Launch};
pub use graph::{GraphError, LocalLane, OpId, OpSpec, StepGraph};
pub use lane::{Discipline, LaneSpec, Requeue, Station, StreamOrder, Streams};
pub use network::{MAX_PORTS, Route, max_min};
pub use observe::{
    Blind, ChunkRecord, LoadRecord, Observer, QueueRecord, Shared, StepRecord, Steps, Timeline,
};
pub use program::{Coupling, PoolSpec, Program, ProgramError, StepWork};
pub use replay::{LocalLanes, ParseLane, Parsing, Replay, ReplayWorker, TransferOrder, Transport};
pub use synthesise::{jitter_factors, jittered, synthesise};
pub use tcp::TcpSpec;
