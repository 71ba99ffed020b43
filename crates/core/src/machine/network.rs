//! Networks: rate, latency, and the costs of a transfer beyond the wire.

use super::catalog;
use crate::fault::{Fault, KeyPath};
use crate::files::Files;
use crate::keys::{Check, Given, NameOr, keys, unordered};
use crate::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default network.
pub(super) const DEFAULT_NETWORK: &str = "10gbe";

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
        /// Where the figures come from.
        source: String => String, default("scenario"), Check::Any, Resolved;
    }
    after {}
    made {}
}

unordered!(Network);

impl Network {
    /// Rate of payload through a port: framing takes its share of the wire, and hosts copy every byte in series with it.
    pub fn payload_rate(&self, port: BitsPerSec) -> BytesPerSec {
        let byte = Bytes::new(1.0);
        let wire = (port * self.efficiency).to_bytes_per_sec();
        self.host_rate.map_or(wire, |rate| byte / (byte / wire + byte / rate))
    }
}

impl Given<Network> for NameOr<NetworkSection> {
    fn written() -> String {
        "name or table".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<Network, Fault> {
        let mut section = match self {
            Self::Name(id) => return catalog::network(&id),
            Self::Table(section) => *section,
        };
        let base = section.base.take().map(|id| catalog::network(&id)).transpose();
        let base = base.map_err(|fault| fault.below(KeyPath::of("base")))?;
        section.fill(base.as_ref(), files)
    }

    fn write(network: &Network) -> Self {
        Self::Table(Box::new(network.section()))
    }
}
