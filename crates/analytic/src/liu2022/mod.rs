//! Liu et al. 2022 (doi 10.1145/3485447.3511981): scaling factor of all-reduce training when the exchange of
//! gradients overlaps the backward pass (OSF), with and without fusing gradients into larger messages.
//!
//! [`Pass`] describes the computation of one worker in a step, [`Curve`] the time of an all-reduce as a function of its
//! size, and [`Fusion`] the fusion of gradients into messages. [`osf`] computes the times of a step, and [`plan`]
//! also lists every message, [`mean`] takes the mean over all phases of Horovod's cycles. [`csf`] is the paper's baseline
//! without overlap; [`optimum`] finds the best fusion. [`Liu2022`] applies the model to a scenario, including unequal
//! workers.
//!
//! The paper numbers layers from the input (1) to the output (n). Here they are stored in the order of the backward
//! pass: index 0 is layer n.
//!
//! Departures from the printed equations follow section 4 of the errata and are marked where they occur.

mod run;

pub use run::{mean, optimum, optimum_while, osf, plan};
pub use stepcast_core::pass::{Layer, Pass};

use crate::beyond;
use crate::collectives::{curve, scenario_cost};
use crate::contention::Contention;
use stepcast_core::compute;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{Method, MethodAbout, refuse_if, without_plan};
use stepcast_core::pass::Recorded;
use stepcast_core::prediction::{
    Bottleneck, Communication, GroupReport, Part, PartKind, Prediction, Warning,
};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;
use stepcast_core::strategy::{Architecture, Fusion, Strategy, Synchronisation};

/// Eq. 2: scaling factor if all gradients are sent at once after the backward pass (one δ, errata 4.1); 1 if
/// communication takes no time.
pub fn csf(pass: &Pass, update: &Curve) -> f64 {
    let (computing, communicating) = (pass.computing() + pass.update, update.time(pass.gradients()));
    if communicating > Seconds::ZERO { computing / (computing + communicating) } else { 1.0 }
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flush {
    /// Its first layer, in backward order.
    pub first: usize,
    pub last: usize,
    /// F: size of the gradients of all its layers.
    pub size: Bytes,
    /// When the gradients of the first layer were ready.
    pub since: Seconds,
    /// When the gradients of the last layer were ready.
    pub ready: Seconds,
    /// t_wait: how long it then waited for a layer that came too late or did not fit (eq. 14).
    pub wait: Seconds,
    /// Time for workers to agree on the message, before its all-reduce.
    pub negotiation: Seconds,
    pub start: Seconds,
    pub end: Seconds,
}

impl Flush {
    /// When the message is sent by the rule `fusion` if the network is free: a layer, and the delay after its backward
    /// pass.
    pub fn leaves(&self, fusion: &Fusion) -> (usize, Seconds) {
        let timeout = match fusion {
            Fusion::Buffer { timeout, .. } => *timeout,
            _ => None,
        };
        match timeout.filter(|timeout| self.wait.get().total_cmp(&timeout.get()).is_eq()) {
            Some(timeout) => (self.last, timeout),
            // A buffer that waited, but not until the timeout, waited for a layer that did not fit.
            None => (self.last + usize::from(self.wait > Seconds::ZERO), Seconds::ZERO),
        }
    }
}

/// The times of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// T_comp: forward and backward pass (eqs. 4 and 5).
    pub computing: Seconds,
    /// T_update: time from the first gradients to the end of the last all-reduce (eqs. 9 and 16).
    pub update: Seconds,
    /// T_overlap: the part of T_update during which the backward pass is still running (eq. 10).
    pub overlap: Seconds,
    /// Time of the optimiser, which follows the exchange.
    pub after: Seconds,
}

impl Outcome {
    /// Communication that computing does not hide.
    pub fn exposed(&self) -> Seconds {
        self.update - self.overlap
    }

    /// Duration of the whole step: forward pass, backward pass of layer n, T_update, and the optimiser.
    pub fn iteration(&self) -> Seconds {
        self.computing + self.exposed() + self.after
    }

    /// OSF: computing time divided by the duration of the step (eqs. 3 and 11); 1 if no communication is exposed,
    /// even if nothing is computed.
    pub fn factor(&self) -> f64 {
        if self.exposed() > Seconds::ZERO { (self.computing + self.after) / self.iteration() } else { 1.0 }
    }
}

/// The times of one step and all its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The messages in the order in which they are sent.
    pub flushes: Vec<Flush>,
    pub outcome: Outcome,
}

impl Plan {
    /// Total size of all messages, which equals the size of all gradients.
    pub fn sent(&self) -> Bytes {
        self.flushes.iter().map(|flush| flush.size).sum()
    }

    /// Breakdown of the communication time (section 3.3 and Figures 5 and 7 of the paper), from the first gradients
    /// to the end of the last all-reduce.
    pub fn communication(&self) -> Communication {
        let mut parts = Communication { exposed: self.outcome.exposed(), ..Communication::default() };
        let mut free = Seconds::ZERO;
        for flush in &self.flushes {
            let idle = flush.start - flush.negotiation - free;
            let waiting = idle.min(flush.start - flush.negotiation - flush.since).max(Seconds::ZERO);
            parts.wait += waiting;
            // Rounding can make differences of equal times negative.
            parts.misc += (idle - waiting).max(Seconds::ZERO);
            parts.negotiate += flush.negotiation;
            parts.allreduce += flush.end - flush.start;
            free = flush.end;
        }
        parts.misc += (self.outcome.update - free).max(Seconds::ZERO);
        parts
    }
}

/// The times of a mean step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    pub outcome: Outcome,
    pub communication: Communication,
}

impl Mean {
    fn from_plan(plan: &Plan) -> Self {
        Self { outcome: plan.outcome, communication: plan.communication() }
    }

    fn plus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    fn times(&self, factor: f64) -> Self {
        self.with(self, |a, _| a * factor)
    }

    fn with(&self, other: &Self, both: impl Fn(Seconds, Seconds) -> Seconds) -> Self {
        let (a, b) = (&self.outcome, &other.outcome);
        let (c, d) = (&self.communication, &other.communication);
        Self {
            outcome: Outcome {
                computing: both(a.computing, b.computing),
                update: both(a.update, b.update),
                overlap: both(a.overlap, b.overlap),
                after: both(a.after, b.after),
            },
            communication: Communication {
                negotiate: both(c.negotiate, d.negotiate),
                wait: both(c.wait, d.wait),
                allreduce: both(c.allreduce, d.allreduce),
                misc: both(c.misc, d.misc),
                exposed: both(c.exposed, d.exposed),
            },
        }
    }
}

/// Liu 2022: bulk-synchronous all-reduce that overlaps the backward pass.
///
/// Extensions beyond the paper: computing times come from a profile, or from [`Speed`], which adds the work per
/// weight to the operations; any fusion rule and all-reduce algorithm can be used; all-reduces run at the rate of the
/// slowest port; every algorithm step costs the latency and start-up of the network; copies on the hosts do not
/// overlap the transfer on the wire; workers may differ, in which case every all-reduce waits for the slowest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Liu2022;

impl Method for Liu2022 {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "liu2022",
            summary: "bulk-synchronous all-reduce, gradients fused and sent while computing",
            source: "Liu et al. 2022, doi 10.1145/3485447.3511981",
        }
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        let beyond = [beyond::speed, beyond::reached, beyond::losses];
        beyond.iter().filter_map(|one| one(scenario)).collect()
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        let who = "Liu 2022";
        let Strategy { architecture, synchronisation, exchange, .. } = &scenario.strategy;
        without_plan(who, scenario)?;
        refuse_if(
            *architecture != Architecture::AllReduce,
            who,
            "strategy.architecture",
            "models all-reduce only",
            || [Remedy::set("strategy.architecture", "all-reduce"), Remedy::method("layerwise")],
        )?;
        let reason = match synchronisation {
            Synchronisation::LocalSgd(_) => "does not model local SGD",
            _ => "does not model asynchronous training",
        };
        refuse_if(*synchronisation != Synchronisation::Bsp, who, "strategy.synchronisation", reason, || {
            Remedy::set("strategy.synchronisation", "bsp")
        })?;
        let reason = "has one all-reduce at a time";
        refuse_if(exchange.channels > 1, who, "strategy.all-reduce.channels", reason, || {
            [Remedy::set("strategy.all-reduce.channels", "1"), Remedy::method("simulate")]
        })?;
        let reason = "does not model that communication slows computing down";
        refuse_if(exchange.interference > 0.0, who, "strategy.all-reduce.interference", reason, || {
            [Remedy::set("strategy.all-reduce.interference", "0"), Remedy::method("simulate")]
        })?;
        let reason = "does not model copies of gradients";
        refuse_if(exchange.copy_rate.is_some(), who, "strategy.all-reduce.copy-rate", reason, || {
            [Remedy::advice("remove it"), Remedy::method("simulate")]
        })
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        let passes =
            passes(scenario).map_err(|fault| Fault::in_key("model.profile", fault.reason, fault.remedy))?;
        let Some(pass) = Pass::slowest(&passes) else {
            return Err(Fault::in_key(
                "cluster.workers",
                "Liu 2022 needs workers, and there are none",
                "add a group of workers",
            ));
        };
        let update = curve(scenario);
        let rule = rule(scenario, &scenario.strategy.exchange.fusion);
        let contention = Contention::from_scenario(scenario);
        let plan = plan(&contention.slowed(&pass), &update, &rule);
        let Mean { outcome, communication } = contention.mean(&pass, &update, &rule);

        let end = |(delay, pass): &(Seconds, Pass)| *delay + pass.computing();
        let copying = passes
            .iter()
            .max_by(|a, b| end(a).get().total_cmp(&end(b).get()))
            .map_or(Seconds::ZERO, |(delay, _)| *delay);
        let slowdown = outcome.computing + outcome.after - pass.computing() - pass.update;
        let breakdown = vec![
            Part { kind: PartKind::Compute, time: pass.computing() - copying + pass.update },
            Part { kind: PartKind::HostToDevice, time: copying },
            Part { kind: PartKind::Slowdown, time: slowdown },
            Part { kind: PartKind::ExposedCommunication, time: outcome.exposed() },
        ];
        let bottleneck = if pass.computing() >= outcome.exposed() + slowdown {
            Bottleneck::Compute
        } else {
            network_bottleneck(scenario, plan.flushes.len(), plan.sent())
        };
        let report = |(index, (delay, pass)): (usize, &(Seconds, Pass))| GroupReport {
            group: index,
            count: scenario.cluster.groups[index].count,
            batch: scenario.samples(index),
            compute: *delay + pass.computing() + pass.update,
            ready: *delay + pass.forward + pass.layers.first().map_or(Seconds::ZERO, |layer| layer.backward),
            slack: None,
        };
        let groups = passes.iter().enumerate().map(report).collect();
        Ok(Prediction {
            warnings: assumptions(scenario, &update, &plan.flushes),
            csf: Some(csf(&pass, &update)),
            communication: Some(communication),
            ..Prediction::new(self.name(), outcome.iteration(), groups, breakdown, bottleneck)
        })
    }
}

/// Warnings about assumed device efficiencies and about message sizes outside the measured range.
pub fn assumptions(scenario: &Scenario, update: &Curve, flushes: &[Flush]) -> Vec<Warning> {
    let mut warnings = match scenario.profile() {
        Some(_) => Vec::new(),
        None => compute::assumptions(scenario),
    };
    let beyond = |size: Bytes, [least, most]: [Bytes; 2]| size < least || size > most;
    if let Some(measured) = update.measured() {
        let sizes = flushes.iter().map(|flush| flush.size);
        if let Some(size) = sizes.filter(|size| beyond(*size, measured)).reduce(Bytes::max) {
            let [least, most] = measured.map(Bytes::human);
            let message = format!(
                "all-reduces of {least} to {most} were measured: the time of messages such as one of {} is extrapolated",
                size.human()
            );
            warnings.push(Warning { code: compute::EXTRAPOLATED, message });
        }
    }
    warnings
}

/// Start delay and mean computing pass of a worker of each group.
pub fn passes(scenario: &Scenario) -> Result<Vec<(Seconds, Pass)>, Fault> {
    let recorded = scenario.profile().map(Recorded::new).transpose()?;
    let pass = |index: usize| {
        let (copying, pass) = match &recorded {
            Some(recorded) => {
                let share = scenario.strategy.exchange.gradients.share();
                (Seconds::ZERO, recorded.mean(scenario.slowness(index)).compressed(share))
            }
            None => {
                let speed = Speed::of_group(scenario, index);
                let pass = Pass::by_tensor(&scenario.workload, &speed, |tensor| scenario.summed(tensor));
                (compute::host_to_device(scenario, index), pass)
            }
        };
        let waiting = compute::input_wait(scenario, index, copying + pass.computing() + pass.update);
        let batches = scenario.strategy.accumulation;
        ((copying + waiting) * f64::from(batches), pass.accumulated(batches))
    };
    Ok((0..scenario.cluster.groups.len()).map(pass).collect())
}

/// The rule with the time that the workers of a scenario take to agree.
pub fn rule(scenario: &Scenario, fusion: &Fusion) -> Fusion {
    match *fusion {
        Fusion::Horovod { threshold, cycle, .. } => {
            Fusion::Horovod { threshold, cycle, negotiation: negotiation(scenario) }
        }
        _ => fusion.clone(),
    }
}

/// Time to agree on the gradients that are ready on all workers: a few bytes to one worker and back, along a tree.
fn negotiation(scenario: &Scenario) -> Seconds {
    let network = &scenario.cluster.network;
    let workers = scenario.cluster.workers().max(1);
    (network.latency + network.startup) * (2.0 * (workers as f64).log2().ceil())
}

/// The resource that takes most of the time of `messages` messages with a total of `size` bytes.
fn network_bottleneck(scenario: &Scenario, messages: usize, size: Bytes) -> Bottleneck {
    let whole = scenario_cost(scenario, size);
    let host = match scenario.cluster.network.host_rate {
        Some(rate) => {
            let wire =
                scenario.cluster.network.bandwidth.to_bytes_per_sec() * scenario.cluster.network.efficiency;
            whole.transfer * (wire.get() / (wire.get() + rate.get()))
        }
        None => Seconds::ZERO,
    };
    let fixed = curve(scenario).startup() * messages as f64;
    if fixed >= whole.transfer {
        Bottleneck::FixedCost
    } else if host > whole.transfer - host {
        Bottleneck::HostCopy
    } else {
        Bottleneck::WorkerLink
    }
}
