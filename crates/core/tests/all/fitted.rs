//! Models fitted to measurements: what they say, times of matrix products, and scenarios that name them.

use crate::OneText;
use proptest::prelude::*;
use stepcast_core::compute::assumptions;
use stepcast_core::files::NoFiles;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::fitted::collectives::{Collective, Curves, MeasuredCollectives};
use stepcast_core::fitted::gemm::costs::{ALONE, COUNT, Costs, LAUNCH, Product, SPLIT, START, TILE};
use stepcast_core::fitted::gemm::{Alignment, Corrections, Machine, Shape, Transposition, Variant};
use stepcast_core::fitted::machine::{CONSTANTS, MeasuredConstants};
use stepcast_core::fitted::steps::{
    Class, Coefficients, LaunchCosts, Nominal, Phase, PhaseModel, PrecisionModel, StepLayers, StepModel,
    StepOp, lanes,
};
use stepcast_core::fitted::transfer::{Measured, NoCurve};
use stepcast_core::keys::Given;
use stepcast_core::machine::catalog;
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_core::speed::Speed;

const LINE: &str = "kind = \"transfer\"\n[model]\nleast = \"1 kB\"\nmost = \"1 MB\"\n\
                    curve = { shape = \"line\", startup = \"1 ms\", bandwidth = \"1 GB/s\" }";
const SHARES: &str = "kind = \"efficiency\"\n[model]\ndevice = \"V100\"\n[model.precision.fp32]\n\
                      peak = \"15.667 TFLOP/s\"\nmemory-rate = \"900 GB/s\"\n\
                      compute = 0.25\nmemory = 0.5\nzeng2023 = 0.4\n";

#[test]
fn texts_that_are_no_artefacts_are_refused() {
    for (text, reason) in [
        ("", "missing field `kind`"),
        ("kind = 1", "wanted string"),
        ("kind = \"horoscope\"", "unknown variant `horoscope`"),
        ("kind = \"gemm\"", "missing field `model`"),
        ("kind = \"gemm\"\n[model]\nmultiprocessors = 0\nvariant = []", "without multiprocessors"),
        ("kind = \"steps\"\n[model]\nlaunch = 1", "invalid type"),
        (
            "kind = \"kernels\"\n[model.pool]\nper-element = \"-1 s\"\nstart = \"0 s\"\nleast = 1\nmost = 2",
            "kernel pool: a time is negative",
        ),
        (
            "kind = \"transfer\"\n[model]\nleast = \"1 B\"\nmost = \"2 B\"\n\
             curve = { shape = \"line\", startup = \"1 s\", bandwidth = \"0 B/s\" }",
            "a rate is not positive",
        ),
    ] {
        let error = Artefact::from_toml(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_fitted_line_takes_what_it_says() {
    let Ok(Artefact::Transfer(model)) = Artefact::from_toml(LINE) else { unreachable!("{LINE}") };
    let size = Bytes::new(1e6);
    assert!((model.curve.time(size).get() - 2e-3).abs() < 1e-15);
    assert_eq!(model.curve.log_linear().time(size), model.curve.time(size));
}

fn line(startup: f64, each: f64) -> Measured {
    let at = |size: f64| (Bytes::new(size), Seconds::new(startup + each * size));
    Measured::new(&[at(1.0), at(100.0)]).unwrap()
}

#[test]
fn groups_that_share_hosts_are_as_slow_as_one_group_of_all() {
    let mut curves = Curves::default();
    curves.add(Collective::AllReduce, 2, line(1.0, 0.5));
    curves.add(Collective::AllReduce, 4, line(1.0, 3.0));
    let time = |active| curves.time(Collective::AllReduce, 2, Bytes::new(50.0), active).unwrap().get();
    assert!((time(2) - 26.0).abs() < 1e-9);
    assert!((time(4) - 151.0 * (0.5 / 0.75)).abs() < 1e-9);
    // Eight ranks were not measured.
    assert!((time(8) - 26.0).abs() < 1e-9);
    assert_eq!(curves.time(Collective::AllGather, 2, Bytes::new(1.0), 2), None);
    assert_eq!(curves.time(Collective::AllGather, 1, Bytes::new(1.0), 2), Some(Seconds::ZERO));
}

#[test]
fn files_have_one_entry_for_each_kind_and_number_of_ranks() {
    let text = "[[times]]\ncollective = \"all-gather\"\nranks = 4\nmeasured = [[\"1 MB\", \"2 ms\"], [\"3 MB\", \"4 ms\"]]\n";
    let found: MeasuredCollectives = "c.toml".to_owned().resolve(&OneText(text)).unwrap();
    let time = found.curves.time(Collective::AllGather, 4, Bytes::new(2e6), 4).unwrap();
    assert!((time.get() - 3e-3).abs() < 1e-12);
    assert_eq!(String::write(&found), "c.toml");
    for text in [
        "",
        "[[times]]\ncollective = \"gossip\"\nranks = 2\nmeasured = []",
        "[[times]]\ncollective = \"send\"\nranks = 2\nmeasured = [[\"1 MB\", \"1 s\"]]",
    ] {
        let fault =
            <String as Given<MeasuredCollectives>>::resolve("c.toml".to_owned(), &OneText(text)).unwrap_err();
        assert!(fault.remedy.contains("[[times]]"), "{text}: {fault}");
    }
}

#[test]
fn arrays_files_and_names_have_the_order_of_the_table() {
    let constants = MeasuredConstants::from_array(std::array::from_fn(|place| 0.5 + place as f64));
    let table = toml::Table::try_from(constants).unwrap();
    for (place, row) in CONSTANTS.iter().enumerate() {
        let value = 0.5 + place as f64;
        assert_eq!(table[row.name.replace('_', "-").as_str()].as_float(), Some(value), "{}", row.name);
        assert_eq!(constants.get(row.name), Some(value), "{}", row.name);
    }
    assert_eq!((table.len(), constants.get("nvlink")), (CONSTANTS.len(), None));
}

fn points(list: &[(f64, f64)]) -> Vec<(Bytes, Seconds)> {
    list.iter().map(|&(size, time)| (Bytes::new(size), Seconds::new(time))).collect()
}

#[test]
fn measured_times_are_met_and_joined() {
    let curve = Measured::new(&points(&[(10.0, 1.0), (20.0, 2.0), (40.0, 3.0)])).unwrap();
    for (size, time) in
        [(0.0, 0.0), (1.0, 1.0), (10.0, 1.0), (15.0, 1.5), (20.0, 2.0), (30.0, 2.5), (70.0, 5.0)]
    {
        assert!((curve.time(Bytes::new(size)).get() - time).abs() < 1e-12, "{size}");
    }
}

#[test]
fn what_makes_no_curve_is_refused() {
    assert_eq!(Measured::new(&points(&[(10.0, 1.0)])), Err(NoCurve::TooFew(1)));
    assert!(matches!(Measured::new(&points(&[(10.0, 1.0), (10.0, 2.0)])), Err(NoCurve::Unsorted(..))));
    assert!(matches!(Measured::new(&points(&[(10.0, 1.0), (20.0, 0.0)])), Err(NoCurve::Absurd(..))));
}

fn scenario(text: &str, artefact: &str) -> Result<Scenario, String> {
    let document = Document::new("s.toml", format!("model.zoo = \"vgg16\"\n{text}"));
    document.scenario_with(&OneText(artefact), &[]).map_err(|error| error.to_string())
}

#[test]
fn a_fitted_line_is_the_curve_of_the_all_reduce_and_is_echoed_by_its_file() {
    let text = "strategy = { architecture = \"all-reduce\", all-reduce.fitted = \"t.toml\" }";
    let asked = scenario(text, LINE).unwrap();
    let curve = asked.strategy.exchange.curve.clone().unwrap();
    assert!((curve.time(Bytes::new(1e6)).get() - 2e-3).abs() < 1e-12);
    assert_eq!(curve.measured(), Some([Bytes::new(1e3), Bytes::new(1e6)]));
    assert!(asked.to_file().resolve_with(&OneText(LINE)).unwrap() == asked);
    let twice =
        "strategy.all-reduce = { fitted = \"t.toml\", measured = [[\"1 B\", \"1 s\"], [\"2 B\", \"2 s\"]] }";
    assert!(scenario(twice, LINE).unwrap_err().contains("both `measured` and `fitted`"));
}

#[test]
fn fitted_shares_are_a_devices_efficiencies() {
    let peak = catalog::device("tesla-v100-sxm2-16gb").unwrap().fp32_peak();
    let shares = SHARES.replace("15.667 TFLOP/s", &peak.to_string());
    let device =
        |more: &str| format!("[[cluster.workers]]\ndevice = {{ base = \"tesla-v100-sxm2-16gb\", {more} }}");
    let fitted = scenario(&device("fitted = \"e.toml\""), &shares).unwrap();
    let given = scenario(&device("efficiency = 0.25, memory-efficiency = 0.5"), "").unwrap();
    assert_eq!(Speed::of_group(&fitted, 0), Speed::of_group(&given, 0));
    assert!(fitted.to_file().resolve_with(&OneText(&shares)).unwrap() == fitted);
    let half = format!("{}\n[strategy]\nprecision = \"fp16\"", device("fitted = \"e.toml\""));
    assert!(scenario(&half, &shares).unwrap_err().contains("no steps in fp16"));
    let other = scenario(&device("fitted = \"e.toml\", clock = \"1 GHz\""), &shares).unwrap_err();
    assert!(other.contains("shares of the rates of V100"), "{other}");
}

#[test]
fn artefacts_of_other_kinds_are_refused_with_what_is_wanted() {
    let kernels = "[methods.oyama2016.kernels]\nsgemm = { fitted = \"g.toml\" }";
    for (text, artefact, wanted) in [
        ("strategy.all-reduce.fitted = \"x\"", SHARES, "`transfer`"),
        ("[[cluster.workers]]\ndevice = { base = \"h200-sxm\", fitted = \"x\" }", LINE, "`steps`"),
        (kernels, LINE, "`gemm`"),
        ("strategy.all-reduce.fitted = \"x\"", "kind = \"tea\"", "a fit"),
    ] {
        let error = scenario(text, artefact).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Every coefficient 1.5, every launch 30 µs.
fn made_up() -> StepModel {
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
    let StepModel { nominal, launch, .. } = made_up();
    let ops = StepOp::from_model(&model);
    // The host and the device wait for each other in turn.
    let device = |place: usize, phase| Seconds::new(1e-5 * ((place / 20 + phase as usize) % 12) as f64);
    let lanes =
        lanes(&ops, &model, (Precision::Fp32, 8), &nominal, |place, phase| Some(device(place, phase)));
    let ends = lanes.unwrap().ends(&launch, [1.0, 2.0]);
    let mut issued = Seconds::ZERO;
    let forward =
        ops.iter().enumerate().map(|(place, op)| (op, Phase::Forward, device(place, Phase::Forward)));
    let backward = ops.iter().enumerate().rev();
    let backward = backward.map(|(place, op)| (op, Phase::Backward, device(place, Phase::Backward) * 2.0));
    let work: Vec<[Seconds; 2]> = forward
        .chain(backward)
        .map(|(op, phase, time)| {
            issued += launch.time(&op.launches(Precision::Fp32, phase));
            [issued, time]
        })
        .collect();
    assert_eq!(ends.len(), work.len());
    for last in (0..ends.len()).step_by(7) {
        let through = |start: usize| work[start][0] + work[start..=last].iter().map(|work| work[1]).sum();
        let longest = (0..=last).map(through).reduce(Seconds::max).unwrap();
        assert!((ends[last] / longest - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_device_with_fitted_steps_takes_what_they_say() {
    let text = "model.zoo = \"googlenet\"\nstrategy.batch = 24\n[[cluster.workers]]\nspeed = 0.5\n\
                device = { base = \"h200-sxm\", fitted = \"steps.toml\" }\n";
    let artefact = toml::Table::from_iter([
        ("kind".to_owned(), toml::Value::from("steps")),
        ("model".to_owned(), toml::Value::try_from(made_up()).unwrap()),
    ]);
    let artefact = artefact.to_string();
    let files = OneText(&artefact);
    let document = Document::new("scenario.toml", text.to_owned());
    let scenario = document.scenario_with(&files, &[]).unwrap();
    let speed = Speed::of_group(&scenario, 0);
    let layers = scenario.workload.layers.iter();
    let step: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
    let model = zoo::build("googlenet").unwrap();
    let expected = made_up().predict(&model, Precision::Fp32, 24).unwrap().iteration * 2.0;
    assert!((step / expected - 1.0).abs() < 1e-3, "{step} {expected}");
    assert_eq!(assumptions(&scenario), []);
    let mixed = ["bf16", "amp-bf16"].map(|precision| {
        let precision = Edit::parse(&format!("strategy.precision={precision}")).unwrap();
        Speed::of_group(&document.scenario_with(&files, &[precision]).unwrap(), 0)
    });
    assert_eq!(mixed[0], mixed[1], "16-bit steps are measured with automatic casting");
    let larger = document.scenario_with(&files, &[Edit::parse("strategy.batch=65").unwrap()]).unwrap();
    let told = assumptions(&larger);
    assert!(told.len() == 1 && told[0].message.contains("16 to 64"), "{told:?}");
    let echoed = scenario.to_file().resolve_with(&files).unwrap();
    assert_eq!(echoed.cluster, scenario.cluster);
    let without = document.scenario_with(&NoFiles, &[]).unwrap_err();
    assert!(without.to_string().contains("steps.toml"), "{without}");
    for (flawed, key) in [("precision = \"tf32\"", "fitted"), ("", "efficiency")] {
        let more = if key == "efficiency" { "efficiency = 0.5\n" } else { "" };
        let text = format!("{}{more}[strategy]\n{flawed}\n", text.replace("strategy.batch = 24\n", ""));
        let error = Document::new("scenario.toml", text).scenario_with(&files, &[]).unwrap_err();
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

#[test]
fn rows_decide() {
    let of = |precision, transposition, m, n, k| {
        Alignment::of_rows(Variant { precision, transposition }, Shape { m, n, k })
    };
    let bf16 = |transposition, m, n, k| of(Precision::Bf16, transposition, m, n, k);
    assert_eq!(bf16(Transposition::Nn, 333, 320, 320), Alignment::Bulk);
    assert_eq!(bf16(Transposition::Nn, 320, 333, 320), Alignment::Element);
    assert_eq!(bf16(Transposition::Tn, 320, 320, 333), Alignment::Bulk);
    assert_eq!(bf16(Transposition::Nt, 320, 320, 666), Alignment::Word);
    assert_eq!(bf16(Transposition::Tt, 84, 320, 320), Alignment::Word);
    assert_eq!(of(Precision::Fp32, Transposition::Nn, 1, 1, 1), Alignment::Word);
    assert_eq!(of(Precision::Fp32, Transposition::Tn, 320, 320, 333), Alignment::Bulk);
}

#[test]
fn outside_the_nearest_face_counts() {
    let nodes = Corrections::none([16, 16, 16], [256, 256, 256]);
    let [m, n, k] = nodes.counts();
    let by_m = (0..m * n * k).map(|node| (node / (n * k)) as f64).collect();
    let corrections = nodes.with(by_m);
    assert!(corrections.is_whole());
    let ratio = |m| corrections.log_ratio(Shape { m, n: 64, k: 64 });
    for (m, expected) in [(1, 0.0), (16, 0.0), (64, 4.0), (256, 8.0), (1 << 20, 8.0)] {
        assert!((ratio(m) - expected).abs() < 1e-12, "{m}");
    }
    assert!(!corrections.covers(Shape { m: 257, n: 64, k: 64 }));
}

#[test]
fn queues_share_a_budget() {
    let machine = Machine { multiprocessors: 132, budget: Some(Flops::new(2e9)) };
    for (flops, calls) in [(1e3, 20.0), (2.7e8, 7.0), (5.4e8, 3.0), (1.1e9, 1.0), (1e12, 1.0)] {
        assert!((machine.first_share(Flops::new(flops)) * calls - 1.0).abs() < 1e-12, "{flops}");
    }
    let endless = Machine { budget: None, ..machine };
    assert!(endless.first_share(Flops::new(1e12)).abs() < 1e-12);
}

const TENSOR: Variant = Variant { precision: Precision::Bf16, transposition: Transposition::Nn };
const ORDINARY: Variant = Variant { precision: Precision::Fp32, transposition: Transposition::Nn };
const HALF: Variant = Variant { precision: Precision::Fp16, transposition: Transposition::Nt };
const SIZES: std::ops::Range<u32> = 1..9000;

fn costs(values: &[f64]) -> Costs {
    Costs(std::array::from_fn(|index| values[index]))
}

proptest! {
    /// Euler: Σ θᵢ ∂t/∂θᵢ = t.
    #[test]
    fn features_and_coefficients_give_the_time(
        (m, n, k) in (SIZES, SIZES, SIZES),
        values in prop::collection::vec(1e-12..1e-5f64, COUNT),
        (first_share, host) in (0.0..=1.0f64, 0.5..2.0f64),
    ) {
        let costs = costs(&values);
        let product = Product::new(Shape { m, n, k }, TENSOR, 132, first_share).with_host(host);
        let kernel = product.kernel(&costs);
        let time = product.time(&costs, &kernel).get();
        let features = product.features(&costs, &kernel);
        let linear: f64 = features.iter().zip(&costs.0).map(|(feature, cost)| feature * cost).sum();
        prop_assert!((linear / time - 1.0).abs() < 1e-9, "{linear} {time}");
    }

    /// A larger product never needs fewer tiles.
    #[test]
    fn larger_kernels_never_take_less(
        (m, n, k) in (SIZES, SIZES, SIZES),
        values in prop::collection::vec(1e-12..1e-5f64, COUNT),
    ) {
        let costs = costs(&values);
        let time = |m, n, k| Product::new(Shape { m, n, k }, HALF, 108, 0.0).kernel(&costs).time.get();
        let base = time(8 * m, 8 * n, 8 * k) * (1.0 - 1e-12);
        prop_assert!(time(8 * m + 8, 8 * n, 8 * k) >= base);
        prop_assert!(time(8 * m, 8 * n + 8, 8 * k) >= base && time(8 * m, 8 * n, 8 * k + 8) >= base);
    }
}

/// One wave of one 128×128 tile with k = 64: 2·128·128·64 operations, all other costs zero.
#[test]
fn one_block_is_counted_by_hand() {
    let mut values = [0.0; COUNT];
    values[TILE..].fill(1.0);
    values[TILE + 6] = 1e-9;
    values[SPLIT] = 1.0;
    let product = Product::new(Shape { m: 100, n: 128, k: 64 }, ORDINARY, 4, 1.0);
    let kernel = product.kernel(&Costs(values));
    assert!((kernel.time.get() - 2.0 * 128.0 * 128.0 * 64.0 * 1e-9).abs() < 1e-15, "{kernel:?}");
}

/// Four queued calls of 10 µs with 2 µs of host time each: 4·10 µs plus the extra cost of the first call.
#[test]
fn the_first_call_of_a_queue_hides_nothing() {
    let mut values = [0.0; COUNT];
    (values[LAUNCH], values[ALONE], values[START]) = (2e-6, 6e-6, 10e-6);
    let shape = Shape { m: 8, n: 8, k: 8 };
    let time = |first_share| {
        let product = Product::new(shape, ORDINARY, 4, first_share);
        product.time(&Costs(values), &product.kernel(&Costs(values))).get()
    };
    assert!((4.0 * time(0.25) - 46e-6).abs() < 0.1e-6, "{}", time(0.25));
    assert!((time(1.0) - 16e-6).abs() < 1e-12, "{}", time(1.0));
}
