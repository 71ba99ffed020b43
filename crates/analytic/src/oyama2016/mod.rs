//! Oyama et al. 2016: SPRINT, asynchronous training on nodes of several GPUs whose all-reduce overlaps computing.
//!
//! Every node has one GPU thread per GPU and one update thread. All of them loop without waiting for each other,
//! except for mutexes within a node and the all-reduce between update threads. [`Structure`] is the shape of the
//! network (eqs. 2 and 3), [`gradient_time`] the time of its gradient (eqs. 4-6, Table 2), and [`Threads`] holds the
//! coefficients of Tables 3 and 4 with lock waits (eq. 7) and the barrier (eq. 8, [`barrier`]). [`Threads::steady`]
//! solves for the two mutually dependent iteration times and gives minibatch and epoch (eqs. 9 and 10). [`Oyama2016`]
//! applies the model to a scenario.
//!
//! Departures from the printed equations follow section 2 of the errata and are marked where they occur.

pub mod barrier;
mod estimate;
mod kernels;
mod method;
mod steady;
mod structure;
mod threads;

pub use estimate::{Assumed, threads};
pub use kernels::{
    CudaKernel, Estimate, Outside, Product, SgemmKernel, gradient_time, product_time, trilinear,
};
pub use method::Oyama2016;
pub use steady::{Steady, steady_states};
pub use structure::{Layer, Structure, StructureError};
pub use threads::{GPU_PARTS, Threads, Times, UPDATE_PARTS};
