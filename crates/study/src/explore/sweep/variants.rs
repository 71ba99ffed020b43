//! The scenario at every point of a grid.
//!
//! Resolving the document takes a tenth of a millisecond or more, and is possible at any point. Most keys change only
//! one field of the result: each of their values is resolved once, the field is kept (`setting`), and moving from
//! point to point copies fields. A key is treated this way only if, for each of its values, copying the field into
//! the first point gives exactly the scenario that the document gives. All other keys require resolving the document
//! at every change.

use super::axis::Grid;
use super::axis::{Axis, Values};
use crate::predict::budget;
use crate::request::catalog_prices;
use std::mem;
use stepcast_core::compute;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::files::Files;
use stepcast_core::keys::{Effect, Value};
use stepcast_core::scenario::{Document, Edit, Field, Scenario, ScenarioFile};

/// Divisor of the largest cost of a study: the budget for classifying axes before a sweep.
const LISTED_SHARE: u64 = 10;

/// Budget of a simulation per point by default: there are many points.
const BUDGET: &str = "methods.simulate.budget";
const SMALL: u64 = 1_000_000;

/// The overrides, preceded by a default budget unless the document sets one.
fn with_budget(document: &Document, overrides: &[Edit]) -> Result<Vec<Edit>, Fault> {
    let mut all = Vec::with_capacity(overrides.len() + 1);
    if !document.sets(BUDGET) {
        all.push(Edit::parse(&format!("{BUDGET}={SMALL}"))?);
    }
    all.extend_from_slice(overrides);
    Ok(all)
}

/// Why there is no grid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum VaryError {
    /// A key or its values are invalid.
    #[error("{axis}: {fault}")]
    Axis {
        /// The axis in its original notation.
        axis: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The document is invalid.
    #[error(transparent)]
    Document(Fault),
}

/// The effect of an axis on a scenario.
#[derive(Debug)]
enum Reach {
    /// It sets one field: one setting per value.
    Listed(Vec<Setting>),
    /// It sets one field to a whole number.
    Counted(Setting),
    /// The document has to be resolved again.
    Document,
}

/// Makes the scenario of a document at a point, without checking whether its values are consistent.
pub(crate) type Resolver = fn(ScenarioFile, &dyn Files) -> Result<Scenario, Fault>;

/// A document and the axes along which it varies.
pub struct Variants<'a> {
    document: &'a Document,
    files: &'a (dyn Files + Sync),
    overrides: Vec<Edit>,
    resolver: Resolver,
    axes: Vec<Axis>,
    reach: Vec<Reach>,
    grid: Grid,
    first: Scenario,
}

impl<'a> Variants<'a> {
    /// Resolves the first point and every value of every axis; both ends of ranges.
    pub fn new(
        document: &'a Document,
        files: &'a (dyn Files + Sync),
        overrides: &[Edit],
        axes: Vec<Axis>,
    ) -> Result<Self, VaryError> {
        let plain = ScenarioFile::resolve_unchecked;
        let mut variants = Self::one_by_one(document, files, overrides, axes, plain)?;
        let reach: Result<Vec<Reach>, VaryError> =
            (0..variants.axes.len()).map(|place| variants.reach(place)).collect();
        variants.reach = reach?;
        variants.demote();
        Ok(variants)
    }

    /// Resolves the first point now, and every other point when it is visited.
    pub(crate) fn one_by_one(
        document: &'a Document,
        files: &'a (dyn Files + Sync),
        overrides: &[Edit],
        axes: Vec<Axis>,
        resolver: Resolver,
    ) -> Result<Self, VaryError> {
        for (place, axis) in axes.iter().enumerate() {
            if let Some(later) = axes[place + 1..].iter().find(|later| later.hides(axis)) {
                let reason = format!("it hides what `{}` sets before it", axis.key);
                let remedy = "vary each key once, the more general before the more particular";
                let fault = Fault::in_key(KeyPath::of(&later.key), reason, remedy);
                return Err(VaryError::Axis { axis: later.text().to_owned(), fault });
            }
        }
        let grid = Grid::new(axes.iter().map(|axis| axis.values.len()).collect());
        let digits = vec![0; axes.len()];
        let overrides = with_budget(document, overrides).map_err(VaryError::Document)?;
        let first = resolve(document, files, &overrides, &axes, &digits, resolver)
            .map_err(|error| blamed(error, &axes, &digits))?;
        let reach = axes.iter().map(|_| Reach::Document).collect();
        Ok(Self { document, files, overrides, resolver, axes, reach, grid, first })
    }

    /// These points with prices of the catalog; none if something is priced, has no price there, or if devices vary.
    pub(crate) fn priced_by_catalog(&self) -> Option<Self> {
        let varies = |axis: &Axis| axis.key.ends_with("device") || axis.key == "cluster.machine";
        if self.axes.iter().any(varies) {
            return None;
        }
        let file = self.document.file(&self.overrides).ok()?;
        let overrides = [self.overrides.as_slice(), &catalog_prices(&file, &self.first)?].concat();
        match self.reach.iter().all(|reach| matches!(reach, Reach::Document)) {
            true => Self::one_by_one(self.document, self.files, &overrides, self.axes.clone(), self.resolver),
            false => Self::new(self.document, self.files, &overrides, self.axes.clone()),
        }
        .ok()
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// All points.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The scenario at the first point; its values may be inconsistent.
    pub fn first(&self) -> &Scenario {
        &self.first
    }

    /// Whether a fit may give the speed of a worker at some point.
    pub(crate) fn may_be_fitted(&self) -> bool {
        let fitted = |axis: usize, place: u64| match self.setting(axis, place) {
            Some(setting) if setting.effect() == Effect::Choice => {
                let mut scenario = self.first.clone();
                setting.apply(&mut scenario);
                compute::is_fitted(&scenario)
            }
            _ => false,
        };
        let lengths = self.grid.lengths().iter().enumerate();
        compute::is_fitted(&self.first)
            || lengths.into_iter().any(|(axis, &length)| (0..length).any(|place| fitted(axis, place)))
    }

    /// A walker that moves from point to point.
    pub fn walker(&self) -> Walker<'_> {
        Walker {
            variants: self,
            digits: vec![0; self.axes.len()],
            scenario: Some(self.first.clone()),
            parked: Vec::new(),
        }
    }

    /// Whether the document has to be resolved again for every value of an axis.
    pub fn is_resolved(&self, axis: usize) -> bool {
        matches!(self.reach[axis], Reach::Document)
    }

    /// How often the document is resolved on a walk through all points in order.
    pub(crate) fn resolutions(&self) -> u128 {
        let last = (0..self.axes.len()).rev().find(|axis| self.is_resolved(*axis));
        let lengths = &self.grid.lengths()[..last.map_or(0, |last| last + 1)];
        Grid::new(lengths.to_vec()).points()
    }

    /// The setting of the value at position `place` of the axis; `None` if the document has to be resolved.
    pub(crate) fn setting(&self, axis: usize, place: u64) -> Option<Setting> {
        match &self.reach[axis] {
            Reach::Listed(settings) => settings.get(place as usize).cloned(),
            Reach::Counted(setting) => setting.with_number(self.axes[axis].values.number(place)?),
            Reach::Document => None,
        }
    }

    /// The scenario that the document gives at a point, groups without workers included.
    pub fn resolve(&self, digits: &[u64]) -> Result<Scenario, Fault> {
        resolve(self.document, self.files, &self.overrides, &self.axes, digits, self.resolver)
    }

    fn reach(&self, axis: usize) -> Result<Reach, VaryError> {
        let last = self.axes[axis].values.len() - 1;
        let setting = |place: u64| {
            let mut digits = vec![0; self.axes.len()];
            digits[axis] = place;
            let resolved = self.resolve(&digits).map_err(|error| blamed(error, &self.axes, &digits))?;
            let Some(setting) = Setting::of(&self.axes[axis], &resolved) else { return Ok(None) };
            let mut copy = self.first.clone();
            setting.apply(&mut copy);
            Ok((copy == resolved).then_some(setting))
        };
        Ok(match &self.axes[axis].values {
            // Made one by one, with checks for cancellation.
            Values::Listed(_)
                if last.saturating_mul(budget::resolution(&self.first)) > budget::UNASKED / LISTED_SHARE =>
            {
                Reach::Document
            }
            Values::Listed(_) => {
                let settings: Result<Vec<Option<Setting>>, VaryError> = (0..=last).map(setting).collect();
                match settings?.into_iter().collect() {
                    Some(settings) => Reach::Listed(settings),
                    None => Reach::Document,
                }
            }
            Values::Range { first, .. } => match (setting(0)?, setting(last)?) {
                (Some(lowest), Some(_)) if lowest.is_number(*first) => Reach::Counted(lowest),
                _ => Reach::Document,
            },
        })
    }

    /// Fields that another axis may also change are left to the document.
    fn demote(&mut self) {
        let below = |axis: &Axis, key: &str| axis.key == key || axis.key.starts_with(&format!("{key}."));
        // All of these together determine which workers share a machine, unless it is given.
        let decides_layout = |axis: &Axis| {
            let keys = ["cluster.nodes", "cluster.network", "cluster.machine", "strategy.architecture"];
            let of_groups = ["device", "count"].iter().any(|key| axis.key.ends_with(&format!(".{key}")));
            keys.iter().any(|key| below(axis, key)) || (below(axis, "cluster.workers") && of_groups)
        };
        let deciding: Vec<usize> =
            (0..self.axes.len()).filter(|&place| decides_layout(&self.axes[place])).collect();
        let changes_devices = deciding.iter().any(|&place| self.axes[place].key.ends_with(".device"));
        if deciding.len() > 1 && (changes_devices || self.first.cluster.nodes.is_some()) {
            deciding.iter().for_each(|&place| self.reach[place] = Reach::Document);
        }
        let mut demoted = true;
        while mem::take(&mut demoted) {
            for place in 0..self.axes.len() {
                let axis = &self.axes[place];
                let others = || (0..self.axes.len()).filter(|&other| other != place);
                // The sizes of a fusion depend on its rule, and its gradients on the model.
                let fusion = below(axis, "strategy.fusion")
                    && others().any(|other| {
                        below(&self.axes[other], "strategy.fusion") || below(&self.axes[other], "model")
                    });
                let refined =
                    others().any(|other| self.is_resolved(other) && self.axes[other].is_below(axis));
                if !self.is_resolved(place) && (fusion || refined) {
                    self.reach[place] = Reach::Document;
                    demoted = true;
                }
            }
        }
    }
}

/// The scenario at a point. A document cannot have a group without workers: the group is resolved with one worker,
/// which is then removed.
fn resolve(
    document: &Document,
    files: &dyn Files,
    overrides: &[Edit],
    axes: &[Axis],
    digits: &[u64],
    resolver: Resolver,
) -> Result<Scenario, Fault> {
    let mut changes = overrides.to_vec();
    let mut without = Vec::new();
    for (axis, &digit) in axes.iter().zip(digits) {
        let value = axis.value(digit);
        let group = group_counted(axis).filter(|_| value == "0");
        without.extend(group);
        let change = axis.change_to(if group.is_some() { "1" } else { &value });
        changes.push(change.map_err(|fault| document.located(fault, &[]))?);
    }
    let file = document.file(&changes)?;
    let mut scenario = resolver(file, files).map_err(|fault| document.located(fault, &changes))?;
    for group in without {
        if let Some(group) = scenario.cluster.groups.get_mut(group) {
            group.count = 0;
        }
    }
    Ok(scenario)
}

/// The group whose number of workers the axis sets, if it is a single group.
fn group_counted(axis: &Axis) -> Option<usize> {
    match axis.parts().collect::<Vec<_>>()[..] {
        ["cluster", "workers", index, "count"] => index.parse().ok(),
        _ => None,
    }
}

fn blamed(error: Fault, axes: &[Axis], digits: &[u64]) -> VaryError {
    let sets =
        |(axis, digit): &(&Axis, &u64)| error.origin() == format!("{}={}", axis.key, axis.value(**digit));
    match axes.iter().zip(digits).find(sets) {
        Some((axis, _)) => {
            let reason = format!("{}: {}", error.origin(), error.reason);
            let fault = Fault::in_key(error.key, reason, error.remedy);
            VaryError::Axis { axis: axis.text().to_owned(), fault }
        }
        None => VaryError::Document(error),
    }
}

/// Moves from point to point; values that stay the same are not set again.
pub struct Walker<'a> {
    variants: &'a Variants<'a>,
    digits: Vec<u64>,
    /// The scenario at `digits`, groups without workers included; `None` if the document is invalid there.
    scenario: Option<Scenario>,
    /// Groups without workers, removed while a caller looks at the scenario.
    parked: Vec<(usize, stepcast_core::machine::WorkerGroup)>,
}

impl Walker<'_> {
    /// Passes the scenario at a point to `look`, or returns the reason why there is none.
    pub fn look<T>(&mut self, digits: &[u64], look: impl FnOnce(&Scenario) -> T) -> Result<T, Fault> {
        self.go(digits)?;
        let Some(scenario) = &mut self.scenario else { return Err(nowhere()) };
        let groups = &mut scenario.cluster.groups;
        for place in (0..groups.len()).rev() {
            if groups[place].count == 0 {
                self.parked.push((place, groups.remove(place)));
            }
        }
        let seen = scenario.check_together().map(|()| look(scenario));
        while let Some((place, group)) = self.parked.pop() {
            scenario.cluster.groups.insert(place, group);
        }
        seen
    }

    fn go(&mut self, digits: &[u64]) -> Result<(), Fault> {
        let changed = self.digits.iter().zip(digits).position(|(old, new)| old != new);
        let reach = &self.variants.reach;
        let told_by_document = self.digits.iter().zip(digits).zip(reach);
        let again = told_by_document.into_iter().any(|((old, new), reach)| match reach {
            Reach::Document => old != new,
            _ => false,
        });
        self.digits.clear();
        self.digits.extend_from_slice(digits);
        let Some(scenario) = self.scenario.as_mut().filter(|_| !again) else {
            self.scenario = None;
            let resolved = self.variants.resolve(digits);
            let wrong = |error: Fault| Fault::in_key(error.key, error.reason, error.remedy);
            self.scenario = Some(resolved.map_err(wrong)?);
            return Ok(());
        };
        // A later axis may set a field inside one that an earlier axis sets.
        for axis in changed.unwrap_or(digits.len())..digits.len() {
            match &reach[axis] {
                Reach::Listed(settings) => {
                    if let Some(setting) = settings.get(digits[axis] as usize) {
                        setting.apply(scenario);
                    }
                }
                Reach::Counted(setting) => {
                    let number = self.variants.axes[axis].values.number(digits[axis]);
                    if let Some(setting) = number.and_then(|number| setting.with_number(number)) {
                        setting.apply(scenario);
                    }
                }
                Reach::Document => {}
            }
        }
        Ok(())
    }
}

fn nowhere() -> Fault {
    Fault::new("there is no scenario at this point", "vary other values")
}

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    field: Field,
    value: Value,
}

impl Setting {
    /// The value in `scenario` of the key of `axis`; `None` for keys that require resolving the document.
    pub(crate) fn of(axis: &Axis, scenario: &Scenario) -> Option<Self> {
        let path: Vec<&str> = axis.parts().collect();
        let field = Field::find(&path).filter(|field| field.effect() != Effect::Resolved)?;
        // Resolving the document checks whether a fitted device is consistent with other keys of its group.
        let fitted = scenario.cluster.groups.iter().any(|group| group.device.fitted.is_some());
        if fitted && path.last() == Some(&"device") {
            return None;
        }
        Some(Self { field, value: field.get(scenario)? })
    }

    /// The effect of larger values on a step.
    pub(crate) fn effect(&self) -> Effect {
        self.field.effect()
    }

    pub(crate) fn number(&self) -> Option<f64> {
        self.value.number()
    }

    /// The setting with another whole number; `None` if the value is not a whole number.
    fn with_number(&self, number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        matches!(self.value, Value::Count(_))
            .then(|| Self { field: self.field, value: Value::Count(number.into()) })
    }

    fn is_number(&self, number: u64) -> bool {
        matches!(self.value, Value::Count(count) if count == number)
    }

    fn apply(&self, scenario: &mut Scenario) {
        self.field.set(scenario, &self.value);
    }
}
