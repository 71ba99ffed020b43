//! A scenario written back as a file, every default filled in.

use super::sections::{
    AllReduceSection, BucketList, ClusterSection, CurveSection, DataSection, DeviceSection, FusionRule,
    FusionSection, MethodsSection, ModelSection, NameOr, NetworkSection, NodesSection, PriceSection,
    ServersSection, SimulateSection, StrategySection, WorkersSection, ZengSection,
};
use super::{ModelSource, Scenario, ScenarioFile, uncertain};
use crate::fitted::transfer::Curve;
use crate::machine::{Device, Network, WorkerGroup};
use crate::model::Counting;
use crate::strategy::{Architecture, Exchange, Fusion};
use crate::uncertain::Uncertain;

impl Scenario {
    /// The file that asks this question with nothing left to defaults or to the catalog.
    pub fn to_file(&self) -> ScenarioFile {
        let (zeng, simulate) = (self.zeng2023, self.simulate);
        let exchanges = self.strategy.architecture == Architecture::AllReduce;
        let mut file = ScenarioFile {
            model: model(&self.source, self.counting),
            cluster: ClusterSection {
                workers: Some(self.cluster.groups.iter().map(workers).collect()),
                network: Some(NameOr::Table(Box::new(network(&self.cluster.network)))),
                servers: Some(ServersSection {
                    count: Some(self.cluster.servers.count),
                    placement: Some(self.cluster.servers.placement),
                    bandwidth: self.cluster.servers.bandwidth.map(Uncertain::exactly),
                }),
                nodes: self.cluster.nodes.as_ref().map(|nodes| NodesSection {
                    workers: Some(nodes.workers),
                    network: Some(NameOr::Table(Box::new(network(&nodes.network)))),
                }),
            },
            strategy: StrategySection {
                architecture: Some(self.strategy.architecture),
                synchronisation: Some(self.strategy.synchronisation),
                batch: Some(self.strategy.batch),
                precision: Some(self.strategy.precision),
                all_reduce: exchanges.then(|| all_reduce(&self.strategy.exchange)),
                fusion: exchanges.then(|| fusion(&self.strategy.exchange.fusion)),
            },
            data: self
                .data
                .map(|data| DataSection { samples: Some(data.samples), epochs: Some(data.epochs) }),
            price: self.price.as_ref().map(|price| PriceSection {
                worker_hour: Some(price.worker_hour),
                server_hour: Some(price.server_hour),
                currency: Some(price.currency.clone()),
            }),
            methods: MethodsSection {
                zeng2023: Some(ZengSection {
                    activation: None,
                    flops_per_weight: Some(zeng.flops_per_weight),
                    simd: Some(zeng.simd),
                    fc: Some(zeng.fc),
                    host_copy: Some(zeng.host_copy),
                }),
                oyama2016: Some(self.oyama2016.to_section()),
                simulate: Some(SimulateSection {
                    runs: Some(simulate.runs),
                    steps: Some(simulate.steps),
                    warm_up: Some(simulate.warm_up),
                    seed: Some(simulate.seed),
                    window: simulate.window,
                    flow_control: Some(simulate.window.is_some()),
                    parse_fixed: Some(simulate.parse_fixed),
                    parse_rate: simulate.parse_rate,
                    parse_while_computing: Some(simulate.parse_while_computing),
                    jitter: Some(simulate.jitter),
                    order: Some(simulate.order),
                    transport: Some(simulate.transport),
                    queue: Some(simulate.queue),
                }),
            },
        };
        uncertain::write(&self.uncertain, &mut file);
        file
    }
}

fn model(source: &ModelSource, counting: Counting) -> ModelSection {
    let kinds = [
        ("bias", counting.bias),
        ("activation", counting.activation),
        ("pooling", counting.pooling),
        ("normalisation", counting.normalisation),
        ("elementwise", counting.elementwise),
    ];
    let count = kinds.iter().filter(|(_, counted)| *counted).map(|(name, _)| (*name).to_owned()).collect();
    let section = ModelSection { count: Some(count), ..ModelSection::default() };
    match source {
        ModelSource::Zoo(name) => ModelSection { zoo: Some(name.clone()), ..section },
        ModelSource::Custom(file) => ModelSection { custom: Some(file.as_ref().clone()), ..section },
        ModelSource::Profile { path, .. } => ModelSection { profile: Some(path.clone()), ..section },
        ModelSource::Onnx { path, sizes, .. } => {
            let sizes = Some(sizes.clone()).filter(|sizes| !sizes.is_empty());
            ModelSection { onnx: Some(path.clone()), sizes, ..section }
        }
    }
}

fn all_reduce(exchange: &Exchange) -> AllReduceSection {
    let (measured, curve, fitted) = match &exchange.curve {
        Some(Curve::Measured(curve)) => (Some(curve.points().to_vec()), None, None),
        Some(Curve::Piecewise(curve)) => (None, Some(*curve), None),
        Some(Curve::Fitted { path, .. }) => (None, None, Some(path.to_string())),
        Some(Curve::AlphaBeta { .. }) | None => (None, None, None),
    };
    AllReduceSection {
        algorithm: Some(exchange.algorithm),
        channels: Some(exchange.channels),
        overhead: exchange.overhead,
        interference: Some(exchange.interference),
        copy_rate: exchange.copy_rate,
        measured,
        fitted,
        curve: curve.map(|curve| CurveSection {
            threshold: Some(curve.threshold),
            per_doubling: Some(curve.per_doubling),
            one_byte: Some(curve.below),
            bandwidth: Some(curve.bandwidth),
            overhead: Some(curve.overhead),
        }),
    }
}

fn fusion(fusion: &Fusion) -> FusionSection {
    let rule = |rule| FusionSection { rule: Some(rule), ..FusionSection::default() };
    match fusion {
        Fusion::None => rule(FusionRule::None),
        Fusion::All => rule(FusionRule::All),
        Fusion::Buffer { size, timeout } => {
            FusionSection { size: Some(*size), timeout: *timeout, ..rule(FusionRule::Buffer) }
        }
        Fusion::Pytorch { first, cap } => {
            FusionSection { first: Some(*first), size: Some(*cap), ..rule(FusionRule::Pytorch) }
        }
        Fusion::Horovod { threshold, cycle } => {
            FusionSection { size: Some(*threshold), cycle: Some(*cycle), ..rule(FusionRule::Horovod) }
        }
        Fusion::Adaptive => rule(FusionRule::Adaptive),
        Fusion::MgWfbp => rule(FusionRule::MgWfbp),
        Fusion::Buckets(counts) => {
            FusionSection { buckets: Some(BucketList::Counts(counts.to_vec())), ..rule(FusionRule::Buckets) }
        }
    }
}

fn workers(group: &WorkerGroup) -> WorkersSection {
    WorkersSection {
        count: Some(group.count),
        device: Some(NameOr::Table(Box::new(device(&group.device)))),
        batch: group.batch,
        efficiency: group.efficiency.map(Uncertain::exactly),
        speed: Some(group.speed.into()),
        bandwidth: group.bandwidth.map(Uncertain::exactly),
        price: group.price,
    }
}

fn device(device: &Device) -> DeviceSection {
    DeviceSection {
        base: None,
        name: Some(device.name.clone()),
        kind: Some(device.kind),
        clock: Some(device.clock),
        units: Some(device.units),
        flops_per_cycle: Some(device.flops_per_cycle),
        tf32: device.tf32,
        fp16: device.fp16,
        bf16: device.bf16,
        memory: Some(device.memory),
        memory_rate: Some(device.memory_rate),
        host_link: device.host_link,
        efficiency: device.efficiency.map(Uncertain::exactly),
        memory_efficiency: device.memory_efficiency.map(Uncertain::exactly),
        fitted: device.fitted.as_ref().map(|fitted| fitted.path.clone()),
        source: Some(device.source.clone()),
    }
}

fn network(network: &Network) -> NetworkSection {
    NetworkSection {
        base: None,
        name: Some(network.name.clone()),
        bandwidth: Some(network.bandwidth.into()),
        latency: Some(network.latency.into()),
        efficiency: Some(network.efficiency.into()),
        startup: Some(network.startup),
        host_rate: network.host_rate.map(Uncertain::exactly),
        source: Some(network.source.clone()),
    }
}
