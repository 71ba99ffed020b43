//! Oyama et al. 2016: SPRINT, asynchronous training on nodes of several GPUs that all-reduce beside computing.
//!
//! Every node has a GPU thread for each GPU and one update thread; all loop without waiting for each other, but for
//! mutexes within a node and the all-reduce between update threads. [`Structure`] is the network's shape (eqs. 2 and
//! 3), [`gradient_time`] what its gradient takes (eqs. 4-6, Table 2), [`Threads`] the coefficients of Tables 3 and 4
//! with lock waits (eq. 7) and the barrier (eq. 8, [`barrier`]); [`Threads::steady`] solves for the two iteration times
//! that depend on each other and gives minibatch and epoch (eqs. 9 and 10). [`Oyama2016`] applies it to a scenario.
//!
//! Where the code departs from print it follows the errata, section 2, named at the place.

pub mod barrier;
mod estimate;
mod kernels;
mod method;
mod sgemm;
mod steady;
mod structure;
mod threads;

pub use estimate::{Assumed, threads};
pub use kernels::{CudaKernel, Outside, Product, SgemmKernel, gradient_time};
pub use method::Oyama2016;
pub use sgemm::{Estimate, Operands, product_time, trilinear};
pub use steady::{Steady, steady_states};
pub use structure::{Layer, Structure, StructureError};
pub use threads::{GPU_PARTS, Threads, Times, UPDATE_PARTS};
