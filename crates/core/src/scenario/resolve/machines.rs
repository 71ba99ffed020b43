//! Resolves workers, devices, network and servers.

use super::below;
use crate::fault::{Fault, KeyPath};
use crate::files::Files;
use crate::keys::{Given, NameOr};
use crate::machine::{
    Beside, Cluster, Device, DeviceKind, FabricLevel, FittedDevice, FittedModel, Machine, Network,
    NetworkSection, Nodes, NodesSection, WorkerGroup, WorkersSection, catalog,
};
use crate::precision::Precision;
use crate::quantity::BytesPerSec;
use crate::scenario::MAX_WORKERS;
use crate::scenario::sections::ClusterSection;

/// Network where neither the scenario nor a machine names one.
const DEFAULT_NETWORK: &str = "10gbe";

/// How workers are grouped into machines if the scenario does not say which of them share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scenario) enum Layout {
    /// As in the first machine of the catalog with their device.
    Usual,
    /// Every worker is a separate machine.
    Apart,
}

/// Assumed number of GPU slots of a machine whose links are not given.
const SLOTS: u32 = 8;

/// Possible links of these slots, from the slowest.
const SLOT_LINKS: [&str; 4] = ["pcie3-x16", "pcie4-x16", "pcie5-x16", "pcie6-x16"];

/// Data sheets round the rates of links.
const ROUNDED: f64 = 0.01;

pub(in crate::scenario) fn cluster(
    mut section: ClusterSection,
    layout: Layout,
    files: &dyn Files,
) -> Result<Cluster, Fault> {
    let mut machine = whole(&mut section)?;
    let mut slow = None;
    if let Some(beside) = section.beside.take() {
        let other = beside.fill(None, files).map_err(below("beside"))?;
        let own = machine.ok_or_else(|| {
            let remedy = "add `machine = \"dgx-h100\"` to `[cluster]`";
            Fault::in_key("beside", "there is no `machine` that others could work beside", remedy)
        })?;
        slow = other.link.map(|link| (link, other.machines.min(section.machines.unwrap_or(1))));
        machine = Some(joined(&mut section, &own, other).map_err(below("beside"))?);
    }
    let sections = section.workers.unwrap_or_else(|| vec![WorkersSection::default()]);
    if sections.is_empty() {
        return Err(Fault::in_key(
            "workers",
            "the cluster has no workers",
            "add a [[cluster.workers]] table",
        ));
    }
    let group = |(index, section)| {
        let at = |fault: Fault| fault.below(KeyPath::of("workers").index(index));
        workers(section, files).map_err(at)
    };
    let usual = usual_machine(&sections);
    // A described network joins the machines as described.
    let described = matches!(&section.network, Some(NameOr::Table(table)) if table.base.is_none());
    let groups: Vec<WorkerGroup> = sections.into_iter().enumerate().map(group).collect::<Result<_, _>>()?;
    let count = groups.iter().map(|group| u64::from(group.count)).sum();
    if layout == Layout::Usual && machine.is_none() && usual.is_none() && section.network.is_none() {
        let is_gpu = groups.iter().all(|group| group.device.kind == DeviceKind::Gpu);
        let slots = || NodesSection { workers: Some(SLOTS), ..NodesSection::default() };
        section.nodes = section.nodes.or_else(|| is_gpu.then(slots));
    }
    let (base, joined) = match (machine, section.nodes.as_ref().map(|nodes| nodes.workers), usual) {
        (Some(machine), ..) => (Some(machine.nodes()?), Some(machine)),
        // The links of the usual machine; its ports are known only if it is complete and no other network joins machines.
        (None, Some(each), Some(usual)) => {
            let whole = section.network.is_none() && each == Some(usual.gpus);
            let ports = whole.then_some(usual.ports);
            let domain = usual.domain.filter(|_| each == Some(usual.gpus));
            (Some(Nodes { ports, domain, ..usual.nodes()? }), Some(usual.clone()).filter(|_| whole))
        }
        (None, None, Some(usual))
            if layout == Layout::Usual && !described && usual.holds(count, section.network.is_some()) =>
        {
            let open = section.network.is_none();
            let ports = open.then_some(usual.ports);
            (Some(Nodes { ports, ..usual.nodes()? }), Some(usual.clone()).filter(|_| open))
        }
        (None, ..) => (None, None),
    };
    let nodes = match (section.nodes, base) {
        (None, base) => base,
        (Some(mut nodes), base) => {
            nodes.network = nodes.network.or_else(|| if base.is_none() { slot_link(&groups) } else { None });
            Some(nodes.fill(base.as_ref(), files).map_err(below("nodes"))?)
        }
    };
    let mut network = network(section.network, joined, files).map_err(below("network"))?;
    if let Some((link, machines)) = slow {
        let ports = nodes.as_ref().and_then(|nodes| nodes.ports).unwrap_or(1);
        let ratio = network.bandwidth.get() * f64::from(ports * machines) / link.get();
        if ratio > 1.0 {
            network.oversubscription.get_or_insert_default().push(FabricLevel { machines, ratio });
        }
    }
    network.check_levels().map_err(below("network"))?;
    nodes.as_ref().map_or(Ok(()), check_domain).map_err(below("nodes"))?;
    Ok(Cluster {
        groups,
        network,
        servers: section.servers.unwrap_or_default().fill(None, files).map_err(below("servers"))?,
        // One worker on a machine with one port has nothing to share.
        nodes: nodes.filter(|nodes| nodes.workers > 1 || nodes.ports.is_some_and(|ports| ports > 1)),
    })
}

/// Checks that links that reach beyond a machine join whole machines.
fn check_domain(nodes: &Nodes) -> Result<(), Fault> {
    match nodes.domain {
        Some(domain) if !domain.is_multiple_of(nodes.workers) => {
            let reason =
                format!("links that join {domain} workers join no whole machines of {}", nodes.workers);
            let remedy = format!("use a multiple of {}, or leave it out", nodes.workers);
            Err(Fault::in_key("domain", reason, remedy))
        }
        _ => Ok(()),
    }
}

/// The first machine of the catalog with the device of all workers, if it joins several. Changed figures of a device do not matter,
/// except an `efficiency`, which described test beds give.
fn usual_machine(sections: &[WorkersSection]) -> Option<&'static Machine> {
    let name = |section: &WorkersSection| match &section.device {
        Some(NameOr::Name(name)) => Some(name.clone()),
        Some(NameOr::Table(device)) if device.efficiency.is_none() => device.base.clone(),
        _ => None,
    };
    let first = name(sections.first()?)?;
    let alike = sections.iter().all(|section| name(section).as_deref() == Some(&first));
    catalog::machine_with(&first).filter(|_| alike)
}

/// The link of slots that is as fast as the host link of the slowest of these devices.
fn slot_link(groups: &[WorkerGroup]) -> Option<NameOr<NetworkSection>> {
    let links = groups.iter().map(|group| group.device.host_link.map(BytesPerSec::get));
    let slowest = links.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)?;
    let keeps_up = |name: &&&str| {
        catalog::network(name).is_ok_and(|link| link.bandwidth.get() / 8.0 <= slowest * (1.0 + ROUNDED))
    };
    SLOT_LINKS.iter().rev().find(keeps_up).map(|name| (*name).into())
}

/// The network between machines. A rate alone is that of a machine's own network, or of Ethernet.
fn network(
    given: Option<NameOr<NetworkSection>>,
    machine: Option<Machine>,
    files: &dyn Files,
) -> Result<Network, Fault> {
    let own = machine.map(|machine| machine.network()).transpose()?;
    let Some(given) = given else { return own.map_or_else(|| catalog::network(DEFAULT_NETWORK), Ok) };
    match (given, own) {
        (NameOr::Table(table), Some(own)) if table.base.is_none() => table.fill(Some(&own), files),
        (NameOr::Name(name), Some(own)) => match name.parse() {
            Ok(rate) => own.at_rate(rate),
            Err(_) => NameOr::Name(name).resolve(files),
        },
        (given, _) => given.resolve(files),
    }
}

/// The machine that the section names; its devices are those of groups without one, or that change some of its figures, and fill
/// the first group.
fn whole(section: &mut ClusterSection) -> Result<Option<Machine>, Fault> {
    let Some(name) = section.machine.take() else {
        return match section.machines {
            None => Ok(None),
            Some(_) => Err(Fault::in_key(
                "machines",
                "there is no `machine` that this could count",
                "add `machine = \"dgx-h100\"`, or remove it",
            )),
        };
    };
    let machine = catalog::machine(&name).map_err(below("machine"))?;
    let machines = section.machines.unwrap_or(1);
    if machines == 0 || u64::from(machines) * u64::from(machine.gpus) > MAX_WORKERS {
        let most = MAX_WORKERS / u64::from(machine.gpus);
        return Err(Fault::in_key(
            "machines",
            format!("{machines} is no number of machines"),
            format!("use 1 to {most}"),
        ));
    }
    let groups = section.workers.get_or_insert_with(|| vec![WorkersSection::default()]);
    let only = groups.len() == 1;
    for group in groups {
        match group.device.get_or_insert_with(|| NameOr::from(machine.device.as_str())) {
            NameOr::Table(changed) if changed.kind.is_none() => {
                changed.base.get_or_insert_with(|| machine.device.clone());
            }
            _ => {}
        }
        if only {
            group.count.get_or_insert(machines * machine.gpus);
        }
    }
    Ok(Some(machine))
}

/// Adds machines of another kind to those of the section; the links of both are the slower ones.
fn joined(section: &mut ClusterSection, own: &Machine, other: Beside) -> Result<Machine, Fault> {
    let machine = catalog::machine(&other.machine).map_err(below("machine"))?;
    if machine.gpus != own.gpus {
        let reason = format!("it has {} devices, and {} has {}", machine.gpus, own.name, own.gpus);
        return Err(Fault::in_key("machine", reason, "use machines with as many devices"));
    }
    let group = WorkersSection {
        count: Some(other.machines.saturating_mul(machine.gpus)),
        device: Some(NameOr::from(machine.device.as_str())),
        ..WorkersSection::default()
    };
    section.workers.get_or_insert_default().push(group);
    own.joined(&machine)
}

fn workers(section: WorkersSection, files: &dyn Files) -> Result<WorkerGroup, Fault> {
    let group = section.fill(None, files)?;
    if group.efficiency.is_some() && group.device.fitted.is_some() {
        let reason = "the device is fitted: an efficiency would say the same again";
        return Err(Fault::in_key("efficiency", reason, "keep one of `efficiency` and `fitted`"));
    }
    measured_once(&group)?;
    Ok(group)
}

/// Refuses other speeds of the device beside a measured step.
fn measured_once(group: &WorkerGroup) -> Result<(), Fault> {
    let key = match (group.throughput, group.step_time) {
        (None, None) => {
            let unused = [
                ("measured-batch", group.measured_batch.is_some()),
                ("measured-precision", group.measured_precision.is_some()),
            ];
            let Some((key, _)) = unused.into_iter().find(|(_, given)| *given) else { return Ok(()) };
            let reason = "no measurement is given that it belongs to";
            return Err(Fault::in_key(key, reason, "add `throughput` or `step-time`, or remove it"));
        }
        (Some(_), None) => "throughput",
        (_, Some(_)) => "step-time",
    };
    let others = [
        ("throughput", group.throughput.is_some() && key != "throughput"),
        ("efficiency", group.efficiency.is_some() || group.device.efficiency.is_some()),
        ("fitted", group.device.fitted.is_some()),
    ];
    match others.into_iter().find(|(_, given)| *given) {
        Some((other, _)) => {
            let reason = format!("the speed of these workers is given twice, by `{key}` and by `{other}`");
            Err(Fault::in_key(key, reason, format!("keep one of `{key}` and `{other}`")))
        }
        None => Ok(()),
    }
}

pub(super) fn fits(device: &Device, precision: Precision) -> Result<(), Fault> {
    let wrong = |reason: String, remedy: &str| Err(Fault::new(reason, remedy));
    let Some(FittedDevice { model, .. }) = &device.fitted else { return Ok(()) };
    let known = match model {
        FittedModel::Steps(model) => model.measured(precision).is_some(),
        FittedModel::Efficiency(model) => model.precision.contains_key(&precision),
        FittedModel::Machine(_) => true,
    };
    if !known {
        let reason = format!("no steps in {precision} were fitted for this device");
        return wrong(reason, "use another `precision`, or fit steps measured in it");
    }
    let shares = match model {
        FittedModel::Efficiency(fitted) => {
            device.shares(precision).map(|own| (own.peak, own.memory_rate, precision, &fitted.device))
        }
        FittedModel::Machine(own) => Some((own.peak, own.memory_rate, own.precision, &own.device)),
        FittedModel::Steps(_) => None,
    };
    let Some((of_peak, of_memory, precision, name)) = shares else { return Ok(()) };
    let same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
    let peak = device.peak(precision).map_or(0.0, |peak| peak.get());
    if !(same(of_peak.get(), peak) && same(of_memory.get(), device.memory_rate.get())) {
        let reason = format!("these are shares of the rates of {name}, and this device has others");
        return wrong(reason, "use the device they were fitted for, or fit them again for this one");
    }
    Ok(())
}
