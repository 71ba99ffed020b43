//! The event engine: executes step graphs on lanes, pools and links, for any number of workers.
//!
//! `programs` turns profiles, models and published algorithms into a [`Program`]: a [`StepGraph`], the lanes and stations
//! that serve it, and the work of every operation. `engine` runs it.
//!
//! No input or output, no clock, no threads, no logging. The same program and seed give the same events.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod engine;
mod graph;
mod program;
mod programs;

pub use engine::lane::{Discipline, LaneSpec, Requeue, Station, StreamOrder, Streams};
pub use engine::observe::{
    Blind, ChunkRecord, LoadRecord, Observer, QueueRecord, Shared, StepRecord, Steps, Timeline, Window,
};
pub use engine::rendezvous::{Launch, RendezvousSpec};
pub use engine::stations::links::{Route, max_min};
pub use engine::stations::tcp::TcpSpec;
pub use engine::{End, Limits, Outcome, Run, run, run_steps};
pub use graph::{GraphError, LocalLane, OpId, OpSpec, StepGraph};
pub use program::{Coupling, LaneSpread, PoolSpec, Program, ProgramError, StepWork};
pub use programs::allreduce::{AllReduce, Bucket, Interference, Messages, Role};
pub use programs::pipeline;
pub use programs::replay::{LinkSharing, LocalLanes, ParseLane, Parsing, Replay, ReplayWorker};
pub use programs::sprint;
pub use programs::synthesise::{jitter_factors, jittered, most_steps, synthesise};
