//! Converts the user's input to a checked scenario: defaults, catalog look-ups, ranges.

mod exchange;
mod machines;
mod model;
mod published;
mod together;

pub(super) use machines::cluster;

use super::{Scenario, ScenarioFile, uncertain};
use crate::fault::{Fault, KeyPath};
use crate::files::{Files, NoFiles};
use crate::keys::Given;
use crate::precision::Precision;
use crate::prior::Priors;
use crate::strategy::{Architecture, Strategy, StrategySection};
use crate::workload::Gradient;
use std::sync::Arc;

impl ScenarioFile {
    /// Fills in defaults, looks up names and checks every value. Scenarios that name other files need
    /// [`resolve_with`](Self::resolve_with).
    pub fn resolve(self) -> Result<Scenario, Fault> {
        self.resolve_with(&NoFiles)
    }

    /// Like [`resolve`](Self::resolve), with the files that the scenario names taken from `files`.
    pub fn resolve_with(self, files: &dyn Files) -> Result<Scenario, Fault> {
        let scenario = self.resolve_unchecked(files)?;
        scenario.check_together()?;
        Ok(scenario)
    }

    /// Like [`resolve_with`](Self::resolve_with), but checks every value only by itself; [`Scenario::check_together`]
    /// checks whether the values are consistent.
    pub fn resolve_unchecked(mut self, files: &dyn Files) -> Result<Scenario, Fault> {
        let uncertain = uncertain::ranges(&self);
        let model::Trained { source, counting, workload } =
            model::model(self.model, files).map_err(below("model"))?;
        let uncertain = uncertain?;
        let cluster = cluster(self.cluster, files).map_err(below("cluster"))?;
        let gradients = match exchange::names_gradients(&self.strategy) {
            true => source.gradients(&workload)?,
            false => Vec::new(),
        };
        self.strategy.batch = self.strategy.batch.or(source.profile().map(|profile| profile.batch));
        let strategy = strategy(self.strategy, &gradients, files).map_err(below("strategy"))?;
        if workload.parameters == 0 {
            return Err(Fault::in_key(
                "model",
                "there are no parameters to train",
                "add a layer with weights; a profile needs downlink transfers",
            ));
        }
        let methods = self.methods.resolve(strategy.precision, files).map_err(below("methods"))?;
        let scenario = Scenario {
            as_published: self.as_published,
            source,
            counting,
            workload: Arc::new(workload),
            cluster,
            uncertain,
            strategy,
            input: self.input.unwrap_or_default().resolve(files).map_err(below("input"))?,
            data: self.data.map(|data| data.resolve(files)).transpose().map_err(below("data"))?,
            price: self.price.map(|price| price.resolve(files)).transpose().map_err(below("price"))?,
            planning: self.plan.map(|plan| plan.resolve(files)).transpose().map_err(below("plan"))?,
            failures: self.failures.map(|it| it.resolve(files)).transpose().map_err(below("failures"))?,
            energy: self.energy.map(|energy| energy.resolve(files)).transpose().map_err(below("energy"))?,
            methods,
            priors: Priors::shipped()?,
        };
        Ok(if scenario.as_published { published::stripped(scenario) } else { scenario })
    }
}

pub(super) fn below(parent: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| fault.below(KeyPath::of(parent))
}

fn strategy(
    mut section: StrategySection,
    gradients: &[Gradient],
    files: &dyn Files,
) -> Result<Strategy, Fault> {
    let all_reduce = section.all_reduce.take().unwrap_or_default();
    let fusion = section.fusion.take().unwrap_or_default();
    let exchange = exchange::exchange(all_reduce, fusion, gradients, files)?;
    let plan = section.plan.take().map(|plan| plan.resolve(files)).transpose().map_err(below("plan"))?;
    if plan.is_some() {
        // Ranks of a plan sum gradients among themselves, and transformers are trained in 16 bits.
        section.architecture = section.architecture.or(Some(Architecture::AllReduce));
        section.precision = section.precision.or(Some(Precision::Bf16));
    }
    section.fill(None, files, exchange, plan)
}
