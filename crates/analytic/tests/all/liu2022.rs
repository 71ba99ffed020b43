//! Liu 2022 against its golden cases, the printed equations and its limits.

use proptest::prelude::*;
use std::collections::BTreeMap;
use stepcast_analytic::collectives::{Fabric, ring_update};
use stepcast_analytic::liu2022::{
    Buffer, Flush, Layer, Liu2022, Pass, Plan, Reading, Schedule, csf, osf, plan, sf,
};
use stepcast_core::fitted::transfer::{Curve, LogLinear};
use stepcast_core::method::Method;
use stepcast_core::model::{Activation, Builder, Conv2d, Counting, Model, Op, Pool, zoo};
use stepcast_core::prediction::{Bottleneck, Prediction};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::scenario::{Document, Override, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::PYTORCH_CAP;
use stepcast_core::workload::Workload;

const FUSION: &str = include_str!("../../../../validation/liu2022/fusion.json");
const MODELS: &str = include_str!("../../../../validation/liu2022/models.csv");
const CALIBRATION: &str = include_str!("../../../../validation/liu2022/calibration.csv");
const TABLES: &str = include_str!("../../../../validation/liu2022/tables2-3.csv");

// ---------------------------------------------------------------- reading the golden files

/// The JSON values that occur in the golden file.
#[derive(Debug, Clone, PartialEq)]
enum Json {
    Text(String),
    Truth,
    List(Vec<Json>),
    Table(BTreeMap<String, Json>),
}

impl Json {
    fn parse(text: &str) -> Self {
        let (value, rest) = Self::value(text.trim());
        assert_eq!(rest.trim(), "");
        value
    }

    fn value(text: &str) -> (Self, &str) {
        if let Some(rest) = text.strip_prefix('"') {
            let (inner, rest) = rest.split_once('"').unwrap();
            (Self::Text(inner.to_owned()), rest)
        } else if let Some(rest) = text.strip_prefix('[') {
            let mut items = Vec::new();
            let rest = Self::members(rest, ']', |text| {
                let (item, rest) = Self::value(text);
                items.push(item);
                rest
            });
            (Self::List(items), rest)
        } else if let Some(rest) = text.strip_prefix('{') {
            let mut table = BTreeMap::new();
            let rest = Self::members(rest, '}', |text| {
                let (key, rest) = Self::value(text);
                let (value, rest) = Self::value(rest.trim_start().strip_prefix(':').unwrap().trim_start());
                table.insert(key.text().to_owned(), value);
                rest
            });
            (Self::Table(table), rest)
        } else {
            let rest = text.strip_prefix("true").or(text.strip_prefix("false")).unwrap();
            (Self::Truth, rest)
        }
    }

    fn members<'a>(mut text: &'a str, end: char, mut one: impl FnMut(&'a str) -> &'a str) -> &'a str {
        loop {
            text = one(text.trim_start()).trim_start();
            if let Some(rest) = text.strip_prefix(end) {
                return rest;
            }
            text = text.strip_prefix(',').unwrap();
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} is not a text"),
        }
    }

    fn list(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            other => panic!("{other:?} is not a list"),
        }
    }

    fn has(&self, key: &str) -> bool {
        matches!(self, Self::Table(table) if table.contains_key(key))
    }

    fn at(&self, key: &str) -> &Self {
        match self {
            Self::Table(table) => &table[key],
            other => panic!("{other:?} is not a table"),
        }
    }

    /// A fraction such as "29/2".
    fn number(&self) -> f64 {
        let (above, below) = self.text().split_once('/').unwrap_or((self.text(), "1"));
        above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap()
    }

    fn numbers(&self) -> Vec<f64> {
        self.list().iter().map(Self::number).collect()
    }
}

/// Rows of a CSV table without line breaks in cells, keyed by column.
fn rows(csv: &'static str) -> Vec<BTreeMap<&'static str, &'static str>> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| names.iter().copied().zip(line.splitn(names.len(), ',')).collect()).collect()
}

fn cell(row: &BTreeMap<&str, &str>, name: &str) -> f64 {
    row[name].parse().unwrap()
}

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{what}: {found}, not {expected}"
    );
}

fn relative(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{what}: {found}, not {expected}");
}

// ---------------------------------------------------------------- eqs. 12-16, letter by letter

/// The inputs of eqs. 12-16, by layer from the input (1) to the output (n); index 0 is not used.
#[derive(Debug, Clone)]
struct Letters {
    backward: Vec<f64>,
    size: Vec<f64>,
    buffer: f64,
    timeout: f64,
    per_byte: f64,
    overhead: f64,
}

/// B, F, t_wait and τ or the start of each message, by layer, and T_update.
#[derive(Debug, Clone)]
struct Solved {
    b: Vec<f64>,
    f: Vec<f64>,
    wait: Vec<f64>,
    tau: Vec<f64>,
    update: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Print {
    /// As printed in the paper.
    Literal,
    /// With corrections 1-4.
    Corrected,
    /// With correction 5 as well.
    Concurrent,
}

impl Letters {
    fn of(case: &Json) -> Self {
        let shifted = |key: &str| [&[0.0], case.at(key).numbers().as_slice()].concat();
        Self {
            backward: shifted("t_backward_layer1_to_n"),
            size: shifted("D"),
            buffer: case.at("Q").number(),
            timeout: case.at("timeout").number(),
            per_byte: case.at("sec_per_byte").number(),
            overhead: case.at("delta").number(),
        }
    }

    fn solve(&self, print: Print) -> Solved {
        let Self { backward, size, buffer, timeout, .. } = self;
        let (literal, n) = (print == Print::Literal, self.size.len() - 1);
        let transfer = |bytes: f64| match bytes == 0.0 && !literal {
            true => 0.0,
            false => self.per_byte * bytes + self.overhead,
        };
        let late = |time: f64| if literal { time > *timeout } else { time >= *timeout };
        let zero = vec![0.0; n + 1];
        let (mut b, mut f, mut wait, mut tau) = (zero.clone(), zero.clone(), zero.clone(), zero);
        for i in (1..=n).rev() {
            let fresh = i == n || b[i + 1] + size[i] > *buffer || backward[i] >= *timeout;
            b[i] = if fresh { size[i] } else { b[i + 1] + size[i] };
        }
        for i in 1..=n {
            let overflow = i > 1 && b[i] + size[i - 1] > *buffer;
            let waited = if literal { backward[i] } else { backward[i - 1] };
            f[i] = if i == 1 || late(waited) || overflow { b[i] } else { 0.0 };
            wait[i] = match i > 1 {
                true if late(backward[i - 1]) => *timeout,
                true if overflow => backward[i - 1],
                _ => 0.0,
            };
        }
        let ready = |i: usize| backward[i..n].iter().sum::<f64>();
        let mut free = 0.0_f64;
        for i in (1..=n).rev() {
            match print {
                Print::Concurrent => {
                    tau[i] = free.max(ready(i) + wait[i]);
                    if f[i] > 0.0 {
                        free = tau[i] + transfer(f[i]);
                    }
                }
                _ if i == n => tau[i] = 0.0,
                _ => {
                    let end = tau[i + 1] + wait[i + 1] + transfer(f[i + 1]);
                    tau[i] = end.max(ready(if literal { 1 } else { i }));
                }
            }
        }
        let update = match print {
            Print::Concurrent => free,
            _ => tau[1] + transfer(f[1]),
        };
        Solved { b, f, wait, tau, update }
    }

    fn pass(&self) -> Pass {
        let layers = self.backward.iter().zip(&self.size).skip(1).rev();
        let layer = |(&backward, &size): (&f64, &f64)| Layer {
            backward: Seconds::new(backward),
            gradients: Bytes::new(size),
        };
        Pass::new(layers.map(layer).collect())
    }

    fn curve(&self) -> Curve {
        let bandwidth = BytesPerSec::new(1.0 / self.per_byte);
        Curve::AlphaBeta { startup: Seconds::new(self.overhead), bandwidth }
    }

    fn fused(&self, reading: Reading) -> Schedule {
        let fusion = Buffer::new(Bytes::new(self.buffer)).timeout(Seconds::new(self.timeout));
        Schedule::Fused(fusion.reading(reading))
    }
}

// ---------------------------------------------------------------- golden: fusion

/// F, t_wait and start by layer, counted from 1, in the form of the golden file.
fn by_layer(plan: &Plan, layers: usize, figure: impl Fn(&Flush) -> f64) -> Vec<Option<f64>> {
    let mut figures = vec![None; layers];
    for flush in &plan.flushes {
        figures[layers - 1 - flush.last] = Some(figure(flush));
    }
    figures
}

#[test]
fn golden_fusion_cases_in_all_readings() {
    let golden = Json::parse(FUSION);
    let mut checked = 0;
    let mut check = |found: f64, expected: f64, what: &str| {
        near(found, expected, 1e-12, what);
        checked += 1;
    };
    for case in golden.list() {
        let name = case.at("case").text();
        let letters = Letters::of(case);
        let (pass, curve) = (letters.pass(), letters.curve());
        let layers = pass.layers.len();
        for (key, schedule, print) in [
            ("plain", Some(Schedule::PerLayer), None),
            ("fusion_corrected", Some(letters.fused(Reading::Serial)), Some(Print::Corrected)),
            ("fusion_concurrent_wait", Some(letters.fused(Reading::Concurrent)), Some(Print::Concurrent)),
            ("fusion_printed", None, Some(Print::Literal)),
        ] {
            let expected = case.at(key);
            let what = |figure: &str| format!("{name} {key} {figure}");
            if let Some(schedule) = schedule {
                let plan = plan(&pass, &curve, &schedule);
                assert_eq!(plan.outcome, osf(&pass, &curve, &schedule));
                assert_eq!(plan.sent(), pass.gradients());
                let outcome = plan.outcome;
                check(outcome.update.get(), expected.at("Tu").number(), &what("Tu"));
                check(outcome.computing.get(), expected.at("Tc").number(), &what("Tc"));
                check(outcome.overlap.get(), expected.at("To").number(), &what("To"));
                check(outcome.factor(), expected.at("OSF").number(), &what("OSF"));
                if expected.has("F") {
                    let sizes = by_layer(&plan, layers, |flush| flush.size.get());
                    let waits = by_layer(&plan, layers, |flush| flush.wait.get());
                    for i in 0..layers {
                        check(sizes[i].unwrap_or(0.0), expected.at("F").numbers()[i], &what("F"));
                        check(waits[i].unwrap_or(0.0), expected.at("t_wait").numbers()[i], &what("t_wait"));
                    }
                }
                if expected.has("tau") {
                    // τ is the time at which the network is free and the layer is ready, before any wait.
                    let tau = by_layer(&plan, layers, |flush| match key {
                        "plain" => flush.start.get(),
                        _ => flush.start.get() - flush.wait.get(),
                    });
                    for (found, expected) in tau.into_iter().zip(expected.at("tau").numbers()) {
                        if let Some(found) = found {
                            check(found, expected, &what("tau"));
                        }
                    }
                }
                if expected.has("start") {
                    let starts = by_layer(&plan, layers, |flush| flush.start.get());
                    for (found, expected) in starts.into_iter().zip(expected.at("start").list()) {
                        assert_eq!(found.is_none(), expected.text() == "None", "{}", what("start"));
                        if let Some(found) = found {
                            check(found, expected.number(), &what("start"));
                        }
                    }
                }
            }
            // The literal equations reproduce every number of the file, including the printed ones.
            if let Some(print) = print {
                let solved = letters.solve(print);
                check(solved.update, expected.at("Tu").number(), &what("letters, Tu"));
                let computing = pass.computing().get();
                let factor = computing / (computing + solved.update - pass.overlap().get());
                check(factor, expected.at("OSF").number(), &what("letters, OSF"));
                let lists =
                    [("B", &solved.b), ("F", &solved.f), ("t_wait", &solved.wait), ("tau", &solved.tau)];
                for (figure, found) in lists.into_iter().filter(|(figure, _)| expected.has(figure)) {
                    for (found, expected) in found[1..].iter().zip(expected.at(figure).numbers()) {
                        check(*found, expected, &what(figure));
                    }
                }
            }
        }
    }
    assert_eq!((golden.list().len(), checked), (6, CHECKED_FUSION));
}

/// Number of comparisons in [`golden_fusion_cases_in_all_readings`]; fewer would mean that some were skipped.
const CHECKED_FUSION: usize = 500;

// ---------------------------------------------------------------- golden: models

/// VGG16 with its fully connected layers replaced as in Table 3.
fn vgg16_replaced() -> Model {
    let mut builder = Builder::new("vgg16-replaced", "Liu et al. 2022, table 3");
    let b = &mut builder;
    let mut x = b.input("input", &[3, 224, 224]).unwrap();
    for (stage, (count, channels)) in
        [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)].into_iter().enumerate()
    {
        for place in 0..count {
            let conv = Conv2d::new(channels, 3).padding(1).biased();
            x = b.conv(format!("conv{stage}.{place}"), conv, x).unwrap();
            x = b.activate(format!("relu{stage}.{place}"), Activation::Relu, x).unwrap();
        }
        x = b.pool(format!("pool{stage}"), Pool::Max, (2, 2, 0), x).unwrap();
    }
    for (name, channels) in [("conv1x1x512", 512), ("conv1x1x1000", 1000)] {
        x = b.conv(name, Conv2d::new(channels, 1).biased(), x).unwrap();
        x = b.activate(format!("{name}.relu"), Activation::Relu, x).unwrap();
    }
    b.global_average("pool", x).unwrap();
    builder.finish().unwrap()
}

/// The model with a name from the golden files: the original ResNets, with the stride on the first convolution and
/// without convolution biases; VGG with biases.
fn model(name: &str) -> Model {
    match name {
        "ResNet50" => zoo::build("resnet50-v1").unwrap(),
        "ResNet101" => zoo::build("resnet101-v1").unwrap(),
        "ResNet152" => zoo::build("resnet152-v1").unwrap(),
        "VGG16" => zoo::build("vgg16").unwrap(),
        "VGG19" => zoo::build("vgg19").unwrap(),
        "VGG16-repl" => vgg16_replaced(),
        other => panic!("{other}"),
    }
}

const PI: FlopsPerSec = FlopsPerSec::new(13.45e12);

fn paper_fabric() -> Fabric {
    Fabric { step: Seconds::ZERO, bandwidth: BytesPerSec::new(3.125e9), reduce: PI, element: Bytes::new(4.0) }
}

fn paper_ring(overhead: f64) -> Curve {
    ring_update(&paper_fabric(), 32, Seconds::new(overhead))
}

/// One update per layer; a batch normalisation is sent with its convolution.
fn paper_pass(model: &Model, samples: f64) -> Pass {
    Pass::of_operations(&Workload::of(model, Counting::default()), samples, PI)
}

#[test]
fn golden_models() {
    let rows = rows(MODELS);
    for row in &rows {
        let name = row["model"];
        let fabric = Fabric {
            step: Seconds::ZERO,
            bandwidth: BytesPerSec::new(cell(row, "beta_Bps")),
            reduce: FlopsPerSec::new(cell(row, "pi")),
            element: Bytes::new(cell(row, "s")),
        };
        let workers = cell(row, "N") as u32;
        let curve = ring_update(&fabric, workers, Seconds::new(cell(row, "delta_s")));
        let pass = paper_pass(&model(name), cell(row, "M_over_c"));
        let plan = plan(&pass, &curve, &Schedule::PerLayer);
        assert_eq!(plan.sent(), pass.gradients());
        for (column, found) in [
            ("OSF", plan.outcome.factor()),
            ("CSF", csf(&pass, &curve)),
            ("T_comp", plan.outcome.computing.get()),
            ("T_update", plan.outcome.update.get()),
            ("T_overlap", plan.outcome.overlap.get()),
            ("T_comm", curve.time(pass.gradients()).get()),
        ] {
            relative(found, cell(row, column), 1e-9, &format!("{name} {column}"));
        }
    }
    assert_eq!(rows.len(), 18);
}

#[test]
fn golden_calibration() {
    let rows = rows(CALIBRATION);
    let (original, replaced) = (model("VGG16"), model("VGG16-repl"));
    for row in &rows {
        let curve = paper_ring(cell(row, "delta_ms") / 1e3);
        let samples = cell(row, "M_over_c_2flopMAC");
        for (pass, columns) in [
            (paper_pass(&original, samples), ["OSF_VGG16", "CSF_VGG16"]),
            (paper_pass(&replaced, samples), ["OSF_VGG16_replaced", "CSF_replaced"]),
        ] {
            let found = [osf(&pass, &curve, &Schedule::PerLayer).factor(), csf(&pass, &curve)];
            for (column, found) in columns.into_iter().zip(found) {
                relative(found, cell(row, column), 1e-9, &format!("{samples} {column}"));
            }
        }
        relative(2.0 * samples, cell(row, "M_over_c_GMAC"), 1e-9, "giga-MAC convention");
    }
    assert_eq!(rows.len(), 7);
}

/// Convolution biases that the Keras ResNets have and the zoo's do not: one per channel, as many as batch-norm
/// shifts.
fn keras_parameters(model: &Model) -> u64 {
    let norms = model.layers().iter().filter(|layer| matches!(layer.op, Op::Normalise(_)));
    model.parameters() + norms.map(|layer| layer.cost.biases).sum::<u64>()
}

/// Number of Keras layers: padding counts as a layer, twice in a ResNet, which does not flatten; in VGG,
/// non-linearities are part of their layer and there is no dropout.
fn keras_layers(model: &Model) -> usize {
    let count = |keep: &dyn Fn(&Op) -> bool| model.layers().iter().filter(|layer| keep(&layer.op)).count();
    let inputs = count(&|op| matches!(op, Op::Input));
    if model.name.starts_with("resnet") {
        model.layers().len() - inputs - count(&|op| matches!(op, Op::Flatten)) + 2
    } else {
        model.layers().len() - inputs - count(&|op| matches!(op, Op::Activate(_) | Op::Dropout))
    }
}

#[test]
fn tables_2_and_3() {
    const MIB: f64 = 1024.0 * 1024.0;
    let rows = rows(TABLES);
    for row in &rows {
        let (name, field) = (row["row"], row["field"]);
        let (published, recomputed) = (cell(row, "published"), cell(row, "recomputed"));
        let what = format!("{name} {field}");
        if row["table"] == "T3" {
            let (model, layer) = match name {
                "fc1" => (model("VGG16"), "classifier.0"),
                "fc2" => (model("VGG16"), "classifier.3"),
                "fc3" => (model("VGG16"), "classifier.6"),
                layer => (vgg16_replaced(), layer),
            };
            let layer = model.layers().iter().find(|found| found.name == layer).unwrap();
            let found = layer.cost.weights as f64 * 4.0 / MIB;
            assert_eq!(found, recomputed, "{what}");
            assert!((found - published).abs() < 0.05, "{what}");
            continue;
        }
        let model = model(name);
        match field {
            "GFLOPs" => {
                let found = model.cost().multiply_add as f64 / 2.0 / 1e9;
                assert!((found - recomputed).abs() < 5.1e-4 * recomputed, "{what}: {found}");
                // Rounded up in all five rows: 11.28 is printed as 12 and 15.47 as 16.
                assert_eq!(found.ceil(), published, "{what}");
            }
            "Parameter Size (MB)" => {
                let found = keras_parameters(&model) as f64 * 4.0 / MIB;
                assert!((found - recomputed).abs() < 5.1e-4, "{what}: {found}");
                // VGG19 is 548.05 and prints 549.
                assert_eq!(found.round() == published, name != "VGG19", "{what}");
            }
            "# Tensors" => {
                assert_eq!(keras_layers(&model) as f64, recomputed, "{what}");
                assert_eq!(recomputed == published, name != "VGG19", "{what}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(rows.len(), 20);
}

#[test]
fn figures_of_the_errata() {
    // Section 4.2, 5: VGG16 with buffers of 0, 1 MB, 100 MB and 1 GB.
    let (pass, curve) = (paper_pass(&model("VGG16"), 13.9), paper_ring(1e-3));
    for (buffer, concurrent, serial) in
        [(0.0, 0.245, 0.211), (1e6, 0.246, 0.214), (1e8, 0.253, 0.252), (1e9, 0.218, 0.218)]
    {
        for (reading, expected) in [(Reading::Concurrent, concurrent), (Reading::Serial, serial)] {
            let schedule = Schedule::Fused(Buffer::new(Bytes::new(buffer)).reading(reading));
            let found = osf(&pass, &curve, &schedule).factor();
            assert!((found - expected).abs() < 5.1e-4, "{buffer} {reading:?}: {found}");
        }
    }
    // Section 4.5: CSF exceeds OSF.
    let (pass, curve) = (paper_pass(&model("ResNet101"), 128.0), paper_ring(3e-3));
    assert!((osf(&pass, &curve, &Schedule::PerLayer).factor() - 0.759).abs() < 5.1e-4);
    assert!((csf(&pass, &curve) - 0.792).abs() < 5.1e-4);
    // Eq. 1's example.
    assert!((sf(Seconds::new(9.0), Seconds::new(1.25), 8) - 0.9).abs() < 1e-15);
    // fc1 has 74.27 % of VGG16's bytes, and a layer larger than the buffer is sent alone.
    let pass = paper_pass(&model("VGG16"), 13.9);
    let plan = plan(&pass, &paper_ring(1e-3), &Schedule::Fused(Buffer::new(PYTORCH_CAP)));
    let largest = plan.flushes.iter().map(|flush| flush.size.get()).fold(0.0, f64::max);
    assert!((largest / pass.gradients().get() - 0.7427).abs() < 5e-5);
}

// ---------------------------------------------------------------- properties

/// Times and sizes in multiples of a quarter, which are exact in binary.
fn letters() -> impl Strategy<Value = Letters> {
    let layers = prop::collection::vec((0u32..40, 0u32..40), 1..12);
    (layers, 0u32..120, 1u32..60, 0u32..20).prop_map(|(layers, buffer, timeout, overhead)| {
        let quarter = |n: u32| f64::from(n) / 4.0;
        Letters {
            backward: [0.0].into_iter().chain(layers.iter().map(|layer| quarter(layer.0))).collect(),
            size: [0.0].into_iter().chain(layers.iter().map(|layer| quarter(layer.1))).collect(),
            buffer: quarter(buffer),
            timeout: quarter(timeout),
            per_byte: 0.5,
            overhead: quarter(overhead),
        }
    })
}

fn schedules(letters: &Letters) -> Vec<Schedule> {
    let timeout = Seconds::new(letters.timeout);
    vec![
        Schedule::PerLayer,
        Schedule::AtEnd,
        letters.fused(Reading::Concurrent),
        letters.fused(Reading::Serial),
        Schedule::Fused(Buffer::new(Bytes::new(letters.buffer))),
        Schedule::Adaptive { timeout: None },
        Schedule::Adaptive { timeout: Some(timeout) },
        Schedule::MgWfbp { overhead: Seconds::new(letters.overhead) },
    ]
}

fn piecewise(letters: &Letters) -> Curve {
    Curve::Piecewise(LogLinear::continuous(
        Bytes::new(6.0),
        Seconds::new(0.5),
        BytesPerSec::new(2.0),
        Seconds::new(letters.overhead + 2.0),
    ))
}

proptest! {
    #[test]
    fn every_byte_is_sent_once_and_in_order(letters in letters()) {
        let pass = letters.pass();
        for curve in [letters.curve(), piecewise(&letters)] {
            for schedule in schedules(&letters) {
                let plan = plan(&pass, &curve, &schedule);
                prop_assert_eq!(plan.sent(), pass.gradients());
                prop_assert_eq!(plan.outcome, osf(&pass, &curve, &schedule));
                let mut free = Seconds::ZERO;
                let mut next = 0;
                for flush in &plan.flushes {
                    prop_assert!(flush.first >= next && flush.last >= flush.first);
                    let size: Bytes = pass.layers[flush.first..=flush.last].iter().map(|l| l.gradients).sum();
                    prop_assert_eq!(flush.size, size);
                    prop_assert!(flush.start >= free && flush.start >= flush.ready);
                    prop_assert_eq!(flush.end, flush.start + curve.time(flush.size));
                    (free, next) = (flush.end, flush.last + 1);
                }
                prop_assert_eq!(plan.outcome.update, free.max(pass.overlap()));
                prop_assert!(plan.outcome.exposed() >= Seconds::ZERO && plan.outcome.factor() <= 1.0);
            }
        }
    }

    #[test]
    fn the_recursion_is_that_of_the_corrected_equations(mut letters in letters()) {
        // In eq. 15, unlike here, a layer without gradients that flushes nothing waits.
        letters.size[1..].iter_mut().for_each(|size| *size = size.max(0.25));
        let pass = letters.pass();
        for (reading, print) in [(Reading::Serial, Print::Corrected), (Reading::Concurrent, Print::Concurrent)] {
            let found = plan(&pass, &letters.curve(), &letters.fused(reading));
            let solved = letters.solve(print);
            prop_assert_eq!(found.outcome.update.get(), solved.update);
            let sent: Vec<f64> = solved.f[1..].iter().rev().copied().filter(|&f| f > 0.0).collect();
            prop_assert_eq!(found.flushes.iter().map(|flush| flush.size.get()).collect::<Vec<_>>(), sent);
        }
    }

    #[test]
    fn without_fusion_the_update_is_a_longest_path(letters in letters()) {
        // τ unrolled: from some layer's ready time on, the network is busy without a gap.
        let (pass, curve) = (letters.pass(), letters.curve());
        let mut ready = 0.0;
        let mut longest = 0.0_f64;
        for (index, layer) in pass.layers.iter().enumerate() {
            ready += if index == 0 { 0.0 } else { layer.backward.get() };
            let rest: f64 = pass.layers[index..].iter().map(|layer| curve.time(layer.gradients).get()).sum();
            longest = longest.max(ready + rest);
        }
        prop_assert_eq!(osf(&pass, &curve, &Schedule::PerLayer).update.get(), longest);
    }

    #[test]
    fn an_endless_buffer_is_csf(letters in letters()) {
        let pass = letters.pass();
        for reading in [Reading::Concurrent, Reading::Serial] {
            let endless = Schedule::Fused(Buffer::new(Bytes::new(f64::INFINITY)).reading(reading));
            for curve in [letters.curve(), piecewise(&letters)] {
                prop_assert_eq!(plan(&pass, &curve, &endless), plan(&pass, &curve, &Schedule::AtEnd));
                let (found, expected) = (osf(&pass, &curve, &endless).factor(), csf(&pass, &curve));
                prop_assert!((found - expected).abs() <= 4e-16);
            }
            // Sums of quarters have no rounding error, so the results are bitwise equal.
            let found = osf(&pass, &letters.curve(), &endless).factor();
            prop_assert_eq!(found.to_bits(), csf(&pass, &letters.curve()).to_bits());
            // The same holds for a buffer that just holds everything.
            let enough = Schedule::Fused(Buffer::new(pass.gradients()).reading(reading));
            prop_assert_eq!(osf(&pass, &letters.curve(), &enough), osf(&pass, &letters.curve(), &endless));
        }
    }

    #[test]
    fn no_buffer_sends_every_layer_alone_but_late(letters in letters()) {
        let (pass, curve) = (letters.pass(), letters.curve());
        let off = plan(&pass, &curve, &Schedule::PerLayer);
        let [concurrent, serial] = [Reading::Concurrent, Reading::Serial]
            .map(|reading| plan(&pass, &curve, &Schedule::Fused(Buffer::new(Bytes::ZERO).reading(reading))));
        for fused in [&concurrent, &serial] {
            let sizes = |plan: &Plan| plan.flushes.iter().map(|flush| flush.size).collect::<Vec<_>>();
            prop_assert_eq!(sizes(fused), sizes(&off));
        }
        prop_assert!(off.outcome.update <= concurrent.outcome.update);
        prop_assert!(concurrent.outcome.update <= serial.outcome.update);
        // A timeout of zero means no wait: fusion is off.
        let fusion = Buffer::new(Bytes::new(f64::INFINITY)).timeout(Seconds::ZERO);
        prop_assert_eq!(osf(&pass, &curve, &Schedule::Fused(fusion)), off.outcome);
        let serial = Schedule::Fused(fusion.reading(Reading::Serial));
        prop_assert_eq!(osf(&pass, &curve, &serial), off.outcome);
    }

    #[test]
    fn one_worker_scales_perfectly(letters in letters(), overhead in 0.0..1.0f64) {
        let pass = letters.pass();
        prop_assume!(pass.computing() > Seconds::ZERO);
        let curve = ring_update(&paper_fabric(), 1, Seconds::new(overhead));
        prop_assert_eq!(csf(&pass, &curve), 1.0);
        for schedule in schedules(&letters) {
            let outcome = osf(&pass, &curve, &schedule);
            prop_assert_eq!(outcome.factor(), 1.0);
            prop_assert_eq!(sf(pass.computing(), outcome.iteration(), 1), 1.0);
        }
    }

    #[test]
    fn overlap_only_loses_by_its_fixed_costs(mut letters in letters()) {
        letters.overhead = 0.0;
        let (pass, curve) = (letters.pass(), letters.curve());
        let per_layer = osf(&pass, &curve, &Schedule::PerLayer);
        for schedule in schedules(&letters) {
            prop_assert!(per_layer.update <= osf(&pass, &curve, &schedule).update);
        }
    }

    #[test]
    fn on_a_line_adaptive_fusion_compares_the_wait_with_the_overhead(mut letters in letters()) {
        letters.size[1..].iter_mut().for_each(|size| *size = size.max(0.25));
        let pass = letters.pass();
        let plan = plan(&pass, &letters.curve(), &Schedule::Adaptive { timeout: None });
        let fused = |index: usize| !plan.flushes.iter().any(|flush| flush.last == index);
        for (index, next) in pass.layers.iter().skip(1).enumerate() {
            prop_assert_eq!(fused(index), next.backward.get() < letters.overhead);
        }
    }

    #[test]
    fn everybody_waits_for_the_slowest(letters in letters(), slower in 1u32..8, delay in 0u32..8) {
        let pass = letters.pass();
        let slow = Pass {
            forward: pass.forward * f64::from(slower),
            layers: pass.layers.iter().map(|l| Layer { backward: l.backward * f64::from(slower), ..*l }).collect(),
            update: Seconds::ZERO,
        };
        let delay = Seconds::new(f64::from(delay));
        let alone = Pass { forward: delay + slow.forward, ..slow.clone() };
        let both = Pass::slowest(&[(Seconds::ZERO, pass.clone()), (delay, slow.clone())]).unwrap();
        prop_assert_eq!(&both, &alone);
        prop_assert_eq!(Pass::slowest(&[(delay, slow)]).unwrap(), alone);
        prop_assert_eq!(Pass::slowest(&[]), None);
        // One worker starts late and another is slow: the later one counts, layer by layer.
        let crossed = Pass::slowest(&[(Seconds::new(9.0), pass.clone()), (Seconds::ZERO, both.clone())]).unwrap();
        let end = (Seconds::new(9.0) + pass.computing()).max(both.computing());
        prop_assert_eq!(crossed.computing(), end);
        prop_assert_eq!(crossed.forward, (Seconds::new(9.0) + pass.forward).max(both.forward));
    }
}

#[test]
fn mg_wfbp_waits_for_quick_layers() {
    // Backward order: 1 s, 2 s, 3 s, 4 s with 8, 3, 2 and 1 bytes, at one byte per second plus half a second each.
    let letters = Letters::of(&Json::parse(FUSION).list()[0]);
    let found = |overhead: f64| {
        let schedule = Schedule::MgWfbp { overhead: Seconds::new(overhead) };
        let plan = plan(&letters.pass(), &letters.curve(), &schedule);
        plan.flushes.iter().map(|flush| (flush.size.get(), flush.start.get())).collect::<Vec<_>>()
    };
    // 2 < 8.5: the first waits; 3 < 3.5: so does the second; 4 > 2.5 does not.
    assert_eq!(found(0.0), [(13.0, 5.0), (1.0, 18.5)]);
    assert_eq!(found(1.5), [(13.0, 5.0), (1.0, 18.5)]);
    assert_eq!(found(2.0), [(14.0, 9.0)]);
}

// ---------------------------------------------------------------- the method

fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<Override> = sets.iter().map(|set| Override::parse(set).unwrap()).collect();
    Document::new("test", text).scenario(&sets).unwrap()
}

const EQUAL: &str = r#"
[model]
zoo = "resnet50"
[strategy]
architecture = "all-reduce"
batch = 32
[[cluster.workers]]
count = 32
device = { base = "quadro-rtx-4000", efficiency = 0.5 }
[cluster.network]
bandwidth = "25 Gbit/s"
latency = "5 us"
startup = "10 us"
transport = "ideal"
"#;

fn predict(scenario: &Scenario) -> Prediction {
    let prediction = Liu2022.predict(scenario).unwrap();
    let parts: f64 = prediction.breakdown.iter().map(|part| part.time.get()).sum();
    relative(parts, prediction.iteration.get(), 1e-12, "parts");
    prediction
}

#[test]
fn equal_workers_are_osf() {
    for sets in [
        vec![],
        vec!["model.zoo=vgg16"],
        vec!["model.zoo=vgg16", "strategy.batch=4"],
        vec!["cluster.network.startup=1 ms"],
    ] {
        let scenario = scenario(EQUAL, &sets);
        let device = &scenario.cluster.groups[0].device;
        let fabric = Fabric {
            step: Seconds::ZERO,
            bandwidth: scenario.cluster.network.bandwidth.to_bytes_per_sec()
                * scenario.cluster.network.efficiency,
            reduce: device.fp32_peak(),
            element: Bytes::new(4.0),
        };
        let network = &scenario.cluster.network;
        let delta = (network.latency + network.startup) * 62.0;
        let pass =
            Pass::by_tensor(&scenario.workload, &Speed::of(&scenario, 0), |tensor| scenario.summed(tensor));
        let curve = ring_update(&fabric, 32, delta);
        let buffer = Schedule::Fused(Buffer::new(PYTORCH_CAP));
        for (fusion, schedule) in [
            (&["strategy.fusion.rule=none"][..], Schedule::PerLayer),
            (&["strategy.fusion.rule=buffer", "strategy.fusion.size=25 MiB"], buffer),
            (&["strategy.fusion.rule=all"], Schedule::AtEnd),
        ] {
            let expected = osf(&pass, &curve, &schedule);
            let prediction = predict(&self::scenario(EQUAL, &[&sets[..], fusion].concat()));
            let copying = prediction.part("host-to-device").get();
            relative(prediction.iteration.get() - copying, expected.iteration().get(), 1e-9, "iteration");
            relative(prediction.part("compute").get(), expected.computing.get(), 1e-9, "compute");
            let exposed = prediction.part("exposed communication").get();
            near(exposed, expected.exposed().get(), 1e-9, "exposed");
            let (computing, all) = (expected.computing.get() + copying, prediction.iteration.get());
            relative(prediction.scaling_factor, computing / all, 1e-9, "scaling factor");
            // iteration = forward + t_b(n) + T_update.
            let from_start = pass.forward + pass.layers[0].backward + expected.update;
            relative(expected.iteration().get(), from_start.get(), 1e-12, "forward, first layer, update");
        }
    }
}

#[test]
fn one_worker_computes_only() {
    let prediction = predict(&scenario(&EQUAL.replace("count = 32", "count = 1"), &[]));
    assert_eq!(prediction.part("exposed communication"), Seconds::ZERO);
    relative(prediction.scaling_factor, 1.0, 1e-15, "scaling factor");
    assert_eq!(prediction.bottleneck, Bottleneck::Compute);
}

#[test]
fn unequal_workers_wait_for_the_slowest() {
    let second = "[[cluster.workers]]\ncount = 8\nspeed = 0.5\n\
                  device = { base = \"quadro-rtx-4000\", efficiency = 0.5 }\n[cluster.network]";
    let mixed = predict(&scenario(&EQUAL.replace("[cluster.network]", second), &[]));
    let slow = EQUAL.replace("count = 32", "count = 40\nspeed = 0.5");
    let slow = predict(&scenario(&slow, &[]));
    relative(mixed.iteration.get(), slow.iteration.get(), 1e-9, "the slow decide");
    assert_eq!((mixed.workers, mixed.groups.len()), (40, 2));
    assert!(
        mixed.groups[0].ready < mixed.groups[1].ready && mixed.groups[0].compute < mixed.groups[1].compute
    );
    assert!(mixed.scaling_factor < slow.scaling_factor);
    // A slow port slows down the whole ring.
    let port = EQUAL.replace("count = 32", "count = 31")
        + "\n[[cluster.workers]]\ncount = 1\nbandwidth = \
                \"1 Gbit/s\"\ndevice = { base = \"quadro-rtx-4000\", efficiency = 0.5 }\n";
    let port = predict(&scenario(&port, &[]));
    let all = predict(&scenario(EQUAL, &["cluster.network.bandwidth=1 Gbit/s"]));
    relative(port.iteration.get(), all.iteration.get(), 1e-9, "the slow port decides");
}

#[test]
fn bottlenecks_and_warnings() {
    let bottleneck = |sets: &[&str]| predict(&scenario(EQUAL, sets)).bottleneck;
    assert_eq!(bottleneck(&["strategy.batch=256"]), Bottleneck::Compute);
    assert_eq!(
        bottleneck(&["strategy.batch=1", "cluster.network.bandwidth=1 Gbit/s"]),
        Bottleneck::WorkerLink
    );
    assert_eq!(
        bottleneck(&["strategy.batch=1", "strategy.fusion.rule=none", "cluster.network.startup=1 ms"]),
        Bottleneck::FixedCost
    );
    let copies = ["strategy.batch=1", "cluster.network.host-rate=200 MB/s"];
    assert_eq!(bottleneck(&copies), Bottleneck::HostCopy);
    assert!(predict(&scenario(EQUAL, &[])).warnings.is_empty());
    let assumed = EQUAL.replace("\"quadro-rtx-4000\", efficiency = 0.5", "\"rtx-2080-ti\"");
    assert_eq!(predict(&scenario(&assumed, &[])).warnings[0].code, "assumed-efficiency");
}

#[test]
fn refuses_what_it_does_not_model() {
    for (sets, key) in [
        (&["strategy.architecture=parameter-server"][..], "strategy.architecture"),
        (&["strategy.synchronisation=async"], "strategy.synchronisation"),
        (&["strategy.synchronisation=ssp(3)"], "strategy.synchronisation"),
        (&["strategy.synchronisation=local-sgd(4)"], "strategy.synchronisation"),
    ] {
        let refusal = Liu2022.predict(&scenario(EQUAL, sets)).unwrap_err();
        assert_eq!(refusal.key, key);
        assert!(!refusal.reason.is_empty() && !refusal.remedy.is_empty());
    }
}

#[test]
fn accumulated_batches_are_exchanged_once_and_sixteen_bits_are_half_the_bytes() {
    let once = predict(&scenario(EQUAL, &[]));
    let four = predict(&scenario(EQUAL, &["strategy.accumulation=4"]));
    let exposed = |prediction: &Prediction| prediction.part("exposed communication").get();
    relative(exposed(&four), exposed(&once), 1e-9, "exposed");
    let computing = once.iteration.get() - exposed(&once);
    relative(four.iteration.get(), 4.0 * computing + exposed(&once), 1e-9, "step");
    assert_eq!(four.samples, 4 * once.samples);
    let sent = |sets: &[&str]| predict(&scenario(EQUAL, sets)).communication.unwrap().allreduce.get();
    let none = "strategy.all-reduce.overhead=0 s";
    let half = sent(&[none, "strategy.all-reduce.gradients=fp16"]);
    relative(half, 0.5 * sent(&[none]), 1e-9, "all-reduces");
}

#[test]
fn a_slow_input_pipeline_limits_a_machine() {
    let fed = predict(&scenario(EQUAL, &["input.rate=100 samples/s"]));
    let free = predict(&scenario(EQUAL, &[]));
    let exposed = fed.part("exposed communication").get();
    // Every worker is a machine of its own: 32 samples at 100 samples/s.
    relative(fed.iteration.get() - exposed, 0.32, 1e-9, "computing and waiting");
    assert!(fed.iteration > free.iteration);
}
