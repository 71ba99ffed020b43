//! What makes programs. There is one road, whatever is trained and wherever its times come from:
//!
//! 1. **Work.** Steps of one worker, one list for each kind of worker: a recorded profile
//!    ([`Profile`](stepcast_core::profile::Profile)), steps made from a model's layers ([`synthesise`]), or the passes of
//!    all-reduce training ([`Pass`](stepcast_core::pass::Pass), which `core::pass::Recorded` takes from a profile).
//! 2. **Step graph.** The operations of a step and what they wait for, on local lanes ("my computing unit", "my downlink"):
//!    a [`StepGraph`](crate::StepGraph), the same for all workers.
//! 3. **Lanes and stations.** How each lane serves its queue, and what serves the lane: a rate of its own, a pool, links,
//!    TCP connections, a rendezvous of all workers.
//! 4. **Program.** [`Program::new`](crate::Program::new) with graph and steps, `add_lane` and `add_worker`.
//!
//! Each builder is a struct of inputs with a method `program`, which goes through 2 to 4:
//! [`Replay`](replay::Replay) for parameter servers, [`AllReduce`](allreduce::AllReduce), [`Sprint`](sprint::Sprint).
//!
//! Another kind of training is another builder beside these. A pipeline would be a graph of micro-batches with one kind of
//! worker for each stage, and activations as transfers over links; a dependency between operations of *different* workers
//! is something that graphs do not have yet. Sharded data parallelism would be a graph like that of all-reduce, with
//! an all-gather before every layer's passes and a reduce-scatter after its backward pass, each a message of a rendezvous.

pub(crate) mod allreduce;
pub(crate) mod replay;
pub mod sprint;
pub(crate) mod synthesise;
