//! Networks: rate, latency, and the costs of a transfer beyond the wire.

use super::catalog;
use crate::fault::{Fault, KeyPath};
use crate::files::{Files, NoFiles};
use crate::keys::{Check, Given, NameOr, keys, plain, unordered};
use crate::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const DEFAULT_NETWORK: &str = "10gbe";

/// Largest number of oversubscribed levels of switches.
pub const MAX_LEVELS: usize = 3;

/// How software moves data over a link; it decides how much of the nominal rate is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Sockets of the operating system.
    #[default]
    Tcp,
    /// The adapter reads and writes memory by itself: InfiniBand, RoCE.
    Rdma,
    /// MPI that copies gradients to the host and sums them there.
    HostMpi,
    /// Gloo, which copies gradients to the host, sums them there and sends them through sockets.
    Gloo,
    /// PCI Express between the devices of a machine.
    Pcie,
    /// NVLink between the devices of a machine.
    Nvlink,
    /// All of the nominal rate is reached, as papers assume.
    Ideal,
}

impl Transport {
    /// Whether gradients are copied to the host and summed there, wherever the workers are.
    pub fn sums_on_host(self) -> bool {
        matches!(self, Self::HostMpi | Self::Gloo)
    }
}

plain!(Transport, "string");
plain!(Vec<FabricLevel>, "list of tables");

/// Switches of a network that carry less than the machines below them can send.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricLevel {
    /// Machines that reach each other without these switches.
    pub machines: u32,
    /// Rate at which these machines can send together, relative to their uplinks.
    pub ratio: f64,
}

keys! {
    /// One kind of link, the same in both directions.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Network;
    /// `[cluster.network]`: overrides a catalog entry (`base`) or defines a new network.
    section NetworkSection, missing |key| {
        let remedy = format!(
            "add `{key} = \"10 Gbit/s\"`, or `base = \"{DEFAULT_NETWORK}\"` to start from a catalog entry"
        );
        Fault::new(format!("the network has neither a `base` nor a `{key}`"), remedy)
    };
    before {
        /// Catalog entry to start from.
        base: String, "string", "–";
    }
    keys {
        /// What it is called in the output.
        name: String => String, default("custom network"), Check::Any, Resolved;
        /// Nominal rate in one direction.
        bandwidth: Uncertain<BitsPerSec> => BitsPerSec, required, Check::Positive("a rate such as \"10 Gbit/s\""), Transfer;
        /// One-way latency of a message.
        latency: Uncertain<Seconds> => Seconds, default(Seconds::ZERO), Check::NotNegative("a time such as \"50 us\""), Delay;
        /// Share of the rate left for payload after framing and headers.
        efficiency: Uncertain<f64> => f64, default(1.0), Check::Share("a share such as 0.94"), Transfer;
        /// Software start-up cost of every transfer.
        startup: Seconds => Seconds, default(Seconds::ZERO), Check::NotNegative("a time such as \"1 ms\""), Delay;
        /// Rate at which hosts copy and serialise payload, in series with the wire.
        #[serde(skip_serializing_if = "Option::is_none")]
        host_rate: Uncertain<BytesPerSec> => BytesPerSec, optional("no cost"), Check::Positive("a rate such as \"8 GB/s\""), Transfer;
        /// How software moves data over it, which decides how much of the rate it reaches: `"tcp"` and `"rdma"`
        /// (NCCL and the like), `"gloo"`, `"host-mpi"` (MPI that sums on the host), `"pcie"`, `"nvlink"`, or `"ideal"` for all of it.
        transport: Transport => Transport, default(Transport::default()), Check::Any, Exchange;
        /// Whether the machines are rented: virtual machines reach less over TCP than owned machines.
        #[serde(skip_serializing_if = "Option::is_none")]
        rented: bool => bool, optional("either"), Check::Any, Exchange;
        /// Dimensions of a torus of links with wrap-around, as TPUs have it: a group of workers uses the links of the axes that
        /// it spans, not all of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        torus: u32 => u32, optional("every worker reaches every other through switches"), Check::Between(1, 3, "2 or 3"), Resolved;
        /// Speed of all-reduces of eight or more workers of a machine relative to rings, because the switches make the sums
        /// (NVLink SHARP).
        #[serde(skip_serializing_if = "Option::is_none")]
        switch_sums: f64 => f64, optional("the workers make all sums"), Check::Positive("a factor such as 1.33"), Resolved;
        /// Levels of switches that carry less than the machines below them can send, such as
        /// `[{ machines = 32, ratio = 2 }]`: above 32 machines, half of their rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        oversubscription: Vec<FabricLevel> => Vec<FabricLevel>, optional("none"), Check::Any, Resolved;
        /// Measured rate per machine and direction, in place of the transport's usual rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        reached: Uncertain<BytesPerSec> => BytesPerSec, optional("what the transport usually reaches"), Check::Positive("a rate such as \"2.3 GB/s\""), Transfer;
        /// Where the figures come from.
        source: String => String, default("scenario"), Check::Any, Resolved;
    }
}

unordered!(Network);

/// Fewest workers that gain from sums in switches; fewer gain a tenth (four H100, NCCL 2.27).
pub const WORKERS_OF_SWITCH_SUMS: u64 = 8;

impl Network {
    /// Speed-up that sums in switches give an all-reduce of `workers` inside a machine over a ring: 1 where its rate was measured.
    pub fn all_reduce_gain(&self, workers: u64) -> f64 {
        let summed = workers >= WORKERS_OF_SWITCH_SUMS && self.reached.is_none();
        self.switch_sums.filter(|_| summed).unwrap_or(1.0)
    }

    pub fn at_rate(&self, rate: BitsPerSec) -> Result<Self, Fault> {
        if rate == self.bandwidth {
            return Ok(self.clone());
        }
        let name = Some(format!("{} at {rate}", self.name));
        let bandwidth = Some(Uncertain::exactly(rate));
        NetworkSection { name, bandwidth, ..NetworkSection::default() }.fill(Some(self), &NoFiles)
    }

    /// Checks the levels of switches: at most three, with growing numbers of machines and ratios of 1 or more.
    pub(crate) fn check_levels(&self) -> Result<(), Fault> {
        let levels = self.oversubscription.as_deref().unwrap_or_default();
        let grows = levels.windows(2).all(|pair| pair[0].machines < pair[1].machines);
        let valid = |level: &FabricLevel| level.machines > 0 && level.ratio >= 1.0 && level.ratio.is_finite();
        if grows && levels.len() <= MAX_LEVELS && levels.iter().all(valid) {
            return Ok(());
        }
        let reason = "levels of switches join more and more machines, with a ratio of 1 or more each";
        let remedy = format!("write up to {MAX_LEVELS}, such as `[{{ machines = 32, ratio = 2 }}]`");
        Err(Fault::in_key("oversubscription", reason, remedy))
    }

    /// Rate of payload through a port: framing takes its share of the wire, and hosts copy every byte in series with it.
    pub fn payload_rate(&self, port: BitsPerSec) -> BytesPerSec {
        let byte = Bytes::new(1.0);
        let wire = (port * self.efficiency).to_bytes_per_sec();
        self.host_rate.map_or(wire, |rate| byte / (byte / wire + byte / rate))
    }
}

/// A network of the catalog, or Ethernet of this rate: `"100 Gbit/s"`, `"100 Gbit/s ethernet"`.
fn named(text: &str) -> Result<Network, Fault> {
    let rate = text.strip_suffix("ethernet").or(text.strip_suffix("Ethernet")).unwrap_or(text);
    match rate.trim_end().parse::<BitsPerSec>() {
        Ok(rate) => catalog::ethernet(rate),
        Err(_) => catalog::network(text),
    }
}

impl Given<Network> for NameOr<NetworkSection> {
    fn written() -> String {
        "name, rate or table".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<Network, Fault> {
        let mut section = match self {
            Self::Name(id) => return named(&id),
            Self::Table(section) => *section,
        };
        let base = section.base.take().map(|id| named(&id)).transpose();
        let base = base.map_err(|fault| fault.below(KeyPath::of("base")))?;
        section.fill(base.as_ref(), files)
    }

    fn write(network: &Network) -> Self {
        Self::Table(Box::new(network.section()))
    }
}
