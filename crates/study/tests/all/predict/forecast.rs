//! Forecasts: what they report on the way, what they may cost, and the time of training.

use crate::{by, example, forecast_by, pass, request, scenario};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::fault::Fault;
use stepcast_core::method::{Method, MethodAbout};
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_study::predict::{enough_workers, fits, methods};
use stepcast_study::{
    Forecast, ForecastOptions, MethodChoice, Observer, Progress, Request, Stopped, forecast,
};

fn quick_start(changes: &[&str]) -> Request {
    Request::quick_start(Edit::parse_all(changes).unwrap())
}

#[test]
fn an_observer_hears_of_predictions_and_ends_the_work() {
    let request = Request::quick_start(Vec::new());
    let heard = std::sync::Mutex::new(0);
    let count = |progress: Progress<'_>| {
        *heard.lock().unwrap() += usize::from(matches!(progress, Progress::Predicted(_)));
        ControlFlow::Continue(())
    };
    let ask = |observer| forecast(&request, &ForecastOptions::default(), &observer);
    let observed = ask(Observer::watching(&count)).unwrap();
    assert_eq!(observed, ask(Observer::none()).unwrap());
    assert!(*heard.lock().unwrap() > observed.scaling.len());
    assert_eq!(ask(Observer::watching(&|_| ControlFlow::Break(()))), Err(Stopped::Cancelled));
}

/// Estimates of a simulation are parts of a forecast; they become surer, and the last part has an interval.
#[test]
fn estimates_are_parts() {
    let request = request(&example("async.toml"), &[]);
    let parts = std::sync::Mutex::new(Vec::new());
    let part = |forecast: &Forecast| parts.lock().unwrap().push(forecast.clone());
    let observer = Observer { part: &part, ..Observer::none() };
    forecast(&request, &ForecastOptions::default(), &observer).unwrap();
    let parts = parts.into_inner().unwrap();
    let steps = |part: &Forecast| part.prediction.simulation.as_ref().unwrap().steps;
    assert!(parts.len() > 3 && parts[0].interval.is_none() && parts.last().unwrap().interval.is_some());
    assert!(parts.windows(2).all(|pair| steps(&pair[0]) <= steps(&pair[1])));
    assert!(steps(&parts[0]) < steps(parts.last().unwrap()));
}

/// The number of workers of the scenario itself costs no simulation.
#[test]
fn long_tables_of_simulations_ask_for_a_budget() {
    let asked = |method: &str, budget: u64, points: usize| {
        let request = quick_start(&[&format!("methods.simulate.budget={budget}")]);
        let own = u32::try_from(request.scenario().unwrap().cluster.workers()).unwrap();
        let workers = Some(vec![own; points]);
        let options = ForecastOptions { method: by(method), workers, ..ForecastOptions::default() };
        match forecast(&request, &options, &Observer::none()) {
            Err(Stopped::Fault(fault)) => fault.key.to_string(),
            answer => answer.map(|_| String::new()).unwrap(),
        }
    };
    assert_eq!(asked("simulate", 1_000_000, 100), "");
    assert_eq!(asked("simulate", 1_000_000, 101), "methods.simulate.budget");
    assert_eq!(asked("simulate", 1_010_000, 101), "");
    assert_eq!(asked("layerwise", 1000, 4000), "");
    assert_eq!(asked("simulate", 1000, 64), "");
}

/// A closed form that leaves the slack of workers to others, and counts the layers that it goes through.
struct Plain(&'static dyn Method, AtomicU64);

impl Method for Plain {
    fn about(&self) -> MethodAbout {
        self.0.about()
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        self.0.applies(scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.1.fetch_add(pass(scenario), Ordering::Relaxed);
        let mut prediction = self.0.predict(scenario)?;
        prediction.groups.iter_mut().for_each(|group| group.slack = None);
        Ok(prediction)
    }
}

impl Plain {
    fn leaked(method: &'static dyn Method) -> &'static Self {
        Box::leak(Box::new(Self(method, AtomicU64::new(0))))
    }
}

fn deep(layers: usize, groups: usize, budget: u64) -> Request {
    request(&crate::deep(layers, groups), &[&format!("methods.simulate.budget={budget}")])
}

/// A forecast, and the layers that its predictions went through.
fn counted(request: &Request) -> (Forecast, u64) {
    let method = Plain::leaked(methods::choose(&request.scenario().unwrap()).unwrap());
    let options = ForecastOptions { method: MethodChoice::One(method), ..ForecastOptions::default() };
    let forecast = forecast(request, &options, &Observer::none()).unwrap();
    (forecast, method.1.load(Ordering::Relaxed))
}

fn left_out(forecast: &Forecast) -> Option<&str> {
    let warnings = &forecast.prediction.warnings;
    warnings.iter().find(|warning| warning.code == "left-out").map(|warning| warning.message.as_str())
}

/// However many layers and groups there are: the first figure, its interval and what the budget pays for.
#[test]
fn the_work_of_a_forecast_is_bounded() {
    for (layers, groups) in [(50, 1), (400, 1), (50, 8)] {
        let asked = deep(layers, groups, 10_000);
        let (forecast, work) = counted(&asked);
        let scenario = asked.scenario().unwrap();
        // One figure and its interval: two predictions for each group of priors and one for each of its constants.
        let priors = &scenario.priors.groups;
        let constants: usize = priors.iter().map(|group| 1 + group.constants.len()).sum();
        let least = (1 + 2 * (priors.len() + 2) + constants) as u64 * pass(&scenario);
        assert!(work <= least + 10_000, "{layers} layers, {groups} groups: {work} > {least} + 10000");
        assert!(left_out(&forecast).is_some_and(|text| text.contains("simulate.budget")), "{forecast:#?}");
    }
}

/// Twice the layers, twice the work, with nothing left out.
#[test]
fn the_work_of_a_forecast_is_linear_in_the_layers() {
    let [(once, few), (twice, many)] = [100, 200].map(|layers| counted(&deep(layers, 1, 10_000_000)));
    assert_eq!((left_out(&once), left_out(&twice)), (None, None));
    assert!(many as f64 <= 2.2 * few as f64, "{few} {many}");
    assert!(!twice.scaling.is_empty() && !twice.advice.what_if.is_empty());
    assert!(twice.scaling.iter().all(|point| point.interval_samples_per_s.is_some()));
}

#[test]
fn more_workers_pay_until_the_rest_brings_too_little() {
    let of = |worth| {
        enough_workers(&mut [(8, 79.0), (1, 10.0), (2, 20.0), (4, 38.0), (16, 82.0), (32, 81.0)], worth)
    };
    assert_eq!(of(0.05), Some(8));
    assert_eq!(of(0.01), Some(16));
    assert_eq!(enough_workers(&mut [(1, 10.0), (9, 89.0), (10, 90.0)], 0.05), None);
    assert_eq!(of(1.2), Some(4));
    assert_eq!(enough_workers(&mut [(1, 1.0), (2, 2.0)], 0.05), None);
    assert_eq!(enough_workers(&mut [], 0.05), None);
    // Too many workers may be slower than fewer.
    assert_eq!(enough_workers(&mut [(1, 5.0), (2, 3.0)], 0.05), Some(1));
}

/// A wide range of speeds, so that some workers have slack and one has none.
#[test]
fn the_search_finds_what_the_queue_knows() {
    let text = include_str!("slack.toml");
    let known = Zeng2023.predict(&scenario(text, &[])).unwrap().groups;
    let searched = forecast_by(&request(text, &[]), MethodChoice::One(Plain::leaked(&Zeng2023)));
    for (index, (known, found)) in known.iter().zip(searched.prediction.groups).enumerate() {
        let (known, found) = (known.slack.unwrap(), found.slack.unwrap());
        assert!((found - known).abs() < 1e-4 * (1.0 + known), "group {index}: {found} against {known}");
    }
    assert!(known.iter().any(|group| group.slack > Some(0.01)), "{known:#?}");
}

#[test]
fn an_epoch_is_a_whole_number_of_steps() {
    // 96 samples a step.
    for (samples, steps) in [(97, 2.0), (95, 1.0)] {
        let asked = quick_start(&["batch=32", &format!("data.samples={samples}")]);
        let forecast = forecast_by(&asked, MethodChoice::Auto);
        let epoch = forecast.training.unwrap().epoch;
        assert!((epoch / forecast.prediction.iteration - steps).abs() < 1e-9, "{samples}: {epoch}");
        let warnings = &forecast.prediction.warnings;
        let told = warnings.iter().any(|warning| warning.code == "batch-above-data");
        assert_eq!(told, samples < 96, "{warnings:?}");
    }
}

/// Ten steps, and what torch.compile takes before them: 7.8 s, or 9.1 s and 1.45 s for each of 24 layers.
#[test]
fn compiled_training_begins_with_its_compilation() {
    let with = |changes: &[&str]| {
        let mut all =
            vec!["model.zoo=gpt2-medium", "data.samples=40", "plan.micro-batch=4", "plan.global-batch=4"];
        all.extend(changes);
        let own = |text: &&str| Edit::parse(&text.replace("plan.", "strategy.plan.")).unwrap();
        let request = Request::from_model("gpt2-medium", all.iter().map(own).collect());
        let training = forecast_by(&request, MethodChoice::Auto).training.unwrap();
        training.total.get() - (training.epoch / training.goodput.unwrap()).get()
    };
    let alone = ["cluster.workers.count=1", "plan.overlap=fsdp2"];
    assert!(with(&alone).abs() < 1e-6);
    let compiled = ["strategy.compiled=true", alone[0], alone[1]];
    assert!((with(&compiled) - 7.8).abs() < 1e-6);
    let whole = [compiled[0], compiled[1], compiled[2], "plan.implementation=hugging-face"];
    assert!((with(&whole) - 43.9).abs() < 1e-6);
}

/// Zeng 2023 trained these on 8 GB and 6 GB: fast convolutions need workspace, others do without.
#[test]
fn clusters_of_the_papers_fit() {
    let rtx = "cluster.workers=[{ count = 2, device = \"quadro-rtx-4000\" }]";
    for changes in [
        ["model.zoo=vgg19", "batch=64", rtx],
        ["model.zoo=vgg19", "batch=32", "cluster.workers=[{ device = \"gtx-1060-6gb\" }]"],
    ] {
        assert!(fits(&quick_start(&changes).scenario().unwrap()), "{changes:?}");
    }
    assert!(!fits(&quick_start(&["model.zoo=vgg19", "batch=512", rtx]).scenario().unwrap()));
}
