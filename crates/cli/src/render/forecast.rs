//! A forecast as text: what is predicted, by what, and why.

use super::table;
use super::table::bar;
use super::{
    Screen, count, duration, grouped, interval, limit, money, name, percent, ratio, several, simulation,
    updating,
};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Communication, Part, Prediction, Warning};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_report::tell;
use stepcast_study::predict::interval::Interval;
use stepcast_study::{Advice, CriticalPath, Forecast, Share, WhatIf};

/// Cells of the widest bar.
const BAR: usize = 24;
/// Less of the critical path is not worth a line.
const LEAST_SHARE: f64 = 0.005;
/// Layers of the critical path that are listed.
const MOST_LAYERS: usize = 5;

/// The whole forecast, its last line ended.
pub(crate) fn render(
    scenario: &Scenario,
    method: &dyn Method,
    forecast: &Forecast,
    screen: &Screen,
) -> String {
    let prediction = &forecast.prediction;
    let mut sections = vec![
        headline(scenario, method, screen),
        figures(scenario, forecast, screen),
        section("Where the time goes", breakdown(prediction, screen), screen),
        section("Workers", workers(scenario, prediction, screen), screen),
    ];
    if let Some(parts) = prediction.communication.filter(|parts| parts.allreduce > Seconds::ZERO) {
        sections.insert(3, section("What communication does", communication(&parts, screen), screen));
    }
    if let Some(updates) = &prediction.updating {
        sections.push(section("Updates beside the steps", updating::figures(updates, screen), screen));
    }
    if let Some(simulated) = &prediction.simulation {
        sections.push(section("Simulation", simulation::figures(simulated, screen), screen));
        if simulated.staleness_histogram.len() > 1 {
            sections.push(section("How stale updates are", simulation::staleness(simulated, screen), screen));
        }
        sections.push(section("How busy resources are", simulation::usage(simulated, screen), screen));
    }
    if let Some(interval) = &forecast.interval {
        sections.push(section("How sure that is", interval::parts(interval, screen), screen));
    }
    if !forecast.scaling.is_empty() {
        let table = scaling(forecast, screen);
        sections.push(section("Scaling", table, screen));
    }
    sections.push(section("Bottleneck", bottleneck(prediction, &forecast.advice, screen), screen));
    if let Some(path) = &forecast.advice.critical_path {
        sections.push(section("What a step waits for", critical_path(path, screen), screen));
    }
    if !forecast.advice.what_if.is_empty() {
        sections.push(section("What would help", what_if(&forecast.advice.what_if, screen), screen));
    }
    if !prediction.warnings.is_empty() {
        sections.push(section("Warnings", warnings(&prediction.warnings, screen), screen));
    }
    sections.join("\n")
}

pub(super) fn section(title: &str, body: String, screen: &Screen) -> String {
    format!("{}\n{body}", screen.title(title))
}

fn headline(scenario: &Scenario, method: &dyn Method, screen: &Screen) -> String {
    let by = format!("Predicted by {}: {}.", method.name(), method.summary());
    question(scenario, screen) + &screen.paragraph(0, &by)
}

/// What is asked, in two lines.
pub(super) fn question(scenario: &Scenario, screen: &Screen) -> String {
    let (title, setting) = (tell::title(scenario), tell::setting(scenario));
    format!("{}\n{}", screen.strong(&title), screen.paragraph(0, &setting))
}

fn figures(scenario: &Scenario, forecast: &Forecast, screen: &Screen) -> String {
    let prediction = &forecast.prediction;
    let mut table = Table::new("", [Column::names(""), Column::names(""), Column::words("")]);
    let mut row = |title: &str, value: String, note: String| table.row([title.to_owned(), value, note]);
    let interval = forecast.interval.as_ref();
    let range = |interval: &Interval| interval::range(interval.iteration_s.map(Seconds::human));
    row("step time", prediction.iteration.human(), interval.map(range).unwrap_or_default());
    let range = |interval: &Interval| {
        interval::range(interval.throughput_samples_per_s.map(|rate| grouped(rate.human())))
    };
    row("throughput", grouped(prediction.throughput.human()), interval.map(range).unwrap_or_default());
    row("samples", count(prediction.samples), "in a step of all workers".to_owned());
    row("speed-up", ratio(prediction.speedup), "over the fastest worker alone".to_owned());
    row(
        "scaling factor",
        percent(prediction.scaling_factor),
        "of what the workers would do without communication".to_owned(),
    );
    if let (Some(training), Some(data)) = (&forecast.training, scenario.data) {
        row("epoch", duration(training.epoch), several(data.samples, "sample"));
        if data.epochs > 1 {
            row("training", duration(training.total), several(data.epochs, "epoch"));
        }
        if let Some(cost) = training.cost {
            let currency = name(training.currency.as_deref().unwrap_or_default());
            let what = if data.epochs > 1 { several(data.epochs, "epoch") } else { "one epoch".to_owned() };
            row("cost", format!("{} {currency}", money(cost)), what);
        }
    }
    table::render(&table, screen)
}

fn breakdown(prediction: &Prediction, screen: &Screen) -> String {
    parts(&prediction.breakdown, prediction.iteration, screen)
}

/// What an iteration is made of.
pub(super) fn parts(parts: &[Part], iteration: Seconds, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [Column::names("part"), Column::numbers("time"), Column::numbers("share"), Column::names("")],
    );
    for part in parts.iter().filter(|part| part.time.get() > 0.0) {
        let share = part.time / iteration;
        table.row([part.name.to_owned(), part.time.human(), percent(share), bar(share, BAR)]);
    }
    table::render(&table, screen)
}

/// From the first gradients to the end of the last all-reduce.
pub(super) fn communication(parts: &Communication, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [Column::names("part"), Column::numbers("time"), Column::numbers("share"), Column::names("")],
    );
    let whole = parts.negotiate + parts.wait + parts.allreduce + parts.misc;
    for (name, time) in [
        ("ALLREDUCE", parts.allreduce),
        ("WAIT", parts.wait),
        ("NEGOTIATE", parts.negotiate),
        ("MISC", parts.misc),
    ] {
        if time > Seconds::ZERO {
            table.row([name.to_owned(), time.human(), percent(time / whole), bar(time / whole, BAR)]);
        }
    }
    let exposed = match parts.exposed > Seconds::ZERO {
        true => format!("{} of it is not hidden by the backward pass.", parts.exposed.human()),
        false => "All of it is hidden by the backward pass.".to_owned(),
    };
    table::render(&table, screen) + &screen.paragraph(2, &exposed)
}

fn workers(scenario: &Scenario, prediction: &Prediction, screen: &Screen) -> String {
    // Not every method tells when gradients are ready, or what a delay costs.
    let with_ready = prediction.groups.iter().any(|report| report.ready > Seconds::ZERO);
    let with_slack = prediction.groups.iter().any(|report| report.slack.is_some());
    let mut columns = vec![
        Column::numbers("group"),
        Column::words("workers"),
        Column::numbers("batch"),
        Column::numbers("compute"),
    ];
    columns.extend(with_ready.then_some(Column::numbers("1st gradient")));
    columns.extend(with_slack.then_some(Column::words("slack")));
    let mut table = Table::new("", columns);
    for report in &prediction.groups {
        let mut cells = vec![
            report.group.to_string(),
            format!("{} × {}", count(report.count.into()), machine(scenario, report.group)),
            count(report.batch.into()),
            report.compute.human(),
        ];
        let ready = if report.ready > Seconds::ZERO { report.ready.human() } else { "–".to_owned() };
        cells.extend(with_ready.then_some(ready));
        cells.extend(with_slack.then(|| tell::slack(report.slack)));
        table.row(cells);
    }
    table::render(&table, screen)
}

/// What the workers of a group compute with; with a profile the device does not matter.
fn machine(scenario: &Scenario, index: usize) -> String {
    let Some(group) = scenario.cluster.groups.get(index) else { return String::new() };
    let device = match scenario.profile() {
        Some(_) => "as profiled".to_owned(),
        None => name(&group.device.name),
    };
    // Left out where it is exactly what is left to the default.
    if group.speed.to_bits() == 1.0_f64.to_bits() {
        device
    } else {
        format!("{device}, speed {}", group.speed)
    }
}

fn scaling(forecast: &Forecast, screen: &Screen) -> String {
    let own = forecast.prediction.workers;
    let mut table = Table::new(
        "",
        [
            Column::numbers("workers"),
            Column::numbers("step time"),
            Column::numbers("samples/s"),
            Column::numbers("90 % interval"),
            Column::numbers("speed-up"),
            Column::numbers("scaling"),
            Column::names("bottleneck"),
            Column::names(""),
        ],
    );
    for point in &forecast.scaling {
        table.row([
            count(point.workers.into()),
            point.iteration.human(),
            interval::rate(point.throughput),
            point.interval_samples_per_s.map_or(String::new(), interval::rates),
            ratio(point.speedup),
            percent(point.scaling_factor),
            limit(point.bottleneck).to_owned(),
            if u64::from(point.workers) == own { "◂ this cluster".to_owned() } else { String::new() },
        ]);
    }
    let mut text = table::render(&table, screen);
    if let Some(sentence) = tell::saturation(forecast) {
        text.push_str(&screen.paragraph(2, &sentence));
    }
    text
}

fn bottleneck(prediction: &Prediction, advice: &Advice, screen: &Screen) -> String {
    let mut text = screen.paragraph(2, &advice.sentence);
    if let Some(sentence) = tell::balance(prediction, advice) {
        text.push_str(&screen.paragraph(2, &sentence));
    }
    text
}

fn critical_path(path: &CriticalPath, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [Column::names("on the path"), Column::numbers("time"), Column::numbers("share"), Column::names("")],
    );
    let mut rows = |shares: &[Share], most: usize| {
        for share in shares.iter().filter(|share| share.share >= LEAST_SHARE).take(most) {
            let name = name(&share.name);
            table.row([name, share.time.human(), percent(share.share), bar(share.share, BAR)]);
        }
    };
    rows(&path.resources, usize::MAX);
    rows(&path.layers, MOST_LAYERS);
    let mut text = table::render(&table, screen);
    let sentence = format!(
        "By resource, then by layer: the chain of operations that fills a simulated step of {}.",
        path.step.human()
    );
    text.push_str(&screen.paragraph(2, &sentence));
    text
}

fn what_if(changes: &[WhatIf], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("change"),
            Column::numbers("step time"),
            Column::numbers("throughput"),
            Column::numbers("gain"),
        ],
    );
    for change in changes {
        table.row([
            change.change.to_owned(),
            change.iteration.human(),
            grouped(change.throughput.human()),
            tell::gain(change.gain),
        ]);
    }
    table::render(&table, screen)
}

pub(super) fn warnings(warnings: &[Warning], screen: &Screen) -> String {
    let lines = warnings.iter().map(|warning| {
        let message: String = warning.message.chars().filter(|c| !c.is_control()).collect();
        let text = screen.paragraph(4, &format!("{}: {message}", warning.code));
        format!("  {} {}", screen.bad("!"), text.trim_start())
    });
    lines.collect()
}
