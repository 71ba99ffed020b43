//! The part of an interval due to assumed figures: rates of machines and software without measurements.
//!
//! Each group of priors moves by a common factor from machine to machine. The effect of a group is its spread times
//! the change of the logarithm of the step with the logarithm of the group, by central differences (docs/priors.md,
//! section 5). The unexplained spread, and extrapolation beyond the published runs, are added. A machine that the kit has measured
//! (`stepcast fit machine`) has a smaller uncertainty.

use crate::predict::calibrate::character;
use crate::predict::methods;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use stepcast_core::compute::SpeedSource;
use stepcast_core::fault::{Fault, Measurement, Remedies, Remedy};
use stepcast_core::fitted::machine::MachineModel;
use stepcast_core::machine::DeviceKind;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::prior::learned::Unexplained;
use stepcast_core::prior::{Domain, Group, Priors, REPEATS, Residual, SHIFT, doublings_outside};
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::{InputKind, Scenario};
use stepcast_core::strategy::Architecture;
use stepcast_stats::student_t_95;

/// Effects below this are rounding errors: standard deviation of the logarithm of a step.
const NOTICED: f64 = 1e-3;

/// A figure behind an assumption.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct AssumedFigure {
    /// Its name in the catalog of priors.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Where it comes from.
    pub source: String,
}

/// An assumption about a figure that the scenario does not give.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Assumption {
    /// Name, such as "rate of the network".
    pub name: String,
    /// The part of the interval that it causes, as a share of the variance.
    pub share: f64,
    /// Its effect on a step: half-width of the logarithm at 90 %.
    pub width: f64,
    /// The figures that are assumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub figures: Vec<AssumedFigure>,
    /// How to replace it.
    #[serde(flatten)]
    pub remedy: Remedies,
}

/// The error of a prediction that rests on assumed figures.
pub(super) struct Assumed {
    /// Half-width of the 90 % interval of the logarithm.
    pub(super) half_width: f64,
    /// Its causes, the largest first.
    pub(super) by_assumption: Vec<Assumption>,
    /// Whether it covers the speed of devices.
    pub(super) of_devices: bool,
    /// Families of published runs behind the figures.
    pub(super) families: usize,
    /// Published runs behind the figures.
    pub(super) runs: usize,
}

/// The error that assumed figures cause in the prediction of `scenario`; none if all relevant figures are known. Only
/// `explained` errors name the figures.
pub(super) fn assumed(
    scenario: &Scenario,
    method: &dyn Method,
    prediction: &Prediction,
    explained: bool,
) -> Result<Option<Assumed>, Fault> {
    let Some(twin) = closed_form(scenario, method) else { return Ok(None) };
    let Some(Causes { slopes, mut causes, bases }) = Causes::new(scenario, twin, prediction)? else {
        return Ok(None);
    };
    let squares = |causes: &[Cause]| causes.iter().map(|cause| cause.effect().powi(2)).sum::<f64>();
    let (open, unexplained_left) = match &scenario.priors.learned {
        Some(learned) => {
            let character = character(scenario);
            let open = learned.variance(&slopes, &character, unexplained(&causes));
            (open, learned.unexplained_left(&character))
        }
        None => (squares(&causes), 1.0),
    };
    for cause in &mut causes {
        if let Cause::Unexplained(_, effect) = cause {
            *effect *= unexplained_left.sqrt();
        }
    }
    let families = bases.iter().map(|of| of.families as usize).min().unwrap_or(1);
    let quantile = student_t_95(families.saturating_sub(1));
    let step = |scenario: &Scenario| log_step(scenario, twin);
    let listed = || causes.iter().filter(|cause| cause.effect().abs() > NOTICED);
    // Correlated causes are less uncertain together than one by one.
    let together: f64 = listed().map(|cause| cause.effect().powi(2)).sum();
    let mut by_assumption = Vec::new();
    for cause in listed() {
        let figures = match cause {
            Cause::Group(index, _) if explained => figures(scenario, *index, &step)?,
            Cause::Group(..) | Cause::Unexplained(..) => Vec::new(),
        };
        let name = match cause {
            Cause::Group(index, _) => scenario.priors.groups[*index].name.clone(),
            Cause::Unexplained(name, _) => (*name).to_owned(),
        };
        let remedy = match cause {
            Cause::Group(index, _) if !is_measured(scenario, &scenario.priors.groups[*index]) => {
                scenario.priors.groups[*index].remedy.clone()
            }
            Cause::Group(..) | Cause::Unexplained(..) => {
                Remedy::Measure { what: Measurement::RunOnCluster }.into()
            }
        };
        let share = cause.effect().powi(2) / together;
        let width = quantile * (share * open).sqrt();
        by_assumption.push(Assumption { name, share, width, figures, remedy });
    }
    by_assumption.sort_by(|a, b| b.share.total_cmp(&a.share));
    let of_devices = causes.iter().any(|cause| match cause {
        Cause::Group(index, _) => {
            matches!(scenario.priors.groups[*index].domain, Domain::OneGpu | Domain::Transformer)
        }
        Cause::Unexplained(..) => false,
    });
    Ok(Some(Assumed {
        half_width: quantile * (open + REPEATS.powi(2)).sqrt(),
        by_assumption,
        of_devices,
        families,
        runs: bases.iter().map(|of| of.rows as usize).sum(),
    }))
}

/// Causes of uncertainty of a prediction that rests on assumed figures.
pub(crate) struct Causes {
    /// Change of the logarithm of the step with the logarithm of each group of priors.
    pub(crate) slopes: Vec<f64>,
    causes: Vec<Cause>,
    bases: Vec<Residual>,
}

impl Causes {
    /// The causes of the error of a prediction of `scenario` by the closed form `twin`; none if all relevant figures are known.
    pub(crate) fn new(
        scenario: &Scenario,
        twin: &dyn Method,
        prediction: &Prediction,
    ) -> Result<Option<Self>, Fault> {
        let slopes = slopes(scenario, twin)?;
        let effects = spreads(scenario).into_iter().zip(&slopes).map(|(spread, slope)| spread * slope);
        let effects: Vec<(usize, f64)> =
            effects.enumerate().filter(|(_, effect)| effect.abs() > NOTICED).collect();
        if effects.is_empty() {
            return Ok(None);
        }
        let uses =
            |domain: Domain| effects.iter().any(|(index, _)| scenario.priors.groups[*index].domain == domain);
        let mut causes: Vec<Cause> = Vec::new();
        for &(index, effect) in &effects {
            causes.push(Cause::Group(index, effect));
        }
        let residual = &scenario.priors.residual;
        let mut bases: Vec<Residual> = Vec::new();
        // Where a step was measured, priors only split it into passes, which hides more or less of an exchange with servers.
        let is_measured = |group| SpeedSource::new(scenario, group) == SpeedSource::Measured;
        let with_servers = scenario.strategy.architecture == Architecture::ParameterServer;
        let splits_only = with_servers && scenario.cluster.groups.iter().all(is_measured);
        if uses(Domain::OneGpu) && !splits_only {
            let by_computing = slope(twin, &|shift| slowed(scenario, shift))?.abs();
            let of = residual.one_gpu;
            let unexplained = of.of_one_gpu(scenario.input.data == InputKind::Real);
            causes.push(Cause::Unexplained("software and runs of one GPU", by_computing * unexplained));
            causes.push(Cause::Unexplained(BEYOND_DEVICES, by_computing * beyond_devices(scenario)));
            bases.push(of);
        }
        if uses(Domain::Transformer) {
            let of = measured_residual(scenario).unwrap_or(residual.transformer);
            causes.push(Cause::Unexplained("this software on this device", of.cell.hypot(of.row)));
            bases.push(of);
        }
        let exposed = (1.0 - prediction.scaling_factor).clamp(0.005, 0.995);
        match scenario.strategy.architecture {
            _ if scenario.strategy.plan.is_some() => {}
            Architecture::AllReduce if scenario.cluster.workers() > 1 => {
                let of = residual.all_reduce;
                let cell = of.cell * (exposed * (1.0 - exposed)).sqrt();
                causes.push(Cause::Unexplained("this software on this cluster", cell.hypot(of.row)));
                causes.push(Cause::Unexplained(BEYOND_CLUSTERS, beyond_clusters(scenario)));
                bases.push(of);
            }
            Architecture::ParameterServer => {
                let of = residual.servers;
                let cell = of.cell * exposed.sqrt();
                causes.push(Cause::Unexplained("this software on these servers", cell.hypot(of.row)));
                causes.push(Cause::Unexplained(BEYOND_CLUSTERS, beyond_clusters(scenario)));
                bases.push(of);
            }
            _ => {}
        }
        Ok(Some(Self { slopes, causes, bases }))
    }

    /// Variances that no group of priors explains. Differences between runs of one combination of software, device and
    /// network are independent.
    pub(crate) fn unexplained(&self) -> Unexplained {
        let total = unexplained(&self.causes);
        let own = self.bases.iter().map(|of| of.row.powi(2)).sum::<f64>().min(total);
        Unexplained { common: total - own, own }
    }
}

fn unexplained(causes: &[Cause]) -> f64 {
    let unexplained = causes.iter().filter(|cause| matches!(cause, Cause::Unexplained(..)));
    unexplained.map(|cause| cause.effect().powi(2)).sum()
}

const BEYOND_DEVICES: &str = "batch or device beyond published runs";
const BEYOND_CLUSTERS: &str = "size of cluster, model or rate beyond published runs";

/// A cause of the error and its effect: standard deviation of the logarithm of a step.
enum Cause {
    /// The group of priors at this index.
    Group(usize, f64),
    /// Unexplained deviation.
    Unexplained(&'static str, f64),
}

impl Cause {
    fn effect(&self) -> f64 {
        match self {
            Self::Group(_, effect) | Self::Unexplained(_, effect) => *effect,
        }
    }
}

/// The method whose derivatives are taken: the method itself, or a closed form in place of a simulation.
pub(crate) fn closed_form<'a>(scenario: &Scenario, method: &'a dyn Method) -> Option<&'a dyn Method> {
    if method.is_quick() {
        return Some(method);
    }
    methods::all().iter().copied().find(|method| method.is_quick() && method.applies(scenario).is_ok())
}

/// Change of the logarithm of a step with the logarithm of each group of priors.
pub(crate) fn slopes(scenario: &Scenario, method: &dyn Method) -> Result<Vec<f64>, Fault> {
    use Domain::{AllReduce, OneGpu, Servers, Transformer};
    let unused: &[Domain] = match scenario.strategy.architecture {
        _ if scenario.strategy.plan.is_some() => &[OneGpu, Servers],
        Architecture::AllReduce => &[Servers, Transformer],
        Architecture::ParameterServer => &[AllReduce, Transformer],
        Architecture::StandAlone => &[AllReduce, Servers, Transformer],
    };
    let groups = scenario.priors.groups.par_iter().enumerate();
    let slope = |(index, group): (usize, &Group)| match unused.contains(&group.domain) {
        true => Ok(0.0),
        false => slope(method, &|shift| moved(scenario, index, shift)),
    };
    groups.map(slope).collect()
}

/// Central difference of the logarithm of the step of `changed` scenarios.
fn slope(method: &dyn Method, changed: &dyn Fn(f64) -> Scenario) -> Result<f64, Fault> {
    let ends = [log_step(&changed(SHIFT), method)?, log_step(&changed(-SHIFT), method)?];
    Ok((ends[0] - ends[1]) / (2.0 * SHIFT))
}

fn log_step(scenario: &Scenario, method: &dyn Method) -> Result<f64, Fault> {
    Ok(method.step(scenario)?.get().ln())
}

fn moved(scenario: &Scenario, group: usize, shift: f64) -> Scenario {
    Scenario { priors: Arc::new(scenario.priors.moved(group, shift)), ..scenario.clone() }
}

/// The scenario with all workers slower by the factor e^`shift`.
fn slowed(scenario: &Scenario, shift: f64) -> Scenario {
    let mut changed = scenario.clone();
    for group in &mut changed.cluster.groups {
        group.speed *= (-shift).exp();
    }
    changed
}

/// The constants of a group on which the step depends.
fn figures(
    scenario: &Scenario,
    index: usize,
    step: &dyn Fn(&Scenario) -> Result<f64, Fault>,
) -> Result<Vec<AssumedFigure>, Fault> {
    let group: &Group = &scenario.priors.groups[index];
    let now = step(scenario)?;
    let (values, file) = values(scenario, group);
    let mut figures = Vec::new();
    for constant in &group.constants {
        let priors = scenario.priors.with_moved(group.domain, &constant.name, SHIFT);
        let then = step(&Scenario { priors: Arc::new(priors), ..scenario.clone() })?;
        if (then - now).abs() > NOTICED * SHIFT {
            figures.push(AssumedFigure {
                name: constant.name.clone(),
                value: values.value(group.domain, &constant.name).unwrap_or(f64::NAN),
                unit: constant.unit.clone(),
                source: file.map_or_else(|| constant.source.clone(), |file| format!("measured: {file}")),
            });
        }
    }
    Ok(figures)
}

fn beyond_devices(scenario: &Scenario) -> f64 {
    let groups = scenario.cluster.groups.iter().enumerate();
    let gpus = groups.filter(|(_, group)| group.device.kind == DeviceKind::Gpu);
    let beyond = gpus.map(|(index, group)| {
        scenario.priors.one_gpu_extrapolation(scenario.batch(index), group.device.fp32_peak())
    });
    beyond.fold(0.0, f64::max)
}

fn beyond_clusters(scenario: &Scenario) -> f64 {
    let range = match scenario.strategy.architecture {
        Architecture::ParameterServer => &scenario.priors.range.servers,
        Architecture::AllReduce | Architecture::StandAlone => &scenario.priors.range.all_reduce,
    };
    let tensors = scenario.workload.layers.iter().flat_map(|layer| &layer.tensors);
    let gradients = tensors.map(|tensor| scenario.summed(tensor)).sum::<Bytes>().get() / 1e6;
    let workers = scenario.cluster.workers() as f64;
    let gbps = scenario.cluster.network.bandwidth.get() / 1e9;
    let beyond = [
        doublings_outside(workers, range.gpus),
        doublings_outside(gradients, range.gradient_mb),
        doublings_outside(gbps, range.gbps),
    ];
    range.per_doubling * beyond.iter().fold(0.0, |sum: f64, doublings| sum.hypot(*doublings))
}

/// The measured devices of all workers; none if one of them was not measured.
fn machines(scenario: &Scenario) -> Option<Vec<&MachineModel>> {
    let groups = &scenario.cluster.groups;
    groups
        .iter()
        .map(|group| group.device.measured())
        .collect::<Option<Vec<_>>>()
        .filter(|all| !all.is_empty())
}

/// Spread of the constants of a group if they were measured; the largest over all devices.
fn spread(scenario: &Scenario, group: &Group) -> Option<f64> {
    if group.domain != Domain::Transformer {
        return None;
    }
    // A measured device has one rate for all generations.
    let name = group.name.split(',').next().unwrap_or_default();
    let spreads = machines(scenario)?.into_iter().map(|own| own.uncertainty.groups.get(name).copied());
    spreads.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

fn is_measured(scenario: &Scenario, group: &Group) -> bool {
    spread(scenario, group).is_some()
}

/// Standard deviations of the logarithms of the groups' factors, smaller for measured ones.
pub(crate) fn spreads(scenario: &Scenario) -> Vec<f64> {
    let priors = &scenario.priors;
    let own = |group: &Group| priors.learned.is_none().then(|| spread(scenario, group)).flatten();
    priors.groups.iter().map(|group| own(group).unwrap_or(group.spread)).collect()
}

/// Unexplained spread on measured devices; the largest of all.
fn measured_residual(scenario: &Scenario) -> Option<Residual> {
    let worst = machines(scenario)?
        .into_iter()
        .map(|own| &own.uncertainty)
        .reduce(|a, b| if b.residual > a.residual { b } else { a })?;
    let assumed = scenario.priors.residual.transformer;
    // Spreads between stacks of software come from all families, even for measured devices.
    let families = worst.families.max(assumed.families);
    // Measured devices are never less certain than assumed ones.
    let row = worst.residual.min(assumed.cell.hypot(assumed.row));
    Some(Residual { cell: 0.0, row, families, rows: worst.rows, ..assumed })
}

/// The priors with a group's values for the workers, and the file with these values if they were measured.
pub(super) fn values<'a>(scenario: &'a Scenario, group: &Group) -> (Cow<'a, Priors>, Option<&'a str>) {
    let first = scenario.cluster.groups.first().and_then(|workers| workers.device.fitted.as_ref());
    match (machines(scenario), first) {
        (Some(own), Some(fitted)) if is_measured(scenario, group) => {
            let mut priors = scenario.priors.as_ref().clone();
            priors.transformer = priors.transformer.with_measured(&own[0].transformer);
            (Cow::Owned(priors), Some(&fitted.path))
        }
        _ => (Cow::Borrowed(scenario.priors.as_ref()), None),
    }
}
