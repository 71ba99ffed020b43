//! The tables of a forecast: its figures, the parts of a step, scaling, and helpful changes.

use super::{BAR, simulation, transformer, uncertainty};
use crate::format::{
    as_sure, average, bare_interval_of_rates, bare_rate, count, duration, grouped, interval_of_durations,
    interval_of_rates, interval_of_times, limit, name, percent, percent_with_decimal, ratio, rough_money,
    several,
};
use crate::sentences::{self, cost_of, trained_for};
use crate::table::{Table, bar};
use stepcast_core::prediction::{Communication, Part, Prediction, Spread, Updating, Verdict};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_study::{CriticalPath, Forecast, Share, Training};

/// All tables that have rows, except the headline figures; the parts of the step come first.
pub fn all(scenario: &Scenario, forecast: &Forecast) -> Vec<Table> {
    let prediction = &forecast.prediction;
    let mut parts = breakdown("Where the time goes", &prediction.breakdown, prediction.iteration);
    parts.note = sentences::overlapped(prediction).unwrap_or_default();
    let mut tables = vec![parts];
    tables.extend(
        prediction
            .communication
            .filter(|parts| parts.allreduce > Seconds::ZERO)
            .map(|parts| with_factors(communication("Communication", &parts), prediction)),
    );
    tables.extend(prediction.transformer.iter().flat_map(|report| transformer::all(report)));
    tables.push(workers(scenario, forecast));
    tables.extend(prediction.updating.iter().flat_map(|updating| updates(updating)));
    tables.extend(prediction.simulation.iter().flat_map(|simulated| simulation::all(simulated)));
    tables.extend(forecast.interval.as_ref().map(uncertainty::sources));
    tables.push(scaling(forecast));
    tables
        .extend(forecast.advice.critical_path.as_ref().map(|path| critical_path(path, prediction.iteration)));
    for table in &mut tables {
        table.folded = true;
    }
    tables.push(what_if(forecast));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The headline figures: step time, throughput, and figures derived from them.
pub fn figures(scenario: &Scenario, forecast: &Forecast) -> Table {
    let prediction = &forecast.prediction;
    let mut table = Table::of_figures("");
    let interval = |text: String| format!("90 % interval {text}");
    let ends = forecast.interval.as_ref();
    let times = match (ends, sentences::simulated(prediction)) {
        (Some(ends), _) => interval(interval_of_times(ends.iteration_s)),
        (None, Some(runs)) => format!("simulated runs {}", interval_of_times(runs)),
        (None, None) => String::new(),
    };
    let rates = ends.map_or(String::new(), |ends| interval(interval_of_rates(ends.throughput_samples_per_s)));
    let (step, rate) = as_sure_as(forecast);
    table.figure("step time", step(prediction.iteration), times);
    table.figure("throughput", rate(prediction.throughput), rates);
    match &prediction.transformer {
        Some(report) => {
            let samples = prediction.throughput.get();
            let peak = peak(scenario);
            transformer::rates(&mut table, report, samples, &peak, forecast);
        }
        None => {
            table.figure("samples per step", count(prediction.samples), "of all workers together");
            table.figure("speed-up", ratio(prediction.speedup), sentences::baseline(&forecast.advice));
        }
    }
    table.figure(
        "scaling factor",
        percent(prediction.scaling_factor),
        "of the throughput without communication",
    );
    if let Some(staleness) = prediction.staleness {
        table.figure("staleness", ratio(staleness), "updates by others between a pull and the update");
    }
    if let (Some(training), Some(data)) = (&forecast.training, scenario.data) {
        let samples = scenario.epoch_samples().unwrap_or(0);
        table.figure("epoch", duration(training.epoch), several(samples, "sample"));
        trained(&mut table, training, data.epochs);
    }
    table
}

/// Time and cost of all epochs, with their intervals.
fn trained(table: &mut Table, training: &Training, epochs: u64) {
    let epochs = match training.goodput {
        Some(goodput) => format!("{}, goodput {}", several(epochs, "epoch"), percent_with_decimal(goodput)),
        None => several(epochs, "epoch"),
    };
    let between = |ends: Option<String>| match ends {
        Some(ends) => format!("90 % interval {ends}, {epochs}"),
        None => epochs.clone(),
    };
    let ends = between(training.total_interval_s.map(interval_of_durations));
    table.figure("training", trained_for(training), ends);
    if let Some(cost) = training.cost {
        let currency = name(training.currency.as_deref().unwrap_or_default());
        let mut ends = between(training.cost_interval.map(|ends| ends.map(rough_money).join("–")));
        if training.is_price_assumed {
            ends += ", price assumed";
        }
        table.figure("cost", format!("{} {currency}", cost_of(training, cost)), ends);
    }
}

pub fn brief_figures(scenario: &Scenario, forecast: &Forecast) -> Table {
    let mut table = figures(scenario, forecast);
    table.rows.retain(|row| {
        let left_out = ["samples per step", "speed-up", "epoch"];
        row.cells.first().is_none_or(|first| !left_out.contains(&first.as_str()))
    });
    table
}

/// The rate that utilisation refers to: "the 989 TFLOP/s of bf16".
fn peak(scenario: &Scenario) -> String {
    let precision = scenario.strategy.precision.of_products();
    let peak = scenario.cluster.groups.first().and_then(|group| group.device.peak(precision));
    peak.map_or("the peak rate".to_owned(), |peak| format!("the {} of {precision}", peak.human()))
}

pub fn scaling(forecast: &Forecast) -> Table {
    let mut table = Table::new(
        "Scaling",
        ["#workers", "#step time", "#samples/s", "#90 % interval", "#speed-up", "#scaling", "bottleneck"],
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
    let mut columns = vec!["#group", "~workers", "#batch", "#compute"];
    columns.extend(with_ready.then_some("#1st gradient"));
    columns.extend(with_slack.then_some("~slack"));
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
fn what_if(forecast: &Forecast) -> Table {
    let mut table = Table::new("What would help", ["change", "#step time", "#throughput", "#gain"]);
    let (step, rate) = as_sure_as(forecast);
    let changes = &forecast.advice.what_if;
    for change in changes {
        table.row([
            name(&change.change),
            step(change.iteration),
            rate(change.throughput),
            sentences::gain(change.gain),
        ]);
    }
    table.note = sentences::compared_elsewhere(forecast.prediction.method, changes).unwrap_or_default();
    table
}

/// Formatters of step times and throughputs, with the precision of the forecast's interval.
fn as_sure_as(forecast: &Forecast) -> (impl Fn(Seconds) -> String, impl Fn(SamplesPerSec) -> String) {
    let width = sentences::width(forecast);
    (
        move |step: Seconds| Seconds::new(as_sure(step.get(), width)).human(),
        move |rate: SamplesPerSec| grouped(SamplesPerSec::new(as_sure(rate.get(), width)).human()),
    )
}

/// Changes that a brief answer names.
const MOST_HELPFUL: usize = 3;

pub fn most_helpful(forecast: &Forecast) -> Table {
    let mut table = Table::of_figures("What would help most");
    let (step, rate) = as_sure_as(forecast);
    for change in forecast.advice.what_if.iter().take(MOST_HELPFUL) {
        let after = format!("{}, {}", step(change.iteration), rate(change.throughput));
        table.figure(&name(&change.change), sentences::gain(change.gain), after);
    }
    table
}

/// Smaller shares of the critical path are left out.
const LEAST_SHARE: f64 = 0.005;
/// A simulated step this close to the predicted one, as a share, is not mentioned.
const ALIKE: f64 = 0.005;
/// Layers of the critical path that are listed.
const MOST_LAYERS: usize = 5;

fn columns(first: &str) -> [&str; 4] {
    [first, "#time", "#share", "|"]
}

fn add(table: &mut Table, name: String, time: Seconds, share: f64) {
    table.row([name, time.human(), percent(share), bar(share, BAR)]);
}

/// The parts of an iteration that take time; they add up to it.
pub(super) fn breakdown(title: &str, parts: &[Part], iteration: Seconds) -> Table {
    let mut table = Table::new(title, columns("part"));
    for part in parts.iter().filter(|part| part.time > Seconds::ZERO) {
        add(&mut table, part.kind.to_string(), part.time, part.time / iteration);
    }
    table
}

/// The table with the scaling factors of Liu 2022 by name, where the prediction is by its model.
fn with_factors(mut table: Table, prediction: &Prediction) -> Table {
    if let Some(csf) = prediction.csf {
        let osf = prediction.scaling_factor;
        table.note += &format!(" OSF {osf:.3}; CSF, all sent after the backward pass, {csf:.3}.");
    }
    table
}

/// From the first gradients to the end of the last all-reduce.
pub(super) fn communication(title: &str, parts: &Communication) -> Table {
    let mut table = Table::new(title, columns("part"));
    let whole = parts.negotiate + parts.wait + parts.allreduce + parts.misc;
    for (name, time) in [
        ("ALLREDUCE", parts.allreduce),
        ("WAIT", parts.wait),
        ("NEGOTIATE", parts.negotiate),
        ("MISC", parts.misc),
    ] {
        if time > Seconds::ZERO {
            add(&mut table, name.to_owned(), time, time / whole);
        }
    }
    table.note = match parts.exposed > Seconds::ZERO {
        true => format!("{} of it is not hidden by the backward pass.", parts.exposed.human()),
        false => "All of it is hidden by the backward pass.".to_owned(),
    };
    table
}

/// The chain of operations that determines the length of a step, as shares of the step that is predicted.
pub(super) fn critical_path(path: &CriticalPath, iteration: Seconds) -> Table {
    let mut table = Table::new("What the step waits for", columns("on the critical path"));
    let mut rows = |shares: &[Share], most: usize| {
        for share in shares.iter().filter(|share| share.share >= LEAST_SHARE).take(most) {
            add(&mut table, name(&share.name), iteration * share.share, share.share);
        }
    };
    rows(&path.resources, usize::MAX);
    rows(&path.layers, MOST_LAYERS);
    let source = match ((path.step / iteration).ln().abs() < ALIKE) || path.step.human() == iteration.human()
    {
        true => String::new(),
        false => format!(" The path is that of a simulated step of {}.", path.step.human()),
    };
    table.note = format!("Shares of the predicted step, by resource, then by layer.{source}");
    table
}

/// How long an update takes and how many samples enter it; where its time goes.
fn updates(updates: &Updating) -> Vec<Table> {
    let mut table = Table::of_figures("Updates beside the steps");
    table.figure("update time", updates.iteration.human(), "from one update to the next");
    table.figure("minibatch", average(updates.minibatch), "samples that enter one update, on average");
    let Spread { low, high, .. } = updates.minibatch_spread;
    let range = format!("{} to {}", average(low), average(high));
    table.figure("nine of ten minibatches", range, "samples; one update in twenty has fewer, one more");
    table.figure(
        "staleness",
        average(updates.staleness),
        "updates since the weights that a gradient was computed with, on average",
    );
    let parts = breakdown("Where the time of an update goes", &updates.breakdown, updates.iteration);
    let mut tables = vec![table, parts];
    if !updates.kernels.is_empty() {
        let whole: Seconds = updates.kernels.iter().map(|kernel| kernel.time).sum();
        let mut kernels = Table::new("Gradient by kernel", columns("kernel"));
        for kernel in &updates.kernels {
            add(&mut kernels, kernel.kernel.to_owned(), kernel.time, kernel.time / whole);
        }
        tables.push(kernels);
    }
    tables
}
