//! From what a user wrote to a checked scenario: defaults, catalog look-ups, ranges.

pub(super) mod artefact;
mod check;
mod exchange;
mod machines;
mod model;
mod together;

use super::oyama2016;
use super::sections::{DataSection, PriceSection, SimulateSection, StrategySection, ZengSection};
use super::uncertain;
use super::{
    DataSet, Files, NoFiles, Price, Scenario, ScenarioFile, SimulateOptions, USUAL_CURRENCY, ZengOptions,
};
use crate::fault::{Fault, KeyPath};
use crate::pass::Gradient;
use crate::strategy::Strategy;
pub(super) use check::{not_negative, positive};
use std::sync::Arc;

const DEFAULT_BATCH: u32 = 32;

impl ScenarioFile {
    /// Fills in defaults, looks up names and checks every value. Scenarios that name other files need
    /// [`resolve_with`](Self::resolve_with).
    pub fn resolve(self) -> Result<Scenario, Fault> {
        self.resolve_with(&NoFiles)
    }

    /// As [`resolve`](Self::resolve); files that the scenario names are taken from `files`.
    pub fn resolve_with(self, files: &dyn Files) -> Result<Scenario, Fault> {
        let scenario = self.resolve_each_with(files)?;
        scenario.check_together()?;
        Ok(scenario)
    }

    /// As [`resolve_with`](Self::resolve_with), every value checked by itself only: whether they go together is for
    /// [`Scenario::check_together`].
    pub fn resolve_each_with(self, files: &dyn Files) -> Result<Scenario, Fault> {
        let model::Trained { source, counting, workload } =
            model::model(self.model, files).map_err(below("model"))?;
        let uncertain = uncertain::of(&self.cluster)?;
        let cluster = machines::cluster(self.cluster, files).map_err(below("cluster"))?;
        let usual_batch = source.profile().map_or(DEFAULT_BATCH, |profile| profile.batch);
        let gradients = match exchange::names_gradients(&self.strategy) {
            true => source.gradients(&workload)?,
            false => Vec::new(),
        };
        let strategy = strategy(self.strategy, usual_batch, &gradients, files).map_err(below("strategy"))?;
        if workload.parameters == 0 {
            let path = KeyPath::of("model");
            return Err(Fault::in_key(
                path,
                "there are no parameters to train",
                "add a layer with weights; a profile needs downlink transfers",
            ));
        }
        let oyama2016 =
            oyama2016::resolve(self.methods.oyama2016.unwrap_or_default(), strategy.precision, files)
                .map_err(below("methods.oyama2016"))?;
        Ok(Scenario {
            source,
            counting,
            workload: Arc::new(workload),
            cluster,
            uncertain,
            strategy,
            data: self.data.map(data).transpose().map_err(below("data"))?,
            price: self.price.map(price).transpose().map_err(below("price"))?,
            zeng2023: zeng2023(self.methods.zeng2023.unwrap_or_default())
                .map_err(below("methods.zeng2023"))?,
            oyama2016,
            simulate: simulate(self.methods.simulate.unwrap_or_default())
                .map_err(below("methods.simulate"))?,
        })
    }
}

pub(super) fn below(parent: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| fault.below(KeyPath::of(parent))
}

fn strategy(
    section: StrategySection,
    usual_batch: u32,
    gradients: &[Gradient],
    files: &dyn Files,
) -> Result<Strategy, Fault> {
    let batch = section.batch.unwrap_or(usual_batch);
    check::batch(batch)?;
    Ok(Strategy {
        architecture: section.architecture.unwrap_or_default(),
        synchronisation: section.synchronisation.unwrap_or_default(),
        batch,
        precision: section.precision.unwrap_or_default(),
        exchange: exchange::exchange(
            section.all_reduce.unwrap_or_default(),
            section.fusion.unwrap_or_default(),
            gradients,
            files,
        )?,
    })
}

fn data(section: DataSection) -> Result<DataSet, Fault> {
    let missing = || Fault::new("the data set has no `samples`", "add `samples = 1281167`");
    let samples = section.samples.ok_or_else(missing)?;
    let epochs = section.epochs.unwrap_or(1);
    for (key, value) in [("samples", samples), ("epochs", epochs)] {
        if value == 0 {
            return Err(Fault::in_key(key, "must be at least 1", "use a positive number"));
        }
    }
    Ok(DataSet { samples, epochs })
}

fn price(section: PriceSection) -> Result<Price, Fault> {
    let worker_hour = section.worker_hour.unwrap_or(0.0);
    let server_hour = section.server_hour.unwrap_or(0.0);
    not_negative("worker-hour", worker_hour, "a price such as 0.9")?;
    not_negative("server-hour", server_hour, "a price such as 0.2")?;
    Ok(Price {
        worker_hour,
        server_hour,
        currency: section.currency.unwrap_or_else(|| USUAL_CURRENCY.to_owned()),
    })
}

fn zeng2023(section: ZengSection) -> Result<ZengOptions, Fault> {
    let default = ZengOptions::default();
    let from_activation = section.activation.map(ZengOptions::flops_per_weight_of);
    let options = ZengOptions {
        flops_per_weight: section.flops_per_weight.or(from_activation).unwrap_or(default.flops_per_weight),
        simd: section.simd.unwrap_or(default.simd),
        fc: section.fc.unwrap_or(default.fc),
        host_copy: section.host_copy.unwrap_or(default.host_copy),
    };
    not_negative("flops-per-weight", options.flops_per_weight, "a number such as 85")?;
    positive("simd", options.simd, "a number such as 2")?;
    positive("fc", options.fc, "1, or 2 with fused multiply-add")?;
    Ok(options)
}

fn simulate(section: SimulateSection) -> Result<SimulateOptions, Fault> {
    let default = SimulateOptions::default();
    let options = SimulateOptions {
        runs: section.runs.unwrap_or(default.runs),
        steps: section.steps.unwrap_or(default.steps),
        warm_up: section.warm_up.unwrap_or(default.warm_up),
        seed: section.seed.unwrap_or(default.seed),
        window: section.window.or(default.window).filter(|_| section.flow_control.unwrap_or(true)),
        parse_fixed: section.parse_fixed.unwrap_or(default.parse_fixed),
        parse_rate: section.parse_rate.or(default.parse_rate),
        parse_while_computing: section.parse_while_computing.unwrap_or(default.parse_while_computing),
        jitter: section.jitter.unwrap_or(default.jitter),
        order: section.order.unwrap_or(default.order),
        transport: section.transport.unwrap_or(default.transport),
        queue: section.queue.unwrap_or(default.queue),
    };
    for (key, value, most) in [("runs", options.runs, 1000), ("steps", options.steps, 1_000_000)] {
        if !(1..=most).contains(&value) {
            let reason = format!("must be between 1 and {most}, but is {value}");
            return Err(Fault::in_key(key, reason, "use a number such as 10"));
        }
    }
    if options.warm_up >= options.steps {
        let reason = format!("{} of {} steps would not leave any to count", options.warm_up, options.steps);
        return Err(Fault::in_key("warm-up", reason, "use fewer than `steps`"));
    }
    if let Some(window) = options.window {
        positive("window", window.get(), "a size such as \"28 MB\"")?;
    }
    not_negative("parse-fixed", options.parse_fixed.get(), "a time such as \"0.3 ms\"")?;
    if let Some(rate) = options.parse_rate {
        positive("parse-rate", rate.get(), "a rate such as \"4 GB/s\"")?;
    }
    positive("queue", options.queue.get(), "a time such as \"50 ms\"")?;
    not_negative("jitter", options.jitter, "a share such as 0.05")?;
    Ok(options)
}
