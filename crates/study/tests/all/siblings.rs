//! One measured run of a source against the others of it: llm-foundry's table of H100 runs, which no constant is fitted to.

use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::calibrate::{MeasuredRun, calibrate};
use stepcast_study::predict::methods;
use stepcast_study::{MethodChoice, Request};

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

/// Forecasts of siblings are about as close as single runs are to each other, whether kernels are stated or not, and stay so once the run
/// that is cheapest to measure is known; if kernels are not stated, those of its length.
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
