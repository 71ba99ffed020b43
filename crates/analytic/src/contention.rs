//! What several workers lose beyond the time of their all-reduces: communication is never hidden completely, and
//! computing is slower beside it.
//!
//! Published runs show (docs/priors.md, section 1): a part of the backward pass hides nothing; a share of the
//! communication shows even where there is time for all of it; each doubling of devices in a machine and of machines
//! costs some computing speed; every gradient tensor costs host time; Horovod waits for its cycles. Networks that are
//! ideal and all-reduces that were measured have none of these unless the scenario asks for them.

use crate::collectives::Machines;
use crate::liu2022::{self, Mean, Schedule};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::Transport;
use stepcast_core::pass::Pass;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{InputKind, Scenario};
use stepcast_core::strategy::{Architecture, Overlap};

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
    /// Share of the communication that shows although there is time to hide it.
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

    /// The same losses where the steps of workers vary by themselves, which makes stragglers.
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
    pub fn mean(&self, pass: &Pass, update: &Curve, schedule: &Schedule) -> Mean {
        let slowed = self.slowed(pass);
        let mut mean = liu2022::mean(&slowed, update, schedule);
        let beyond = self.beyond(pass, schedule, &mean);
        mean.outcome.update += beyond;
        mean.communication.exposed += beyond;
        mean
    }

    /// The time that a step takes beyond `mean`, the times of `schedule` without contention: communication that
    /// shows, and host time. `pass` is that of a worker that computes alone. A schedule that exposes more, because its
    /// messages are ready late, stays as it is.
    pub fn beyond(&self, pass: &Pass, schedule: &Schedule, mean: &Mean) -> Seconds {
        let tensors = pass.layers.iter().filter(|layer| layer.gradients.get() > 0.0).count();
        let cycle = match schedule {
            Schedule::Horovod { .. } => self.cycle,
            _ => Seconds::ZERO,
        };
        let host = self.tensor * tensors as f64 + cycle;
        if matches!(schedule, Schedule::AtEnd)
            || (self.hideable_backward >= 1.0 && self.always_exposed <= 0.0)
        {
            return host;
        }
        let backward: Seconds = pass.layers.iter().map(|layer| layer.backward).sum();
        let exposed = self.exposed(backward, mean.communication.allreduce);
        host + (exposed - mean.outcome.exposed()).max(Seconds::ZERO)
    }

    /// What shows of all-reduces of the time c = `communication`, of which the share s always shows, and the share h
    /// of the backward pass b can hide them:
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::reached_ring;
    use stepcast_core::scenario::ScenarioFile;

    /// Inputs and results of the formula as fitted to published runs (research/priors/vectors.py).
    const VECTORS: &str = include_str!("../../../research/priors/vectors_allreduce.csv");

    #[derive(serde::Deserialize)]
    #[allow(non_snake_case)]
    struct Vector {
        id: String,
        g: u32,
        N: u32,
        m: u32,
        B: f64,
        T1: f64,
        tensors: u32,
        messages: f64,
        inside: f64,
        gbps: f64,
        nvlink: String,
        no_p2p: String,
        rented: String,
        rdma: String,
        host_mpi: String,
        no_overlap: String,
        real: String,
        horovod: String,
        predicted_s: f64,
    }

    fn scenario(vector: &Vector) -> Scenario {
        let is = |flag: &str| flag == "True";
        let transport = match (is(&vector.rdma), is(&vector.host_mpi)) {
            (_, true) => "host-mpi",
            (true, _) => "rdma",
            _ => "tcp",
        };
        let rule = if is(&vector.horovod) { "horovod" } else { "none" };
        let device = if is(&vector.no_p2p) { "rtx-2080-ti" } else { "tesla-v100-sxm2-16gb" };
        let text = format!(
            "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\nfusion.rule = \"{rule}\"\n\
             [[cluster.workers]]\ncount = {}\ndevice = {{ base = \"{device}\", peer-to-peer = {} }}\n\
             [cluster.network]\nbandwidth = \"{} Gbit/s\"\ntransport = \"{transport}\"\nrented = {}\n\
             [cluster.nodes]\nworkers = {}\nnetwork = {{ bandwidth = \"{} GB/s\", transport = \"{}\" }}\n\
             [input]\ndata = \"{}\"\n",
            vector.g,
            !is(&vector.no_p2p),
            vector.gbps,
            is(&vector.rented),
            vector.m,
            vector.inside,
            if is(&vector.nvlink) { "nvlink" } else { "pcie" },
            if is(&vector.real) { "real" } else { "synthetic" },
        );
        toml::from_str::<ScenarioFile>(&text).unwrap().resolve().unwrap()
    }

    #[test]
    fn the_formula_is_the_one_that_was_fitted() {
        let mut reader = csv::Reader::from_reader(VECTORS.as_bytes());
        for vector in reader.deserialize::<Vector>() {
            let vector = vector.unwrap();
            let scenario = scenario(&vector);
            let machines = Machines::from_cluster(&scenario.cluster);
            if (machines.count - f64::from(vector.N)).abs() > 0.0 {
                // Machines with different numbers of workers.
                continue;
            }
            let contention = Contention::from_scenario(&scenario);
            let (rate, start) = reached_ring(&scenario).unwrap();
            let others = f64::from(vector.g - 1) / f64::from(vector.g);
            let communication =
                Seconds::new(2.0 * others * vector.B * 1e9 / rate.get()) + start * vector.messages;
            let alone = Seconds::new(vector.T1);
            let shown = match vector.no_overlap.as_str() {
                "True" => communication,
                _ => contention.exposed(alone * (2.0 / 3.0), communication),
            };
            let step = alone * (1.0 + contention.slowdown + contention.stragglers)
                + shown
                + contention.tensor * f64::from(vector.tensors)
                + if vector.horovod == "True" { contention.cycle } else { Seconds::ZERO };
            let ratio = step.get() / vector.predicted_s;
            assert!((ratio - 1.0).abs() < 1e-3, "{}: {step} instead of {} s", vector.id, vector.predicted_s);
        }
    }

    #[test]
    fn nothing_is_lost_on_ideal_networks_and_by_measured_all_reduces() {
        let of = |text: &str| {
            let text =
                format!("[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\n{text}");
            Contention::from_scenario(&toml::from_str::<ScenarioFile>(&text).unwrap().resolve().unwrap())
        };
        assert_eq!(of("[cluster.network]\nbase = \"10gbe\"\ntransport = \"ideal\""), Contention::NONE);
        let measured = "[strategy.all-reduce]\nmeasured = [[\"1 MB\", \"9 ms\"], [\"64 MB\", \"500 ms\"]]";
        assert_eq!(of(measured), Contention::NONE);
        assert_ne!(of(&format!("{measured}\noverlap = \"usual\"")), Contention::NONE);
        assert_ne!(of(""), Contention::NONE);
        assert_eq!(of("all-reduce.overlap = \"ideal\""), Contention::NONE);
    }
}
