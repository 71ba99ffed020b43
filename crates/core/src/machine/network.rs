//! What carries bytes: rate, latency, and what a transfer costs beside the wire.

use crate::quantity::{BitsPerSec, BytesPerSec, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One kind of link, the same in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Network {
    /// What it is called: "10 Gigabit Ethernet".
    pub name: String,
    /// Nominal rate in one direction.
    pub bandwidth: BitsPerSec,
    /// One-way latency of a message.
    pub latency: Seconds,
    /// Share of the nominal rate left for payload after framing and headers.
    pub efficiency: f64,
    /// Software start-up cost of every transfer.
    pub startup: Seconds,
    /// Rate at which hosts copy and serialise payload, in series with the wire; absent: no cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_rate: Option<BytesPerSec>,
    /// Where the figures come from.
    pub source: String,
}
