//! Converts a scenario back to a file with all defaults filled in.

use super::sections::{ClusterSection, ModelSection};
use super::{DataSet, Energy, Failures, Input, ModelSource, Planning, Price, Scenario, ScenarioFile, field};
use crate::fitted::transfer::Curve;
use crate::keys::Given;
use crate::machine::{Nodes, NodesSection, WorkerGroup, WorkersSection};
use crate::model::Counting;
use crate::strategy::{
    AllReduceSection, Architecture, BucketList, CurveSection, Exchange, Fusion, FusionRule, FusionSection,
    Plan, StrategySection,
};

impl Scenario {
    /// An equivalent file that relies neither on defaults nor on the catalog.
    pub fn to_file(&self) -> ScenarioFile {
        let exchanges = self.strategy.architecture == Architecture::AllReduce && self.strategy.plan.is_none();
        // A profile has the times of its own device.
        let group = |group: &WorkerGroup| match self.profile() {
            Some(_) => WorkersSection { device: None, ..group.section() },
            None => group.section(),
        };
        let apart = NodesSection { workers: Some(1), ..NodesSection::default() };
        let mut file = ScenarioFile {
            as_published: self.as_published,
            model: model(&self.source, self.counting),
            cluster: ClusterSection {
                machine: None,
                machines: None,
                beside: None,
                workers: Some(self.cluster.groups.iter().map(group).collect()),
                network: Some(Given::write(&self.cluster.network)),
                servers: Some(self.cluster.servers.section()),
                nodes: Some(self.cluster.nodes.as_ref().map_or(apart, Nodes::section)),
            },
            strategy: StrategySection {
                all_reduce: exchanges.then(|| all_reduce(&self.strategy.exchange)),
                fusion: exchanges.then(|| fusion(&self.strategy.exchange.fusion)),
                plan: self.strategy.plan.as_ref().map(Plan::section),
                // A plan says itself how many sequences a step has.
                batch: Some(self.strategy.batch).filter(|_| self.strategy.plan.is_none()),
                ..self.strategy.section()
            },
            input: (self.input != Input::default()).then(|| self.input.section()),
            data: self.data.as_ref().map(DataSet::section),
            price: self.price.as_ref().map(Price::section),
            plan: self.planning.as_ref().map(Planning::section),
            failures: self.failures.as_ref().map(Failures::section),
            energy: self.energy.as_ref().map(Energy::section),
            methods: self.methods.section(),
        };
        field::write_ranges(&self.uncertain, &mut file);
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
    let (adapters, frozen) = source.transformer().map(|shape| shape.tuning.sections()).unwrap_or_default();
    let section = ModelSection { adapters, frozen, ..section };
    match source {
        ModelSource::Zoo { name, sequence, .. } => {
            ModelSection { zoo: Some(name.clone()), sequence: *sequence, ..section }
        }
        ModelSource::Transformer { name, shape } => {
            ModelSection { transformer: Some(shape.section(name)), ..section }
        }
        ModelSource::Config { path, shape, .. } => {
            ModelSection { config: Some(path.clone()), sequence: Some(shape.sequence), ..section }
        }
        ModelSource::Custom(file) => ModelSection { custom: Some(file.as_ref().clone()), ..section },
        ModelSource::Profile { path, .. } => ModelSection { profile: Some(path.clone()), ..section },
        ModelSource::Onnx { path, sizes, .. } => {
            let sizes = Some(sizes.clone()).filter(|sizes| !sizes.is_empty());
            ModelSection { onnx: Some(path.clone()), sizes, ..section }
        }
    }
}

fn all_reduce(exchange: &Exchange) -> AllReduceSection {
    let section = exchange.section();
    match &exchange.curve {
        Some(Curve::Measured(curve)) => {
            AllReduceSection { measured: Some(curve.points().to_vec()), ..section }
        }
        Some(Curve::Piecewise(curve)) => AllReduceSection {
            curve: Some(CurveSection {
                threshold: Some(curve.threshold),
                per_doubling: Some(curve.per_doubling),
                one_byte: Some(curve.below),
                bandwidth: Some(curve.bandwidth),
                overhead: Some(curve.overhead),
            }),
            ..section
        },
        Some(Curve::Fitted { path, .. }) => AllReduceSection { fitted: Some(path.to_string()), ..section },
        Some(Curve::AlphaBeta { .. }) | None => section,
    }
}

fn fusion(fusion: &Fusion) -> FusionSection {
    let rule = |rule| FusionSection { rule: Some(rule), ..FusionSection::default() };
    match fusion {
        Fusion::None => rule(FusionRule::None),
        Fusion::All => rule(FusionRule::All),
        Fusion::Buffer { size, timeout, reading } => FusionSection {
            size: Some(*size),
            timeout: *timeout,
            reading: Some(*reading),
            ..rule(FusionRule::Buffer)
        },
        Fusion::Pytorch { first, cap } => {
            FusionSection { first: Some(*first), size: Some(*cap), ..rule(FusionRule::Pytorch) }
        }
        Fusion::Horovod { threshold, cycle, .. } => {
            FusionSection { size: Some(*threshold), cycle: Some(*cycle), ..rule(FusionRule::Horovod) }
        }
        Fusion::Adaptive => rule(FusionRule::Adaptive),
        Fusion::MgWfbp => rule(FusionRule::MgWfbp),
        Fusion::Buckets(counts) => {
            FusionSection { buckets: Some(BucketList::Counts(counts.to_vec())), ..rule(FusionRule::Buckets) }
        }
    }
}
