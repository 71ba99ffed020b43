//! Networks: rate, latency, and the costs of a transfer beyond the wire.

use super::catalog;
use crate::fault::{Fault, KeyPath};
use crate::files::{Files, NoFiles};
use crate::keys::{Check, Given, NameOr, keys, plain, unordered};
use crate::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default network.
pub(super) const DEFAULT_NETWORK: &str = "10gbe";

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

keys! {
    /// One kind of link, the same in both directions.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Network;
    /// `[cluster.network]`: overrides a catalog entry (`base`) or defines a network of its own.
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
        /// Whether the machines are rented: virtual machines reach less over TCP than machines of one's own.
        #[serde(skip_serializing_if = "Option::is_none")]
        rented: bool => bool, optional("either"), Check::Any, Exchange;
        /// Rate that was measured, per machine and direction, in place of what the transport usually reaches.
        #[serde(skip_serializing_if = "Option::is_none")]
        reached: Uncertain<BytesPerSec> => BytesPerSec, optional("what the transport usually reaches"), Check::Positive("a rate such as \"2.3 GB/s\""), Transfer;
        /// Where the figures come from.
        source: String => String, default("scenario"), Check::Any, Resolved;
    }
}

unordered!(Network);

impl Network {
    /// The same kind of link at another rate.
    pub fn at_rate(&self, rate: BitsPerSec) -> Result<Self, Fault> {
        if rate == self.bandwidth {
            return Ok(self.clone());
        }
        let name = Some(format!("{} at {rate}", self.name));
        let bandwidth = Some(Uncertain::exactly(rate));
        NetworkSection { name, bandwidth, ..NetworkSection::default() }.fill(Some(self), &NoFiles)
    }

    /// Rate of payload through a port: framing takes its share of the wire, and hosts copy every byte in series with it.
    pub fn payload_rate(&self, port: BitsPerSec) -> BytesPerSec {
        let byte = Bytes::new(1.0);
        let wire = (port * self.efficiency).to_bytes_per_sec();
        self.host_rate.map_or(wire, |rate| byte / (byte / wire + byte / rate))
    }
}

/// A network of the catalog, or Ethernet of this rate: `"100 Gbit/s"`.
fn named(text: &str) -> Result<Network, Fault> {
    match text.parse::<BitsPerSec>() {
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
