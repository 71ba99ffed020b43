//! The list of all methods: to add one, add a line.

use super::calibrate::character;
use crate::simulate::Simulate;
use serde::Serialize;
use stepcast_analytic::baselines::{Cynthia2019, Lin2018};
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::liu2022::Liu2022;
use stepcast_analytic::oyama2016::Oyama2016;
use stepcast_analytic::transformer::Transformer;
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::fault::Fault;
use stepcast_core::method::{Method, MethodAbout, Progress, Stopped, Watch};
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::Scenario;
use stepcast_core::suggest;

/// Every method, in order of preference.
pub fn all() -> &'static [&'static dyn Method] {
    &[
        &Calibrated(&Layerwise),
        &Calibrated(&Zeng2023),
        &Calibrated(&Liu2022),
        &Calibrated(&Oyama2016),
        &Calibrated(&Transformer),
        &Calibrated(&Simulate),
        &Calibrated(&Cynthia2019 { half: false }),
        &Calibrated(&Cynthia2019 { half: true }),
        &Calibrated(&Lin2018),
    ]
}

/// A method that also stretches steps by the unexplained deviation of measured runs.
struct Calibrated(&'static dyn Method);

impl Calibrated {
    fn stretched(scenario: &Scenario, prediction: Prediction) -> Prediction {
        match &scenario.priors.learned {
            Some(learned) => {
                let factor = learned.deviation(&character(scenario)).exp();
                prediction.stretched(factor)
            }
            None => prediction,
        }
    }
}

impl Method for Calibrated {
    fn about(&self) -> MethodAbout {
        self.0.about()
    }

    fn is_quick(&self) -> bool {
        self.0.is_quick()
    }

    fn is_rough(&self) -> bool {
        self.0.is_rough()
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        self.0.beyond_paper(scenario)
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        self.0.applies(scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        Ok(Self::stretched(scenario, self.0.predict(scenario)?))
    }

    fn predict_watched(&self, scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
        let watch = |progress: Progress<'_>| match progress {
            Progress::Estimate(estimate) if scenario.priors.learned.is_some() => {
                watch(Progress::Estimate(&Self::stretched(scenario, estimate.clone())))
            }
            _ => watch(progress),
        };
        Ok(Self::stretched(scenario, self.0.predict_watched(scenario, &watch)?))
    }
}

/// Whether a method models a scenario; as published, a paper's does in place of this project's own for servers.
fn models(scenario: &Scenario) -> impl Fn(&dyn Method) -> bool {
    let printed = scenario.as_published && Zeng2023.applies(scenario).is_ok();
    move |method| !(printed && method.name() == Layerwise.name()) && method.applies(scenario).is_ok()
}

/// A set of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodSet(u32);

impl MethodSet {
    pub(crate) fn every() -> Self {
        Self((1 << all().len()) - 1)
    }

    pub(crate) const NONE: Self = Self(0);

    /// The methods that model a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self::every().filtered(models(scenario))
    }

    fn filtered(self, keep: impl Fn(&dyn Method) -> bool) -> Self {
        let kept = (0..all().len()).filter(|place| self.0 & (1 << place) != 0 && keep(all()[*place]));
        Self(kept.fold(0, |set, place| set | 1 << place))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn first(self) -> Self {
        Self(self.0 & self.0.wrapping_neg())
    }

    pub(crate) fn without_rough(self) -> Self {
        self.filtered(|method| !method.is_rough())
    }

    pub(crate) fn methods(self) -> impl Iterator<Item = &'static dyn Method> {
        all()
            .iter()
            .copied()
            .enumerate()
            .filter(move |(place, _)| self.0 & (1 << place) != 0)
            .map(|(_, method)| method)
    }
}

/// A method as listed for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// A one-line summary of the method.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// All methods, in the same order.
pub fn list() -> Vec<Listed> {
    let listed = |method: &&'static dyn Method| Listed {
        name: method.name(),
        summary: method.about().summary,
        source: method.about().source,
    };
    all().iter().map(listed).collect()
}

/// The method called `name`.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    all().iter().copied().find(|method| method.name() == name)
}

/// As [`find`], or an error that suggests known names.
pub fn named(name: &str) -> Result<&'static dyn Method, Fault> {
    find(name).ok_or_else(|| {
        let known: Vec<&str> =
            std::iter::once("auto").chain(all().iter().map(|method| method.name())).collect();
        let list = format!("the methods are {}", known.join(", "));
        let remedy = suggest::remedy(name, known.iter().copied(), list);
        Fault::in_key("method", format!("there is no method \"{name}\""), remedy)
    })
}

/// The first method that models the scenario, or the refusal of the closest one.
pub fn choose(scenario: &Scenario) -> Result<&'static dyn Method, Fault> {
    let models = models(scenario);
    if let Some(method) = all().iter().copied().find(|method| models(*method)) {
        return Ok(method);
    }
    let mut refusals: Vec<Fault> = all().iter().filter_map(|method| method.applies(scenario).err()).collect();
    // Users of a profile gain nothing from learning that closed forms cannot read profiles, so those refusals come
    // last. A method that models the strategy is closer than one that does not.
    let nearest = |refusal: &Fault| refusal.key != "model.profile" && !refusal.key.is_within("strategy");
    let news = |refusal: &Fault| refusal.key != "model.profile";
    let news = refusals.iter().position(nearest).or_else(|| refusals.iter().position(news)).unwrap_or(0);
    Err(refusals.swap_remove(news))
}

/// The choice of a method.
#[derive(Clone, Copy)]
pub enum MethodChoice {
    /// The preferred method for each scenario.
    Auto,
    /// This one.
    One(&'static dyn Method),
}

impl MethodChoice {
    /// The method called `name`, or `auto`.
    pub fn named(name: &str) -> Result<Self, Fault> {
        Ok(if name == "auto" { Self::Auto } else { Self::One(named(name)?) })
    }

    /// The method for a scenario.
    pub fn method(self, scenario: &Scenario) -> Result<&'static dyn Method, Fault> {
        match self {
            Self::Auto => choose(scenario),
            Self::One(method) => Ok(method),
        }
    }
}
