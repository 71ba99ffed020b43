//! A published run as a scenario: names, and the step of one worker alone.

use super::data::Run;
use crate::ValidationError;
use std::fmt::Write as _;
use stepcast_core::model::{ModelFile, zoo};
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_study::predict::methods;

/// Classes of the residual network for CIFAR-10, which is otherwise that of the zoo.
const CIFAR_CLASSES: u64 = 10;

/// Least share of a worker's step with its server that is computing, as in research/priors.
const LEAST_COMPUTING: f64 = 0.3;

/// The scenario of a run. Throughput alone is that of one GPU without communication, except where a server was part of
/// it: then computing is what is left.
pub(super) fn scenario(run: &Run) -> Result<Scenario, ValidationError> {
    let with_server = run.strategy == "ps-async" && run.single_of == "one GPU";
    if !with_server {
        return resolved(run, run.alone());
    }
    let mut one = resolved(run, run.alone())?;
    one.cluster.groups[0].count = 1;
    one.cluster.servers.count = 1;
    let prediction = methods::choose(&one)?.predict(&one)?;
    let served = prediction.iteration.get() - prediction.groups[0].compute.get();
    resolved(run, (run.alone() - served).max(LEAST_COMPUTING * run.alone()))
}

fn resolved(run: &Run, alone: f64) -> Result<Scenario, ValidationError> {
    let damaged = |error: toml::de::Error| ValidationError::Data(format!("{}: {error}", run.id));
    let mut file: ScenarioFile = toml::from_str(&text(run, alone)).map_err(damaged)?;
    if run.model == "resnet18-cifar" {
        file.model.custom = Some(cifar()?);
    }
    Ok(file.resolve()?)
}

fn cifar() -> Result<ModelFile, ValidationError> {
    let model = zoo::build("resnet18").map_err(|error| ValidationError::Data(error.to_string()))?;
    let mut file = ModelFile::from_model(&model);
    if let Some(last) = file.layers.iter_mut().rev().find(|layer| layer.op == "linear") {
        last.out = Some(CIFAR_CLASSES.into());
    }
    Ok(file)
}

fn text(run: &Run, alone: f64) -> String {
    let mut text = model(run);
    let gpus = run.gpus_per_worker();
    let _ = write!(
        text,
        "[[cluster.workers]]\ncount = {}\ngpus = {gpus}\ndevice = \"{}\"\nbatch = {}\nstep-time = \"{alone} s\"\n",
        run.gpus / gpus,
        run.device,
        run.batch
    );
    if let Some(batch) = run.single_batch.filter(|_| !run.is_served()) {
        let _ = writeln!(text, "measured-batch = {}", batch.round());
    }
    text += &network(run);
    text += &if run.is_served() { servers(run) } else { nodes(run) };
    let fusion = match run.fusion.as_str() {
        "" => String::new(),
        rule => format!("fusion = {{ rule = \"{rule}\" }}\n"),
    };
    let architecture = if run.is_served() { "parameter-server" } else { "all-reduce" };
    let pace = if run.strategy.starts_with("ps-async") { "async" } else { "bsp" };
    let _ = write!(
        text,
        "[strategy]\narchitecture = \"{architecture}\"\nsynchronisation = \"{pace}\"\nprecision = \"{}\"\n{fusion}",
        run.precision
    );
    if run.data.starts_with("real") {
        text += "[input]\ndata = \"real\"\n";
    }
    text
}

/// The zoo's network, or as many equal layers as the trained one has tensors, with as many parameters.
fn model(run: &Run) -> String {
    match run.model.as_str() {
        "resnet18-cifar" => String::new(),
        "yolov3" | "inception-v4" | "vgg16-cifar" => {
            let width = (run.parameters as f64 / f64::from(run.tensors)).sqrt().round();
            let layer =
                |index| format!("{{ name = \"l{index}\", op = \"linear\", out = {width}, bias = false }}");
            let layers: Vec<String> = (0..run.tensors).map(layer).collect();
            let layers = layers.join(", ");
            format!("[model.custom]\nname = \"{}\"\ninput = [{width}]\nlayers = [{layers}]\n", run.model)
        }
        name => format!("[model]\nzoo = \"{name}\"\n"),
    }
}

fn network(run: &Run) -> String {
    let rented = run.inter_link == "ethernet";
    let base = match run.inter_link.as_str() {
        "ethernet" => "10gbe",
        // The network of these runs is not stated; MPI is taken to have one that does not limit it.
        _ if run.strategy.ends_with("grpc+mpi") => {
            return "[cluster]\nnetwork = \"infiniband-edr\"\n".to_owned();
        }
        name => name,
    };
    let transport = match run.transport.as_str() {
        _ if run.strategy.contains("MPI on the host") => "transport = \"host-mpi\"\n",
        "rdma" => "transport = \"rdma\"\n",
        "tcp" => "transport = \"tcp\"\n",
        _ => "",
    };
    format!(
        "[cluster.network]\nbase = \"{base}\"\nbandwidth = \"{} Gbit/s\"\nrented = {rented}\n{transport}",
        run.gbps
    )
}

/// GPUs on as many machines as the run had: where these differ, all but the last have as many as the mean, rounded up.
fn nodes(run: &Run) -> String {
    let workers = run.gpus.div_ceil(run.nodes.max(1)).min(run.most_on_node);
    format!("[cluster.nodes]\nworkers = {workers}\nnetwork = \"{}\"\n", run.intra_link)
}

fn servers(run: &Run) -> String {
    let software = match run.strategy.as_str() {
        name if name.contains("BytePS") => "byteps",
        name if name.ends_with("grpc+mpi") => "grpc-mpi",
        _ => "grpc",
    };
    let copies = if run.strategy.contains("parameter_server") { run.gpus_per_worker() } else { 1 };
    let overlap = if run.strategy.contains("bsp") { "overlap = false\n" } else { "" };
    format!(
        "[cluster.servers]\ncount = {}\nplacement = \"even\"\nsoftware = \"{software}\"\ncopies = {copies}\n{overlap}",
        run.servers.unwrap_or(1)
    )
}
