//! The benchmarks of HKBU (2020): five ways to exchange gradients, 4 to 32 GPUs at 10 Gbit/s, predicted from the
//! throughput of one GPU by the recursion of Liu 2022 (eq. 8).
//!
//! Networks are those of the catalog, with one exception: the rate of all-reduce over PCIe within a node is fitted, on
//! one row. How bytes travel was chosen with the rows in view: a single ring through all GPUs, and pushing before pulling.

use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use crate::{ErrorBounds, Evidence, ValidationError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepcast_analytic::collectives::{Fabric, ring_update};
use stepcast_analytic::liu2022::{Layer, Pass, osf};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::{Network, catalog};
use stepcast_core::model::{Counting, zoo};
use stepcast_core::quantity::{BitsPerSec, Bytes, BytesPerSec, Flops, FlopsPerSec, SamplesPerSec, Seconds};
use stepcast_core::strategy::{Architecture, Fusion};
use stepcast_core::workload::Workload;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

const PER_NODE: u32 = 4;

/// Backward operations per forward operation (Liu 2022, eq. 4).
const BACKWARD_PER_FORWARD: f64 = 2.0;

/// How gradients are exchanged, in the order of tables.
///
/// A2A is all-reduce, PS are parameter servers. BSP: everything after the backward pass. WFBP: each gradient by itself, while
/// the backward pass goes on. MG-WFBP: as WFBP-A2A, with gradients merged by a rule.
const SCHEMES: [&str; 5] = ["BSP-A2A", "WFBP-A2A", "MG-WFBP", "BSP-PS", "WFBP-PS"];

/// The row on which the rate within a node is fitted: network, scheme, GPUs.
const FITTED: (&str, &str, u32) = ("BERT-Base", "BSP-A2A", PER_NODE);

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let (bounds, tie): (ErrorBounds, f64) = (run.bounds()?, run.bounds::<Value>()?.number("tie"));
    let published: Vec<PublishedThroughput> = run.rows("throughput.csv")?;
    let mut alone: BTreeMap<&str, OneGpu> = BTreeMap::new();
    for row in published.iter().filter(|row| row.gpus == 1) {
        if !alone.contains_key(row.model.as_str()) {
            alone.insert(&row.model, OneGpu::new(row)?);
        }
    }
    let alone = |model: &str| {
        alone.get(model).ok_or_else(|| ValidationError::Data(format!("no throughput of one GPU for {model}")))
    };
    let is_fitted = |row: &PublishedThroughput| (row.model.as_str(), row.method.as_str(), row.gpus) == FITTED;
    let missing = || ValidationError::Data("the row to fit on is missing".to_owned());
    let source = published.iter().find(|row| is_fitted(row)).ok_or_else(missing)?;
    let catalog = Testbed::from_catalog()?;
    let testbed = catalog.clone().fitted(source, alone(&source.model)?);
    let mut rows = Vec::new();
    for row in published.iter().filter(|row| row.gpus > 1) {
        let (alone, fitted) = (alone(&row.model)?, is_fitted(row));
        let predicted = testbed.throughput(row, alone);
        rows.push(json!({
            "model": row.model,
            "scheme": row.method,
            "gpus": row.gpus,
            "measured": row.throughput,
            "predicted": predicted,
            "by_catalog": catalog.throughput(row, alone),
            "computing_share": predicted / (f64::from(row.gpus) * alone.throughput),
            "parameters": alone.parameters,
            "fitted": fitted,
            "_several_nodes": row.gpus > PER_NODE,
        }));
    }
    let place = |row: &Value| SCHEMES.iter().position(|scheme| row.text("scheme") == *scheme);
    rows.sort_by_key(|row| (row.text("model").to_owned(), row.count("gpus"), place(row)));
    let alike = |a: &Value, b: &Value| a["model"] == b["model"] && a["gpus"] == b["gpus"];
    let rankings: Vec<Value> = rows.chunk_by(alike).filter_map(|group| ranking(group, tie)).collect();
    let sum = |key: &str| rankings.iter().map(|ranking| ranking.number(key)).sum::<f64>();
    let ethernet = catalog::network("10gbe").ok().map(|network| network.bandwidth);
    let cases = rows.iter().filter(|row| !row.is("fitted")).map(|row| case(run.set, row, ethernet)).collect();
    let figures = json!({
        "_pairs": sum("pairs"),
        "_in_order": sum("right") / sum("pairs"),
        "rows": rows,
        "errors": null,
        "rankings": rankings,
        "within_bytes_per_s": testbed.within_rate.get(),
        "catalog_within_bytes_per_s": catalog.within_rate.get(),
        "bounds": null,
    });
    Ok(Findings::new(figures, Evidence::measured(cases, bounds)))
}

fn case(set: &'static str, row: &Value, ethernet: Option<BitsPerSec>) -> Case {
    let (gpus, several) = (row.small("gpus"), row.small("gpus") > PER_NODE);
    let served = row.text("scheme").ends_with("PS");
    Case {
        set,
        group: row.text("model").to_owned(),
        method: "liu2022".to_owned(),
        regime: Regime {
            architecture: if served { Architecture::ParameterServer } else { Architecture::AllReduce },
            pace: Pace::Synchronous,
            limit: Limit::of(row.number("computing_share")),
            machines: if several { Machines::Several } else { Machines::One },
        },
        workers: gpus,
        bandwidth: ethernet.filter(|_| several),
        parameters: Some(row.count("parameters")),
        predicted: SamplesPerSec::new(row.number("predicted")),
        measured: SamplesPerSec::new(row.number("measured")),
        run_spread: 0.0,
    }
}

/// The order of the schemes for one network and number of GPUs.
fn ranking(rows: &[Value], tie: f64) -> Option<Value> {
    let best = |key: &str| rows.iter().max_by(|a, b| a.number(key).total_cmp(&b.number(key)));
    let (measured, predicted) = (best("measured")?, best("predicted")?);
    let (mut right, mut pairs) = (0, 0);
    for (place, a) in rows.iter().enumerate() {
        for b in &rows[place + 1..] {
            let is_faster = |key: &str| a.number(key) > b.number(key);
            if (a.number("measured") / b.number("measured") - 1.0).abs() >= tie {
                pairs += 1;
                right += usize::from(is_faster("measured") == is_faster("predicted"));
            }
        }
    }
    Some(json!({
        "model": measured["model"],
        "gpus": measured["gpus"],
        "best_measured": measured["scheme"],
        "best_predicted": predicted["scheme"],
        // How much slower the scheme predicted to be the fastest was measured to be, in percent of the fastest.
        "regret": 100.0 * (1.0 - predicted.number("measured") / measured.number("measured")),
        "right": right,
        "pairs": pairs,
    }))
}

#[derive(Debug, Clone, Deserialize)]
struct PublishedThroughput {
    model: String,
    batch: u32,
    tokens: Option<u64>,
    method: String,
    gpus: u32,
    servers: Option<u32>,
    throughput: f64,
}

struct OneGpu {
    pass: Pass,
    /// Samples a second.
    throughput: f64,
    parameters: u64,
}

impl OneGpu {
    /// From a row with one GPU: the zoo's network, BERT with as many tokens as it was measured with.
    fn new(row: &PublishedThroughput) -> Result<Self, ValidationError> {
        let name = match row.model.as_str() {
            "ResNet-50" => "resnet50",
            "BERT-Base" => "bert-base",
            _ => "bert-large",
        };
        let model = zoo::build_for(name, row.tokens);
        let model = model.map_err(|error| ValidationError::Data(error.to_string()))?;
        let workload = Workload::from_model(&model, Counting::default());
        let pass = pass(&workload, Seconds::new(f64::from(row.batch) / row.throughput));
        Ok(Self { pass, throughput: row.throughput, parameters: workload.parameters })
    }
}

/// A pass that takes `computing`, split by operations, with one entry for each gradient.
fn pass(workload: &Workload, computing: Seconds) -> Pass {
    let all: Flops = workload.layers.iter().map(|work| work.forward).sum();
    let backward = computing * (BACKWARD_PER_FORWARD / (1.0 + BACKWARD_PER_FORWARD));
    let mut layers = Vec::new();
    for work in workload.layers.iter().rev() {
        let mut time = backward * (work.forward / all);
        for tensor in &work.tensors {
            layers.push(Layer { backward: time, gradients: tensor.bytes() });
            time = Seconds::ZERO;
        }
    }
    Pass::new(layers)
}

/// The networks that join the GPUs.
#[derive(Debug, Clone)]
struct Testbed {
    within: Network,
    between: Network,
    /// Rate that a ring reaches within a node.
    within_rate: BytesPerSec,
}

impl Testbed {
    /// The catalog's PCIe and 10 Gigabit Ethernet.
    fn from_catalog() -> Result<Self, ValidationError> {
        let (within, between) = (catalog::network("pcie3-x16")?, catalog::network("10gbe")?);
        Ok(Self { within_rate: rate(&within), within, between })
    }

    /// The testbed with the rate within a node for which `row`, an all-reduce after the backward pass on one node, is
    /// predicted exactly: the step exceeds that of one GPU by the time of the all-reduce, which gives the rate (eq. 7 of
    /// Liu 2022, solved for β).
    fn fitted(self, row: &PublishedThroughput, one: &OneGpu) -> Self {
        let batch = f64::from(row.batch);
        let workers = f64::from(row.gpus);
        let exposed = Seconds::new(batch * workers / row.throughput) - one.pass.computing();
        let steps = self.within.latency * (2.0 * (workers - 1.0));
        let bytes = one.pass.gradients() * (2.0 * (workers - 1.0) / workers);
        Self { within_rate: bytes / (exposed - steps), ..self }
    }

    /// Time of an exchange as a function of its size.
    fn curve(&self, row: &PublishedThroughput) -> Curve {
        let nodes = row.gpus.div_ceil(PER_NODE);
        match row.servers {
            // Push, then pull; a server's port carries the transfers of all nodes. Summing gradients within a node is
            // taken to be hidden behind the transfers of others.
            Some(servers) if nodes > 1 => {
                let load = (f64::from(nodes) / f64::from(servers.max(1))).max(1.0);
                Curve::AlphaBeta {
                    startup: self.between.latency * 2.0,
                    bandwidth: rate(&self.between) * (1.0 / (2.0 * load)),
                }
            }
            _ if nodes > 1 => ring(&self.between, rate(&self.between), row.gpus),
            _ => ring(&self.within, self.within_rate, row.gpus),
        }
    }

    fn throughput(&self, row: &PublishedThroughput, one: &OneGpu) -> f64 {
        let update = self.curve(row);
        let schedule = match row.method.as_str() {
            "BSP-A2A" | "BSP-PS" => Fusion::All,
            "MG-WFBP" => Fusion::MgWfbp,
            _ => Fusion::None,
        };
        let step = osf(&one.pass, &update, &schedule).iteration();
        f64::from(row.batch) * f64::from(row.gpus) / step.get()
    }
}

fn rate(network: &Network) -> BytesPerSec {
    network.bandwidth.to_bytes_per_sec() * network.efficiency
}

/// A ring through all GPUs is as fast as its slowest link, and each of its steps has the latency of that link. Additions
/// take no time: the source does not name the GPU, and any GPU needs microseconds only.
fn ring(network: &Network, bandwidth: BytesPerSec, workers: u32) -> Curve {
    let fabric = Fabric {
        step: network.latency,
        bandwidth,
        reduce: FlopsPerSec::new(f64::INFINITY),
        element: Bytes::new(4.0),
    };
    ring_update(&fabric, workers, network.latency * (2.0 * (f64::from(workers) - 1.0)))
}
