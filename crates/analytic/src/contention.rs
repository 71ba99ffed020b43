//! Losses of several workers beyond the time of their all-reduces: communication is never hidden completely, and
//! computing is slower beside it.
//!
//! Published runs show (docs/priors.md, section 1): a part of the backward pass hides nothing; a share of the
//! communication stays exposed even where there is time for all of it; each doubling of devices in a machine and of machines
//! costs some computing speed; every gradient tensor costs host time; Horovod waits for its cycles. Networks that are
//! ideal and all-reduces that were measured have none of these unless the scenario asks for them.

use crate::collectives::Machines;
use crate::liu2022::{self, Mean};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::Transport;
use stepcast_core::pass::Pass;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{InputKind, Scenario};
use stepcast_core::strategy::{Architecture, Fusion, Overlap};

/// Softness of the corner between hidden and exposed communication, as a share of what can hide.
const SOFTNESS: f64 = 0.4;

/// The losses of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contention {
    /// Share of the computing time that is lost inside a machine.
    slowdown: f64,
    /// Share of the computing time that is lost to the slowest of several machines.
    stragglers: f64,
    /// Host time of one gradient tensor.
    tensor: Seconds,
    /// Share of the backward pass that can hide communication.
    hideable_backward: f64,
    /// Share of the communication that stays exposed although there is time to hide it.
    always_exposed: f64,
    /// Wait for the cycles of Horovod, where that sends gradients.
    cycle: Seconds,
}

impl Contention {
    /// Workers that lose nothing.
    pub const NONE: Self = Self {
        slowdown: 0.0,
        stragglers: 0.0,
        tensor: Seconds::ZERO,
        hideable_backward: 1.0,
        always_exposed: 0.0,
        cycle: Seconds::ZERO,
    };

    /// The losses of `scenario`, which are none for one worker.
    pub fn from_scenario(scenario: &Scenario) -> Self {
        let cluster = &scenario.cluster;
        let exchange = &scenario.strategy.exchange;
        let measured = exchange.curve.is_some() || cluster.network.transport == Transport::Ideal;
        let overlap = exchange.overlap.unwrap_or(if measured { Overlap::Ideal } else { Overlap::Usual });
        let alone = cluster.workers() <= 1 || scenario.strategy.architecture == Architecture::StandAlone;
        if alone || overlap == Overlap::Ideal {
            return Self::NONE;
        }
        let priors = &scenario.priors.all_reduce;
        let machines = Machines::from_cluster(cluster);
        let within_machine = machines.count <= 1.0 && !cluster.network.transport.sums_on_host();
        let reading = match scenario.input.data {
            InputKind::Real => priors.loss_per_doubling_real_data,
            InputKind::Synthetic => 0.0,
        };
        Self {
            slowdown: (priors.loss_per_gpu_doubling + reading) * machines.workers.log2(),
            stragglers: priors.loss_per_machine_doubling * machines.count.log2(),
            tensor: priors.tensor,
            hideable_backward: priors.hideable_backward.min(1.0),
            always_exposed: if within_machine {
                priors.exposed_intra_node
            } else {
                priors.exposed_inter_node
            },
            cycle: priors.cycle * (cluster.workers() as f64).log2(),
        }
    }

    /// The losses without stragglers, for workers whose steps vary explicitly and so produce them.
    #[must_use]
    pub fn of_varying_steps(self) -> Self {
        Self { stragglers: 0.0, ..self }
    }

    /// The mean losses where gradients are exchanged in one of `period` steps.
    #[must_use]
    pub fn once_in(self, period: u32) -> Self {
        let share = 1.0 / f64::from(period.max(1));
        Self { slowdown: self.slowdown * share, stragglers: self.stragglers * share, ..self }
    }

    /// The pass of a worker that computes beside others.
    #[must_use]
    pub fn slowed(&self, pass: &Pass) -> Pass {
        let lost = self.slowdown + self.stragglers;
        if lost > 0.0 { pass.scaled(1.0 + lost, Seconds::ZERO) } else { pass.clone() }
    }

    /// The times of a mean step of a worker that computes `pass` when it is alone.
    pub fn mean(&self, pass: &Pass, update: &Curve, fusion: &Fusion) -> Mean {
        let slowed = self.slowed(pass);
        let mut mean = liu2022::mean(&slowed, update, fusion);
        let beyond = self.beyond(pass, fusion, &mean);
        mean.outcome.update += beyond;
        mean.communication.exposed += beyond;
        mean
    }

    /// The time that a step takes beyond `mean`, the times of the rule `fusion` without contention: exposed
    /// communication, and host time. `pass` is that of a worker that computes alone. A rule that exposes more, because its
    /// messages are ready late, stays as it is.
    pub fn beyond(&self, pass: &Pass, fusion: &Fusion, mean: &Mean) -> Seconds {
        let tensors = pass.layers.iter().filter(|layer| layer.gradients.get() > 0.0).count();
        let cycle = match fusion {
            Fusion::Horovod { .. } => self.cycle,
            _ => Seconds::ZERO,
        };
        let host = self.tensor * tensors as f64 + cycle;
        if matches!(fusion, Fusion::All) || (self.hideable_backward >= 1.0 && self.always_exposed <= 0.0) {
            return host;
        }
        let backward: Seconds = pass.layers.iter().map(|layer| layer.backward).sum();
        let exposed = self.exposed(backward, mean.communication.allreduce);
        host + (exposed - mean.outcome.exposed()).max(Seconds::ZERO)
    }

    /// Exposed time of all-reduces that take c = `communication`. The share s is always exposed; the share h of the
    /// backward pass b can hide the rest:
    ///
    /// ```text
    /// exposed = s c + σ ln(1 + exp((c - h b - s c) / σ))       σ = 0.4 h b, a soft max(s c, c - h b)
    /// ```
    fn exposed(&self, backward: Seconds, communication: Seconds) -> Seconds {
        let hidden = backward * self.hideable_backward;
        let soft = hidden * SOFTNESS;
        if soft <= Seconds::ZERO {
            return communication;
        }
        let least = communication * self.always_exposed;
        least + soft * softplus((communication - hidden - least) / soft)
    }
}

/// ln(1 + eˣ), without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
