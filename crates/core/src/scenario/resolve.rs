//! From what a user wrote to a checked scenario: defaults, catalog look-ups, ranges.

use super::sections::{
    ClusterSection, DataSection, DeviceSection, ModelSection, NameOr, NetworkSection, PriceSection,
    ServersSection, StrategySection, WorkersSection, ZengSection,
};
use super::{DataSet, MAX_WORKERS, ModelSource, Price, Scenario, ScenarioFile, ZengOptions};
use crate::catalog;
use crate::cluster::{Cluster, Servers, WorkerGroup};
use crate::device::Device;
use crate::invalid::{Invalid, KeyPath};
use crate::model::{Counting, Model, zoo};
use crate::network::Network;
use crate::quantity::Seconds;
use crate::strategy::{Architecture, Strategy};
use crate::suggest;
use crate::workload::Workload;
use std::sync::Arc;

const DEFAULT_DEVICE: &str = "tesla-v100-sxm2-16gb";
const DEFAULT_NETWORK: &str = "10gbe";
const DEFAULT_WORKERS: u32 = 4;
const DEFAULT_BATCH: u32 = 32;
const MAX_SERVERS: u32 = 100_000;
const MAX_BATCH: u32 = 100_000_000;

/// Positive figures outside this range, in base units, are slips of the keyboard; inside it, no product or
/// quotient of a method can overflow or vanish.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-15..=1e24;

impl ScenarioFile {
    /// Fills in defaults, looks up names and checks every value.
    pub fn resolve(self) -> Result<Scenario, Invalid> {
        let (model, model_source, counting) = model(self.model).map_err(below("model"))?;
        let cluster = cluster(self.cluster).map_err(below("cluster"))?;
        let strategy = strategy(self.strategy).map_err(below("strategy"))?;
        for (index, group) in cluster.groups.iter().enumerate() {
            if group.device.peak(strategy.precision).is_none() {
                return Err(no_such_precision(index, &group.device, strategy));
            }
        }
        if strategy.architecture == Architecture::StandAlone && cluster.workers() != 1 {
            let reason =
                format!("stand-alone training has one worker, and the cluster has {}", cluster.workers());
            let path = KeyPath::of("strategy.architecture");
            return Err(Invalid::new(
                path,
                reason,
                "use \"parameter-server\" or \"all-reduce\", or one worker",
            ));
        }
        let workload = Arc::new(Workload::of(&model, counting));
        if workload.parameters == 0 {
            let path = KeyPath::of("model");
            return Err(Invalid::new(
                path,
                "the model has no parameters to train",
                "add a layer with weights",
            ));
        }
        Ok(Scenario {
            model: Arc::new(model),
            model_source,
            counting,
            workload,
            cluster,
            strategy,
            data: self.data.map(data).transpose().map_err(below("data"))?,
            price: self.price.map(price).transpose().map_err(below("price"))?,
            zeng2023: zeng2023(self.methods.zeng2023.unwrap_or_default())
                .map_err(below("methods.zeng2023"))?,
        })
    }
}

fn below(parent: &'static str) -> impl Fn(Invalid) -> Invalid {
    move |invalid| invalid.below(KeyPath::of(parent))
}

fn model(section: ModelSection) -> Result<(Model, ModelSource, Counting), Invalid> {
    let counting = counting(section.count.unwrap_or_default())?;
    match (section.zoo, section.custom) {
        (Some(name), None) => {
            let model = zoo::build(&name).map_err(|error| {
                let remedy = suggest::remedy(&name, error.suggestion, "run `stepcast models` for the list");
                Invalid::new(KeyPath::of("zoo"), error.to_string(), remedy)
            })?;
            Ok((model, ModelSource::Zoo(name), counting))
        }
        (None, Some(file)) => {
            let model = file.build().map_err(below("custom"))?;
            Ok((model, ModelSource::Custom(Arc::new(file)), counting))
        }
        (Some(_), Some(_)) => Err(Invalid::new(
            KeyPath::of("custom"),
            "both `zoo` and `custom` name a model",
            "keep one of the two",
        )),
        (None, None) => Err(Invalid::new(
            KeyPath::root(),
            "no model is named",
            "add `zoo = \"vgg16\"` (run `stepcast models` for the list) or a `[model.custom]` table",
        )),
    }
}

fn counting(names: Vec<String>) -> Result<Counting, Invalid> {
    let mut counting = Counting::default();
    for (index, name) in names.iter().enumerate() {
        let slot = match name.as_str() {
            "bias" => &mut counting.bias,
            "activation" => &mut counting.activation,
            "pooling" => &mut counting.pooling,
            "normalisation" => &mut counting.normalisation,
            "elementwise" => &mut counting.elementwise,
            _ => {
                return Err(Invalid::new(
                    KeyPath::of("count").index(index),
                    format!("\"{name}\" is no kind of operation"),
                    "use \"bias\", \"activation\", \"pooling\", \"normalisation\" or \"elementwise\"",
                ));
            }
        };
        *slot = true;
    }
    Ok(counting)
}

fn cluster(section: ClusterSection) -> Result<Cluster, Invalid> {
    let sections = section.workers.unwrap_or_else(|| vec![WorkersSection::default()]);
    if sections.is_empty() {
        return Err(Invalid::new(
            KeyPath::of("workers"),
            "the cluster has no workers",
            "add a [[cluster.workers]] table",
        ));
    }
    let mut groups = Vec::with_capacity(sections.len());
    let mut total = 0;
    for (index, section) in sections.into_iter().enumerate() {
        let at = |invalid: Invalid| invalid.below(KeyPath::of("workers").index(index));
        let group = workers(section).map_err(at)?;
        total += u64::from(group.count);
        if total > MAX_WORKERS {
            return Err(at(Invalid::new(
                KeyPath::of("count"),
                format!(
                    "the cluster has {total} workers or more, and {MAX_WORKERS} is the most that is supported"
                ),
                "use fewer workers",
            )));
        }
        groups.push(group);
    }
    Ok(Cluster {
        groups,
        network: network(section.network.unwrap_or(NameOr::Name(DEFAULT_NETWORK.to_owned())))
            .map_err(below("network"))?,
        servers: servers(section.servers.unwrap_or_default()).map_err(below("servers"))?,
    })
}

fn workers(section: WorkersSection) -> Result<WorkerGroup, Invalid> {
    let count = section.count.unwrap_or(DEFAULT_WORKERS);
    if count == 0 {
        return Err(Invalid::new(
            KeyPath::of("count"),
            "a group without workers",
            "use at least 1, or remove the group",
        ));
    }
    let group = WorkerGroup {
        count,
        device: device(section.device.unwrap_or(NameOr::Name(DEFAULT_DEVICE.to_owned())))
            .map_err(below("device"))?,
        batch: section.batch,
        efficiency: section.efficiency,
        bandwidth: section.bandwidth,
    };
    if let Some(batch) = group.batch {
        check_batch(batch)?;
    }
    optional(group.efficiency, |value| positive("efficiency", value, "a share such as 0.5"))?;
    optional(group.bandwidth, |rate| positive("bandwidth", rate.get(), "a rate such as \"10 Gbit/s\""))?;
    Ok(group)
}

fn device(given: NameOr<DeviceSection>) -> Result<Device, Invalid> {
    let section = match given {
        NameOr::Name(id) => return catalog::device(&id),
        NameOr::Table(section) => *section,
    };
    let base = section.base.as_deref().map(catalog::device).transpose().map_err(below("base"))?;
    let missing = |key: &str| {
        Invalid::new(
            KeyPath::root(),
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
        efficiency: section.efficiency.or(base.and_then(|b| b.efficiency)),
        memory_efficiency: section.memory_efficiency.or(base.and_then(|b| b.memory_efficiency)),
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

fn network(given: NameOr<NetworkSection>) -> Result<Network, Invalid> {
    let section = match given {
        NameOr::Name(id) => return catalog::network(&id),
        NameOr::Table(section) => *section,
    };
    let base = section.base.as_deref().map(catalog::network).transpose().map_err(below("base"))?;
    let base = base.as_ref();
    let bandwidth = section.bandwidth.or(base.map(|b| b.bandwidth)).ok_or_else(|| {
        Invalid::new(
            KeyPath::root(),
            "the network has neither a `base` nor a `bandwidth`",
            format!("add `bandwidth = \"10 Gbit/s\"`, or `base = \"{DEFAULT_NETWORK}\"` to start from a catalog entry"),
        )
    })?;
    let network = Network {
        name: section
            .name
            .or_else(|| base.map(|b| b.name.clone()))
            .unwrap_or_else(|| "custom network".to_owned()),
        bandwidth,
        latency: section.latency.or(base.map(|b| b.latency)).unwrap_or(Seconds::ZERO),
        efficiency: section.efficiency.or(base.map(|b| b.efficiency)).unwrap_or(1.0),
        startup: section.startup.or(base.map(|b| b.startup)).unwrap_or(Seconds::ZERO),
        host_rate: section.host_rate.or(base.and_then(|b| b.host_rate)),
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
        return Err(Invalid::new(KeyPath::of("efficiency"), reason, "use a share of at most 1"));
    }
    optional(network.host_rate, |rate| positive("host-rate", rate.get(), "a rate such as \"8 GB/s\""))?;
    Ok(network)
}

fn servers(section: ServersSection) -> Result<Servers, Invalid> {
    let count = section.count.unwrap_or(1);
    if !(1..=MAX_SERVERS).contains(&count) {
        let reason = format!("{count} servers are outside 1 to {MAX_SERVERS}");
        return Err(Invalid::new(KeyPath::of("count"), reason, format!("use 1 to {MAX_SERVERS} servers")));
    }
    optional(section.bandwidth, |rate| positive("bandwidth", rate.get(), "a rate such as \"25 Gbit/s\""))?;
    Ok(Servers { count, placement: section.placement.unwrap_or_default(), bandwidth: section.bandwidth })
}

fn strategy(section: StrategySection) -> Result<Strategy, Invalid> {
    let batch = section.batch.unwrap_or(DEFAULT_BATCH);
    check_batch(batch)?;
    Ok(Strategy {
        architecture: section.architecture.unwrap_or_default(),
        synchronisation: section.synchronisation.unwrap_or_default(),
        batch,
        precision: section.precision.unwrap_or_default(),
    })
}

fn data(section: DataSection) -> Result<DataSet, Invalid> {
    let missing =
        || Invalid::new(KeyPath::root(), "the data set has no `samples`", "add `samples = 1281167`");
    let samples = section.samples.ok_or_else(missing)?;
    let epochs = section.epochs.unwrap_or(1);
    for (key, value) in [("samples", samples), ("epochs", epochs)] {
        if value == 0 {
            return Err(Invalid::new(KeyPath::of(key), "must be at least 1", "use a positive number"));
        }
    }
    Ok(DataSet { samples, epochs })
}

fn price(section: PriceSection) -> Result<Price, Invalid> {
    let worker_hour = section.worker_hour.unwrap_or(0.0);
    let server_hour = section.server_hour.unwrap_or(0.0);
    not_negative("worker-hour", worker_hour, "a price such as 0.9")?;
    not_negative("server-hour", server_hour, "a price such as 0.2")?;
    Ok(Price { worker_hour, server_hour, currency: section.currency.unwrap_or_else(|| "USD".to_owned()) })
}

fn zeng2023(section: ZengSection) -> Result<ZengOptions, Invalid> {
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

fn no_such_precision(index: usize, device: &Device, strategy: Strategy) -> Invalid {
    let precision = format!("{:?}", strategy.precision).to_lowercase();
    Invalid::new(
        KeyPath::of("cluster.workers").index(index),
        format!("the {} has no {precision} rate", device.name),
        format!("use `precision = \"fp32\"`, or give the device a `{precision}` rate"),
    )
}

fn check_batch(batch: u32) -> Result<(), Invalid> {
    match batch {
        1..=MAX_BATCH => Ok(()),
        _ => {
            let reason = format!("a batch of {batch} is outside 1 to {MAX_BATCH}");
            Err(Invalid::new(KeyPath::of("batch"), reason, "use the number of samples per worker and step"))
        }
    }
}

fn optional<T>(value: Option<T>, check: impl Fn(T) -> Result<(), Invalid>) -> Result<(), Invalid> {
    value.map_or(Ok(()), check)
}

fn positive(key: &str, value: f64, example: &str) -> Result<(), Invalid> {
    bounded(key, value, example, value > 0.0, "positive")?;
    plausible(key, value, example)
}

fn not_negative(key: &str, value: f64, example: &str) -> Result<(), Invalid> {
    bounded(key, value, example, value >= 0.0, "zero or more")?;
    if value > 0.0 { plausible(key, value, example) } else { Ok(()) }
}

fn plausible(key: &str, value: f64, example: &str) -> Result<(), Invalid> {
    if PLAUSIBLE.contains(&value) {
        return Ok(());
    }
    let size = if value > 1.0 { "large" } else { "small" };
    let reason = format!("{value:e} in base units is too {size} to be meant");
    Err(Invalid::new(KeyPath::of(key), reason, format!("use {example}")))
}

fn bounded(key: &str, value: f64, example: &str, holds: bool, wanted: &str) -> Result<(), Invalid> {
    if holds && value.is_finite() {
        return Ok(());
    }
    let reason = format!("must be {wanted}, but is {value}");
    Err(Invalid::new(KeyPath::of(key), reason, format!("use {example}")))
}
