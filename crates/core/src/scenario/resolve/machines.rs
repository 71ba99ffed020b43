//! Workers, devices, network and servers.

use super::check::{self, not_negative, optional, positive};
use super::{artefact, below};
use crate::fault::{Fault, KeyPath};
use crate::fitted::artefact::{Artefact, Kind};
use crate::machine::catalog;
use crate::machine::{Cluster, Device, FittedDevice, FittedModel, Network, Nodes, Servers, WorkerGroup};
use crate::precision::Precision;
use crate::quantity::Seconds;
use crate::scenario::Files;
use crate::scenario::sections::{
    ClusterSection, DeviceSection, NameOr, NetworkSection, NodesSection, ServersSection, WorkersSection,
};
use crate::uncertain::Uncertain;
use std::sync::Arc;

const DEFAULT_DEVICE: &str = "tesla-v100-sxm2-16gb";
const DEFAULT_NETWORK: &str = "10gbe";
const DEFAULT_WITHIN: &str = "pcie3-x16";
const DEFAULT_WORKERS: u32 = 4;
const MAX_SERVERS: u32 = 100_000;
const MAX_WORKERS_PER_NODE: u32 = 512;

pub(super) fn cluster(section: ClusterSection, files: &dyn Files) -> Result<Cluster, Fault> {
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
    Ok(Cluster {
        groups: sections.into_iter().enumerate().map(group).collect::<Result<_, _>>()?,
        network: network(section.network.unwrap_or(NameOr::Name(DEFAULT_NETWORK.to_owned())))
            .map_err(below("network"))?,
        servers: servers(section.servers.unwrap_or_default()).map_err(below("servers"))?,
        nodes: section.nodes.map(nodes).transpose().map_err(below("nodes"))?,
    })
}

fn nodes(section: NodesSection) -> Result<Nodes, Fault> {
    let missing = || {
        let remedy = "add `workers = 8`, the number of workers on one machine";
        Fault::new("the nodes have no number of workers", remedy)
    };
    let workers = section.workers.ok_or_else(missing)?;
    if !(1..=MAX_WORKERS_PER_NODE).contains(&workers) {
        let reason = format!("{workers} workers in a node are outside 1 to {MAX_WORKERS_PER_NODE}");
        return Err(Fault::in_key("workers", reason, "use a number such as 8"));
    }
    let network = network(section.network.unwrap_or(NameOr::Name(DEFAULT_WITHIN.to_owned())));
    Ok(Nodes { workers, network: network.map_err(below("network"))? })
}

fn workers(section: WorkersSection, files: &dyn Files) -> Result<WorkerGroup, Fault> {
    let count = section.count.unwrap_or(DEFAULT_WORKERS);
    if count == 0 {
        return Err(Fault::in_key("count", "a group without workers", "use at least 1, or remove the group"));
    }
    let group = WorkerGroup {
        count,
        device: device(section.device.unwrap_or(NameOr::Name(DEFAULT_DEVICE.to_owned())), files)
            .map_err(below("device"))?,
        batch: section.batch,
        efficiency: section.efficiency.map(Uncertain::centre),
        speed: section.speed.map_or(1.0, Uncertain::centre),
        bandwidth: section.bandwidth.map(Uncertain::centre),
        price: section.price,
    };
    if let Some(batch) = group.batch {
        check::batch(batch)?;
    }
    if group.efficiency.is_some() && group.device.fitted.is_some() {
        let reason = "the device is fitted: an efficiency would say the same again";
        return Err(Fault::in_key("efficiency", reason, "keep one of `efficiency` and `fitted`"));
    }
    positive("speed", group.speed, "a factor such as 0.5")?;
    optional(group.efficiency, |value| positive("efficiency", value, "a share such as 0.5"))?;
    optional(group.bandwidth, |rate| positive("bandwidth", rate.get(), "a rate such as \"10 Gbit/s\""))?;
    optional(group.price, |price| not_negative("price", price, "a price such as 0.9"))?;
    Ok(group)
}

fn device(given: NameOr<DeviceSection>, files: &dyn Files) -> Result<Device, Fault> {
    let section = match given {
        NameOr::Name(id) => return catalog::device(&id),
        NameOr::Table(section) => *section,
    };
    let base = section.base.as_deref().map(catalog::device).transpose().map_err(below("base"))?;
    let missing = |key: &str| {
        Fault::new(
            format!("the device has neither a `base` nor a `{key}`"),
            format!("add `{key}`, or `base = \"{DEFAULT_DEVICE}\"` to start from a catalog entry"),
        )
    };
    let base = base.as_ref();
    let device = Device {
        name: section
            .name
            .or_else(|| base.map(|b| b.name.clone()))
            .unwrap_or_else(|| "custom device".to_owned()),
        kind: section.kind.or(base.map(|b| b.kind)).ok_or_else(|| missing("kind"))?,
        clock: section.clock.or(base.map(|b| b.clock)).ok_or_else(|| missing("clock"))?,
        units: section.units.or(base.map(|b| b.units)).ok_or_else(|| missing("units"))?,
        flops_per_cycle: section.flops_per_cycle.or(base.map(|b| b.flops_per_cycle)).unwrap_or(2.0),
        tf32: section.tf32.or(base.and_then(|b| b.tf32)),
        fp16: section.fp16.or(base.and_then(|b| b.fp16)),
        bf16: section.bf16.or(base.and_then(|b| b.bf16)),
        memory: section.memory.or(base.map(|b| b.memory)).ok_or_else(|| missing("memory"))?,
        memory_rate: section
            .memory_rate
            .or(base.map(|b| b.memory_rate))
            .ok_or_else(|| missing("memory-rate"))?,
        host_link: section.host_link.or(base.and_then(|b| b.host_link)),
        efficiency: section.efficiency.map(Uncertain::centre).or(base.and_then(|b| b.efficiency)),
        memory_efficiency: section
            .memory_efficiency
            .map(Uncertain::centre)
            .or(base.and_then(|b| b.memory_efficiency)),
        fitted: section.fitted.map(|path| fitted(path, files)).transpose().map_err(below("fitted"))?,
        source: section
            .source
            .or_else(|| base.map(|b| b.source.clone()))
            .unwrap_or_else(|| "scenario".to_owned()),
    };
    positive("clock", device.clock.get(), "a frequency such as \"1.5 GHz\"")?;
    positive("units", f64::from(device.units), "the number of cores or stream processors")?;
    positive("flops-per-cycle", device.flops_per_cycle, "a number such as 2")?;
    positive("memory", device.memory.get(), "a size such as \"16 GB\"")?;
    positive("memory-rate", device.memory_rate.get(), "a rate such as \"900 GB/s\"")?;
    optional(device.tf32, |rate| positive("tf32", rate.get(), "a rate such as \"156 TFLOP/s\""))?;
    optional(device.fp16, |rate| positive("fp16", rate.get(), "a rate such as \"312 TFLOP/s\""))?;
    optional(device.bf16, |rate| positive("bf16", rate.get(), "a rate such as \"312 TFLOP/s\""))?;
    optional(device.host_link, |rate| positive("host-link", rate.get(), "a rate such as \"16 GB/s\""))?;
    optional(device.efficiency, |value| positive("efficiency", value, "a share such as 0.5"))?;
    optional(device.memory_efficiency, |value| positive("memory-efficiency", value, "a share such as 0.5"))?;
    Ok(device)
}

fn fitted(path: String, files: &dyn Files) -> Result<FittedDevice, Fault> {
    let model = match artefact::load(&path, files)? {
        Artefact::Steps(model) => FittedModel::Steps(model.into()),
        Artefact::Efficiency(model) => FittedModel::Efficiency(Arc::new(model)),
        other => return Err(artefact::unwanted(&path, other.kind(), &[Kind::Steps, Kind::Efficiency])),
    };
    Ok(FittedDevice { path, model })
}

/// Whether what was fitted for a device holds for it in `precision`.
pub(super) fn fits(device: &Device, precision: Precision) -> Result<(), Fault> {
    let wrong = |reason: String, remedy: &str| Err(Fault::new(reason, remedy));
    let Some(FittedDevice { model, .. }) = &device.fitted else { return Ok(()) };
    let known = match model {
        FittedModel::Steps(model) => model.precision.contains_key(&precision),
        FittedModel::Efficiency(model) => model.precision.contains_key(&precision),
    };
    if !known {
        let reason = format!("no steps in {precision} were fitted for this device");
        return wrong(reason, "use another `precision`, or fit steps measured in it");
    }
    if let (Some(shares), FittedModel::Efficiency(fitted)) = (device.shares(precision), model) {
        let same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
        let peak = device.peak(precision).map_or(0.0, |peak| peak.get());
        if !(same(shares.peak.get(), peak) && same(shares.memory_rate.get(), device.memory_rate.get())) {
            let reason =
                format!("these are shares of the rates of {}, and this device has others", fitted.device);
            return wrong(reason, "use the device they were fitted for, or fit them again for this one");
        }
    }
    Ok(())
}

fn network(given: NameOr<NetworkSection>) -> Result<Network, Fault> {
    let section = match given {
        NameOr::Name(id) => return catalog::network(&id),
        NameOr::Table(section) => *section,
    };
    let base = section.base.as_deref().map(catalog::network).transpose().map_err(below("base"))?;
    let base = base.as_ref();
    let bandwidth = section.bandwidth.map(Uncertain::centre).or(base.map(|b| b.bandwidth)).ok_or_else(|| {
        Fault::new("the network has neither a `base` nor a `bandwidth`",
            format!("add `bandwidth = \"10 Gbit/s\"`, or `base = \"{DEFAULT_NETWORK}\"` to start from a catalog entry"),
        )
    })?;
    let network = Network {
        name: section
            .name
            .or_else(|| base.map(|b| b.name.clone()))
            .unwrap_or_else(|| "custom network".to_owned()),
        bandwidth,
        latency: section.latency.map(Uncertain::centre).or(base.map(|b| b.latency)).unwrap_or(Seconds::ZERO),
        efficiency: section.efficiency.map(Uncertain::centre).or(base.map(|b| b.efficiency)).unwrap_or(1.0),
        startup: section.startup.or(base.map(|b| b.startup)).unwrap_or(Seconds::ZERO),
        host_rate: section.host_rate.map(Uncertain::centre).or(base.and_then(|b| b.host_rate)),
        source: section
            .source
            .or_else(|| base.map(|b| b.source.clone()))
            .unwrap_or_else(|| "scenario".to_owned()),
    };
    positive("bandwidth", network.bandwidth.get(), "a rate such as \"10 Gbit/s\"")?;
    not_negative("latency", network.latency.get(), "a time such as \"50 us\"")?;
    not_negative("startup", network.startup.get(), "a time such as \"1 ms\"")?;
    positive("efficiency", network.efficiency, "a share such as 0.94")?;
    if network.efficiency > 1.0 {
        let reason = format!("{} is more than the whole of the bandwidth", network.efficiency);
        return Err(Fault::in_key("efficiency", reason, "use a share of at most 1"));
    }
    optional(network.host_rate, |rate| positive("host-rate", rate.get(), "a rate such as \"8 GB/s\""))?;
    Ok(network)
}

fn servers(section: ServersSection) -> Result<Servers, Fault> {
    let count = section.count.unwrap_or(1);
    if !(1..=MAX_SERVERS).contains(&count) {
        let reason = format!("{count} servers are outside 1 to {MAX_SERVERS}");
        return Err(Fault::in_key("count", reason, format!("use 1 to {MAX_SERVERS} servers")));
    }
    let bandwidth = section.bandwidth.map(Uncertain::centre);
    optional(bandwidth, |rate| positive("bandwidth", rate.get(), "a rate such as \"25 Gbit/s\""))?;
    Ok(Servers { count, placement: section.placement.unwrap_or_default(), bandwidth })
}
