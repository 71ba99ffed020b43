//! Published throughput of several workers, predicted from that of one: cases that a recipe turns into scenarios, and
//! asynchronous workers whose profile is made from published rates.

use super::zoo_model;
use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use crate::template::fill;
use crate::{ErrorBounds, Errors, Evidence, ValidationError};
use serde_json::{Value, json};
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, BytesPerSec, SamplesPerSec, Seconds};
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::Architecture;
use stepcast_report::format::several;
use stepcast_study::predict::interval::{Case, Regime};
use stepcast_study::predict::methods;
use stepcast_study::simulate::Simulate;

/// One published throughput: the machines in words, the run, and whether an input of the prediction was fitted on it.
struct PublishedRun {
    what: String,
    case: Case,
    fitted: bool,
}

fn findings(run: &Run<'_>, method: &'static str, runs: &[PublishedRun]) -> Result<Findings, ValidationError> {
    let judged: Vec<Case> = runs.iter().filter(|run| !run.fitted).map(|run| run.case.clone()).collect();
    let ratio = |case: &Case| case.predicted.get() / case.measured.get();
    let errors = Errors::from_ratios(method, judged.iter().map(ratio));
    let bounds: ErrorBounds = run.bounds()?;
    let row = |PublishedRun { what, case, fitted }: &PublishedRun| json!({ "what": what, "measured": case.measured.get(), "predicted": case.predicted.get(), "fitted": fitted });
    let figures = json!({
        "set": run.set,
        "about": run.definition.about,
        "unit": run.definition.unit,
        "rows": runs.iter().map(row).collect::<Vec<_>>(),
        "errors": errors,
        "bounds": bounds,
        "left_out": run.definition.left_out,
        "_errors": [errors],
        "_bounded": bounds.to_string(),
    });
    let holds = bounds.keeps(&errors);
    Ok(Findings { holds, ..Findings::new(figures, Evidence::measured(judged, bounds)) })
}

fn case(
    run: &Run<'_>,
    group: &str,
    scenario: &Scenario,
    method: &str,
    prediction: &Prediction,
    measured: f64,
) -> Case {
    Case {
        set: run.set,
        group: group.to_owned(),
        method: method.to_owned(),
        regime: Regime::of(scenario, prediction.scaling_factor),
        workers: u32::try_from(scenario.cluster.workers()).unwrap_or(u32::MAX),
        bandwidth: Some(scenario.cluster.network.bandwidth),
        parameters: Some(scenario.workload.parameters),
        predicted: prediction.throughput,
        measured: SamplesPerSec::new(measured),
        run_spread: prediction
            .simulation
            .as_ref()
            .and_then(|simulation| simulation.run_spread)
            .unwrap_or(0.0),
    }
}

pub(super) fn scenarios(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let recipe = run.recipe()?;
    let cases: Vec<Value> = run.cases(&recipe.cases)?;
    let words =
        |template: &str, case: &Value| Ok::<_, ValidationError>(fill(template, case)?.unwrap_or_default());
    let mut runs = Vec::new();
    let mut methods_used: Vec<&'static str> = Vec::new();
    for row in &cases {
        let (mut row, group) = (row.clone(), words(&recipe.group, row)?);
        if let Some(workers) = &recipe.alone {
            if row.count(workers) == 1 {
                continue;
            }
            let mut speed = None;
            for other in cases.iter().filter(|other| other.count(workers) == 1) {
                if words(&recipe.group, other)? == group {
                    speed = Some(speed_alone(run, other)?);
                }
            }
            let missing = || ValidationError::Data(format!("{}: no run of one worker for {group}", run.set));
            row["speed"] = json!(speed.ok_or_else(missing)?);
        }
        let scenario = recipe.scenario_file(&row)?.resolve()?;
        let method = method(run, &scenario)?;
        let prediction = method.predict(&scenario)?;
        methods_used.push(method.name());
        let case = case(run, &group, &scenario, method.name(), &prediction, row.number(&recipe.measured));
        runs.push(PublishedRun { what: words(&recipe.name, &row)?, case, fitted: false });
    }
    findings(run, methods_used.first().copied().unwrap_or_default(), &runs)
}

fn method(run: &Run<'_>, scenario: &Scenario) -> Result<&'static dyn Method, ValidationError> {
    Ok(match &run.recipe()?.method {
        Some(name) => methods::named(name)?,
        None => methods::choose(scenario)?,
    })
}

/// The speed at which one worker has its published throughput. A part of the step is inversely proportional to the
/// speed, the rest does not depend on it; two predictions give both parts.
fn speed_alone(run: &Run<'_>, one: &Value) -> Result<f64, ValidationError> {
    let recipe = run.recipe()?;
    let predicted = |speed: f64| -> Result<(Seconds, f64), ValidationError> {
        let mut row = one.clone();
        row["speed"] = json!(speed);
        let mut file = recipe.scenario_file(&row)?;
        file.strategy.architecture = Some(Architecture::StandAlone);
        let scenario = file.resolve()?;
        let prediction = method(run, &scenario)?.predict(&scenario)?;
        Ok((prediction.iteration, prediction.samples as f64))
    };
    let ((once, samples), (twice, _)) = (predicted(1.0)?, predicted(2.0)?);
    let divided = (once - twice) * 2.0;
    let measured = SamplesPerSec::new(one.number(&recipe.measured)).time_for(samples);
    Ok(divided / (measured - (once - divided)))
}

/// A step of one worker: pulling, then computing. The time that a server spends on a step is modelled as the transfer of
/// the pulled bytes through its port, whatever it really consists of; the workers' own links are never a limit.
struct OneWorker {
    pulled: Bytes,
    computing: Seconds,
    servers: u32,
    batch: u32,
}

impl OneWorker {
    fn profile(&self) -> Profile {
        let part = (self.pulled.get() / f64::from(self.servers)) as u64;
        let operation =
            |name: String, resource, bytes, after, server| Operation { name, resource, bytes, after, server };
        let pull =
            |server: u32| operation(format!("pull {server}"), Resource::Downlink, part, Vec::new(), server);
        let mut operations: Vec<Operation> = (0..self.servers).map(pull).collect();
        operations.push(operation("compute".to_owned(), Resource::Worker, 0, (0..self.servers).collect(), 0));
        let mut end = vec![0.0; operations.len()];
        end[self.servers as usize] = self.computing.get();
        let step = Step { start: vec![0.0; operations.len()], end, length: self.computing.get() };
        Profile::new("one worker", "published throughput", self.batch, operations, vec![step])
    }

    /// Asynchronous training by workers given as (number, speed), with servers whose ports have the rate `port`.
    fn predict(
        &self,
        speeds: &[(u32, f64)],
        port: BytesPerSec,
    ) -> Result<(Scenario, Prediction), ValidationError> {
        struct Made(Profile);
        impl Files for Made {
            fn profile(&self, _: &str) -> Result<Profile, Fault> {
                Ok(self.0.clone())
            }
        }
        let groups = speeds.iter().filter(|(count, _)| *count > 0);
        let workers: String = groups
            .map(|(count, speed)| format!("[[cluster.workers]]\ncount = {count}\nspeed = {speed:?}\n"))
            .collect();
        // The port stands for the server's software.
        let text = format!(
            "model.profile = \"made\"\n{workers}[cluster.network]\nbandwidth = \"1e15 bit/s\"\n[cluster.servers]\n\
             count = {}\nbandwidth = \"{} bit/s\"\nsoftware = \"none\"\n[strategy]\nsynchronisation = \"async\"\n",
            self.servers,
            port.to_bits_per_sec().get()
        );
        let file = Document::new("made from a row", text).file(&[])?;
        let scenario = file.resolve_with(&Made(self.profile()))?;
        let prediction = Simulate.predict(&scenario)?;
        Ok((scenario, prediction))
    }
}

fn parameters(model: &str) -> Result<(Bytes, u64), ValidationError> {
    const ELEMENT: f64 = 4.0;
    let parameters = zoo_model(model)?.parameters();
    Ok((Bytes::new(parameters as f64 * ELEMENT), parameters))
}

/// One parameter server from which 1 to 8 workers pull, predicted from the throughput of one worker and of eight.
pub(super) fn tf_saturation(run: &Run<'_>) -> Result<Findings, ValidationError> {
    const BATCH: u32 = 32;
    let published: Vec<Value> = run.cases("throughput.csv")?;
    let step = |workers: u32| {
        let found = published.iter().find(|row| row.small("workers") == workers);
        Seconds::new(f64::from(BATCH) / found.map_or(f64::NAN, |row| row.number("images_per_s")))
    };
    let (pulled, parameters) = parameters("inception-v3")?;
    let port: BytesPerSec = pulled / step(8);
    let one = OneWorker { pulled, computing: step(1) - pulled / port, servers: 1, batch: BATCH };
    let mut runs = Vec::new();
    for row in &published {
        let workers = row.small("workers");
        let (scenario, prediction) = one.predict(&[(workers, 1.0)], port)?;
        let (bandwidth, parameters) = (Some(port.to_bits_per_sec()), Some(parameters));
        let case = case(run, "inception-v3", &scenario, "simulate", &prediction, row.number("images_per_s"));
        runs.push(PublishedRun {
            what: several(workers.into(), "worker"),
            case: Case { bandwidth, parameters, ..case },
            fitted: [1, 8].contains(&workers),
        });
    }
    findings(run, "simulate", &runs)
}

/// Asynchronous training of a small network by up to 8 workers, equal and unequal, with one and two parameter servers,
/// predicted from the throughput of single workers and of one saturated server.
pub(super) fn cakelab(run: &Run<'_>) -> Result<Findings, ValidationError> {
    const DEVICES: [&str; 3] = ["k80", "p100", "v100"];
    let published: Vec<Value> = run.cases("runs.csv")?;
    let counts = |row: &Value| DEVICES.map(|device| row.small(device));
    let saturates = |row: &Value| counts(row) == [0, 0, 8] && row.count("servers") == 1;
    let step = |is_it: &dyn Fn(&Value) -> bool| {
        let found = published.iter().find(|row| is_it(row));
        Seconds::new(1.0 / found.map_or(f64::NAN, |row| row.number("steps_per_s")))
    };
    let serving = step(&saturates);
    let alone = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(|one| step(&|row| counts(row) == one) - serving);
    let (pulled, parameters) = parameters("resnet32")?;
    // One rate stands for network and processor of a server: that at which it would send the parameters in that time.
    let port = pulled / serving;
    let mut runs = Vec::new();
    for row in published.iter().filter(|row| counts(row).iter().sum::<u32>() > 1) {
        let servers = row.small("servers");
        let one = OneWorker { pulled, computing: alone[0], servers, batch: 1 };
        let speeds: Vec<(u32, f64)> =
            counts(row).into_iter().zip(alone.map(|time| alone[0] / time)).collect();
        let (scenario, prediction) = one.predict(&speeds, port)?;
        let case =
            case(run, row.text("group"), &scenario, "simulate", &prediction, row.number("steps_per_s"));
        let named = DEVICES.iter().zip(counts(row)).filter(|(_, count)| *count > 0);
        let machines: Vec<String> =
            named.map(|(name, count)| format!("{count} {}", name.to_uppercase())).collect();
        let servers = several(servers.into(), "server");
        runs.push(PublishedRun {
            what: format!("{}, {servers} ({})", machines.join(" + "), row.text("group")),
            case: Case { bandwidth: None, parameters: Some(parameters), ..case },
            fitted: saturates(row),
        });
    }
    findings(run, "simulate", &runs)
}
