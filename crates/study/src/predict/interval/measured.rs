//! What a machine that the kit has measured (`stepcast fit machine`) leaves open, in place of what is assumed of machines.

use std::borrow::Cow;
use stepcast_core::fitted::machine::MachineModel;
use stepcast_core::prior::{Domain, Group, Priors, Residual};
use stepcast_core::scenario::Scenario;

/// The measured devices of all workers; none if one of them was not measured.
fn machines(scenario: &Scenario) -> Option<Vec<&MachineModel>> {
    let groups = &scenario.cluster.groups;
    groups
        .iter()
        .map(|group| group.device.measured())
        .collect::<Option<Vec<_>>>()
        .filter(|all| !all.is_empty())
}

/// How far the constants of a group are off where they were measured; the most of all devices.
fn spread(scenario: &Scenario, group: &Group) -> Option<f64> {
    if group.domain != Domain::Transformer {
        return None;
    }
    // A measured device has one rate, whatever its generation.
    let name = group.name.split(',').next().unwrap_or_default();
    let spreads = machines(scenario)?.into_iter().map(|own| own.uncertainty.groups.get(name).copied());
    spreads.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

pub(super) fn is_measured(scenario: &Scenario, group: &Group) -> bool {
    spread(scenario, group).is_some()
}

/// Standard deviations of the logarithms of the groups' factors, smaller for those that were measured.
pub(crate) fn spreads(scenario: &Scenario) -> Vec<f64> {
    let priors = &scenario.priors;
    let own = |group: &Group| priors.learned.is_none().then(|| spread(scenario, group)).flatten();
    priors.groups.iter().map(|group| own(group).unwrap_or(group.spread)).collect()
}

/// What no constant explains on measured devices; the most of all.
pub(super) fn residual(scenario: &Scenario) -> Option<Residual> {
    let worst = machines(scenario)?
        .into_iter()
        .map(|own| &own.uncertainty)
        .reduce(|a, b| if b.residual > a.residual { b } else { a })?;
    let assumed = scenario.priors.residual.transformer;
    // Spreads between stacks of software come from all families, whatever was measured of the device.
    let families = worst.families.max(assumed.families);
    // Measured devices leave no more open than others.
    let row = worst.residual.min(assumed.cell.hypot(assumed.row));
    Some(Residual { cell: 0.0, row, families, rows: worst.rows, ..assumed })
}

/// The priors with the values of a group as they hold on the workers, and the file that has them if they were measured.
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
