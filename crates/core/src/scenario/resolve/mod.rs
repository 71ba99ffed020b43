//! Converts the user's input to a checked scenario: defaults, catalog look-ups, ranges.

mod exchange;
mod machines;
mod model;
mod together;

pub(super) use machines::{Layout, cluster};

use super::{ClusterSection, ModelSource, OfferSection, Scenario, ScenarioFile, SharingRule, field};
use crate::fault::{Fault, KeyPath};
use crate::files::{Files, NoFiles};
use crate::keys::{Given, NameOr};
use crate::machine::{
    Cluster, Generation, Network, NetworkSection, ServerSoftware, TRANSFORMER_DEVICE, Transport,
    WorkersSection, catalog,
};
use crate::precision::Precision;
use crate::prior::Priors;
use crate::profile::Profile;
use crate::quantity::{BytesPerSec, Seconds};
use crate::strategy::{
    Architecture, BufferReading, FusionRule, Implementation, Loss, OverlapPreset, States, Strategy,
    StrategySection, Synchronisation,
};
use crate::uncertain::Uncertain;
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

    /// Like [`resolve_with`](Self::resolve_with), but checks each value only separately; [`Scenario::check_together`]
    /// checks whether the values are consistent.
    pub fn resolve_unchecked(mut self, files: &dyn Files) -> Result<Scenario, Fault> {
        if let Some(plan) = &mut self.plan {
            plan.offers = plan.offers.take().or_else(|| Some(vec![own_offer(&self.cluster)?]));
        }
        let uncertain = field::ranges(&self);
        let model::Trained { source, counting, workload } =
            model::model(self.model, files).map_err(below("model"))?;
        let uncertain = uncertain?;
        let profile = source.profile();
        if let Some(profile) = profile {
            no_devices(&self.cluster)?;
            let open = self.cluster.network.is_none() && self.cluster.machine.is_none();
            self.cluster.network =
                profile.link_rate.filter(|_| open).map(as_recorded).or(self.cluster.network);
        }
        if source.transformer().is_some() && self.cluster.machine.is_none() {
            let groups = self.cluster.workers.get_or_insert_with(|| vec![WorkersSection::default()]);
            if groups.iter().all(|group| group.device.is_none()) {
                groups.iter_mut().for_each(|group| group.device = Some(NameOr::from(TRANSFORMER_DEVICE)));
            }
        }
        let (architecture, synchronisation) = exchange_of(&self.strategy, &self.cluster, profile);
        self.strategy.architecture = Some(architecture);
        self.strategy.synchronisation = Some(synchronisation);
        let measured = self.strategy.all_reduce.is_some();
        let layout = match architecture {
            Architecture::AllReduce if !measured && !self.as_published => Layout::Usual,
            _ => Layout::Apart,
        };
        let cluster = cluster(self.cluster, layout, files).map_err(below("cluster"))?;
        let gradients = match exchange::names_gradients(&self.strategy) {
            true => source.gradients(&workload)?,
            false => Vec::new(),
        };
        self.strategy.batch = self.strategy.batch.or(source.profile().map(|profile| profile.batch));
        if let Some(plan) = &mut self.strategy.plan {
            plan.halve_dual_pipe().map_err(below("strategy.plan"))?;
            plan.global_batch = sequences(self.strategy.batch, plan.global_batch, &cluster)?;
            let hugging_face = matches!(source, ModelSource::Config { .. })
                && matches!(plan.overlap, Some(OverlapPreset::Fsdp2 | OverlapPreset::Deepspeed));
            plan.implementation = plan.implementation.or(hugging_face.then_some(Implementation::HuggingFace));
            let usual = source.transformer().as_ref().and_then(Implementation::usual);
            plan.implementation = plan.implementation.or(usual);
            let xla = cluster.groups.iter().all(|group| group.device.generation == Some(Generation::Tpu));
            plan.implementation = plan.implementation.or(xla.then_some(Implementation::Xla));
            let liger = plan.implementation == Some(Implementation::Liger);
            plan.loss = plan.loss.or(liger.then_some(Loss::Chunked));
            // A compiled PyTorch model includes its loss.
            let fsdp = plan.overlap.is_some_and(OverlapPreset::is_fsdp);
            let compiled = self.strategy.compiled == Some(true)
                && plan.implementation.map_or(fsdp, Implementation::is_eager);
            plan.loss = plan.loss.or(compiled.then_some(Loss::Compiled));
            let precision = self.strategy.precision.unwrap_or_else(|| usual_precision(&cluster));
            self.strategy.precision = Some(precision);
            // Autocast leaves the weights as they are.
            let wide = precision.is_mixed() || precision.width() == 4;
            plan.states = plan.states.or(wide.then_some(States::Fp32));
        }
        if self.as_published {
            read_as_printed(&mut self.strategy);
        }
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
            data: self.data.map(|data| data.resolve(files)?.checked()).transpose().map_err(below("data"))?,
            price: self.price.map(|price| price.resolve(files)).transpose().map_err(below("price"))?,
            planning: self.plan.map(|plan| plan.resolve(files)).transpose().map_err(below("plan"))?,
            failures: self.failures.map(|it| it.resolve(files)).transpose().map_err(below("failures"))?,
            energy: self.energy.map(|energy| energy.resolve(files)).transpose().map_err(below("energy"))?,
            methods,
            priors: Priors::shipped()?,
        };
        Ok(if scenario.as_published { stripped(scenario) } else { scenario })
    }
}

/// Named machines that match the catalog in all other respects are an offer, at the price of the catalog.
fn own_offer(cluster: &ClusterSection) -> Option<OfferSection> {
    let name = cluster.machine.clone()?;
    let whole = catalog::machine(&name).ok()?.gpus;
    let counted = match cluster.workers.as_deref() {
        None => true,
        Some([WorkersSection { count: Some(count), .. }]) => count % whole == 0,
        Some(_) => false,
    };
    let group = |group: &WorkersSection| WorkersSection { count: group.count, ..WorkersSection::default() };
    let plain = ClusterSection {
        machine: cluster.machine.clone(),
        machines: cluster.machines,
        workers: cluster.workers.as_ref().map(|groups| groups.iter().map(group).collect()),
        ..ClusterSection::default()
    };
    let offer = || OfferSection { machine: Some(name), ..OfferSection::default() };
    (counted && *cluster == plain).then(offer)
}

/// The link of a recording, at the rate that its transfers reached.
fn as_recorded(bytes: f64) -> NameOr<NetworkSection> {
    NameOr::Table(Box::new(NetworkSection {
        name: Some("link as recorded".to_owned()),
        bandwidth: Some(Uncertain::exactly(BytesPerSec::new(bytes).to_bits_per_sec())),
        transport: Some(Transport::Ideal),
        ..NetworkSection::default()
    }))
}

/// Refuses devices of workers whose times were recorded.
fn no_devices(cluster: &ClusterSection) -> Result<(), Fault> {
    let groups = cluster.workers.iter().flatten();
    let Some(group) = groups.clone().position(|group| group.device.is_some()) else { return Ok(()) };
    let reason =
        "a profile has the times of the device that it was recorded on; another device does not change them";
    let remedy = "leave it out; `speed = 2.0` makes workers twice as fast as recorded";
    Err(Fault::in_key(KeyPath::of("cluster.workers").index(group).key("device"), reason, remedy))
}

/// Default architecture and synchronisation: servers are used if the scenario names them, or a synchronisation that needs
/// them, or if the profile was recorded with them.
fn exchange_of(
    strategy: &StrategySection,
    cluster: &ClusterSection,
    profile: Option<&Profile>,
) -> (Architecture, Synchronisation) {
    use Synchronisation::{Async, Bsp, Ssp};
    let recorded = profile.is_some_and(Profile::has_servers);
    let open = strategy.architecture.is_none() && strategy.plan.is_none();
    let synchronisation = strategy.synchronisation.unwrap_or(if open && recorded { Async } else { Bsp });
    let served = recorded || cluster.servers.is_some() || matches!(synchronisation, Async | Ssp(_));
    let usual = if open && served { Architecture::ParameterServer } else { Architecture::AllReduce };
    (strategy.architecture.unwrap_or(usual), synchronisation)
}

/// Sequences of a step of a plan: `batch` for each worker, or the plan's own number.
fn sequences(batch: Option<u32>, global: Option<u64>, cluster: &Cluster) -> Result<Option<u64>, Fault> {
    let Some(each) = batch else { return Ok(global) };
    let all = u64::from(each) * cluster.workers();
    match global.filter(|global| *global != all) {
        None => Ok(Some(all)),
        Some(global) => {
            let reason =
                format!("a step has {all} sequences by `batch`, and {global} by `global-batch` of the plan");
            Err(Fault::in_key("strategy.batch", reason, "keep one of them"))
        }
    }
}

/// Default precision of transformers: the 16-bit format that all devices have.
fn usual_precision(cluster: &Cluster) -> Precision {
    let has = |precision| cluster.groups.iter().all(|group| group.device.peak(precision).is_some());
    [Precision::Bf16, Precision::Fp16].into_iter().find(|&precision| has(precision)).unwrap_or_default()
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
    section.fill(None, files, exchange, plan)
}

/// The scenario as papers see it: links carry their nominal rates, share them fairly and cost nothing else, servers have no
/// software, and devices compute the counted operations at their peak rates (or the given share of them). Start-ups and rates of hosts stay: they
/// are inputs of formulas, and no network of the catalog has them.
fn stripped(mut scenario: Scenario) -> Scenario {
    nominal(&mut scenario.cluster.network);
    if let Some(nodes) = &mut scenario.cluster.nodes {
        nominal(&mut nodes.network);
    }
    scenario.cluster.servers.software = Some(ServerSoftware::None);
    scenario.methods.simulate.transport = SharingRule::Fair;
    scenario
}

/// Makes buffers of gradients wait as in eq. 15 of Liu 2022, unless the scenario says otherwise.
fn read_as_printed(strategy: &mut StrategySection) {
    let buffer = strategy.fusion.as_mut().filter(|fusion| fusion.rule == Some(FusionRule::Buffer));
    if let Some(fusion) = buffer {
        fusion.reading.get_or_insert(BufferReading::Serial);
    }
}

fn nominal(network: &mut Network) {
    network.transport = Transport::Ideal;
    network.efficiency = 1.0;
    network.latency = Seconds::ZERO;
    network.reached = None;
}
