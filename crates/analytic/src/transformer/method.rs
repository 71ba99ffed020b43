//! The method `transformer`: a step of a plan on the machines of a scenario.

use super::compute::{Compute, Parts, Software};
use super::flops::{self, Work};
use super::memory::{Allowance, MemoryInputs, RankMemory};
use super::outer::Outer;
use super::placement::{FULL, Links, Torus};
use super::plans::Table;
use super::schedules::Deadlock;
use super::stages::Run;
use super::step::{StageStep, Step};
use super::unequal::TwoKinds;
use super::{offload, schedules, warnings};
use crate::collectives::reached_rate;
use stepcast_core::compute;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::machine::{Cluster, FabricLevel, Generation, MAX_LEVELS, Network, Transport, WorkerGroup};
use stepcast_core::method::{Method, MethodAbout};
use stepcast_core::model::transformer::Transformer as Shape;
use stepcast_core::prediction::{
    Bottleneck, GroupReport, MemoryReport, Part, PartKind, Prediction, SplitReport, StageMemory, StageReport,
    Verdict,
};
use stepcast_core::prior::Priors;
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Conditions, Division, OverlapPreset, Plan, PlanChoice, Recipe};

/// Transformers split by a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Transformer;

impl Method for Transformer {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "transformer",
            summary: "transformers with tensor, context, pipeline, expert and sharded data parallelism",
            source: "Stepcast, docs/transformers.md",
        }
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        planned(scenario).map(|_| ())
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        let planned = planned(scenario)?;
        let stuck = |stuck: Deadlock| {
            let reason = format!("stage {} waits for itself: {:?}", stuck.stage, stuck.operation);
            Fault::in_key("strategy.plan.schedule", reason, "use another schedule")
        };
        let mut kinds = Vec::new();
        for run in planned.run().by_replica() {
            kinds.push((run, run.step().map_err(stuck)?));
        }
        Ok(prediction(scenario, &kinds))
    }

    fn step(&self, scenario: &Scenario) -> Result<Seconds, Fault> {
        let planned = planned(scenario)?;
        let (plan, run) = (planned.plan, planned.run());
        let alike =
            plan.given_layers().is_empty() && plan.given_recompute().is_empty() && run.kinds.is_none();
        match alike.then(|| Table::new(run).step(&plan.choice(&run.division))).flatten() {
            Some(step) => Ok(Outer::of(scenario, &run).map_or(step, |outer| outer.step(step))),
            None => Ok(self.predict(scenario)?.iteration),
        }
    }
}

/// A plan that divides the transformer of a scenario.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    scenario: &'a Scenario,
    shape: Shape,
    pub plan: &'a Plan,
    pub division: Division,
}

impl Planned<'_> {
    pub fn run(&self) -> Run<'_> {
        on_machines(self.scenario, &self.shape, self.plan, self.division)
    }
}

pub fn planned(scenario: &Scenario) -> Result<Planned<'_>, Fault> {
    let plan = scenario.strategy.plan.as_ref().ok_or_else(|| {
        let remedy = "add `[strategy.plan]`, such as `tensor = 8`";
        Fault::in_key("strategy.plan", "there is no plan that splits a transformer", remedy)
    })?;
    if plan.recipe != Recipe::None {
        let mut groups = scenario.cluster.groups.iter();
        groups.try_for_each(|group| computes(plan.recipe, scenario, group))?;
    }
    let shape = scenario.transformer_of_plan()?;
    let below = |fault: Fault| fault.below(KeyPath::of("strategy.plan"));
    let division = plan.divide(&shape, scenario.cluster.workers()).map_err(below)?;
    if schedules::is_too_large(plan.pipeline, plan.virtual_stages, division.micro_batches) {
        let reason = format!("a schedule of {} stages has too many operations", plan.pipeline);
        let remedy = "use fewer stages, such as `pipeline = 8`";
        return Err(Fault::in_key("strategy.plan.pipeline", reason, remedy));
    }
    let planned = Planned { scenario, shape, plan, division };
    if plan.shares.is_some() {
        planned.run().check_shares()?;
    }
    Ok(planned)
}

/// Whether a group's products by a recipe are known to be faster than its others.
fn computes(recipe: Recipe, scenario: &Scenario, group: &WorkerGroup) -> Result<(), Fault> {
    let device = &group.device;
    let name = &device.name;
    let wrong = |reason, remedy| Err(Fault::in_key("strategy.plan.recipe", reason, remedy));
    let (rate, key) = match recipe.bits() {
        Some(4) => (device.float4, "float4"),
        _ => (device.float8, "float8"),
    };
    if rate.is_none() {
        let bits = recipe.bits().unwrap_or(8);
        let reason = format!("no {bits}-bit rate of the {name} is known");
        return wrong(reason, format!("leave `recipe` out, or give the device its `{key}` rate"));
    }
    if recipe.scales_in_hardware() && device.float4.is_none() {
        let reason =
            format!("tensor units of the {name} apply no scales of small blocks, as `{recipe}` needs");
        return wrong(reason, "use `recipe = \"fp8-block\"` or `\"fp8\"`".to_owned());
    }
    if !compute::is_by_parts(scenario, group) {
        let reason =
            format!("the {name} computes all operations at one given rate, whatever their precision");
        let remedy = "leave `recipe` out, or remove what sets the rate, such as the device's `efficiency`";
        return wrong(reason, remedy.to_owned());
    }
    Ok(())
}

/// A plan that divides a transformer in this way on the machines of a scenario; the slowest device and port set the
/// rates.
pub fn on_machines<'a>(
    scenario: &'a Scenario,
    shape: &'a Shape,
    plan: &'a Plan,
    division: Division,
) -> Run<'a> {
    let cluster = &scenario.cluster;
    let workers = plan.inner_workers(cluster.workers());
    let unlimited =
        Compute::OneRate { rate: FlopsPerSec::new(f64::INFINITY), memory: BytesPerSec::new(f64::INFINITY) };
    let devices: Vec<Compute> =
        (0..cluster.groups.len()).map(|index| computing(scenario, plan, index)).collect();
    let compute = devices.iter().copied().fold(unlimited, Compute::slower);
    let kinds = match devices[..] {
        [one, other] if one != other && plan.outer_replicas == 1 => {
            let ranks = [&cluster.groups[0], &cluster.groups[1]].map(|group| group.count.into());
            Some(TwoKinds { ranks, compute: [one, other] })
        }
        _ => None,
    };
    Run {
        shape,
        plan,
        division,
        links: links(cluster, &scenario.priors),
        node: u64::from(cluster.workers_per_domain()),
        machine: u64::from(cluster.workers_per_node()),
        interference: interference(plan, &compute, scenario),
        compute,
        kinds,
        apart: None,
        fused: Software::from_strategy(&scenario.strategy, plan, workers).fused,
        weight_width: scenario.strategy.precision.width().into(),
        host_link: offload::host_link(plan, cluster) * scenario.priors.transformer.offload,
        host_memory: plan.host_memory * scenario.priors.transformer.offload,
    }
}

/// The assumed slowdown of computing beside traffic; 0 where the rate of computing is given.
fn interference(plan: &Plan, compute: &Compute, scenario: &Scenario) -> f64 {
    let own = &scenario.priors.transformer;
    let systolic = |group: &WorkerGroup| group.device.generation.is_some_and(Generation::is_systolic);
    match (compute, plan.overlap) {
        (Compute::OneRate { .. }, _) => 0.0,
        // Engines of their own move data there.
        _ if scenario.cluster.groups.iter().all(systolic) => 0.0,
        (_, OverlapPreset::None | OverlapPreset::Megatron | OverlapPreset::Megatron2021) => own.interference,
        (_, OverlapPreset::Torchtitan | OverlapPreset::Deepspeed | OverlapPreset::Fsdp2) => {
            own.interference_pytorch
        }
    }
}

/// How fast a worker of the group at `index` computes: part by part where only its data sheet is known.
fn computing(scenario: &Scenario, plan: &Plan, index: usize) -> Compute {
    let group = &scenario.cluster.groups[index];
    let precision = scenario.strategy.precision;
    match group.device.peak(precision) {
        Some(peak) if compute::is_by_parts(scenario, group) => {
            let workers = plan.inner_workers(scenario.cluster.workers());
            let software = Software::from_strategy(&scenario.strategy, plan, workers);
            let doublings = (workers as f64 / USUAL_NODE).max(1.0).log2();
            let own = &scenario.priors.transformer;
            let disturbed = match plan.conditions {
                Conditions::Benchmark => 1.0,
                Conditions::Production => own.production,
            };
            let parts = Parts::new(&group.device, peak, group.speed, software, &scenario.priors.transformer)
                .disturbed(disturbed * (1.0 + own.loss * doublings));
            Compute::Parts(if plan.graphs { parts.graphed() } else { parts })
        }
        _ => Compute::OneRate {
            rate: compute::rate(scenario, index),
            memory: compute::memory_rate(scenario, index),
        },
    }
}

/// Devices of a usual machine, beyond which steps lose time to each other.
const USUAL_NODE: f64 = 8.0;

/// Rate at which a rank copies its own part of what a ring moves, against one direction of its NVLink: NCCL on 2, 4 and 8 A100, H100
/// and B200, 512 MiB: 1.4 to 2.1 (ai-dynamo/aiconfigurator).
const OWN_PART: f64 = 1.65;

/// Both levels of the network: between the ranks of a node, and a rank's share of the node's ports, at what collectives
/// reach on their transports.
fn links(cluster: &Cluster, priors: &Priors) -> Links {
    let own = &priors.transformer;
    let rate = |network: &Network, port: BytesPerSec, inside: bool| match (network.reached, network.transport)
    {
        (Some(reached), _) => reached,
        (None, Transport::Ideal) => port * network.efficiency,
        (None, Transport::Nvlink) => port * own.nvlink,
        (None, Transport::Rdma) if network.rented == Some(true) => port * (own.rdma * own.rented),
        (None, Transport::Rdma) => port * own.rdma,
        _ => reached_rate(cluster, inside, &priors.all_reduce),
    };
    let unless_ideal = |network: &Network, time: Seconds| match network.transport {
        Transport::Ideal => Seconds::ZERO,
        _ => time,
    };
    let latency = |network: &Network, inside: bool| {
        let hop = if inside || network.transport == Transport::Nvlink { own.hop } else { own.hop_between };
        (network.latency + network.startup).max(unless_ideal(network, hop))
    };
    let start = |network: &Network| match network.transport {
        Transport::Nvlink => own.start,
        _ => unless_ideal(network, own.start_between),
    };
    let port = |group: &WorkerGroup| group.bandwidth.unwrap_or(cluster.network.bandwidth);
    let slowest = cluster.groups.iter().map(port).reduce(|a, b| a.min(b));
    let port = slowest.unwrap_or(cluster.network.bandwidth).to_bytes_per_sec();
    let between = rate(&cluster.network, port, false);
    let torus = |network: &Network, joined: u32| {
        let chips = u64::from(joined).min(cluster.workers()) as f64;
        network.torus.map(|dimensions| Torus { dimensions: f64::from(dimensions), chips })
    };
    let mut levels = [FULL; MAX_LEVELS];
    for (own, given) in levels.iter_mut().zip(cluster.network.oversubscription.iter().flatten()) {
        // Levels count machines; domains of several are that many nodes.
        let machines = given.machines * cluster.workers_per_node() / cluster.workers_per_domain();
        *own = FabricLevel { machines: machines.max(1), ..*given };
    }
    let copies = |network: &Network| match (network.transport, network.reached, network.torus) {
        (Transport::Nvlink, None, None) => network.bandwidth.to_bytes_per_sec() * OWN_PART,
        _ => BytesPerSec::new(f64::INFINITY),
    };
    let between_latency = latency(&cluster.network, false);
    let between_message = between_latency.min(own.hop_between);
    let trees = matches!(cluster.network.transport, Transport::Nvlink | Transport::Rdma | Transport::Tcp);
    match &cluster.nodes {
        Some(nodes) => Links {
            within: rate(&nodes.network, nodes.network.bandwidth.to_bytes_per_sec(), true),
            within_latency: latency(&nodes.network, true),
            between: between * (f64::from(nodes.ports.unwrap_or(1)) / f64::from(nodes.workers)),
            own_part: copies(&nodes.network),
            between_latency,
            between_message,
            within_start: start(&nodes.network),
            between_start: start(&cluster.network),
            torus: torus(&nodes.network, cluster.workers_per_domain()),
            switch_sums: nodes.network.all_reduce_gain(u64::MAX),
            trees,
            levels,
        },
        None => Links {
            within: between,
            within_latency: between_latency,
            own_part: copies(&cluster.network),
            between,
            between_latency,
            between_message,
            within_start: start(&cluster.network),
            between_start: start(&cluster.network),
            torus: None,
            switch_sums: cluster.network.all_reduce_gain(u64::MAX),
            trees,
            levels,
        },
    }
}

/// The prediction from the steps of all kinds of replicas: all wait for the longest.
fn prediction(scenario: &Scenario, kinds: &[(Run<'_>, Step)]) -> Prediction {
    let longer = |most: usize, kind: usize| if kinds[kind].1.time > kinds[most].1.time { kind } else { most };
    let (run, step) = &kinds[(0..kinds.len()).fold(0, longer)];
    let m = run.division.micro_batches as f64;
    let outer = Outer::of(scenario, run);
    let iteration = outer.map_or(step.time, |outer| outer.step(step.time));
    let mut parts = breakdown(step, m);
    parts.extend(outer_part(iteration - step.time));
    let compute = parts[0].time + parts[1].time;
    let of_links: Seconds = parts.iter().filter(|part| part.kind.is_link()).map(|part| part.time).sum();
    let samples = run.division.global_batch;
    let throughput = SamplesPerSec::from_time(samples as f64, iteration);
    // One device alone, if it could hold everything, would compute for this long.
    let workers = scenario.cluster.workers();
    let each = |stage: &StageStep| {
        let passes = stage.spent().compute + stage.spent().recompute + stage.starved();
        passes * m + stage.tail.update + stage.tail.offload
    };
    let ranks = workers as f64 / step.stages.len() as f64;
    let alone: f64 = step.stages.iter().map(|stage| (each(stage) + step.host).get() * ranks).sum();
    let groups = scenario.cluster.groups.iter().enumerate().map(|(index, group)| {
        let (own, its) = kinds.get(index).unwrap_or(&kinds[0]);
        let sequences = own.division.micro_batches * own.plan.micro_batch;
        GroupReport {
            group: index,
            count: group.count,
            batch: u32::try_from(sequences).unwrap_or(u32::MAX),
            compute: breakdown(its, own.division.micro_batches as f64)[..2]
                .iter()
                .map(|part| part.time)
                .sum(),
            ready: Seconds::ZERO,
            slack: Some(step.time / its.time - 1.0),
        }
    });
    let most = kinds.iter().map(|(run, _)| run.division.micro_batches).max().unwrap_or(1);
    let mut report = report(scenario, run, step, (iteration, most));
    report.outer = outer.map(|outer| outer.report(run.plan, step.time));
    let warnings = warnings::all(scenario, run, &report);
    Prediction {
        method: "transformer",
        workers,
        iteration,
        samples,
        throughput,
        speedup: alone / iteration.get(),
        scaling_factor: alone / iteration.get() / workers as f64,
        bottleneck: if compute >= of_links { Bottleneck::Compute } else { Bottleneck::WorkerLink },
        staleness: None,
        breakdown: parts,
        groups: groups.collect(),
        warnings,
        csf: None,
        communication: None,
        updating: None,
        simulation: None,
        transformer: Some(Box::new(report)),
    }
}

/// The time of a step of its slowest stage, by cause; computing comes first.
fn breakdown(step: &Step, m: f64) -> Vec<Part> {
    let stage = &step.stages[step.slowest];
    let spent = stage.spent();
    let part = |kind, time| Part { kind, time };
    let mut parts = vec![
        part(PartKind::Compute, spent.compute * m + stage.tail.update),
        part(PartKind::Recompute, spent.recompute * m),
        part(PartKind::Host, stage.starved() * m + step.host),
        part(PartKind::TensorParallelism, spent.tensor * m),
        part(PartKind::ContextParallelism, spent.context * m),
        part(PartKind::ExpertParallelism, spent.expert * m),
        part(PartKind::ShardedWeights, spent.sharded * m + stage.waited + stage.tail.weights),
        part(PartKind::Offload, spent.offload * m + stage.tail.offload),
        part(PartKind::PipelineSends, stage.sends * m),
        part(PartKind::Gradients, stage.tail.gradients),
    ];
    let known: Seconds = parts.iter().map(|part| part.time).sum();
    // A single stage has no unknown waits, but sums are not exact.
    let bubble = if step.stages.len() > 1 { (step.time - known).max(Seconds::ZERO) } else { Seconds::ZERO };
    parts.push(part(PartKind::PipelineBubble, bubble));
    let mut index = 0;
    parts.retain(|part| {
        index += 1;
        index <= 2 || part.time > Seconds::ZERO
    });
    parts
}

/// Additional time of a step for outer gradients.
pub fn outer_part(time: Seconds) -> Option<Part> {
    (time > Seconds::ZERO).then_some(Part { kind: PartKind::OuterGradients, time })
}

/// The report on a step; the replicas with the most micro-batches hold most.
fn report(
    scenario: &Scenario,
    run: &Run<'_>,
    step: &Step,
    (iteration, micro_batches): (Seconds, u64),
) -> SplitReport {
    let workers = scenario.cluster.workers();
    let (shape, plan) = (run.shape, run.plan);
    let work = Work { sequence: shape.sequence, batch: run.division.global_batch, mask: plan.mask };
    let again = (plan.recomputation().what, plan.recomputed_ranges(shape.layers));
    let flops = flops::step(shape, work, again, plan.attention_kind());
    let peak = scenario
        .cluster
        .groups
        .iter()
        .filter_map(|group| Some(group.device.peak(scenario.strategy.precision)? * f64::from(group.count)))
        .reduce(|one, other| one + other)
        .map_or_else(|| run.compute.rate(), |all| all / workers as f64);
    let share = |operations| flops::utilisation(operations, iteration, workers, peak);
    let tokens = (run.division.global_batch * shape.sequence) as f64 / iteration.get();
    let held = run.held();
    let held = MemoryInputs { choice: PlanChoice { micro_batches, ..held.choice }, ..held };
    let ranks: Vec<RankMemory> = (0..step.stages.len() as u64).map(|stage| held.rank(stage)).collect();
    let capacity = scenario.cluster.smallest_memory();
    let mut memory = memory_report(capacity, plan, &ranks);
    if let (Verdict::DoesNotFit, Some((saving, held))) = (memory.verdict, held.sparing()) {
        let spared: Vec<RankMemory> = (0..ranks.len() as u64).map(|stage| held.rank(stage)).collect();
        let MemoryReport { least, verdict, .. } = memory_report(capacity, plan, &spared);
        if verdict != Verdict::DoesNotFit {
            memory = MemoryReport { least, verdict: Verdict::MayNotFit, saving: Some(saving), ..memory };
        }
    }
    let stage = |(stage, rank): (&StageStep, &RankMemory)| StageReport {
        layers: stage.layers.count(),
        parameters: rank.parameters,
        forward: stage.pass.forward.total(),
        backward: stage.pass.backward.total() + stage.pass.weight.total(),
        end: stage.end,
        in_flight: rank.in_flight,
        memory: StageMemory {
            weights: rank.weights,
            gradients: rank.gradients,
            optimiser: rank.optimiser,
            activations: rank.activations,
            working: rank.recomputed + rank.embedding + rank.head + rank.unsharded + rank.temporary,
            total: rank.total(),
        },
    };
    let mut exposed = breakdown(step, run.division.micro_batches as f64);
    exposed.extend(outer_part(iteration - step.time));
    SplitReport {
        tokens_per_s: tokens,
        tokens_per_s_per_device: tokens / workers as f64,
        mfu: share(flops.model),
        hfu: share(flops.hardware),
        mask: plan.mask,
        bubble: step.bubble,
        data: run.division.data,
        micro_batches: run.division.micro_batches,
        schedule: plan.schedule_kind(),
        exposed: exposed.into_iter().filter(|part| part.kind.is_link()).collect(),
        stages: step.stages.iter().zip(&ranks).map(stage).collect(),
        memory: MemoryReport { risk: held.risk(|total| allowance(plan).with(total) <= capacity), ..memory },
        outer: None,
    }
}

pub(super) fn memory_report(capacity: Bytes, plan: &Plan, ranks: &[RankMemory]) -> MemoryReport {
    let totals = ranks.iter().map(RankMemory::total).enumerate();
    let (stage, total) =
        totals.fold((0, Bytes::ZERO), |most, each| if each.1 > most.1 { each } else { most });
    let least = total + plan.reserved;
    let most = allowance(plan).with(total);
    let verdict = match () {
        () if most <= capacity => Verdict::Fits,
        () if least <= capacity => Verdict::MayNotFit,
        () => Verdict::DoesNotFit,
    };
    MemoryReport { stage, least, most, capacity, verdict, saving: None, risk: None }
}

fn allowance(plan: &Plan) -> Allowance {
    Allowance { fragmentation: plan.fragmentation, fixed: plan.reserved }
}
