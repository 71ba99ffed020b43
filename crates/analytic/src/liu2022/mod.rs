//! Liu et al. 2022 (doi 10.1145/3485447.3511981): scaling factor of all-reduce training when the exchange of
//! gradients overlaps the backward pass (OSF), with and without fusing gradients into larger messages.
//!
//! [`Pass`] is what one worker computes in a step; [`Curve`] what an all-reduce takes by its size; [`Schedule`] which
//! gradients travel together. [`osf`] gives the times, [`plan`] every message with them; [`sf`] and [`csf`] are the
//! paper's definition and the baseline without overlap; [`optimum`] is the best way to fuse. [`Liu2022`] applies it to a
//! scenario, unequal workers included.
//!
//! The paper counts layers from the input, 1, to the output, n. Here they stand in the order of the backward pass:
//! index 0 is layer n.
//!
//! Where the code departs from print it follows the errata, section 4, named at the place.

mod method;
mod optimum;
mod run;
mod schedule;

pub use method::{Liu2022, assumptions, passes, schedule};
pub use optimum::optimum;
pub use run::{osf, plan};
pub use schedule::{Buffer, Flush, Outcome, Plan, Reading, Schedule};
pub use stepcast_core::pass::{Layer, Pass};

use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::Seconds;

/// Eq. 1: time of one worker against N times that of N workers for the same job.
pub fn sf(one: Seconds, many: Seconds, workers: u32) -> f64 {
    one / (many * f64::from(workers))
}

/// Eq. 2: scaling factor where all gradients travel at once after the backward pass (one δ, errata 4.1); 1 where that
/// takes no time.
pub fn csf(pass: &Pass, update: &Curve) -> f64 {
    let (computing, communicating) = (pass.computing(), update.time(pass.gradients()));
    if communicating > Seconds::ZERO { computing / (computing + communicating) } else { 1.0 }
}
