//! Flags that choose a scenario.

use super::numbers::Workers;
use clap::Args;
use std::path;
use stepcast_study::request::{is_launch, is_onnx, is_transformer, links};

/// A scenario, and changes to it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFlags {
    /// Scenario (TOML), profile (.json, .json.gz), model (.onnx, config.json), launch file of Megatron-LM, torchtitan,
    /// DeepSpeed or Accelerate, or - for standard input [default: the built-in quick start, or the scenario of --model]
    pub(crate) scenario: Option<String>,

    /// Model of the zoo, ONNX file or config.json; without a scenario, it is trained by all-reduce
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags")]
    pub(crate) model: Option<String>,

    /// Device of all workers: a name from `stepcast devices`, or short, such as a100
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags")]
    pub(crate) device: Option<String>,

    /// Machine of all workers, with its devices, links and ports: a name from `stepcast machines`
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags", conflicts_with = "device")]
    pub(crate) machine: Option<String>,

    /// Numbers of workers: 32, or 4x8 for four machines of eight; both are joined as the first machine of the catalog with
    /// this device is, if there is one. 1..16 or 1,2,4 for a scaling table
    #[arg(long, value_name = "N", help_heading = "Scenario from flags")]
    pub(crate) workers: Option<Workers>,

    /// Network between machines: a name from `stepcast networks`, or a rate such as "100 Gbit/s"
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags")]
    pub(crate) network: Option<String>,

    /// Samples per worker and step; of a transformer's plan, sequences of all workers together
    #[arg(long, value_name = "N", help_heading = "Scenario from flags")]
    pub(crate) batch: Option<u32>,

    /// Number format: fp32, tf32, fp16, bf16, amp or amp-bf16
    #[arg(long, value_name = "FORMAT", help_heading = "Scenario from flags")]
    pub(crate) dtype: Option<String>,

    /// Set a value of the scenario, such as batch=64; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
}

impl ScenarioFlags {
    /// All changes to the scenario, as `--set` writes them.
    pub(crate) fn changes(&self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut set = |key: &str, value: Option<&str>| {
            changes.extend(value.map(|value| format!("{key}={}", toml::Value::from(value))));
        };
        match self.model.as_deref().filter(|_| self.scenario.is_some()) {
            // Files of a scenario are relative to it, those of a flag to the working directory.
            Some(file) if file.ends_with(".json") => {
                let absolute = path::absolute(file).ok();
                set("model.config", absolute.as_deref().and_then(path::Path::to_str).or(Some(file)));
            }
            named => set("model.zoo", named),
        }
        set("cluster.workers.device", self.device.as_deref());
        set("cluster.machine", self.machine.as_deref());
        set("cluster.network", self.network.as_deref());
        set("strategy.precision", self.dtype.as_deref());
        let planned = match &self.scenario {
            Some(path) => is_launch(path),
            None => self.model.as_deref().is_some_and(is_transformer),
        };
        let batch = if planned { "strategy.plan.global-batch" } else { "strategy.batch" };
        changes.extend(self.batch.map(|number| format!("{batch}={number}")));
        if let Some(workers) = &self.workers {
            changes.extend(self.layout(workers));
        }
        changes.extend(self.overrides.iter().cloned());
        changes
    }

    /// Whether `--workers` says how many workers the cluster has: where it says how many are on each machine, and where
    /// nothing else gives their number.
    pub(crate) fn sets_workers(&self) -> bool {
        let layout = self.workers.as_ref().is_some_and(|workers| workers.per_machine.is_some());
        let alone = match &self.scenario {
            Some(path) => is_onnx(path) || is_launch(path),
            None => self.model.is_some(),
        };
        layout || alone
    }

    fn layout(&self, workers: &Workers) -> Vec<String> {
        let mut changes = Vec::new();
        if !self.sets_workers() {
            return changes;
        }
        changes.extend(workers.numbers.last().map(|number| format!("cluster.workers.count={number}")));
        if let Some(each) = workers.per_machine {
            changes.push(format!("cluster.nodes.workers={each}"));
            let links = self.device.as_deref().and_then(|name| links(name, each));
            changes.extend(links.iter().map(|links| format!("cluster.nodes.network={}", links.within)));
            let between = links.and_then(|links| links.between).filter(|_| self.network.is_none());
            if let Some((network, ports)) = between {
                changes.push(format!("cluster.network={network}"));
                changes.push(format!("cluster.nodes.ports={ports}"));
            }
        }
        changes
    }
}

/// How long a forecast simulates.
#[derive(Debug, Args)]
pub(crate) struct SimulationFlags {
    /// Half-width of the 90 % interval at which a simulation ends, as a share: 0.01 is 1 % [default: 0.01]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) precision: Option<String>,

    /// Events after which a simulation ends anyway: ten million take about a second of a core [default: 10000000]
    #[arg(long, value_name = "EVENTS")]
    pub(crate) budget: Option<String>,
}

/// A share as it is written; what sounds like a number format is meant for another flag.
fn share(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("a share such as 0.05 ends a simulation; `--dtype` sets the number format".to_owned()),
    }
}

impl SimulationFlags {
    /// All changes to a scenario, as `--set` writes them.
    pub(crate) fn changes(&self, about: &ScenarioFlags) -> Vec<String> {
        let named = |key: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("methods.simulate.{key}={value}"))
        };
        let own = [named("precision", &self.precision), named("budget", &self.budget)];
        about.changes().into_iter().chain(own.into_iter().flatten()).collect()
    }
}
