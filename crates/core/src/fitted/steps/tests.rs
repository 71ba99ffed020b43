use super::*;
use crate::compute::assumptions;
use crate::fault::Fault;
use crate::files::{Files, NoFiles};
use crate::model::zoo;
use crate::profile::Profile;
use crate::quantity::{BytesPerSec, FlopsPerSec};
use crate::scenario::{Document, Edit};
use crate::speed::Speed;
use proptest::prelude::*;

/// Every coefficient 1.5, every launch 30 µs.
pub(crate) fn made_up() -> StepModel {
    let phase = |precision, phase| PhaseModel {
        factor: 1.1,
        class: Class::FITTED
            .into_iter()
            .map(|class| {
                let per =
                    class.features(precision, phase, false).iter().map(|feature| (*feature, 1.5)).collect();
                (class, Coefficients { samples: 3, per })
            })
            .collect(),
    };
    let model = |precision| PrecisionModel {
        batches: [16, 64],
        forward: phase(precision, Phase::Forward),
        backward: phase(precision, Phase::Backward),
    };
    let cost = Seconds::new(30e-6);
    StepModel {
        nominal: Nominal {
            fp32: FlopsPerSec::new(60e12),
            bf16: FlopsPerSec::new(900e12),
            memory: BytesPerSec::new(4e12),
            multiprocessors: 132,
        },
        launch: LaunchCosts {
            forward: cost,
            backward: cost,
            gradient: cost,
            forward_cast: cost,
            backward_cast: cost,
        },
        precision: [Precision::Fp32, Precision::Bf16].map(|p| (p, model(p))).into(),
        products: None,
    }
}

#[test]
fn a_small_batch_waits_for_the_host() {
    let model = zoo::build("resnet50").unwrap();
    let fitted = made_up();
    let [one, two, many] = [1, 2, 512].map(|batch| fitted.predict(&model, Precision::Bf16, batch).unwrap());
    assert!(two.iteration / one.iteration < 1.01, "{one:?} {two:?}");
    assert!(many.iteration / one.iteration > 2.0, "{one:?} {many:?}");
    assert_eq!(fitted.predict(&model, Precision::Fp16, 1), None);
}

#[test]
fn layers_add_up_to_the_step() {
    for name in ["vgg16", "densenet121", "gpt2"] {
        let model = zoo::build(name).unwrap();
        let times = made_up().predict(&model, Precision::Fp32, 16).unwrap();
        let StepLayers { layers, update } = made_up().layers(&model, Precision::Fp32, 16).unwrap();
        let forward: Seconds = layers.iter().map(|layer| layer.forward).sum();
        let backward: Seconds = layers.iter().map(|layer| layer.backward).sum();
        assert!((forward / times.forward - 1.0).abs() < 1e-9, "{name}");
        assert!(((forward + backward + update) / times.iteration - 1.0).abs() < 1e-3, "{name}");
        assert!(layers.iter().all(|layer| layer.forward >= Seconds::ZERO && layer.backward >= Seconds::ZERO));
    }
}

/// Slow reference: a kernel ends once the launch that delays it most, and all work since that launch, is complete.
#[test]
fn the_queue_is_the_longest_way_through_it() {
    let model = zoo::build("googlenet").unwrap();
    let fitted = made_up();
    let lanes = fitted.lanes(&StepOp::from_model(&model), &model, Precision::Fp32, 8).unwrap();
    let ends = lanes.ends(&fitted.launch, [1.0, 1.0]);
    let mut issued: Vec<Seconds> = Vec::new();
    for (launches, _) in &lanes.work {
        issued.push(issued.last().copied().unwrap_or_default() + fitted.launch.time(launches));
    }
    for last in (0..ends.len()).step_by(7) {
        let through = |start: usize| issued[start] + lanes.work[start..=last].iter().map(|work| work.1).sum();
        let longest = (0..=last).map(through).reduce(Seconds::max).unwrap();
        assert!((ends[last] / longest - 1.0).abs() < 1e-9);
    }
}

/// A source of files that returns the made-up fit.
struct MadeUp;

impl Files for MadeUp {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        NoFiles.profile(path)
    }

    fn text(&self, _: &str) -> Result<String, Fault> {
        let model = toml::Value::try_from(made_up()).unwrap();
        Ok(toml::to_string(&toml::Table::from_iter([
            ("kind".to_owned(), toml::Value::from("steps")),
            ("model".to_owned(), model),
        ]))
        .unwrap())
    }
}

#[test]
fn a_device_with_fitted_steps_takes_what_they_say() {
    let text = "model.zoo = \"googlenet\"\nstrategy.batch = 24\n[[cluster.workers]]\nspeed = 0.5\n\
                device = { base = \"h200-sxm\", fitted = \"steps.toml\" }\n";
    let document = Document::new("scenario.toml", text.to_owned());
    let scenario = document.scenario_with(&MadeUp, &[]).unwrap();
    let speed = Speed::of_group(&scenario, 0);
    let layers = scenario.workload.layers.iter();
    let step: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
    let model = zoo::build("googlenet").unwrap();
    let expected = made_up().predict(&model, Precision::Fp32, 24).unwrap().iteration * 2.0;
    assert!((step / expected - 1.0).abs() < 1e-3, "{step} {expected}");
    assert_eq!(assumptions(&scenario), []);
    let mixed = ["bf16", "amp-bf16"].map(|precision| {
        let precision = Edit::parse(&format!("strategy.precision={precision}")).unwrap();
        Speed::of_group(&document.scenario_with(&MadeUp, &[precision]).unwrap(), 0)
    });
    assert_eq!(mixed[0], mixed[1], "16-bit steps are measured with automatic casting");
    let larger = document.scenario_with(&MadeUp, &[Edit::parse("strategy.batch=65").unwrap()]).unwrap();
    let told = assumptions(&larger);
    assert!(told.len() == 1 && told[0].message.contains("16 to 64"), "{told:?}");
    let echoed = scenario.to_file().resolve_with(&MadeUp).unwrap();
    assert_eq!(echoed.cluster, scenario.cluster);
    let without = document.scenario_with(&NoFiles, &[]).unwrap_err();
    assert!(without.to_string().contains("steps.toml"), "{without}");
    for (flawed, key) in [("precision = \"tf32\"", "fitted"), ("", "efficiency")] {
        let more = if key == "efficiency" { "efficiency = 0.5\n" } else { "" };
        let text = format!("{}{more}[strategy]\n{flawed}\n", text.replace("strategy.batch = 24\n", ""));
        let error = Document::new("scenario.toml", text).scenario_with(&MadeUp, &[]).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_time_falls_when_the_batch_grows(entry in 0..zoo::names().count(), batch in 1u32..512, wide: bool) {
        let model = zoo::entries().nth(entry).unwrap().build().unwrap();
        let precision = if wide { Precision::Fp32 } else { Precision::Bf16 };
        let fitted = made_up();
        let [small, large] =
            [batch, batch + 1].map(|batch| fitted.predict(&model, precision, batch).unwrap());
        let grows = |small: Seconds, large: Seconds| large.get() >= small.get() * (1.0 - 1e-12);
        prop_assert!(grows(small.forward, large.forward));
        prop_assert!(grows(small.backward, large.backward), "{small:?} {large:?}");
        prop_assert!(grows(small.iteration, large.iteration));
    }
}
