//! Devices, networks, machines and methods: their lists, and one of them in detail.

use crate::format::{money, percent_with_decimal};
use crate::table::Table;
use stepcast_core::machine::catalog::Entries;
use stepcast_core::machine::{Device, DeviceKind, Machine, Network};
use stepcast_core::quantity::FlopsPerSec;
use stepcast_study::predict::methods::Listed;

pub fn devices(devices: &Entries<Device>) -> Table {
    let mut table =
        Table::new("", ["name", "kind", "#FP32 peak", "#TF32", "#FP16", "#memory", "#memory rate"]);
    for (id, device) in devices {
        table.row([
            id.clone(),
            kind(device).to_owned(),
            device.fp32_peak().human(),
            rate(device.tf32),
            rate(device.fp16),
            device.memory.human(),
            device.memory_rate.human(),
        ]);
    }
    table
}

pub fn device(device: &Device) -> Table {
    let mut table = Table::new("", ["", "~"]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    let units = match device.kind {
        DeviceKind::Cpu => "cores",
        DeviceKind::Gpu => "stream processors",
    };
    let share =
        |share: Option<f64>| share.map_or_else(|| "not measured".to_owned(), |share| share.to_string());
    row("kind", kind(device).to_owned());
    row("clock", device.clock.human());
    row(units, device.units.to_string());
    row("FP32 per cycle", format!("{} FLOP for each of them", device.flops_per_cycle));
    row("FP32 peak", device.fp32_peak().human());
    row("TF32 peak", rate(device.tf32));
    row("FP16 peak", rate(device.fp16));
    row("BF16 peak", rate(device.bf16));
    row("memory", device.memory.human());
    row("memory rate", device.memory_rate.human());
    row("host link", device.host_link.map_or_else(|| "–".to_owned(), |link| link.human()));
    row("efficiency", share(device.efficiency));
    row("memory efficiency", share(device.memory_efficiency));
    row("source", device.source.clone());
    table
}

fn kind(device: &Device) -> &'static str {
    match device.kind {
        DeviceKind::Cpu => "CPU",
        DeviceKind::Gpu => "GPU",
    }
}

fn rate(rate: Option<FlopsPerSec>) -> String {
    rate.map_or_else(|| "–".to_owned(), FlopsPerSec::human)
}

pub fn networks(networks: &Entries<Network>) -> Table {
    let mut table = Table::new("", ["name", "#bandwidth", "#latency", "#payload", "~full name"]);
    for (id, network) in networks {
        table.row([
            id.clone(),
            network.bandwidth.human(),
            network.latency.human(),
            percent_with_decimal(network.efficiency),
            network.name.clone(),
        ]);
    }
    table
}

pub fn network(network: &Network) -> Table {
    let mut table = Table::new("", ["", "~"]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("bandwidth", format!("{}, each direction", network.bandwidth.human()));
    row("latency", network.latency.human());
    let payload = percent_with_decimal(network.efficiency);
    row("efficiency", format!("{payload} of the bandwidth is payload"));
    row("start-up", format!("{} for each transfer", network.startup.human()));
    row("host rate", network.host_rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.human()));
    row("source", network.source.clone());
    table
}

pub fn machines(machines: &Entries<Machine>) -> Table {
    let mut table = Table::new("", ["name", "devices", "joined by", "network", "~full name"]);
    for (id, machine) in machines {
        table.row([
            id.clone(),
            format!("{} × {}", machine.gpus, machine.device),
            machine.within.clone(),
            format!("{} × {}", machine.ports, machine.network),
            machine.name.clone(),
        ]);
    }
    table
}

pub fn machine(machine: &Machine) -> Table {
    let mut table = Table::new("", ["", "~"]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("devices", format!("{} × {}", machine.gpus, machine.device));
    row("joined by", machine.within.clone());
    machine.domain.iter().for_each(|domain| row("joined in all", format!("{domain} devices")));
    row("network", format!("{} × {}", machine.ports, machine.network));
    row("source", machine.source.clone());
    if let Some(price) = &machine.price {
        let [low, high] = price.range.map(money);
        let hour =
            format!("{} USD an hour, {low} to {high} ({}): {}", money(price.hour), price.date, price.source);
        row("assumed price", hour);
    }
    table
}

pub fn methods(methods: &[Listed]) -> Table {
    let mut table = Table::new("", ["method", "~models", "~source"]);
    for method in methods {
        table.row([method.name.to_owned(), method.summary.to_owned(), method.source.to_owned()]);
    }
    table
}
