//! The event engine: executes step graphs on lanes, pools and links, for any number of workers.
//!
//! No input or output, no clock, no threads, no logging. The same program and seed give the same events.

mod coordinate;
mod engine;
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

pub use coordinate::Coordination;
pub use engine::{End, Limits, Outcome, run};
pub use graph::{GraphError, LocalLane, OpId, OpSpec, StepGraph};
pub use lane::{Discipline, LaneSpec, Requeue, Station, StreamOrder, Streams};
pub use network::{MAX_PORTS, Route, max_min};
pub use observe::{Blind, ChunkRecord, Observer, StepRecord, Steps, Timeline};
pub use program::{PoolSpec, Program, ProgramError, StepWork};
pub use replay::{LocalLanes, ParseLane, Parsing, Replay, ReplayWorker, TransferOrder, Transport};
pub use synthesise::{jittered, synthesise};
pub use tcp::TcpSpec;
