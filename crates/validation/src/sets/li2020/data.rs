//! The traces of `validation/li2020/`, embedded.

use crate::ValidationError;
use crate::embedded::{Fraction, json};
use serde::Deserialize;
use std::collections::BTreeMap;
use stepcast_validation_data::li2020::TRACES;

/// `[li2020]` of `validation/bounds.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) deviation: Deviations,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviations {
    pub(super) traces: f64,
    pub(super) sharing: f64,
    pub(super) baselines: f64,
}

/// The file.
#[derive(Debug, Deserialize)]
pub(super) struct Golden {
    #[serde(rename = "des")]
    pub(super) traces: Vec<Trace>,
    #[serde(rename = "two_ps_sharing")]
    pub(super) sharing: Vec<SharingState>,
    #[serde(rename = "analytic")]
    pub(super) baselines: Vec<Baseline>,
}

/// Training by equal workers with one server, and when steps and operations end.
#[derive(Debug, Deserialize)]
pub(super) struct Trace {
    #[serde(rename = "case")]
    pub(super) name: String,
    #[serde(rename = "W")]
    pub(super) workers: u32,
    pub(super) steps_per_worker: u64,
    /// Size after which a stream is preempted once.
    #[serde(rename = "win")]
    pub(super) window: Option<f64>,
    pub(super) policy: Policy,
    pub(super) requeue: Requeueing,
    #[serde(rename = "B")]
    pub(super) bandwidth: f64,
    #[serde(rename = "ops")]
    pub(super) operations: Vec<TraceOperation>,
    /// By worker.
    pub(super) step_end_times: Vec<Vec<Fraction>>,
    /// By worker and operation: "w0.d0".
    pub(super) op_end_first_step: BTreeMap<String, Fraction>,
}

/// Which stream goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Policy {
    Fifo,
    FirstServicePriority,
}

/// When the rest of a preempted stream joins the queue again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Requeueing {
    OnSelection,
    OnCompletion,
}

/// The resource of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Lane {
    Downlink,
    Worker,
    Uplink,
    Ps,
}

#[derive(Debug, Deserialize)]
pub(super) struct TraceOperation {
    pub(super) name: String,
    #[serde(rename = "res")]
    pub(super) lane: Lane,
    /// Duration, or size of a transfer.
    pub(super) size: Fraction,
    #[serde(rename = "deps")]
    pub(super) after: Vec<String>,
}

/// Transfers under way between workers and two servers, and their max-min fair rates.
#[derive(Debug, Deserialize)]
pub(super) struct SharingState {
    /// Worker and server, from 0 and from 1.
    pub(super) links: Vec<(u32, u32)>,
    /// By worker and server: "w0-ps1".
    pub(super) max_min: BTreeMap<String, Fraction>,
}

/// Throughputs of the coarser models for a number of workers.
#[derive(Debug, Deserialize)]
pub(super) struct Baseline {
    #[serde(rename = "W")]
    pub(super) workers: u32,
    pub(super) mva_down4_up4_think7: f64,
    pub(super) mva_down4_up4_ps1_think6: f64,
    #[serde(rename = "cynthia_K32_Tp6_Tc4_U1")]
    pub(super) cynthia: f64,
    #[serde(rename = "cynthia_half_Tc")]
    pub(super) cynthia_half: f64,
}

pub(super) fn golden() -> Result<Golden, ValidationError> {
    json(TRACES)
}
