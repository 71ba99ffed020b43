//! Builders of programs. All kinds of training and sources of times follow the same steps:
//!
//! 1. **Work.** Steps of one worker, one list for each kind of worker: a recorded profile
//!    ([`Profile`](stepcast_core::profile::Profile)), steps made from a model's layers ([`synthesise`]), or the passes of
//!    all-reduce training ([`Pass`](stepcast_core::pass::Pass), which `core::pass::Recorded` takes from a profile).
//! 2. **Step graph.** The operations of a step and their dependencies, on local lanes ("my computing unit", "my downlink"):
//!    a [`StepGraph`](crate::StepGraph), the same for all workers.
//! 3. **Lanes and stations.** How each lane serves its queue, and the station that serves the lane: a rate of its own, a pool, links,
//!    TCP connections, a rendezvous of all workers.
//! 4. **Program.** [`Program::new`](crate::Program::new) with graph and steps, `add_lane` and `add_worker`.
//!
//! Each builder is a struct of inputs with a method that goes through 2 to 4: [`Replay`](replay::Replay) for parameter
//! servers, [`AllReduce`](allreduce::AllReduce), [`Sprint`](sprint::Sprint), [`Pipeline`](pipeline::Pipeline) for split
//! transformers. Another kind of training is another builder beside these.
//!
//! Graphs have no dependencies between operations of *different* workers. Where stages of a pipeline wait for each other,
//! a worker is therefore a whole replica, with lanes for each of its stages.

pub(crate) mod allreduce;
pub mod pipeline;
pub(crate) mod replay;
pub mod sprint;
pub(crate) mod synthesise;
