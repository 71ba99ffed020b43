//! Placement of the ranks of a transformer by a plan: the place of each rank in every group, and its machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepcast_analytic::transformer::placement::{Group, Seats};
use stepcast_analytic::transformer::stages::Run;
use stepcast_analytic::transformer::{Transformer, planned};
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::SplitReport;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Plan;

/// How a plan divides a transformer over the workers of a scenario.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Layout {
    /// All ranks.
    pub ranks: u64,
    /// Ranks of a machine.
    pub ranks_per_node: u64,
    /// Ranks that divide every matrix.
    pub tensor: u64,
    /// Ranks that divide every sequence.
    pub context: u64,
    /// Replicas.
    pub data: u64,
    /// Pipeline stages.
    pub pipeline: u64,
    /// Ranks that divide experts, taken from tensor, context and data parallelism.
    pub expert: u64,
    /// The groups that communicate, of every kind with more than one rank.
    pub groups: Vec<RankGroups>,
    /// Stages, memory and utilisation.
    pub split: SplitReport,
}

/// All groups of one kind.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RankGroups {
    /// Role of their ranks.
    pub role: Role,
    /// Ranks of one group.
    pub size: u64,
    /// How many groups there are.
    pub groups: u64,
    /// Most ranks of a group on one machine.
    pub per_node: u64,
    /// Most machines that one group is on.
    pub nodes: u64,
}

/// Role of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A pipeline stage.
    Pipeline,
    /// A part of every matrix.
    Tensor,
    /// A part of every sequence.
    Context,
    /// A replica.
    Data,
    /// A part of the experts.
    Expert,
    /// A machine.
    Node,
}

/// One rank: its number, and its place in the groups of every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Its number.
    pub number: u64,
    /// Its tensor-parallel part.
    pub tensor: u64,
    /// Its part of the sequence.
    pub context: u64,
    /// Its replica.
    pub data: u64,
    /// Its stage.
    pub pipeline: u64,
    /// Its part of the experts.
    pub expert: u64,
    /// Its machine.
    pub node: u64,
}

impl Rank {
    /// Its place among the ranks of this role.
    pub const fn of(&self, role: Role) -> u64 {
        match role {
            Role::Pipeline => self.pipeline,
            Role::Tensor => self.tensor,
            Role::Context => self.context,
            Role::Data => self.data,
            Role::Expert => self.expert,
            Role::Node => self.node,
        }
    }
}

impl Layout {
    /// The layout of the plan of a scenario.
    pub fn of(scenario: &Scenario) -> Result<Self, Fault> {
        let planned = planned(scenario)?;
        let (plan, run) = (planned.plan, planned.run());
        let prediction = Transformer.predict(scenario)?;
        let Some(split) = prediction.transformer.map(|split| *split) else {
            return Err(Fault::in_key("strategy.plan", "the plan splits nothing", "use another plan"));
        };
        Ok(Self {
            ranks: run.split().world(),
            ranks_per_node: run.node,
            tensor: plan.tensor,
            context: plan.context,
            data: run.division.data,
            pipeline: plan.pipeline,
            expert: plan.expert,
            groups: groups(&run, plan),
            split,
        })
    }

    /// The rank at a place. Numbers go through tensor fastest, then context, data and pipeline, as in Megatron-LM.
    pub const fn rank(&self, [tensor, context, data, pipeline]: [u64; 4]) -> Rank {
        let within = tensor + self.tensor * (context + self.context * data);
        let number = within + self.tensor * self.context * self.data * pipeline;
        Rank {
            number,
            tensor,
            context,
            data,
            pipeline,
            expert: within % self.expert,
            node: number / self.ranks_per_node,
        }
    }

    /// How many ranks, or machines, there are of a role.
    pub const fn count(&self, role: Role) -> u64 {
        match role {
            Role::Pipeline => self.pipeline,
            Role::Tensor => self.tensor,
            Role::Context => self.context,
            Role::Data => self.data,
            Role::Expert => self.expert,
            Role::Node => self.ranks.div_ceil(self.ranks_per_node),
        }
    }
}

fn groups(run: &Run<'_>, plan: &Plan) -> Vec<RankGroups> {
    let world = run.split().world();
    let of = |role, Seats { size, per_node, nodes, .. }| RankGroups {
        role,
        size,
        groups: world / size,
        per_node,
        nodes,
    };
    let mut groups = vec![
        of(Role::Tensor, run.seats(Group::Tensor)),
        of(Role::Context, run.seats(Group::Context)),
        of(Role::Data, run.seats(Group::Data)),
        of(Role::Pipeline, run.seats(Group::Pipeline)),
    ];
    if plan.expert > 1 {
        groups.push(of(Role::Expert, run.expert_seats()));
    }
    groups.retain(|group| group.size > 1);
    groups
}
