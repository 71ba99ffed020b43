//! Measurements of steps, layer by layer and whole, kernels, transfers, streams and SPRINT's components: what they were made with is found again.

use super::{ends_when_unwanted, file};
use serde_json::Value;
use std::sync::Arc;
use stepcast_core::compute::ASSUMED_MEMORY_EFFICIENCY;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::fitted::steps::{LaunchCosts, LayerTimes, Nominal, StepModel};
use stepcast_core::fitted::transfer::{LogLinear, TransferCurve};
use stepcast_core::method::never_cancelled;
use stepcast_core::model::{Layer, zoo};
use stepcast_core::precision::Precision;
use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_fit::efficiency::{StepWork, TwoShares, one_share};
use stepcast_fit::kernels::{self, KernelRun};
use stepcast_fit::steps::{MeasuredStep, PreparedSteps, StepComparison, StepGroup, StepPart, groups};
use stepcast_fit::streams::streams;
use stepcast_fit::transfer::{Transfer, bends, fit};
use stepcast_fit::{FitError, Quality, sprint};

fn steps(compute: f64, memory: f64) -> Vec<StepWork> {
    let step = |(flops, bytes): (f64, f64)| {
        let [fixed, work, moved] = [0.01, flops, bytes].map(Seconds::new);
        let measured = fixed + work / compute + moved / memory;
        StepWork { fixed, compute: work, memory: moved, measured }
    };
    [(1.0, 0.1), (2.0, 0.1), (4.0, 0.1), (1.0, 0.3), (8.0, 0.3)].map(step).into()
}

#[test]
fn two_shares_are_found_again() {
    let found = TwoShares::fit(&steps(0.6, 0.25), &never_cancelled).unwrap();
    assert!((found.compute - 0.6).abs() < 1e-9 && (found.memory - 0.25).abs() < 1e-9, "{found:?}");
    assert!(found.quality(&steps(0.6, 0.25)).unwrap().worst < 1e-9);
}

/// Weights that seem to move faster than memory are held at its rate, and the rest goes to computing.
#[test]
fn memory_is_never_faster_than_its_rate() {
    let found = TwoShares::fit(&steps(0.6, 4.0), &never_cancelled).unwrap();
    assert!((found.memory - 1.0).abs() < 1e-12 && found.compute > 0.6, "{found:?}");
}

/// min Σ (x/(s·t) − 1)²: 1/s = Σ x/t / Σ (x/t)².
#[test]
fn one_share_has_a_closed_form() {
    let pairs = [(1.0, 2.0), (3.0, 4.0), (2.0, 10.0)].map(|(x, t)| (Seconds::new(x), Seconds::new(t)));
    let ratios = pairs.map(|(x, t)| x / t);
    let expected = ratios.map(|r| r * r).iter().sum::<f64>() / ratios.iter().sum::<f64>();
    assert!((one_share(&pairs, &never_cancelled).unwrap() - expected).abs() < 1e-12);
}

#[test]
fn one_kind_of_step_tells_the_share_of_the_peak_rate() {
    for same in [vec![steps(0.6, 0.5)[0]; 4], vec![steps(0.6, 0.5)[0]]] {
        let found = TwoShares::fit(&same, &never_cancelled).unwrap();
        assert!((found.compute - 0.6).abs() < 1e-9, "{found:?}");
        assert!((found.memory - ASSUMED_MEMORY_EFFICIENCY).abs() < 1e-12);
    }
    assert!(TwoShares::fit(&[], &never_cancelled).is_err());
}

#[test]
fn the_line_of_a_kernel_is_found_again() {
    let line = |elements: f64| KernelRun { elements, time: Seconds::new(2e-9 * elements + 5e-6) };
    let runs = [1e3, 1e4, 1e5, 1e6].map(line);
    let kernel = kernels::fit(&runs, &never_cancelled).unwrap();
    assert!((kernel.per_element.get() / 2e-9 - 1.0).abs() < 1e-9, "{kernel:?}");
    assert!((kernel.start.get() / 5e-6 - 1.0).abs() < 1e-9, "{kernel:?}");
    assert!(runs.iter().all(|run| (kernel.time(run.elements).0 / run.time - 1.0).abs() < 1e-9));
    assert!(!kernel.time(1e7).1);
    ends_when_unwanted(|wanted| kernels::fit(&runs, wanted), &FitError::Cancelled);
}

fn transfers(truth: &TransferCurve) -> Vec<Transfer> {
    let sizes = (6..28).map(|power| Bytes::new(f64::from(power).exp2()));
    sizes.map(|size| (size, truth.time(size))).collect()
}

fn worst(curve: &TransferCurve, measured: &[Transfer]) -> f64 {
    Quality::from_pairs(measured.iter().map(|(size, time)| (curve.time(*size), *time))).unwrap().worst
}

#[test]
fn lines_and_bends_are_found_again() {
    let truth = TransferCurve::Line { startup: Seconds::new(3e-5), bandwidth: BytesPerSec::new(1e9) };
    let measured = transfers(&truth);
    assert!(worst(&fit(&measured, None, &never_cancelled).unwrap(), &measured) < 1e-6);
    let threshold = Bytes::new(65536.0);
    let truth =
        LogLinear::continuous(threshold, Seconds::new(4e-6), BytesPerSec::new(2e9), Seconds::new(5e-5));
    let measured = transfers(&TransferCurve::LogLinear(truth));
    let found = fit(&measured, None, &never_cancelled).unwrap();
    assert!(matches!(found, TransferCurve::LogLinear(_)), "{found:?}");
    assert!(worst(&found, &measured) < 1e-6);
    // A bandwidth-delay product that is known, as Liu 2022 sets D_Thresh.
    let given = fit(&measured, Some(threshold), &never_cancelled).unwrap();
    assert!(matches!(given, TransferCurve::LogLinear(curve) if curve.threshold == threshold));
    assert!(worst(&given, &measured) < 1e-6);
    assert!(fit(&measured, Some(Bytes::new(1e12)), &never_cancelled).is_err());
}

/// A hundred thousand sizes would take ten thousand million looks at a transfer.
#[test]
fn the_work_of_a_fit_is_bounded() {
    let many = |count: u32| -> Vec<Transfer> {
        let time = |size: f64| Seconds::new(1e-5 + 1e-9 * size);
        (1..=count).map(|size| (Bytes::new(f64::from(size)), time(f64::from(size)))).collect()
    };
    assert_eq!(bends(&many(1000)).len(), 1000);
    for count in [100_000, 400_000] {
        let measured = many(count);
        let tried = bends(&measured);
        assert!(tried.len() * measured.len() <= 50_000_000.max(16 * measured.len()));
        assert_eq!(
            (tried.first(), tried.last()),
            (Some(&measured[0].0), measured.last().map(|last| &last.0))
        );
    }
    ends_when_unwanted(|wanted| fit(&many(10), None, wanted), &FitError::Cancelled);
}

/// Five streams are requested at once, in the order of the profile. B and D are larger than the window and preempted once each (errata
/// 3.2: A, C, E, then the rests of B and D). The fit finds the coefficients and the ends again.
#[test]
fn streams_tell_rate_window_and_parsing() {
    let sizes = [20e6, 70e6, 28e6, 40e6, 10e6];
    let sent = [0.20, 1.56, 0.76, 1.68, 1.14];
    let operation = |(place, size): (usize, &f64)| {
        Operation::new(format!("p{place}"), Resource::Downlink, *size as u64, &[])
    };
    let end = sizes.iter().zip(sent).map(|(size, sent)| 0.5 + sent + 2e-9 * size + 0.01).collect();
    let operations = sizes.iter().enumerate().map(operation).collect();
    let steps = vec![Step { start: vec![0.5; 5], end, length: 3.0 }];
    let profile = Profile::new("five", "made", 1, operations, steps);
    let found = streams(&profile).unwrap();
    assert_eq!(found.window, Some(Bytes::new(28e6)));
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    near(found.rate.get(), 1e8);
    near(found.parse_rate.unwrap().get(), 5e8);
    near(found.parse_fixed.get(), 0.01);
    assert!(found.errors[3] < 1e-6, "{:?}", found.errors);
}

const GOLDEN: &str = include_str!("../../../../validation/oyama2016/model.json");

/// The sixteen components of 20 configurations give the coefficients that they were computed with, and the iteration
/// times of both threads.
#[test]
fn golden_components_give_their_coefficients() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let names = [
        ("fetch-weights", "FetchWeights"),
        ("load-image", "LoadImage"),
        ("deform-image", "DeformImage"),
        ("compute-gradient", "ComputeGradient"),
        ("compute-update", "ComputeUpdateVal"),
        ("update-gradient", "UpdateGradient"),
        ("sum-gradient", "SumGradient"),
        ("update-old-weights", "UpdateOldWeights"),
        ("add-momentum", "AddMomentum"),
        ("all-reduce", "Allreduce"),
        ("update-momentum", "UpdateMomentum"),
        ("update-weights", "UpdateWeights"),
    ];
    let mut text = "component,nodes,gpus,batch,parameters,gpu_s,update_s,time_s\n".to_owned();
    for case in golden["cases"].as_array().unwrap() {
        let [nodes, gpus, batch, parameters] =
            ["N_Node", "N_GPU", "N_Subbatch", "N_Param"].map(|key| case[key].as_f64().unwrap());
        for (key, name) in names {
            let parts = [&case["gpu_thread"][name], &case["update_thread"][name]];
            let time = parts.into_iter().find_map(Value::as_f64).unwrap();
            let (gpu, update) = (&case["T_GPU"], &case["T_Update"]);
            text += &format!("{key},{nodes},{gpus},{batch},{parameters},{gpu},{update},{time}\n");
        }
    }
    let data = file("components.csv", &text);
    let report = sprint::run(&data, None, "2026-01-01".to_owned(), &never_cancelled).unwrap();
    assert_eq!(report.rows.len(), 14);
    assert!(report.rows.iter().all(|row| row.quality.worst < 1e-6), "{:?}", report.rows);
    let Ok(Artefact::Sprint(lines)) = Artefact::from_toml(&report.artefact) else {
        panic!("{}", report.artefact)
    };
    let near = |found: Seconds, key: &str| {
        let expected = golden["coefficients"][key].as_f64().unwrap();
        assert!((found.get() / expected - 1.0).abs() < 1e-6, "{key}: {found:?}");
    };
    for (key, each) in
        [("fetch-weights", "fetch"), ("sum-gradient", "sumgrad"), ("update-old-weights", "oldw")]
    {
        near(lines[key].per_element, each);
    }
    for (key, each, start) in [("compute-gradient", "grad_a", "grad_b"), ("all-reduce", "ar_a", "ar_b")] {
        near(lines[key].per_element, each);
        near(lines[key].start, start);
    }
}

/// The fitted steps of the catalog, with a host that hardly shows.
fn model() -> StepModel {
    let text = include_str!("../../../../catalog/fitted/h200-sxm.toml");
    let Ok(Artefact::Steps(fitted)) = Artefact::from_toml(text) else { panic!("{text}") };
    let cost = Seconds::new(1e-6);
    let launch = LaunchCosts {
        forward: cost,
        backward: cost,
        gradient: cost,
        forward_cast: cost,
        backward_cast: cost,
    };
    StepModel { launch, ..*fitted }
}

/// Steps of a device on which everything takes `slower` times as long.
fn made_up(model: &StepModel, slower: f64) -> Vec<MeasuredStep> {
    let mut steps = Vec::new();
    for name in ["vgg11", "resnet18", "resnet50"] {
        let network = Arc::new(zoo::build(name).unwrap());
        for batch in [16, 64] {
            let times = model.predict(&network, Precision::Fp32, batch).unwrap();
            let layers = model.layers(&network, Precision::Fp32, batch).unwrap().layers;
            let mut now = Seconds::ZERO;
            let mut ready = Vec::new();
            for (layer, own) in network.layers().iter().zip(&layers).rev() {
                now += own.backward * slower;
                if layer.cost.weights > 0 {
                    ready.push((layer.name.clone(), now));
                }
            }
            let leaf = |(layer, own): (&Layer, &LayerTimes)| {
                (own.forward > Seconds::ZERO).then(|| (layer.name.clone(), own.forward * slower))
            };
            steps.push(MeasuredStep {
                model: Arc::clone(&network),
                precision: Precision::Fp32,
                batch,
                forward: times.forward * slower,
                backward: times.backward * slower,
                iteration: times.iteration * slower,
                leaves: network.layers().iter().zip(&layers).filter_map(leaf).collect(),
                ready,
            });
        }
    }
    steps
}

#[test]
fn a_made_up_device_is_found_again() {
    let device = model();
    for slower in [1.0, 1.6] {
        let steps = made_up(&device, slower);
        let prepared = PreparedSteps::new(&steps, Nominal::h200(), device.products.as_ref());
        let model = prepared.fit(|_| true, &never_cancelled).unwrap();
        for step in steps.iter().filter(|step| step.batch == 64) {
            let error = StepComparison::new(&model, step).unwrap().error(StepPart::Iteration);
            assert!(error.abs() < 0.1, "{} {slower}: {error}", step.model.name);
        }
    }
}

#[test]
fn groups_go_by_precision_and_largest_batch() {
    let mut steps = made_up(&model(), 1.0);
    for step in &mut steps[2..] {
        step.precision = Precision::Bf16;
    }
    use StepGroup::{Bf16Large, Bf16Small, Fp32};
    assert_eq!(groups(&steps), [Fp32, Fp32, Bf16Small, Bf16Large, Bf16Small, Bf16Large]);
}
