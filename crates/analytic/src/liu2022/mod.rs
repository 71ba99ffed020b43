//! Liu et al. 2022 (doi 10.1145/3485447.3511981): scaling factor of all-reduce training when the exchange of
//! gradients overlaps the backward pass (OSF), with and without fusing gradients into larger messages.
//!
//! [`Pass`] describes the computation of one worker in a step, [`Curve`] the time of an all-reduce as a function of its
//! size, and [`Schedule`] the fusion of gradients into messages. [`osf`] computes the times of a step, and [`plan`]
//! also lists every message, [`mean`] takes the mean over all phases of Horovod's cycles. [`csf`] is the paper's baseline
//! without overlap; [`optimum`] finds the best fusion. [`Liu2022`] applies the model to a scenario, including unequal
//! workers.
//!
//! The paper numbers layers from the input (1) to the output (n). Here they are stored in the order of the backward
//! pass: index 0 is layer n.
//!
//! Departures from the printed equations follow section 4 of the errata and are marked where they occur.

mod method;
mod run;
mod schedule;

pub use method::{Liu2022, assumptions, passes, schedule};
pub use run::{mean, optimum, optimum_while, osf, plan};
pub use schedule::{Buffer, Flush, Mean, Outcome, Plan, Schedule};
pub use stepcast_core::pass::{Layer, Pass};

use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::Seconds;

/// Eq. 2: scaling factor if all gradients are sent at once after the backward pass (one δ, errata 4.1); 1 if
/// communication takes no time.
pub fn csf(pass: &Pass, update: &Curve) -> f64 {
    let (computing, communicating) = (pass.computing() + pass.update, update.time(pass.gradients()));
    if communicating > Seconds::ZERO { computing / (computing + communicating) } else { 1.0 }
}
