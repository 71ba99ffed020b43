//! Steps of made-up devices: one that is slower than the catalog's is found to be so.

use std::sync::Arc;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::fitted::steps::{LaunchCosts, LayerTimes, Nominal, StepModel};
use stepcast_core::method::never_cancelled;
use stepcast_core::model::{Layer, zoo};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;
use stepcast_fit::steps::{MeasuredStep, PreparedSteps, StepComparison, StepGroup, StepPart, groups};

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
