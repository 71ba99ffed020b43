//! Consistency checks between values that are each valid.

use super::machines;
use crate::fault::{Fault, KeyPath};
use crate::machine::{Device, MAX_BATCH};
use crate::model::transformer::{Transformer, Tuning};
use crate::precision::Precision;
use crate::scenario::{MAX_GROUP_LAYERS, MAX_GROUPS, MAX_WORKERS, Scenario};
use crate::strategy::{Architecture, Plan, Synchronisation};

impl Scenario {
    /// Checks conditions that involve several keys. [`resolve`](crate::scenario::ScenarioFile::resolve) calls it, and
    /// callers that change a scenario must do so too.
    pub fn check_together(&self) -> Result<(), Fault> {
        let Self { cluster, strategy, .. } = self;
        if cluster.groups.is_empty() {
            let reason = "there are no workers";
            return Err(Fault::in_key("cluster.workers", reason, "use at least one"));
        }
        if cluster.groups.len() > MAX_GROUPS {
            let reason = format!(
                "there are {} groups of workers, and {MAX_GROUPS} is the most that is supported",
                cluster.groups.len()
            );
            return Err(Fault::in_key(
                "cluster.workers",
                reason,
                "join groups of equal workers: `count = 8`",
            ));
        }
        let documents = self.data.is_some_and(|data| data.lengths.is_some());
        let whole = |shape: Transformer| shape.target > 0 || shape.signal.is_some();
        if documents && self.source.transformer().is_some_and(whole) {
            let reason = "documents that are shorter than samples are not modelled beside an encoder, patches or frames";
            return Err(Fault::in_key("data.lengths", reason, "remove `lengths`"));
        }
        let layers = self.workload.layers.len();
        if layers.saturating_mul(cluster.groups.len()) > MAX_GROUP_LAYERS {
            let reason = format!(
                "{layers} layers on {} groups of workers exceed the limit of {MAX_GROUP_LAYERS} layers × groups",
                cluster.groups.len()
            );
            return Err(Fault::in_key(
                "cluster.workers",
                reason,
                "join groups of equal workers: `count = 8`",
            ));
        }
        let mut total = 0;
        for (index, group) in cluster.groups.iter().enumerate() {
            total += u64::from(group.count);
            if total > MAX_WORKERS {
                return Err(too_many(index, total));
            }
            if group.device.peak(strategy.precision).is_none() {
                return Err(no_such_precision(index, &group.device, strategy.precision));
            }
            if let Some(precision) = group.measured_precision
                && group.device.peak(precision).is_none()
            {
                return Err(no_such_precision(index, &group.device, precision));
            }
            self.check_gpus(index)?;
            machines::fits(&group.device, strategy.precision)
                .map_err(|fault| fault.below(workers(index).key("device").key("fitted")))?;
        }
        if strategy.architecture == Architecture::StandAlone && total != 1 {
            let reason = format!("stand-alone training has one worker, and the cluster has {total}");
            let remedy = "use \"parameter-server\" or \"all-reduce\", or one worker";
            return Err(Fault::in_key("strategy.architecture", reason, remedy));
        }
        if strategy.accumulation > 1 && strategy.architecture != Architecture::AllReduce {
            let reason = "accumulated gradients are modelled for all-reduce only";
            let remedy =
                "use `architecture = \"all-reduce\"`, or `synchronisation = \"local-sgd(4)\"` for servers";
            return Err(Fault::in_key("strategy.accumulation", reason, remedy));
        }
        if strategy.accumulation > 1 && strategy.plan.is_some() {
            let reason = "a plan accumulates the gradients of its micro-batches";
            return Err(Fault::in_key(
                "strategy.accumulation",
                reason,
                "remove it, and set `micro-batch` of the plan",
            ));
        }
        if self.profile().is_some() && cluster.servers.overlap.is_some() {
            let reason = "a profile says itself when gradients are pushed";
            return Err(Fault::in_key("cluster.servers.overlap", reason, "leave it out"));
        }
        if cluster.servers.colocated && cluster.servers.bandwidth.is_some() {
            let reason = "servers on the machines of workers use the ports of these";
            return Err(Fault::in_key("cluster.servers.bandwidth", reason, "leave it out, or `colocated`"));
        }
        match &strategy.plan {
            Some(plan) => self.check_plan(plan, total),
            None => self.check_whole(),
        }
    }

    /// Checks that a scenario without a plan trains all parameters, on samples filled by documents.
    fn check_whole(&self) -> Result<(), Fault> {
        let tuned = self.source.transformer().is_some_and(|shape| shape.tuning != Tuning::default());
        let documents = self.data.is_some_and(|data| data.lengths.is_some());
        let what = match (tuned, documents) {
            (true, _) => "adapters and frozen parts",
            (false, true) => "documents that are shorter than samples",
            (false, false) => return Ok(()),
        };
        let reason = format!("{what} are known only of transformers with a plan");
        let remedy = "add `[strategy.plan]`, such as `micro-batch = 1`, and name a transformer";
        Err(Fault::in_key("strategy.plan", reason, remedy))
    }

    fn check_gpus(&self, index: usize) -> Result<(), Fault> {
        let gpus = self.cluster.groups[index].gpus;
        let refuse =
            |reason: String, remedy: &str| Err(Fault::in_key(workers(index).key("gpus"), reason, remedy));
        if gpus > 1 && self.strategy.architecture == Architecture::AllReduce {
            let reason = "with all-reduce every GPU is a worker".to_owned();
            return refuse(
                reason,
                "multiply `count` instead, and say with `[cluster.nodes]` how many share a machine",
            );
        }
        let samples = u64::from(self.batch(index)) * u64::from(gpus);
        if samples > MAX_BATCH {
            let reason = format!(
                "{gpus} GPUs compute {samples} samples in a step, and {MAX_BATCH} is the most that is supported"
            );
            return refuse(reason, "use a smaller batch");
        }
        Ok(())
    }

    fn check_plan(&self, plan: &Plan, workers: u64) -> Result<(), Fault> {
        if self.strategy.architecture != Architecture::AllReduce {
            let reason = "the ranks of a plan sum gradients among themselves";
            return Err(Fault::in_key(
                "strategy.architecture",
                reason,
                "use \"all-reduce\", or leave it out",
            ));
        }
        let wrong =
            |reason: String, remedy: &str| Err(Fault::in_key("strategy.synchronisation", reason, remedy));
        match (self.strategy.synchronisation, plan.outer_replicas) {
            (Synchronisation::Bsp, 1) => {}
            (Synchronisation::LocalSgd(steps), 2..) => {
                let (steps, delay) = (u64::from(steps), plan.outer_delay);
                let key = |key: &str| KeyPath::of("strategy.plan").key(key);
                if !steps.is_multiple_of(plan.outer_fragments) {
                    let reason = format!("{steps} steps do not hold {} exchanges", plan.outer_fragments);
                    return Err(Fault::in_key(key("outer-fragments"), reason, "use a divisor of the steps"));
                }
                if delay >= steps {
                    let reason = format!("a fragment is exchanged anew every {steps} steps");
                    return Err(Fault::in_key(
                        key("outer-delay"),
                        reason,
                        format!("use {} or less", steps - 1),
                    ));
                }
            }
            (Synchronisation::Bsp, several) => {
                let reason =
                    format!("{several} replicas with outer gradients exchange them after some steps");
                return wrong(reason, "use \"local-sgd(100)\", or leave `outer-replicas` of the plan out");
            }
            (Synchronisation::LocalSgd(_), _) => {
                let reason = "local SGD needs at least two replicas; the plan has one".to_owned();
                return wrong(reason, "add `outer-replicas = 2` to the plan, or use \"bsp\"");
            }
            _ => {
                let reason = "the ranks of a plan wait for each other".to_owned();
                return wrong(reason, "use \"bsp\", or leave it out");
            }
        }
        let shape = self.transformer_of_plan()?;
        plan.divide(&shape, workers).map_err(|fault| fault.below(KeyPath::of("strategy.plan")))?;
        Ok(())
    }

    /// The shape of the model, which a plan needs.
    pub fn transformer_of_plan(&self) -> Result<Transformer, Fault> {
        let documents = self.data.and_then(|data| data.documents());
        let shape = self.source.transformer().map(|shape| Transformer {
            sequence: documents.map_or(shape.sequence, |own| own.sequence(shape.sequence)),
            documents: documents.map(|own| own.cut(shape.sequence)),
            ..shape
        });
        shape.ok_or_else(|| {
            let reason = format!("a plan splits a transformer, and {} is not known as one", self.name());
            let remedy = "name a transformer of the zoo, or give `[model.transformer]` or a `config`";
            Fault::in_key("strategy.plan", reason, remedy)
        })
    }
}

fn workers(index: usize) -> KeyPath {
    KeyPath::of("cluster.workers").index(index)
}

fn too_many(index: usize, total: u64) -> Fault {
    let reason =
        format!("the cluster has {total} workers or more, and {MAX_WORKERS} is the most that is supported");
    Fault::in_key(workers(index).key("count"), reason, "use fewer workers")
}

fn no_such_precision(index: usize, device: &Device, precision: Precision) -> Fault {
    Fault::in_key(
        workers(index),
        format!("the {} has no {precision} rate", device.name),
        format!("use `precision = \"fp32\"`, or give the device a `{precision}` rate"),
    )
}
