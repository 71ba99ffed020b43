use super::*;
use stepcast_core::fitted::steps::LaunchCosts;
use stepcast_core::method::never_cancelled;
use stepcast_core::model::zoo;

/// Steps as a device would take them whose coefficients are the guesses, half of them `slower` times as long.
fn made_up(slower: f64) -> Vec<MeasuredStep> {
    let model = PreparedSteps::new(&[], Nominal::h200(), None).fit_nothing();
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
            let leaf =
                |(layer, own): (&stepcast_core::model::Layer, &stepcast_core::fitted::steps::LayerTimes)| {
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

impl PreparedSteps<'_> {
    /// The guesses, as a model of fp32.
    fn fit_nothing(&self) -> StepModel {
        let table = CoefficientTable::default();
        let cost = Seconds::new(1e-6);
        let launch = LaunchCosts {
            forward: cost,
            backward: cost,
            gradient: cost,
            forward_cast: cost,
            backward_cast: cost,
        };
        let phase = |phase| phase_model(&table, Precision::Fp32, phase, 1.0);
        let fp32 = PrecisionModel {
            batches: [16, 64],
            forward: phase(Phase::Forward),
            backward: phase(Phase::Backward),
        };
        StepModel {
            nominal: self.nominal,
            launch,
            precision: [(Precision::Fp32, fp32)].into(),
            products: None,
        }
    }
}

/// A device that is slower than guessed is found to be so.
#[test]
fn a_made_up_device_is_found_again() {
    for slower in [1.0, 1.6] {
        let steps = made_up(slower);
        let model =
            PreparedSteps::new(&steps, Nominal::h200(), None).fit(|_| true, &never_cancelled).unwrap();
        for step in steps.iter().filter(|step| step.batch == 64) {
            let error = StepComparison::new(&model, step).unwrap().error(StepPart::Iteration);
            assert!(error.abs() < 0.1, "{} {slower}: {error}", step.model.name);
        }
    }
}

#[test]
fn groups_go_by_precision_and_largest_batch() {
    let mut steps = made_up(1.0);
    for step in &mut steps[2..] {
        step.precision = Precision::Bf16;
    }
    use StepGroup::{Bf16Large, Bf16Small, Fp32};
    assert_eq!(groups(&steps), [Fp32, Fp32, Bf16Small, Bf16Large, Bf16Small, Bf16Large]);
}
