//! Tables of measured runs: each row names its scenario and a measurement.

use crate::request::Request;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::{Edit, Scenario, ScenarioFile};
use stepcast_core::strategy::Architecture;

const MOST_RUNS: usize = 500;

/// The column that tells how a row names its scenario, and its value for rows in which all keys that differ from their
/// defaults have columns. Other rows name only the differences from the requested scenario.
const SCENARIO: &str = "scenario";
const WHOLE: &str = "whole";
const STEP_TIME: &str = "step-time";
const THROUGHPUT: &str = "throughput";

/// Sections of a scenario on which a step depends.
const SECTIONS: [&str; 5] = ["model", "cluster", "strategy", "input", "methods"];

const TABLE: &str =
    "give a header such as `cluster.workers.count,strategy.batch,throughput` and a row for each run";

/// A measured run: its scenario, and the measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    names: Names,
    /// The measurement.
    pub measured: Measured,
    pub(super) place: String,
}

/// How a row describes its scenario.
#[derive(Debug, Clone, PartialEq)]
enum Names {
    Asked,
    /// Keys in which it differs from the requested scenario.
    Changes(Vec<Edit>),
    /// All keys that differ from their defaults.
    Whole(Vec<Edit>),
}

/// Measurement of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// Samples per second of all workers.
    Throughput(SamplesPerSec),
    /// The time of a step.
    Step(Seconds),
}

impl Measured {
    pub(super) fn step(self, samples: u64) -> Seconds {
        match self {
            Self::Step(time) => time,
            Self::Throughput(rate) => rate.time_for(samples as f64),
        }
    }
}

impl MeasuredRun {
    /// A step of the unchanged scenario.
    pub fn from_step(time: Seconds) -> Self {
        Self { names: Names::Asked, measured: Measured::Step(time), place: "measured steps".to_owned() }
    }

    /// The measured scenario, relative to `request`.
    pub fn scenario(&self, request: &Request) -> Result<Arc<Scenario>, Fault> {
        let at = |fault: Fault| Fault::in_file(self.place.clone(), fault.reason, fault.remedy);
        match &self.names {
            Names::Asked => request.scenario(),
            Names::Whole(keys) => request.alone(keys.clone()).scenario().map_err(at),
            Names::Changes(keys) => {
                let scenario = request.changed(keys.iter().cloned()).scenario().map_err(at)?;
                self.check_keys(&scenario, keys)?;
                Ok(scenario)
            }
        }
    }

    /// Refuses a run that may be one of other workers or another batch.
    fn check_keys(&self, scenario: &Scenario, keys: &[Edit]) -> Result<(), Fault> {
        let names = |wanted: &dyn Fn(&str) -> bool| {
            keys.iter().any(|edit| wanted(edit.key().rsplit('.').next().unwrap_or_default()))
        };
        let counted = scenario.strategy.architecture == Architecture::StandAlone
            || names(&|key| matches!(key, "count" | "workers" | "machines"));
        let mut missing = Vec::new();
        if !counted {
            missing.push(("number of workers", "cluster.workers.count"));
        }
        if !names(&|key| key.contains("batch")) {
            let of_plan = scenario.strategy.plan.is_some();
            missing.push(("batch", if of_plan { "strategy.plan.global-batch" } else { "strategy.batch" }));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let what: Vec<&str> = missing.iter().map(|(what, _)| *what).collect();
        let columns: Vec<String> = missing.iter().map(|(_, key)| format!("`{key}`")).collect();
        let reason = format!("the run does not say with what {} it was measured", what.join(" and "));
        let remedy = format!("add {}, with the value of each run", columns.join(" and "));
        Err(Fault::in_file(self.place.clone(), reason, remedy))
    }
}

/// The runs in a table: a column `throughput` (samples/s) or `step-time`, and columns named after keys of the scenario.
/// Values are written as in a scenario.
pub fn read_runs(name: &str, text: &str) -> Result<Vec<MeasuredRun>, Fault> {
    let Table { header, rows, .. } = Table::read(name, text)?;
    let column = |wanted: &str| header.iter().position(|name| name == wanted);
    let measured = [THROUGHPUT, STEP_TIME].map(column);
    if measured == [None, None] {
        let reason = "the table of runs needs a column `throughput` or a column `step-time`";
        return Err(Fault::in_file(name, reason, TABLE));
    }
    let mut runs = Vec::new();
    for (line, record) in rows {
        let place = format!("{name}:{line}");
        if runs.len() >= MOST_RUNS {
            let reason = format!("there are more than {MOST_RUNS} runs");
            return Err(Fault::in_file(place, reason, "leave some of them out"));
        }
        let value = read_measured(measured.map(|place| place.map_or("", |place| &record[place])));
        let value = value.map_err(|reason| {
            let remedy = "write a throughput as `812` or `812 samples/s`, a step as `41 ms`";
            Fault::in_file(place.clone(), reason, remedy)
        })?;
        let mut keys = Vec::new();
        for (key, value) in header.iter().zip(&record).filter(|(_, value)| !value.is_empty()) {
            if ![THROUGHPUT, STEP_TIME, SCENARIO].contains(&key.as_str()) {
                let edit = Edit::parse(&format!("{key}={value}"));
                keys.push(edit.map_err(|fault| Fault::in_file(place.clone(), fault.reason, fault.remedy))?);
            }
        }
        let names = match column(SCENARIO).map_or("", |place| record[place].as_str()) {
            "" => Names::Changes(keys),
            WHOLE => Names::Whole(keys),
            other => {
                let reason = format!("`{other}` does not say how the row names its scenario");
                return Err(Fault::in_file(place, reason, format!("write `{WHOLE}`, or nothing")));
            }
        };
        runs.push(MeasuredRun { names, measured: value, place });
    }
    if runs.is_empty() {
        return Err(Fault::in_file(name, "the table has no runs", TABLE));
    }
    Ok(runs)
}

fn read_measured(cells: [&str; 2]) -> Result<Measured, String> {
    let (value, text, figure) = match cells {
        ["", ""] => return Err("nothing was measured".to_owned()),
        [text, ""] => {
            let plain = text.parse::<f64>().ok().map(SamplesPerSec::new);
            let rate: SamplesPerSec =
                plain.map_or_else(|| text.parse().map_err(|error| format!("{error}")), Ok)?;
            (Measured::Throughput(rate), text, rate.get())
        }
        ["", text] => {
            let time: Seconds = text.parse().map_err(|error| format!("{error}"))?;
            (Measured::Step(time), text, time.get())
        }
        _ => return Err("both a throughput and a step are given".to_owned()),
    };
    match figure > 0.0 && figure.is_finite() {
        true => Ok(value),
        false => Err(format!("`{text}` is not positive")),
    }
}

/// The table `text`, which may be empty, with one more row: a step of the scenario of `request`. Anything but a table of
/// runs is refused.
pub fn with_run(name: &str, text: &str, request: &Request, step: Seconds) -> Result<String, Fault> {
    let mut table = Table { comments: String::new(), header: Vec::new(), rows: Vec::new() };
    if !text.trim().is_empty() {
        let is_runs = read_runs(name, text)
            .and_then(|runs| runs.iter().try_for_each(|run| run.scenario(request).map(|_| ())));
        is_runs.map_err(|fault| {
            let reason = format!("it is no table of runs, and is left as it is: {}", fault.reason);
            Fault::in_file(name, reason, "name a new file, or a table that runs were kept in")
        })?;
        table = Table::read(name, text)?;
    }
    let mut row = named_keys(request)?;
    row.insert(SCENARIO.to_owned(), WHOLE.to_owned());
    row.insert(STEP_TIME.to_owned(), format!("{} s", step.get()));
    table.push(row);
    table.write(name)
}

/// The given keys of a scenario on which its steps depend, with their values as TOML. The most important keys are always
/// named, so that rows keep their meaning when defaults change.
fn named_keys(request: &Request) -> Result<BTreeMap<String, String>, Fault> {
    let cannot = |error: toml::ser::Error| Fault::new(error.to_string(), "name a scenario file");
    let keys_of = |file: ScenarioFile| {
        let sections = toml::Table::try_from(file).map_err(cannot)?;
        let mut keys = BTreeMap::new();
        for (section, value) in sections.iter().filter(|(name, _)| SECTIONS.contains(&name.as_str())) {
            flatten(section, value, &mut keys);
        }
        Ok::<_, Fault>(keys)
    };
    let mut keys = keys_of(request.file()?)?;
    let scenario = request.scenario()?;
    let of_plan = scenario.strategy.plan.is_some();
    for (key, value) in keys_of(scenario.to_file())? {
        let is_named = match key.as_str() {
            "strategy.precision" => true,
            "strategy.plan.micro-batch" | "strategy.plan.global-batch" => of_plan,
            "strategy.batch" => !of_plan,
            _ => false,
        };
        if is_named {
            keys.entry(key).or_insert(value);
        }
    }
    Ok(keys)
}

fn flatten(key: &str, value: &toml::Value, keys: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, keys));
        }
        toml::Value::Array(groups) if key == "cluster.workers" => {
            let groups = groups.iter().enumerate();
            groups.for_each(|(index, group)| flatten(&format!("{key}.{index}"), group, keys));
        }
        toml::Value::String(text) => {
            // Plain, unless it would be read as something else.
            let is_plain = Edit::parse(&format!("{key}={text}"))
                .is_ok_and(|edit| edit.value().and_then(|own| own.as_str()) == Some(text));
            keys.insert(key.to_owned(), if is_plain { text.clone() } else { value.to_string() });
        }
        _ => drop(keys.insert(key.to_owned(), value.to_string())),
    }
}

struct Table {
    comments: String,
    header: Vec<String>,
    /// Lines and cells.
    rows: Vec<(u64, Vec<String>)>,
}

impl Table {
    fn read(name: &str, text: &str) -> Result<Self, Fault> {
        let broken = |error: csv::Error| Fault::in_file(name, error.to_string(), TABLE);
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let header = cells(reader.headers().map_err(broken)?);
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(broken)?;
            rows.push((record.position().map_or(0, csv::Position::line), cells(&record)));
        }
        let comments = text.lines().filter(|line| line.starts_with('#'));
        Ok(Self { comments: comments.map(|line| format!("{line}\n")).collect(), header, rows })
    }

    /// Adds a row, and the columns that it needs.
    fn push(&mut self, row: BTreeMap<String, String>) {
        for key in row.keys().filter(|key| !self.header.contains(*key)).cloned().collect::<Vec<_>>() {
            self.header.push(key);
        }
        for (_, cells) in &mut self.rows {
            cells.resize(self.header.len(), String::new());
        }
        self.rows
            .push((0, self.header.iter().map(|key| row.get(key).cloned().unwrap_or_default()).collect()));
    }

    fn write(&self, name: &str) -> Result<String, Fault> {
        let broken = |error: String| Fault::in_file(name, error, "name a new file");
        let mut writer = csv::Writer::from_writer(self.comments.clone().into_bytes());
        for cells in std::iter::once(&self.header).chain(self.rows.iter().map(|(_, cells)| cells)) {
            writer.write_record(cells).map_err(|error| broken(error.to_string()))?;
        }
        let bytes = writer.into_inner().map_err(|error| broken(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| broken(error.to_string()))
    }
}
