//! From a scenario to SPRINT's threads: measured times where given, estimates from data sheets otherwise.
//!
//! An estimate divides the bytes that a task moves per parameter by the rate at which they move: that of the link to
//! the device, of the device's memory, or of the host memory as seen by one thread. The all-reduce is a ring over the
//! nodes.

use super::kernels::{GradientTime, gradient_time};
use super::structure::Structure;
use super::threads::Threads;
use crate::collectives::{Fabric, all_reduce};
use stepcast_core::compute::{copy_of_batch, memory_efficiency};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::scenario::{ASSUMED_HOST_MEMORY_RATE, KernelTimes, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::Algorithm;

/// Bytes per parameter or gradient.
const ELEMENT: f64 = 4.0;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assumed {
    /// Keys that the scenario omits.
    pub keys: Vec<&'static str>,
    /// The gradient by its kernels, where these were measured.
    pub gradient: GradientTime,
    /// Whether the time of the gradient is derived from the device's rates and the model's layers.
    pub by_device: bool,
}

/// SPRINT's threads for a scenario whose workers are all alike.
pub fn threads(scenario: &Scenario) -> Result<(Threads, Assumed), Fault> {
    let cluster = &scenario.cluster;
    let group = &cluster.groups[0];
    let options = &scenario.methods.oyama2016;
    let mut assumed = Assumed::default();

    // Fewer workers than a node holds form one node.
    let workers = u32::try_from(cluster.workers()).unwrap_or(u32::MAX);
    let gpus = cluster.workers_per_node().min(workers);
    let nodes = workers / gpus;
    let batch = scenario.batch(0);
    let parameters = scenario.workload.parameters as f64;
    let slice = parameters / f64::from(nodes);

    let host = options.host_memory_rate.unwrap_or(ASSUMED_HOST_MEMORY_RATE);
    let link = group.device.host_link.unwrap_or(host);
    let device =
        group.device.memory_rate * (memory_efficiency(group, scenario.strategy.precision) * group.speed);
    let moved = |accesses: f64, rate: BytesPerSec| Bytes::new(accesses * ELEMENT) / rate;

    let given = &options.per_parameter;
    let mut each = |key: &'static str, measured: Option<Seconds>, estimate: Seconds| {
        measured.unwrap_or_else(|| {
            assumed.keys.push(key);
            estimate
        })
    };
    let fetch = each("fetch-weights", given.fetch_weights, moved(1.0, link));
    let scale = each("compute-update", given.compute_update, moved(2.0, device));
    let store = each("update-gradient", given.update_gradient, moved(1.0, link) + moved(3.0, host));
    let sum = each("sum-gradient", given.sum_gradient, moved(3.0, host));
    let old = each("update-old-weights", given.update_old_weights, moved(2.0, host));
    let add = each("add-momentum", given.add_momentum, moved(4.0, host));
    let momentum = each("update-momentum", given.update_momentum, moved(3.0, host));
    let publish = each("update-weights", given.update_weights, moved(2.0, host));

    let all_reduce = match given.all_reduce {
        Some(line) => line.time(f64::from(nodes).log2()) * parameters,
        None => {
            assumed.keys.push("all-reduce");
            let port = group.bandwidth.unwrap_or(cluster.network.bandwidth);
            let fabric = Fabric {
                step: cluster.network.latency + cluster.network.startup,
                bandwidth: port.to_bytes_per_sec() * cluster.network.efficiency,
                // Adding two numbers accesses memory three times.
                reduce: FlopsPerSec::new(host.get() / (3.0 * ELEMENT)),
                element: Bytes::new(ELEMENT),
            };
            all_reduce(Algorithm::Ring, &fabric, nodes, Bytes::new(parameters * ELEMENT)).total()
        }
    };
    let load_images = match options.load_image {
        Some(line) => line.time(f64::from(batch)),
        None => {
            assumed.keys.push("load-image");
            copy_of_batch(scenario, 0)
        }
    };
    let compute = match (options.compute_gradient, &options.kernels) {
        (Some(line), _) => line.time(f64::from(batch)) / group.speed,
        (None, Some(times)) => {
            assumed.gradient = by_kernels(scenario, times, batch)?;
            let time = assumed.gradient.time();
            time / group.speed
        }
        (None, None) => {
            assumed.by_device = true;
            let speed = Speed::of_group(scenario, 0);
            scenario.workload.layers.iter().map(|layer| speed.forward(layer) + speed.backward(layer)).sum()
        }
    };
    let threads = Threads {
        nodes,
        gpus,
        batch,
        fetch_weights: fetch * parameters,
        load_images,
        deform_images: options.deform_image.time(f64::from(batch)) / group.speed,
        compute,
        scale_gradient: scale * parameters,
        update_gradient: store * parameters,
        sum_buffer: sum * parameters,
        keep_old_weights: old * slice,
        add_momentum: add * slice,
        all_reduce,
        update_momentum: momentum * slice,
        update_weights: publish * parameters,
    };
    Ok((threads, assumed))
}

/// Eq. 4 for the scenario's model.
fn by_kernels(scenario: &Scenario, times: &KernelTimes, batch: u32) -> Result<GradientTime, Fault> {
    let refuse = |reason: String| {
        Fault::in_key(
            "methods.oyama2016.kernels",
            format!("the kernels of Oyama 2016 do not make up this model: {reason}"),
            "give `compute-gradient` instead, or a chain of convolutions, pooling and linear layers",
        )
    };
    let graph = scenario.workload.graph.as_ref();
    let model = graph.ok_or_else(|| refuse("a profile has no layers".to_owned()))?;
    let structure = Structure::from_model(model).map_err(|error| refuse(error.to_string()))?;
    Ok(gradient_time(&structure, times, batch))
}
