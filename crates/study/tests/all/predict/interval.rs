//! Intervals: residuals in pools, uncertain inputs, and what lies beyond the validated range.

use crate::{by, forecast_by, request, scenario};
use stepcast_analytic::liu2022::Liu2022;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{
    self, Case, Interval, Level, Limit, Machines, Pace, Pool, Regime, committed, residuals,
};
use stepcast_study::predict::methods;

fn case(set: &'static str, group: &str, method: &str, residual: f64) -> Case {
    let regime = Regime {
        architecture: Architecture::ParameterServer,
        pace: Pace::Synchronous,
        limit: Limit::Computing,
        machines: Machines::Several,
    };
    Case {
        set,
        group: group.to_owned(),
        method: method.to_owned(),
        regime,
        workers: 4,
        bandwidth: None,
        parameters: Some(1_000_000),
        predicted: SamplesPerSec::new(100.0),
        measured: SamplesPerSec::new(100.0 * residual.exp()),
        run_spread: 0.0,
    }
}

/// Groups a, b, c with mean squares of 0.01, 0.04 and 0.01: √0.02 · t(3).
#[test]
fn groups_count_alike_whatever_their_number_of_cases() {
    let cases = [
        case("x", "a", "m", 0.1),
        case("x", "b", "m", -0.2),
        case("x", "b", "m", 0.2),
        case("x", "b", "m", 0.2),
        case("y", "c", "m", -0.1),
    ];
    let rows = residuals(&cases);
    assert_eq!(rows.len(), 3);
    let pool = Pool::of(&rows, "m", cases[0].regime, |_| true).unwrap();
    assert_eq!(pool.level(), Level::Regime);
    assert!((pool.half_width() - 2.353 * 0.02_f64.sqrt()).abs() < 1e-3, "{}", pool.half_width());
    assert_eq!(pool.basis("m", cases[0].regime).cases, 5);
}

#[test]
fn what_simulated_runs_differ_by_is_no_model_error() {
    let noisy = Case { run_spread: 0.06, ..case("x", "a", "m", 0.1) };
    // 0.1² - 0.06² = 0.08².
    assert!((residuals(&[noisy])[0].square - 0.0064).abs() < 1e-9);
}

#[test]
fn pools_widen_until_there_are_enough_groups() {
    let mut cases: Vec<Case> = ["a", "b"].map(|group| case("x", group, "m", 0.1)).into();
    cases.extend(["c", "d", "e"].map(|group| case("y", group, "other", 0.3)));
    let rows = residuals(&cases);
    let regime = cases[0].regime;
    assert_eq!(Pool::of(&rows, "m", regime, |_| true).unwrap().level(), Level::Architecture);
    let elsewhere = Regime { limit: Limit::Communication, ..regime };
    assert_eq!(Pool::of(&rows, "other", elsewhere, |_| true).unwrap().level(), Level::AnyLimit);
    assert!(Pool::of(&rows, "other", regime, |row| row.group == "c").is_none());
}

#[test]
fn two_sets_in_a_wider_pool_go_before_one_in_a_narrower() {
    let mut cases: Vec<Case> = ["a", "b", "c"].map(|group| case("x", group, "m", 0.1)).into();
    let regime = cases[0].regime;
    let elsewhere = Regime { limit: Limit::Communication, ..regime };
    cases.push(Case { regime: elsewhere, ..case("y", "d", "m", 0.3) });
    let rows = residuals(&cases);
    assert_eq!(Pool::of(&rows, "m", regime, |_| true).unwrap().level(), Level::AnyLimit);
    assert_eq!(Pool::of(&rows, "m", regime, |row| row.set == "x").unwrap().level(), Level::Regime);
}

#[test]
fn the_committed_table_can_be_read_to_its_end() {
    let text = include_str!("../../../../../validation/errors.csv");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
    assert_eq!(committed().len() + 1, lines);
    assert!(committed().iter().all(|row| row.cases > 0 && row.square >= 0.0 && row.mean.is_finite()));
}

const PAIR: &str = "[model]\nzoo = \"vgg16\"\n[cluster.servers]\ncount = 1\n[[cluster.workers]]\ncount = 2\nefficiency = 0.5\n";

fn interval(scenario: &Scenario) -> Interval {
    let method = methods::find("layerwise").unwrap();
    interval::of(scenario, method, &method.predict(scenario).unwrap()).unwrap().unwrap()
}

#[test]
fn ranges_widen_the_interval_to_what_their_ends_predict() {
    let method = methods::find("layerwise").unwrap();
    let scenario = scenario(PAIR, &["cluster.network={ base = \"10gbe\", bandwidth = \"8..12 Gbit/s\" }"]);
    let interval = interval(&scenario);
    let [slow, fast] = scenario.at_ends(&scenario.uncertain[0]).map(|end| method.predict(&end).unwrap());
    let now = method.predict(&scenario).unwrap();
    let moved = |end: &Prediction| (end.throughput.get() / now.throughput.get()).ln();
    assert!((interval.inputs[0] + moved(&slow)).abs() < 1e-12, "{interval:?}");
    assert!((interval.inputs[1] - moved(&fast)).abs() < 1e-12, "{interval:?}");
    let [low, high] = interval.throughput_samples_per_s;
    assert!(low < slow.throughput && fast.throughput < high);
    assert!(
        ((low.get() / now.throughput.get()).ln() + interval.inputs[0].hypot(interval.model)).abs() < 1e-12
    );
    assert!((interval.iteration_s[1].get() * low.get() - now.samples as f64).abs() < 1e-6);
}

#[test]
fn what_a_cpu_reaches_is_assumed() {
    let known = interval(&scenario(PAIR, &[]));
    assert!(known.inputs.iter().all(|width| width.abs() < 1e-12), "{known:?}");
    let text = "[model]\nzoo = \"resnet50\"\n[cluster.servers]\ncount = 1\n[[cluster.workers]]\ndevice = \"xeon-e5-2620\"\n";
    let assumed = interval(&scenario(text, &[]));
    assert!(assumed.by_assumption.iter().any(|of| of.name.contains("processors")), "{assumed:?}");
    assert!(assumed.model > 2.0 * known.model, "{assumed:?}");
}

/// The more is known, the narrower the interval: names alone, a throughput, a throughput and a measured rate.
#[test]
fn intervals_narrow_with_what_is_known() {
    let width = |workers: &str, network: &str| {
        let text = format!(
            "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\nbatch = 64\n\
             [[cluster.workers]]\ncount = 16\ndevice = \"tesla-v100-sxm2-16gb\"\n{workers}\n\
             [cluster.network]\nbandwidth = \"25 Gbit/s\"\n{network}\n"
        );
        let scenario = scenario(&text, &[]);
        let prediction = Liu2022.predict(&scenario).unwrap();
        let interval = interval::of(&scenario, &Liu2022, &prediction).unwrap().unwrap();
        assert!(!interval.by_assumption.is_empty());
        let shares: f64 = interval.by_assumption.iter().map(|assumption| assumption.share).sum();
        assert!(shares < 1.0 + 1e-9 && shares > 0.9, "{shares}");
        interval.model
    };
    let measured = "throughput = \"350 samples/s\"";
    let names = width("", "");
    let rented = width("", "rented = true");
    let throughput = width(measured, "rented = true");
    let rate = width(measured, "reached = \"0.6 GB/s\"");
    assert!(
        names > rented && rented > throughput && throughput > rate,
        "{names} {rented} {throughput} {rate}"
    );
}

/// A tenth beyond the end of the range is near enough.
#[test]
fn what_lies_beyond_the_validated_range_is_told_with_its_side() {
    let ideal = "cluster.network={ base = \"10gbe\", transport = \"ideal\" }";
    let told = |model: &str, count: u32| -> Option<String> {
        let count = format!("cluster.workers.0.count={count}");
        let forecast =
            forecast_by(&request(PAIR, &[&format!("model.zoo={model}"), &count, ideal]), by("layerwise"));
        let warnings = forecast.prediction.warnings.into_iter().map(|warning| warning.message);
        warnings.into_iter().find(|message| message.starts_with("beyond what validates"))
    };
    let many = told("vgg16", 4096).unwrap();
    let (_, end) = many.split_once("4096 workers are more than the ").unwrap();
    let end: u32 = end.split_once(' ').unwrap().0.parse().unwrap();
    assert_eq!(told("vgg16", end + end / 10), None);
    assert!(told("vgg16", end + end / 10 + 1).unwrap().contains("workers are more than"));
    assert!(told("mobilenet-v2", 2).unwrap().contains("million parameters are fewer than"));
}
