//! Zeng et al. 2023: iteration time of bulk-synchronous parameter-server training on unequal CPUs and
//! GPUs, from operation counts and bandwidths.
//!
//! [`formulas`] is the paper; [`Zeng2023`] applies it to a scenario and adds, each behind an input whose
//! default leaves the paper unchanged, what the paper names as its error sources (start-up of transfers,
//! copies to the device) and as its future work (several servers, other activations, local SGD).

pub mod formulas;
mod method;

pub use method::Zeng2023;
