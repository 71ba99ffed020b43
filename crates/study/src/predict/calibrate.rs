//! Corrects assumed figures by runs that a user has measured.
//!
//! The logarithms of the groups' factors have a normal prior; a measured run tells the logarithm of its step with the
//! slopes of that run. Runs are taken in one after the other (the update of a Kalman filter), and one more unknown,
//! the deviation of this software on this cluster, is common to all of them. One run helps, none is needed.

use super::interval::assumed::{closed_form, slopes};
use super::methods;
use crate::request::Request;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::prior::{Priors, REPEATS, Residual};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_core::strategy::Architecture;

/// Most runs that are taken in.
const MOST_RUNS: usize = 10_000;

/// A measured run: changes of the scenario, and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    overrides: Vec<Edit>,
    measured: Measured,
    /// Its place in the file, for errors.
    place: String,
}

impl MeasuredRun {
    /// A step of the scenario as it is.
    pub fn from_step(time: Seconds) -> Self {
        Self { overrides: Vec::new(), measured: Measured::Step(time), place: "measured steps".to_owned() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Measured {
    Throughput(SamplesPerSec),
    Step(Seconds),
}

/// An assumed figure that runs have corrected.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Correction {
    /// What was assumed.
    pub name: String,
    /// Factor on the assumed figures.
    pub factor: f64,
    /// Standard deviation of the logarithm before the runs.
    pub spread_before: f64,
    /// Standard deviation of the logarithm after them.
    pub spread: f64,
}

/// The priors after measured runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The corrected priors.
    pub priors: Arc<Priors>,
    /// What was corrected by more than a hundredth of its spread.
    pub corrections: Vec<Correction>,
}

/// The runs in a table: a column `throughput` (samples/s) or `step-time`, and columns named after keys of the scenario
/// that differ between runs. Values are written as in a scenario.
pub fn read_runs(name: &str, text: &str) -> Result<Vec<MeasuredRun>, Fault> {
    let remedy = "give a header such as `cluster.workers.count,throughput` and a row for each run";
    let broken = |error: csv::Error| Fault::in_file(name, error.to_string(), remedy);
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(broken)?.clone();
    let column = |wanted: &str| header.iter().position(|name| name == wanted);
    let (measured, is_throughput) = match (column("throughput"), column("step-time")) {
        (Some(place), None) => (place, true),
        (None, Some(place)) => (place, false),
        _ => {
            let reason = "the table of runs needs either a column `throughput` or a column `step-time`";
            return Err(Fault::in_file(name, reason, remedy));
        }
    };
    let mut runs = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(broken)?;
        let place = format!("{name}:{}", index + 2);
        if index >= MOST_RUNS {
            let reason = format!("there are more than {MOST_RUNS} runs");
            return Err(Fault::in_file(place, reason, "leave some of them out"));
        }
        let wrong = |reason: String| {
            let remedy = "write a throughput as `812` or `812 samples/s`, a step as `41 ms`";
            Fault::in_file(place.clone(), reason, remedy)
        };
        let text = record.get(measured).unwrap_or_default();
        let value = if is_throughput {
            let plain = text.parse::<f64>().ok().map(SamplesPerSec::new);
            let parsed = plain.map_or_else(|| text.parse().map_err(|error| wrong(format!("{error}"))), Ok)?;
            Measured::Throughput(parsed)
        } else {
            Measured::Step(text.parse().map_err(|error| wrong(format!("{error}")))?)
        };
        let is_positive = match value {
            Measured::Throughput(rate) => rate.get() > 0.0 && rate.get().is_finite(),
            Measured::Step(time) => time.get() > 0.0 && time.get().is_finite(),
        };
        if !is_positive {
            return Err(wrong(format!("`{text}` is not positive")));
        }
        let changes = header.iter().zip(&record).enumerate();
        let changes = changes.filter(|(place, (_, value))| *place != measured && !value.is_empty());
        let overrides = changes
            .map(|(_, (key, value))| Edit::parse(&format!("{key}={value}")))
            .collect::<Result<_, _>>()
            .map_err(|fault: Fault| Fault {
                place: None,
                ..Fault::in_file(place.clone(), fault.reason, fault.remedy)
            })?;
        runs.push(MeasuredRun { overrides, measured: value, place });
    }
    if runs.is_empty() {
        return Err(Fault::in_file(name, "the table has no runs", remedy));
    }
    Ok(runs)
}

/// The priors of `request` after `runs`, each of which is the scenario of the request with some keys changed.
pub fn calibrate(request: &Request, runs: &[MeasuredRun]) -> Result<Calibration, Fault> {
    let before = Priors::shipped()?;
    let count = before.groups.len();
    let mut state = State::new(&before);
    for run in runs {
        let at = |fault: Fault| Fault::in_file(run.place.clone(), fault.reason, fault.remedy);
        let scenario = request.changed(run.overrides.iter().cloned()).scenario().map_err(at)?;
        let method = methods::choose(&scenario).map_err(at)?;
        let Some(twin) = closed_form(&scenario, method) else {
            let reason = "no closed form predicts this run";
            return Err(Fault::in_file(run.place.clone(), reason, "leave it out"));
        };
        let prediction = twin.predict(&scenario).map_err(at)?;
        let step = match run.measured {
            Measured::Step(time) => time,
            Measured::Throughput(rate) => rate.time_for(prediction.samples as f64),
        };
        let residual = (step.get() / prediction.iteration.get()).ln();
        let exposed = (1.0 - prediction.scaling_factor).clamp(0.005, 0.995);
        let (of, cell) = unexplained(&scenario, exposed);
        let mut slopes = slopes(&scenario, twin).map_err(at)?;
        slopes.push(cell);
        state.observe(&slopes, residual, of.row.hypot(REPEATS).powi(2));
    }
    let covariance: Vec<f64> = (0..count)
        .flat_map(|i| (0..count).map(move |j| (i, j)))
        .map(|(i, j)| state.covariance(i, j))
        .collect();
    let priors = before.corrected(&state.mean[..count], covariance);
    let corrections = before.groups.iter().zip(&priors.groups).zip(&state.mean);
    let corrections = corrections.filter(|((before, after), _)| after.spread < 0.99 * before.spread).map(
        |((before, after), shift)| Correction {
            name: before.name.clone(),
            factor: shift.exp(),
            spread_before: before.spread,
            spread: after.spread,
        },
    );
    Ok(Calibration { corrections: corrections.collect(), priors: Arc::new(priors) })
}

/// What no figure explains of a run, and its deviation that all runs of a cluster share.
fn unexplained(scenario: &Scenario, exposed: f64) -> (Residual, f64) {
    let residual = &scenario.priors.residual;
    match scenario.strategy.architecture {
        Architecture::StandAlone => (residual.one_gpu, 0.0),
        Architecture::AllReduce => {
            (residual.all_reduce, residual.all_reduce.cell * (exposed * (1.0 - exposed)).sqrt())
        }
        Architecture::ParameterServer => (residual.servers, residual.servers.cell * exposed.sqrt()),
    }
}

/// Mean and covariance of the logarithms of all factors and of the common deviation, which has unit variance.
struct State {
    mean: Vec<f64>,
    covariance: Vec<f64>,
}

impl State {
    fn new(priors: &Priors) -> Self {
        let spreads: Vec<f64> = priors.groups.iter().map(|group| group.spread).chain([1.0]).collect();
        let size = spreads.len();
        let mut covariance = vec![0.0; size * size];
        for (index, spread) in spreads.iter().enumerate() {
            covariance[index * size + index] = spread.powi(2);
        }
        Self { mean: vec![0.0; size], covariance }
    }

    fn covariance(&self, i: usize, j: usize) -> f64 {
        self.covariance[i * self.mean.len() + j]
    }

    /// Takes in one figure that is `slopes` times the unknowns, plus noise of variance `noise`.
    fn observe(&mut self, slopes: &[f64], value: f64, noise: f64) {
        let size = self.mean.len();
        let with: Vec<f64> =
            (0..size).map(|i| (0..size).map(|j| self.covariance(i, j) * slopes[j]).sum()).collect();
        let variance = noise + slopes.iter().zip(&with).map(|(slope, with)| slope * with).sum::<f64>();
        let expected: f64 = slopes.iter().zip(&self.mean).map(|(slope, mean)| slope * mean).sum();
        let surprise = (value - expected) / variance;
        for i in 0..size {
            self.mean[i] += with[i] * surprise;
            for j in 0..size {
                self.covariance[i * size + j] -= with[i] * with[j] / variance;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let text = "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\nbatch = 32\n\
                    [[cluster.workers]]\ncount = 16\n[cluster.network]\nbandwidth = \"25 Gbit/s\"\nrented = true";
        Request::from_reader("job.toml", text.as_bytes(), Vec::new()).unwrap()
    }

    fn step(scenario: &Scenario) -> f64 {
        methods::choose(scenario).unwrap().predict(scenario).unwrap().iteration.get()
    }

    #[test]
    fn a_run_pulls_the_forecast_towards_it_and_narrows_it() {
        let request = request();
        let scenario = request.scenario().unwrap();
        let assumed = step(&scenario);
        let runs = read_runs(
            "runs.csv",
            &format!("cluster.workers.count,step-time\n8,{} s\n", 1.3 * step_of_8(&request)),
        );
        let calibration = calibrate(&request, &runs.unwrap()).unwrap();
        let corrected = Scenario { priors: calibration.priors.clone(), ..scenario.as_ref().clone() };
        let ratio = step(&corrected) / assumed;
        assert!(ratio > 1.05 && ratio < 1.3, "{ratio}");
        let slopes = slopes(&scenario, methods::choose(&scenario).unwrap()).unwrap();
        assert!(calibration.priors.variance(&slopes) < 0.7 * scenario.priors.variance(&slopes));
        assert!(!calibration.corrections.is_empty());
    }

    fn step_of_8(request: &Request) -> f64 {
        let eight = Edit::parse("cluster.workers.count=8").unwrap();
        step(&request.changed([eight]).scenario().unwrap())
    }

    /// What one model on one device is off is common to its batches and to its steps among others.
    #[test]
    fn a_step_of_one_gpu_tells_about_other_batches() {
        let text = "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"stand-alone\"\nbatch = 64\n\
                    [[cluster.workers]]\ncount = 1\ndevice = \"tesla-v100-sxm2-16gb\"";
        let request = Request::from_reader("job.toml", text.as_bytes(), Vec::new()).unwrap();
        let scenario = request.scenario().unwrap();
        let batch = Edit::parse("strategy.batch=32").unwrap();
        let measured = 1.5 * step(&request.changed([batch]).scenario().unwrap());
        let runs = read_runs("runs.csv", &format!("strategy.batch,step-time\n32,{measured} s\n"));
        let calibration = calibrate(&request, &runs.unwrap()).unwrap();
        let corrected = Scenario { priors: calibration.priors.clone(), ..scenario.as_ref().clone() };
        let ratio = step(&corrected) / step(&scenario);
        assert!(ratio > 1.2 && ratio < 1.5, "{ratio}");
        let deviation =
            calibration.corrections.iter().find(|own| own.name == "this model on this device").unwrap();
        assert!(deviation.factor > 1.0 && deviation.spread < deviation.spread_before, "{deviation:?}");
    }

    #[test]
    fn a_run_as_forecast_changes_nothing_but_the_spread() {
        let request = request();
        let text = format!("cluster.workers.count,step-time\n8,{} s\n", step_of_8(&request));
        let calibration = calibrate(&request, &read_runs("runs.csv", &text).unwrap()).unwrap();
        for correction in &calibration.corrections {
            assert!((correction.factor - 1.0).abs() < 1e-6, "{correction:?}");
            assert!(correction.spread < correction.spread_before);
        }
    }

    #[test]
    fn tables_that_cannot_be_read_are_refused_with_their_place() {
        let refused = |text: &str| read_runs("runs.csv", text).unwrap_err();
        assert!(refused("workers,speed\n8,1\n").reason.contains("column `throughput`"));
        assert!(refused("throughput\n-3\n").reason.contains("not positive"));
        assert!(refused("throughput\n").reason.contains("no runs"));
        assert!(refused("throughput\nfast\n").to_string().contains("runs.csv:2"));
    }
}
