//! The figures of a forecast as rows of words.

use crate::tell;
use crate::words::{between, count, duration, grouped, limit, money, name, percent, ratio, several};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_study::Forecast;

/// One figure with its name and what it means.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) note: String,
}

/// A column: its title, and whether numbers stand in it.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) number: bool,
}

/// A table with its title.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    pub(super) note: String,
}

/// One row.
pub(super) struct Row {
    /// Whether it is about the cluster that was asked about.
    pub(super) own: bool,
    pub(super) cells: Vec<String>,
}

impl Table {
    /// Columns of numbers have titles that begin with "#".
    fn new<const N: usize>(title: &'static str, columns: [&'static str; N]) -> Self {
        let column = |title: &'static str| Column {
            title: title.trim_start_matches('#'),
            number: title.starts_with('#'),
        };
        Self { title, columns: columns.map(column).into(), rows: Vec::new(), note: String::new() }
    }

    fn row<const N: usize>(&mut self, own: bool, cells: [String; N]) {
        self.rows.push(Row { own, cells: cells.into() });
    }
}

/// What is asked first.
pub(super) fn figures(scenario: &Scenario, forecast: &Forecast) -> Vec<Figure> {
    let prediction = &forecast.prediction;
    let interval = forecast.interval.as_ref();
    let sure = |ends: [String; 2]| format!("{} with 90 %", between(ends));
    let step = interval.map(|interval| sure(interval.iteration_s.map(Seconds::human)));
    let rate =
        interval.map(|interval| sure(interval.throughput_samples_per_s.map(|rate| grouped(rate.human()))));
    let mut figures = Vec::new();
    let mut add = |name, value, note| figures.push(Figure { name, value, note });
    add("Step time", prediction.iteration.human(), step.unwrap_or_default());
    add("Throughput", grouped(prediction.throughput.human()), rate.unwrap_or_default());
    add("Scaling factor", percent(prediction.scaling_factor), "of work without communication".to_owned());
    add("Speed-up", ratio(prediction.speedup), "over the fastest worker alone".to_owned());
    if let (Some(training), Some(data)) = (&forecast.training, scenario.data) {
        add("Epoch", duration(training.epoch), several(data.samples, "sample"));
        if data.epochs > 1 {
            add("Training", duration(training.total), several(data.epochs, "epoch"));
        }
        if let Some(cost) = training.cost {
            let currency = name(training.currency.as_deref().unwrap_or_default());
            add("Cost", format!("{} {currency}", money(cost)), several(data.epochs, "epoch"));
        }
    }
    if let Some(simulation) = &prediction.simulation {
        let runs =
            format!("{} in {}", several(simulation.steps, "step"), several(simulation.runs as u64, "run"));
        add("Mean staleness", ratio(simulation.mean_staleness), runs);
    }
    figures
}

/// All tables that have rows.
pub(super) fn all(scenario: &Scenario, forecast: &Forecast) -> Vec<Table> {
    let tables = [
        what_if(forecast),
        scaling(forecast),
        breakdown(forecast),
        waited_for(forecast),
        workers(scenario, forecast),
        usage(forecast),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn what_if(forecast: &Forecast) -> Table {
    let mut table = Table::new("What would help", ["Change", "#Step time", "#Throughput", "#Gain"]);
    for change in &forecast.advice.what_if {
        let throughput = grouped(change.throughput.human());
        table.row(
            false,
            [change.change.to_owned(), change.iteration.human(), throughput, tell::gain(change.gain)],
        );
    }
    table
}

fn scaling(forecast: &Forecast) -> Table {
    let columns =
        ["#Workers", "#Step time", "#Samples/s", "#90 % interval", "#Speed-up", "#Scaling", "Bottleneck"];
    let mut table = Table::new("Scaling", columns);
    let rate = |rate: f64| {
        let text = grouped(SamplesPerSec::new(rate).human());
        text.strip_suffix(" samples/s").unwrap_or(&text).to_owned()
    };
    for point in &forecast.scaling {
        let own = u64::from(point.workers) == forecast.prediction.workers;
        let interval = point.interval_samples_per_s.map(|ends| between(ends.map(rate)));
        table.row(
            own,
            [
                count(point.workers.into()),
                point.iteration.human(),
                rate(point.throughput.get()),
                interval.unwrap_or_default(),
                ratio(point.speedup),
                percent(point.scaling_factor),
                limit(point.bottleneck).to_owned(),
            ],
        );
    }
    table.note = tell::saturation(forecast).unwrap_or_default();
    table
}

fn breakdown(forecast: &Forecast) -> Table {
    let mut table = Table::new("Where the time goes", ["Part", "#Time", "#Share"]);
    let prediction = &forecast.prediction;
    for part in prediction.breakdown.iter().filter(|part| part.time > Seconds::ZERO) {
        let share = percent(part.time / prediction.iteration);
        table.row(false, [part.name.to_owned(), part.time.human(), share]);
    }
    table
}

fn waited_for(forecast: &Forecast) -> Table {
    /// Less of the critical path is not worth a line.
    const LEAST: f64 = 0.005;
    let mut table = Table::new("What a step waits for", ["On the critical path", "#Time", "#Share"]);
    let Some(path) = &forecast.advice.critical_path else { return table };
    for share in path.resources.iter().filter(|share| share.share >= LEAST) {
        table.row(false, [name(&share.name), share.time.human(), percent(share.share)]);
    }
    table.note = format!("The chain of operations that fills a simulated step of {}.", path.step.human());
    table
}

fn workers(scenario: &Scenario, forecast: &Forecast) -> Table {
    let mut table = Table::new("Workers", ["#Workers", "Device", "#Batch", "#Computing", "Slack"]);
    for report in &forecast.prediction.groups {
        let device = scenario.cluster.groups.get(report.group).map_or("", |group| &group.device.name);
        table.row(
            false,
            [
                count(report.count.into()),
                if scenario.profile().is_some() { "as measured".to_owned() } else { name(device) },
                count(report.batch.into()),
                report.compute.human(),
                tell::slack(report.slack),
            ],
        );
    }
    table
}

fn usage(forecast: &Forecast) -> Table {
    const MOST: usize = 12;
    let mut table = Table::new("How busy resources are", ["Resource", "#Used"]);
    let simulation = forecast.prediction.simulation.iter();
    for usage in simulation.flat_map(|simulation| &simulation.usage).take(MOST) {
        table.row(false, [name(&usage.resource), percent(usage.share)]);
    }
    table
}
