//! Oyama et al. 2016: SPRINT, asynchronous training on nodes of several GPUs whose all-reduce overlaps computing.
//!
//! Every node has one GPU thread per GPU and one update thread. All of them loop without waiting for each other,
//! except for mutexes within a node and the all-reduce between update threads. [`Structure`] is the shape of the
//! network (eqs. 2 and 3), [`gradient_time`] the time of its gradient (eqs. 4-6, Table 2), and [`Threads`] holds the
//! coefficients of Tables 3 and 4 with lock waits (eq. 7) and the barrier (eq. 8, [`buffers_waited_for`]). [`Threads::steady`]
//! solves for the two mutually dependent iteration times and gives minibatch and epoch (eqs. 9 and 10). [`Oyama2016`]
//! applies the model to a scenario.
//!
//! Departures from the printed equations follow section 2 of the errata and are marked where they occur.

mod estimate;
mod kernels;
mod steady;
mod structure;
mod threads;

pub use estimate::{Assumed, threads};
pub use kernels::{
    Estimate, GradientTime, Outside, Product, SgemmKernel, gradient_time, on_grid, product_time, trilinear,
};
use steady::SHORT;
pub use steady::{Steady, steady_states};
use stepcast_core::compute;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::machine::WorkerGroup;
use stepcast_core::method::{Method, MethodAbout, refuse_if, without_plan};
use stepcast_core::prediction::{Bottleneck, GroupReport, Prediction, Updating, Warning};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};
pub use structure::{Layer, Structure, StructureError};
pub use threads::{GPU_PARTS, Threads, Times, UPDATE_PARTS, buffers_waited_for, most_buffers};

/// Oyama 2016: nodes of several GPUs that compute without waiting while update threads run the all-reduce.
///
/// The iteration is that of a GPU thread, which alone determines the throughput (eq. 10). The update threads,
/// reported in `updating`, determine the minibatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oyama2016;

impl Method for Oyama2016 {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "oyama2016",
            summary: "asynchronous all-reduce beside computing, on nodes of several GPUs; average minibatch",
            source: "Oyama et al. 2016 (SPRINT), in Japanese",
        }
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        let who = "Oyama 2016";
        let (cluster, strategy) = (&scenario.cluster, &scenario.strategy);
        without_plan(who, scenario)?;
        refuse_if(
            scenario.profile().is_some(),
            who,
            "model.profile",
            "needs a model, and a profile has none",
            || [Remedy::method("simulate"), Remedy::advice("name a model with `zoo`")],
        )?;
        let other = strategy.architecture != Architecture::AllReduce;
        refuse_if(other, who, "strategy.architecture", "models all-reduce only", || {
            [Remedy::set("strategy.architecture", "all-reduce"), Remedy::method("simulate")]
        })?;
        let other = strategy.synchronisation != Synchronisation::Async;
        refuse_if(other, who, "strategy.synchronisation", "models asynchronous training only", || {
            [Remedy::set("strategy.synchronisation", "async"), Remedy::method("liu2022")]
        })?;
        let through_servers = scenario.methods.oyama2016.through_servers;
        refuse_if(
            through_servers,
            who,
            "methods.oyama2016.through-servers",
            "has no parameter servers",
            || [Remedy::advice("remove it"), Remedy::method("simulate")],
        )?;
        refuse_if(
            !are_alike(scenario),
            who,
            "cluster.workers",
            "models workers that are all alike",
            || "keep one group of workers, or groups that differ in nothing but their counts",
        )?;
        let (workers, per_node) = (cluster.workers(), u64::from(cluster.workers_per_node()));
        let partly_filled = workers > per_node && !workers.is_multiple_of(per_node);
        let reason = format!("models full nodes, and {per_node} does not divide {workers}");
        refuse_if(
            partly_filled,
            who,
            "cluster.nodes.workers",
            &reason,
            || "use a number of workers that fills every node",
        )
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        let (threads, assumed) = threads(scenario)?;
        let steady = threads.steady().ok_or_else(|| {
            Fault::in_key(
                "methods.oyama2016",
                "Oyama 2016 finds no steady state: a thread takes no time, or too much to count",
                "give the threads times such as \"1 ns\" for each parameter",
            )
        })?;
        let computing = threads.load_images + threads.deform_images + threads.compute;
        let report = |(index, group): (usize, &WorkerGroup)| GroupReport {
            group: index,
            count: group.count,
            batch: threads.batch,
            compute: computing,
            ready: Seconds::ZERO,
            // No worker waits for another, so a slower worker always lowers the throughput.
            slack: Some(0.0),
        };
        let groups = scenario.cluster.groups.iter().enumerate().map(report).collect();
        let bottleneck =
            if computing * 2.0 >= steady.gpu { Bottleneck::Compute } else { Bottleneck::HostCopy };
        let breakdown = steady.times.gpu_parts();
        let updating = Updating {
            iteration: steady.update,
            breakdown: steady.times.update_parts(),
            minibatch: steady.minibatch,
            minibatch_spread: steady.minibatch_spread(&threads),
            staleness: steady.staleness,
            kernels: assumed.gradient.kernels.clone(),
        };
        Ok(Prediction {
            warnings: warnings(scenario, &assumed, &steady),
            updating: Some(Box::new(updating)),
            ..Prediction::new(self.name(), steady.gpu, groups, breakdown, bottleneck)
        })
    }
}

/// Whether groups of workers differ in nothing but their counts and prices.
fn are_alike(scenario: &Scenario) -> bool {
    let [first, others @ ..] = &scenario.cluster.groups[..] else { return false };
    let alike = |(index, group): (usize, &WorkerGroup)| {
        let (count, batch, price) = (first.count, first.batch, first.price);
        let same = WorkerGroup { count, batch, price, ..group.clone() };
        same == *first && scenario.batch(index) == scenario.batch(0)
    };
    (1..).zip(others).all(alike)
}

fn warnings(scenario: &Scenario, assumed: &Assumed, steady: &Steady) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message| warnings.push(Warning { code, message });
    if steady.states > 1 {
        let message = format!(
            "the threads have {} steady states; the one with the shortest critical sections is shown",
            steady.states
        );
        warn("several-steady-states", message);
    }
    if !steady.premise_holds() {
        let message = format!(
            "a critical section takes {:.0} % of its thread's iteration; lock waits are modelled for short ones, below \
             {:.0} %",
            100.0 * steady.longest_critical,
            100.0 * SHORT
        );
        warn("long-critical-section", message);
    }
    if !assumed.keys.is_empty() {
        let message = format!(
            "not measured, and estimated from data sheets: {}; set them in [methods.oyama2016]",
            assumed.keys.join(", ")
        );
        warn("assumed-coefficients", message);
    }
    let outside = assumed.gradient.outside;
    for (many, what) in [(outside.products, "matrix products"), (outside.kernels, "kernels bound by memory")]
    {
        if many > 0 {
            let message =
                format!("{many} {what} are larger or smaller than any that was measured: extrapolated");
            warn(compute::EXTRAPOLATED, message);
        }
    }
    if assumed.by_device {
        warnings.extend(compute::assumptions(scenario));
    }
    warnings
}
