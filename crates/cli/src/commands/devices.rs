//! `stepcast devices`: what computes, from the catalog.

use super::json;
use crate::Answer;
use crate::render::Screen;
use crate::render::table;
use stepcast_core::machine::catalog;
use stepcast_core::machine::{Device, DeviceKind};
use stepcast_core::quantity::FlopsPerSec;
use stepcast_report::table::{Column, Table};

pub(super) fn run(name: Option<&str>, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    match name {
        None if as_json => json(catalog::devices()?),
        None => list(screen),
        Some(name) => {
            let device = catalog::device(name)?;
            if as_json { json(&device) } else { Ok(show(name, &device, screen).into()) }
        }
    }
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

fn list(screen: &Screen) -> anyhow::Result<Answer> {
    let mut table = Table::new(
        "",
        [
            Column::names("name"),
            Column::names("kind"),
            Column::numbers("FP32 peak"),
            Column::numbers("TF32"),
            Column::numbers("FP16"),
            Column::numbers("memory"),
            Column::numbers("memory rate"),
        ],
    );
    for (id, device) in catalog::devices()? {
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
    Ok(table::render(&table, screen).into())
}

fn show(id: &str, device: &Device, screen: &Screen) -> String {
    let mut table = Table::new("", [Column::names(""), Column::words("")]);
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
    format!("{}: {}\n{}", screen.strong(id), device.name, table::render(&table, screen))
}
