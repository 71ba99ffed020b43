//! Scenarios as published: every method of a paper gives the paper's numbers, whatever is known beyond it. And one measured run
//! of a source against the others of it: llm-foundry's table of H100 runs, which no constant is fitted to.

use crate::{example, scenario};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::calibrate::{MeasuredRun, calibrate};
use stepcast_study::predict::methods;
use stepcast_study::{MethodChoice, Request};

fn predicted(method: &str, scenario: &Scenario) -> Prediction {
    let method = methods::find(method).unwrap();
    assert_eq!(method.beyond_paper(scenario), [""; 0]);
    method.predict(scenario).unwrap()
}

/// Zeng 2023, Table 7 and, with the authors' P and number of pushes, Table 5.
#[test]
fn zeng_prints_these_times() {
    let servers = ["strategy.architecture=parameter-server"];
    let step = predicted("zeng2023", &scenario(&example("zeng2023-table7.toml"), &servers)).iteration;
    assert!((step.get() - 2.94).abs() < 0.01, "{step}");
    // Table 6, with the parameters that ResNet-50 ships.
    let resnet = [servers[0], "model.zoo=zeng2023/resnet50", "cluster.network=1gbe", "strategy.batch=16"];
    let step = predicted("zeng2023", &scenario(&example("zeng2023-table7.toml"), &resnet)).iteration;
    assert!((step.get() - 4.949).abs() < 0.002, "{step}");
    let table5 = r#"
        as-published = true
        model.zoo = "zeng2023/vgg11a"
        strategy = { batch = 32, architecture = "parameter-server" }
        cluster = { network = "1gbe", workers = [{ count = 2, device = "quadro-rtx-4000" }] }
        methods.zeng2023 = { parameters = "531405568 B", pushes = 19 }
    "#;
    let pulls = |changes: &[&str]| predicted("zeng2023", &scenario(table5, changes)).iteration.get();
    assert!((pulls(&[]) - 17.142).abs() < 0.005, "{}", pulls(&[]));
    // Half of the gradients: two pushes of half the time.
    let halved = pulls(&["methods.zeng2023.gradients=265702784B"]);
    assert!((pulls(&[]) - halved - 2.0 * 0.265_702_784 * 8.0).abs() < 1e-9, "{halved}");
}

/// Liu 2022, section 4.1: a scaling factor of 0.25.
#[test]
fn liu_prints_this_scaling_factor() {
    let factor = predicted("liu2022", &scenario(&example("layer-replacement.toml"), &[])).scaling_factor;
    assert!((factor - 0.25).abs() < 0.002, "{factor}");
}

/// Lin 2018 and Cynthia: phases of bytes over the nominal rate and operations over the peak rate.
#[test]
fn phases_are_counted() {
    let text = r#"
        as-published = true
        model.zoo = "resnet50"
        strategy = { batch = 32, synchronisation = "async", architecture = "parameter-server" }
        cluster = { network = "10gbe", workers = [{ count = 1, device = "tesla-v100-sxm2-16gb", efficiency = 0.45 }] }
    "#;
    let scenario = scenario(text, &[]);
    let bytes = scenario.workload.bytes().get();
    let peak = scenario.cluster.groups[0].device.fp32_peak().get();
    let expected = 2.0 * bytes * 8.0 / 10e9 + 3.0 * 32.0 * scenario.workload.forward.get() / (0.45 * peak);
    let step = predicted("lin2018", &scenario).iteration.get();
    assert!((step / expected - 1.0).abs() < 1e-9, "{step} {expected}");
}

/// Eq. 15 adds the wait of a buffer to a busy network. CSF is the factor of all gradients in one message.
#[test]
fn buffers_wait_as_printed() {
    let text = include_str!("../../../../examples/layer-replacement.toml");
    let factor = |sets: &[&str]| predicted("liu2022", &scenario(text, sets)).scaling_factor;
    let serial = factor(&["strategy.fusion={rule=\"buffer\", size=\"1 MB\"}"]);
    let concurrent = factor(&["strategy.fusion={rule=\"buffer\", size=\"1 MB\", reading=\"concurrent\"}"]);
    assert!(serial < 0.97 * concurrent, "{serial} {concurrent}");
    let none = predicted("liu2022", &scenario(text, &[]));
    let all = predicted("liu2022", &scenario(text, &["strategy.fusion.rule=\"all\""]));
    assert!((none.csf.unwrap() / all.scaling_factor - 1.0).abs() < 1e-9);
    assert!(none.csf.unwrap() < 0.5 && (none.scaling_factor - 0.25).abs() < 1e-5);
}

/// Without the switch, the answer tells what it adds.
#[test]
fn additions_are_told() {
    let quick = scenario("model.zoo = \"vgg16\"\nstrategy.architecture = \"all-reduce\"", &[]);
    let told = methods::find("liu2022").unwrap().beyond_paper(&quick);
    assert_eq!(told.len(), 3, "{told:?}");
    let file = scenario("as-published = true\nmodel.zoo = \"vgg16\"", &[]).to_file();
    assert!(file.as_published && file.resolve().unwrap().as_published);
}

const RUNS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/published/llm_foundry_mpt_fsdp_h100.csv");

/// A row: its scenario, and the seconds of its step.
struct Run {
    request: Request,
    measured: f64,
    /// Model, tokens of a sequence, GPUs.
    what: [String; 3],
}

/// The rows, with the attention that llm-foundry's scripts of benchmarks ask for, or its default.
fn runs(text: &str, is_stated: bool) -> Vec<Run> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    let run = |row: BTreeMap<String, String>| {
        let what = ["Model", "SeqLen (T)", "# GPUs"].map(|key| row[key].clone());
        let [model, sequence, gpus] = &what;
        // llm-foundry's configurations of MPT.
        let [layers, hidden, heads] = if model == "7b" { [32, 4096, 32] } else { [48, 7168, 56] };
        let again = if row["Activation Checkpointing"] == "True" { "recompute = [\"layer\"]" } else { "" };
        let attention = if is_stated && !(model == "7b" && gpus.len() == 3) { "triton" } else { "flash" };
        let text = format!(
            "[model.transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\nvocabulary = 50368\n\
             sequence = {sequence}\nmlp = \"gelu\"\nnorm = \"layer\"\nbias = true\npositions = {sequence}\ntied = true\n\
             [[cluster.workers]]\ncount = {gpus}\ndevice = \"h100-sxm5\"\n[cluster.network]\nbase = \"infiniband-ndr\"\n\
             [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\nports = 8\n[strategy]\nprecision = \"bf16\"\n\
             [strategy.plan]\nsharding = \"zero-3\"\nstates = \"fp32\"\noverlap = \"fsdp2\"\nmicro-batch = {}\n\
             global-batch = {}\nattention = \"{attention}\"\n{again}\n",
            row["MicroBatchSize"], row["GlobalBatchSize"]
        );
        let tokens: f64 = row["GlobalBatchSize (T)"].parse().unwrap();
        let rate: f64 = row["Throughput (T/s)"].parse().unwrap();
        let request = Request::from_reader("row", text.as_bytes(), Vec::new()).unwrap();
        Run { request, measured: tokens / rate, what }
    };
    rows.map(run).collect()
}

/// The mean error of the forecasts of `runs` by the priors of `by`, or by those shipped.
fn error<'a>(runs: impl Iterator<Item = &'a Run>, by: Option<&Scenario>) -> f64 {
    let errors: Vec<f64> = runs
        .map(|run| {
            let mut scenario = run.request.scenario().unwrap().as_ref().clone();
            if let Some(by) = by {
                scenario.priors = Arc::clone(&by.priors);
            }
            let step = methods::choose(&scenario).unwrap().predict(&scenario).unwrap().iteration.get();
            (step / run.measured - 1.0).abs()
        })
        .collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

/// Errors of the forecasts of all other runs, before and after the one of one machine and the shorter model is measured.
fn before_and_after(runs: &[Run], is_sibling: impl Fn(&Run) -> bool) -> [f64; 2] {
    let given = runs.iter().find(|run| run.what == ["7b", "2048", "8"]).unwrap();
    let siblings = || runs.iter().filter(|run| !std::ptr::eq(*run, given) && is_sibling(run));
    let measured = [MeasuredRun::from_step(Seconds::new(given.measured))];
    let calibration = calibrate(&given.request, MethodChoice::Auto, &measured).unwrap();
    let by = Scenario { priors: calibration.priors, ..given.request.scenario().unwrap().as_ref().clone() };
    assert!(error(std::iter::once(given), Some(&by)) < 0.02);
    [error(siblings(), None), error(siblings(), Some(&by))]
}

/// Forecasts of siblings are about as close as single runs are to each other, whether kernels are stated or not, and stay
/// so once the run that is cheapest to measure is known; if kernels are not stated, those of its length.
#[test]
fn one_run_of_a_source_leaves_its_siblings_close() {
    let Ok(text) = std::fs::read_to_string(RUNS) else {
        eprintln!("left out: {RUNS} is not there");
        return;
    };
    let [before, after] = before_and_after(&runs(&text, true), |_| true);
    assert!(before < 0.06 && after < 0.06, "{before} {after}");
    let [before, after] = before_and_after(&runs(&text, false), |run| run.what[1] == "2048");
    assert!(before < 0.05 && after < 0.05, "{before} {after}");
}
