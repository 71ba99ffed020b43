//! The tables of a forecast.

use super::{simulation, step, transformer, uncertainty, updates};
use crate::format::{
    bare_interval_of_rates, bare_rate, count, duration, grouped, interval_of_rates, interval_of_times, limit,
    money, name, percent, ratio, several,
};
use crate::sentences;
use crate::table::{Column, Table};
use stepcast_core::prediction::Verdict;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_study::{Forecast, WhatIf};

/// All tables that have rows, except the headline figures; what the step consists of comes first.
pub fn all(scenario: &Scenario, forecast: &Forecast) -> Vec<Table> {
    let prediction = &forecast.prediction;
    let mut breakdown = step::breakdown("Where the time goes", &prediction.breakdown, prediction.iteration);
    breakdown.note = sentences::overlapped(prediction).unwrap_or_default();
    let mut tables = vec![breakdown];
    tables.extend(
        prediction
            .communication
            .filter(|parts| parts.allreduce > Seconds::ZERO)
            .map(|parts| step::communication("Communication", &parts)),
    );
    tables.extend(prediction.transformer.iter().flat_map(|report| transformer::all(report)));
    tables.push(workers(scenario, forecast));
    tables.extend(prediction.updating.iter().flat_map(|updating| updates::all(updating)));
    tables.extend(prediction.simulation.iter().flat_map(|simulated| simulation::all(simulated)));
    tables.extend(forecast.interval.as_ref().map(uncertainty::sources));
    tables.push(scaling(forecast));
    tables.extend(
        forecast.advice.critical_path.as_ref().map(|path| step::critical_path(path, prediction.iteration)),
    );
    for table in &mut tables {
        table.folded = true;
    }
    tables.push(what_if(prediction.method, &forecast.advice.what_if));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The headline figures: step time, throughput, and what follows from them.
pub fn figures(scenario: &Scenario, forecast: &Forecast) -> Table {
    let prediction = &forecast.prediction;
    let mut table = Table::of_figures("");
    let interval = |text: String| format!("90 % interval {text}");
    let ends = forecast.interval.as_ref();
    let times = ends.map_or(String::new(), |ends| interval(interval_of_times(ends.iteration_s)));
    let rates = ends.map_or(String::new(), |ends| interval(interval_of_rates(ends.throughput_samples_per_s)));
    table.figure("step time", prediction.iteration.human(), times);
    table.figure("throughput", grouped(prediction.throughput.human()), rates);
    table.figure("samples per step", count(prediction.samples), "of all workers together");
    table.figure("speed-up", ratio(prediction.speedup), sentences::baseline(&forecast.advice));
    table.figure(
        "scaling factor",
        percent(prediction.scaling_factor),
        "of the throughput without communication",
    );
    if let Some(staleness) = prediction.staleness {
        table.figure("staleness", ratio(staleness), "updates by others between a pull and the update");
    }
    if let (Some(training), Some(data)) = (&forecast.training, scenario.data) {
        table.figure("epoch", duration(training.epoch), several(data.samples, "sample"));
        if data.epochs > 1 {
            table.figure("training", duration(training.total), several(data.epochs, "epoch"));
        }
        if let Some(cost) = training.cost {
            let currency = name(training.currency.as_deref().unwrap_or_default());
            table.figure("cost", format!("{} {currency}", money(cost)), several(data.epochs, "epoch"));
        }
    }
    table
}

/// Throughput by number of workers.
pub fn scaling(forecast: &Forecast) -> Table {
    let mut table = Table::new(
        "Scaling",
        [
            Column::numbers("workers"),
            Column::numbers("step time"),
            Column::numbers("samples/s"),
            Column::numbers("90 % interval"),
            Column::numbers("speed-up"),
            Column::numbers("scaling"),
            Column::names("bottleneck"),
        ],
    );
    let interval = |ends: [f64; 2]| bare_interval_of_rates(ends.map(SamplesPerSec::new));
    for point in &forecast.scaling {
        let cells = [
            count(point.workers.into()),
            point.iteration.human(),
            bare_rate(point.throughput),
            point.interval_samples_per_s.map_or(String::new(), interval),
            ratio(point.speedup),
            percent(point.scaling_factor),
            limit(point.bottleneck).to_owned(),
        ];
        let own = u64::from(point.workers) == forecast.prediction.workers;
        let lacks = point.memory.filter(|&memory| memory != Verdict::Fits).map(sentences::verdict);
        table.marked_row(cells, own.then_some("this cluster").or(lacks));
    }
    table.note = sentences::saturation(forecast).unwrap_or_default();
    table
}

/// The groups of workers. Not every method knows when gradients are ready, or how much slower a group may be.
fn workers(scenario: &Scenario, forecast: &Forecast) -> Table {
    let groups = &forecast.prediction.groups;
    let with_ready = groups.iter().any(|group| group.ready > Seconds::ZERO);
    let with_slack = groups.iter().any(|group| group.slack.is_some());
    let mut columns = vec![
        Column::numbers("group"),
        Column::words("workers"),
        Column::numbers("batch"),
        Column::numbers("compute"),
    ];
    columns.extend(with_ready.then_some(Column::numbers("1st gradient")));
    columns.extend(with_slack.then_some(Column::words("slack")));
    let mut table = Table::new("Workers", columns);
    for group in groups {
        let mut cells = vec![
            group.group.to_string(),
            format!("{} × {}", count(group.count.into()), machine(scenario, group.group)),
            count(group.batch.into()),
            group.compute.human(),
        ];
        let ready = if group.ready > Seconds::ZERO { group.ready.human() } else { "–".to_owned() };
        cells.extend(with_ready.then_some(ready));
        cells.extend(with_slack.then(|| sentences::slack(group.slack)));
        table.row(cells);
    }
    if with_slack {
        table.note = "Slack: how much slower a worker may compute before the step gets longer.".to_owned();
    }
    table
}

/// The device of a group and its speed; with a profile the device does not matter.
fn machine(scenario: &Scenario, index: usize) -> String {
    let Some(group) = scenario.cluster.groups.get(index) else { return String::new() };
    let device = match scenario.profile() {
        Some(_) => "as profiled".to_owned(),
        None => name(&group.device.name),
    };
    // Compared by bits: only a speed that equals the default is left out.
    if group.speed.to_bits() == 1.0_f64.to_bits() {
        device
    } else {
        format!("{device}, speed {}", group.speed)
    }
}

/// Changes and their gains; where the method of the forecast does not model a change, both are predicted by another.
fn what_if(method: &str, changes: &[WhatIf]) -> Table {
    let mut table = Table::new(
        "What would help",
        [
            Column::names("change"),
            Column::numbers("step time"),
            Column::numbers("throughput"),
            Column::numbers("gain"),
        ],
    );
    for change in changes {
        table.row([
            name(&change.change),
            change.iteration.human(),
            grouped(change.throughput.human()),
            sentences::gain(change.gain),
        ]);
    }
    table.note = sentences::compared_elsewhere(method, changes).unwrap_or_default();
    table
}
