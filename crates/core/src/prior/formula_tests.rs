//! The formulas of one GPU against the vectors of their slow twin in research/priors.

use super::device::{self, Reach, Settings, Sheet};
use super::work::{StepWork, Work};
use super::{Domain, Priors, SHIFT};
use crate::machine::{Generation, catalog};
use crate::model::zoo;
use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec, Seconds};
use crate::strategy::Optimiser;
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../../../../research/priors/vectors_onegpu.csv");

/// A line of the vectors, by column.
struct Row(BTreeMap<&'static str, &'static str>);

impl Row {
    fn all() -> Vec<Self> {
        let mut lines = VECTORS.lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let row = |line: &'static str| {
            assert!(!line.contains('"'), "no quoted fields");
            Self(names.iter().copied().zip(line.split(',')).collect())
        };
        lines.map(row).collect()
    }

    fn number(&self, column: &str) -> f64 {
        self.0[column].parse().unwrap()
    }

    fn is(&self, column: &str) -> bool {
        self.0[column] == "True"
    }

    fn settings(&self) -> Settings {
        Settings {
            precision: serde_json::from_value(self.0["precision"].into()).unwrap(),
            optimiser: match (self.is("no_update"), self.is("adam")) {
                (true, _) => Optimiser::None,
                (false, true) => Optimiser::Adam,
                (false, false) => Optimiser::Sgd,
            },
            compiled: self.is("compiled"),
            channels_last: self.is("channels_last"),
        }
    }

    fn sheet(&self) -> Sheet {
        let rate = |column| FlopsPerSec::new(self.number(column));
        let generation = if self.is("kepler") {
            Generation::Kepler
        } else if self.is("amd") {
            Generation::Rdna
        } else if self.is("dual") {
            Generation::Ada
        } else {
            Generation::Volta
        };
        Sheet {
            fp32: rate("fp32"),
            tensor: self.is("tensor").then(|| rate("peak")),
            lane: rate("lane"),
            memory: BytesPerSec::new(self.number("memory")),
            throttle: self.number("throttle"),
            generation: Some(generation),
        }
    }

    /// The work as the vectors count it, as if it were one layer.
    fn work(&self) -> StepWork {
        let total = Work {
            square: self.number("square"),
            conv: self.number("conv"),
            stem: self.number("stem"),
            linear: self.number("linear"),
            depthwise: self.number("depthwise"),
            grouped: self.number("grouped"),
            passes: self.number("passes"),
            elementwise: self.number("elementwise"),
            wide: self.number("wide"),
            kernels: 3.0 * self.number("ops"),
        };
        let layer = super::work::LayerWork { forward: total, ..Default::default() };
        StepWork {
            layers: vec![layer],
            operations: self.number("ops"),
            weights: self.number("weights"),
            tables: Vec::new(),
            tensors: self.number("tensors"),
        }
    }

    fn batch(&self) -> u32 {
        self.number("batch") as u32
    }
}

#[test]
fn steps_are_those_of_the_slow_twin() {
    let priors = Priors::shipped().unwrap();
    let rows = Row::all();
    assert_eq!(rows.len(), 186);
    for row in rows {
        let step = |priors: &Priors| {
            Reach::new(&row.sheet(), row.settings(), &priors.one_gpu).step(&row.work(), row.batch())
        };
        let (got, want) = (step(&priors).get(), row.number("predicted_s"));
        assert!((got / want - 1.0).abs() < 1e-5, "{}: {got} s, slow twin {want} s", row.0["id"]);
        let spread = priors.one_gpu_spread(step, row.is("real"));
        let want = row.number("sd_ln");
        assert!((spread / want - 1.0).abs() < 2e-3, "{}: spread {spread}, slow twin {want}", row.0["id"]);
    }
}

#[test]
fn data_sheets_are_those_of_the_slow_twin() {
    for row in Row::all() {
        let device = catalog::device(row.0["device"]).unwrap();
        let precision = row.settings().precision;
        let (got, want) = (Sheet::from_device(&device, precision), row.sheet());
        let near = |got: f64, want: f64| (got / want - 1.0).abs() < 1e-6;
        let id = row.0["id"];
        assert!(near(got.fp32.get(), want.fp32.get()), "{id}: FP32 rate");
        assert!(near(got.lane.get(), want.lane.get()), "{id}: lane rate");
        assert!(near(got.memory.get(), want.memory.get()), "{id}: memory");
        assert!(near(got.throttle, want.throttle), "{id}: power {} {}", got.throttle, want.throttle);
        assert_eq!(got.tensor.map(FlopsPerSec::get), want.tensor.map(FlopsPerSec::get), "{id}");
        let generation = got.generation.unwrap();
        assert_eq!(generation.is_dual(), row.is("dual"), "{id}");
        assert_eq!(generation.is_amd(), row.is("amd"), "{id}");
        assert_eq!(generation == Generation::Kepler, row.is("kepler"), "{id}");
    }
}

/// The slow twin counts two layers that the zoo does not have: the adaptive pooling of AlexNet and VGG, which copies an
/// image of the usual size, and the sum of BERT's positions, which the zoo has as part of their embedding.
#[test]
fn work_of_the_zoo_is_that_of_the_slow_twin() {
    let mut compared = 0;
    for row in Row::all() {
        let (name, sequence) = (row.0["model"], row.0["sequence"].parse().ok());
        let Ok(model) = zoo::build_for(name, sequence) else { continue };
        let (got, want) = (StepWork::from_model(&model), row.work());
        let (sum, wanted) = (got.total(), want.total());
        let figures = [
            ("square", sum.square, wanted.square),
            ("conv", sum.conv, wanted.conv),
            ("stem", sum.stem, wanted.stem),
            ("linear", sum.linear, wanted.linear),
            ("depthwise", sum.depthwise, wanted.depthwise),
            ("grouped", sum.grouped, wanted.grouped),
            ("passes", sum.passes, wanted.passes),
            ("wide", sum.wide, wanted.wide),
            ("weights", got.weights, want.weights),
            ("tensors", got.tensors, want.tensors),
        ];
        for (figure, got, want) in figures {
            assert!((got - want).abs() <= 1e-6 * want, "{name}: {figure} {got}, slow twin {want}");
        }
        let missing = want.operations - got.operations;
        let counts_more = ["alexnet", "vgg16", "bert-base", "bert-large", "bert-large-mlm"].contains(&name);
        assert_eq!(missing.round() as i64, i64::from(counts_more), "{name}: layers");
        let ratio = sum.elementwise / wanted.elementwise;
        let least = if counts_more { 0.989 } else { 1.0 - 1e-6 };
        assert!((least..=1.0 + 1e-6).contains(&ratio), "{name}: element-wise passes {ratio}");
        compared += 1;
    }
    assert_eq!(compared, 174, "of 186; the zoo lacks ResNet-18 for CIFAR, DenseNet-161 and ViT-S");
}

/// Times of layers add up to the step, and every group of constants moves it.
#[test]
fn layers_add_up_and_depend_on_all_groups() {
    let priors = Priors::shipped().unwrap();
    let device = catalog::device("a100-sxm4-40gb").unwrap();
    let model = zoo::build("resnet50").unwrap();
    let settings = Settings {
        precision: Precision::AmpFp16,
        optimiser: Optimiser::Sgd,
        compiled: false,
        channels_last: false,
    };
    let work = StepWork::from_model(&model);
    let step = |priors: &Priors| device::step(&work, &device, settings, 64, &priors.one_gpu);
    let times = device::layers(&work, &device, settings, 64, &priors.one_gpu);
    let sum = times.layers.iter().map(|own| own.forward + own.backward).sum::<Seconds>() + times.update;
    assert!((sum / step(&priors) - 1.0).abs() < 1e-12);
    let groups = priors.groups.iter().enumerate().filter(|(_, group)| group.domain == Domain::OneGpu);
    let slopes: Vec<f64> =
        groups.map(|(index, _)| (step(&priors.moved(index, SHIFT)) / step(&priors)).ln() / SHIFT).collect();
    // One group is of CPUs.
    assert_eq!(slopes.len(), 6);
    assert_eq!(slopes.iter().filter(|slope| slope.abs() > 1e-3).count(), 5, "{slopes:?}");
}
