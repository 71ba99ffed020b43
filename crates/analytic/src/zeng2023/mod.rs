//! Zeng et al. 2023: iteration time of bulk-synchronous parameter-server training on unequal CPUs and
//! GPUs, from operation counts and bandwidths.
//!
//! [`formulas`] contains the equations of the paper. [`Zeng2023`] applies them to a scenario and adds what the paper
//! names as sources of error (start-up of transfers, copies to the device) and as future work (several servers, other
//! activations, local SGD). Each addition has its own input, whose default leaves the paper's model unchanged.

pub mod formulas;
mod method;

pub use method::Zeng2023;
