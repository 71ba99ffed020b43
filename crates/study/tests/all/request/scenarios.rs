//! Requests that are packed, and the plans and networks that names stand for.

use stepcast_core::fault::Remedy;
use stepcast_core::machine::catalog;
use stepcast_core::scenario::Edit;
use stepcast_core::strategy::{Architecture, Recipe, Sharding, States};
use stepcast_study::{ForecastOptions, Observer, Request, forecast};

fn open(example: &str) -> Request {
    Request::open(&format!("{}/../../examples/{example}", env!("CARGO_MANIFEST_DIR")), Vec::new()).unwrap()
}

#[test]
fn a_packed_request_asks_the_same_without_its_files() {
    for example in ["profile.toml", "one-worker.json", "custom-device.toml", "all-reduce.toml"] {
        let request = open(example);
        let scenario = request.scenario().unwrap();
        let packed = request.packed().unwrap();
        let again = Request::unpack(&packed).unwrap();
        assert_eq!(again.scenario().unwrap(), scenario, "{example}");
        assert_eq!(again.packed().unwrap(), packed, "{example}");
        let changes = || [Edit::parse("cluster.workers.count=3").unwrap()];
        let changed = (request.changed(changes()), again.changed(changes()));
        assert_eq!(changed.0.scenario().unwrap(), changed.1.scenario().unwrap(), "{example}");
    }
}

#[test]
fn other_versions_and_damaged_texts_are_refused() {
    let packed = open("quickstart.toml").packed().unwrap();
    let other = packed.replacen(env!("CARGO_PKG_VERSION"), "99.0.0", 1);
    assert!(Request::unpack(&other).unwrap_err().reason.contains("version 99.0.0"));
    for wrong in ["", "{}", &packed[..packed.len() - 2]] {
        assert!(Request::unpack(wrong).unwrap_err().reason.contains("damaged"), "{wrong}");
    }
}

fn request(model: &str, changes: &[&str]) -> Request {
    Request::from_model(model, Edit::parse_all(changes).unwrap())
}

#[test]
fn a_large_transformer_is_split_until_it_fits() {
    let cluster = ["cluster.machine=dgx-h100", "cluster.machines=8"];
    let large = request("llama3-70b", &cluster);
    assert!(large.assumed().unwrap().plan && !large.assumed().unwrap().nothing_fits);
    assert_ne!(large.scenario().unwrap().strategy.plan.as_ref().unwrap().sharding, Sharding::None);
    let none = request("llama3-70b", &["cluster.workers.device=rtx-4090", "cluster.workers.count=8"]);
    assert!(none.assumed().unwrap().nothing_fits);
}

/// Lists of `[plan]` restrict the plan of names, too.
#[test]
fn the_usual_plan_is_one_of_those_that_are_listed() {
    let plan = |change: &str| {
        let asked = request("llama3-8b", &["cluster.machine=dgx-h100", change]);
        assert!(asked.assumed().unwrap().plan);
        asked.scenario().unwrap().strategy.plan.clone().unwrap()
    };
    assert_eq!(plan("plan.sharding=[\"zero-3\"]").sharding, Sharding::Zero3);
    assert_ne!(plan("plan.may-fit=false").sharding, Sharding::Zero3);
    assert_eq!(plan("plan.tensor=[4]").tensor, 4);
    // Nothing fits.
    let small = ["cluster.workers.device=rtx-4090", "cluster.workers.count=8", "plan.sharding=[\"zero-1\"]"];
    let asked = request("llama3-70b", &small);
    assert!(asked.assumed().unwrap().nothing_fits);
    assert_eq!(asked.scenario().unwrap().strategy.plan.as_ref().unwrap().sharding, Sharding::Zero1);
}

/// Autocast leaves weights in 32 bits, with names as with a plan.
#[test]
fn the_usual_plan_has_the_states_of_its_precision() {
    let states = |changes: &[&str]| {
        let asked = request(
            "llama3.2-1b",
            &[&["cluster.workers.device=h200", "cluster.workers.count=1"], changes].concat(),
        );
        asked.scenario().unwrap().strategy.plan.clone().unwrap().states
    };
    for (precision, expected) in
        [("amp-bf16", States::Fp32), ("fp32", States::Fp32), ("bf16", States::MegatronBf16)]
    {
        let precision = format!("strategy.precision={precision}");
        assert_eq!(states(&[&precision]), expected, "{precision}");
        assert_eq!(states(&[&precision, "strategy.plan.tensor=1"]), expected, "{precision}");
    }
}

/// On one device: sequences of an assumed length may be shorter, others stay, and frozen matrices may be packed.
#[test]
fn what_does_not_fit_says_what_would() {
    let adapted = ["cluster.workers.device=rtx-4090", "cluster.workers.count=1", "model.adapters.rank=16"];
    let found = |changes: &[&str]| {
        let all = [&adapted[..], changes].concat();
        let asked = request("llama3.1-8b", &all);
        let forecast = forecast(&asked, &ForecastOptions::default(), &Observer::none()).unwrap();
        let Some(Remedy::SetKey { key, value }) = forecast.fits_after.clone() else {
            return forecast.fits_with;
        };
        let edited = request("llama3.1-8b", &[&all[..], &[&format!("{key}={value}")]].concat());
        assert!(!edited.assumed().unwrap().nothing_fits, "{key} = {value}");
        assert_eq!(key, if changes.is_empty() { "model.sequence" } else { "model.adapters.base" });
        None
    };
    assert_eq!(found(&[]), None);
    assert_eq!(found(&["model.sequence=4096"]), None);
    assert_eq!(found(&["model.sequence=2048"]), None);
    assert_eq!(found(&["model.sequence=65536"]), Some(8));
}

#[test]
fn a_given_micro_batch_is_not_assumed() {
    let assumed = |change: &str| {
        let asked = request("gpt2", &["cluster.machine=dgx-a100", change]);
        let assumed = asked.assumed().unwrap();
        (assumed.plan, assumed.micro_batch)
    };
    assert_eq!(assumed("strategy.plan.micro-batch=4"), (true, false));
    assert_eq!(assumed("strategy.plan.global-batch=64"), (true, true));
}

/// A row of the scaling table is the answer for that number of workers.
#[test]
fn every_number_of_workers_that_is_asked_for_has_its_plan() {
    let step = |asked: &str| request("llama3-8b", &["cluster.machine=dgx-h100", asked]);
    let several = ForecastOptions { workers: Some(vec![2, 8, 16]), ..ForecastOptions::default() };
    let table = forecast(&step("workers=16"), &several, &Observer::none()).unwrap().scaling;
    for row in &table {
        let alone = step(&format!("workers={}", row.workers));
        let own = forecast(&alone, &ForecastOptions::default(), &Observer::none()).unwrap();
        assert_eq!(row.iteration, own.prediction.iteration, "{} workers", row.workers);
    }
    assert_eq!(table.len(), 3);
}

#[test]
fn a_given_plan_is_kept() {
    let request = request("llama3-8b", &["cluster.machine=dgx-h100", "strategy.plan.tensor=2"]);
    assert_eq!(request.scenario().unwrap().strategy.plan.as_ref().unwrap().tensor, 2);
    assert!(!request.assumed().unwrap().plan);
}

#[test]
fn a_number_format_leaves_the_split_open() {
    let request = request("llama3-8b", &["cluster.machine=dgx-h100", "strategy.plan.recipe=fp8"]);
    let assumed = request.assumed().unwrap();
    assert!(assumed.plan && !assumed.nothing_fits);
    assert_eq!(request.scenario().unwrap().strategy.plan.as_ref().unwrap().recipe, Recipe::Fp8);
}

#[test]
fn samples_of_a_worker_are_sequences_of_the_plan() {
    let sequences = |changes: &[&str]| {
        let all = [&["cluster.machine=dgx-h100"], changes].concat();
        request("gpt2", &all).scenario().unwrap().strategy.plan.as_ref().unwrap().global_batch
    };
    assert_eq!(sequences(&["strategy.batch=8"]), Some(64));
    assert_eq!(sequences(&["strategy.plan.global-batch=16"]), Some(16));
    let both = ["cluster.machine=dgx-h100", "strategy.batch=8", "strategy.plan.global-batch=16"];
    assert_eq!(request("gpt2", &both).scenario().unwrap_err().key.to_string(), "strategy.batch");
}

#[test]
fn other_models_are_trained_by_all_reduce() {
    let scenario = request("resnet50", &["cluster.workers.device=a100"]).scenario().unwrap();
    assert_eq!(scenario.strategy.architecture, Architecture::AllReduce);
    assert_eq!(scenario.strategy.plan, None);
}

#[test]
fn devices_of_whole_machines_share_them() {
    let cluster = |changes: &[&str]| request("llama3-8b", changes).scenario().unwrap().cluster.clone();
    let h100 = "cluster.workers.device=h100";
    let one = cluster(&[h100, "cluster.workers.count=8"]);
    assert_eq!(one.workers_per_node(), 8);
    let several = cluster(&[h100, "cluster.workers.count=512"]);
    assert_eq!(several.workers_per_node(), 8);
    assert_eq!(several.network, catalog::network("infiniband-ndr").unwrap());
    let roce = [h100, "cluster.workers.count=512", "cluster.network=roce-100g"];
    assert_eq!(cluster(&roce).network, catalog::network("roce-100g").unwrap());
    assert_eq!(cluster(&roce).workers_per_node(), 8);
    // A network between so few workers says that each is a machine.
    let apart = cluster(&[h100, "cluster.workers.count=4", "cluster.network=100gbe"]);
    assert_eq!(apart.workers_per_node(), 1);
    // Cards without links of their own fill the slots of machines, so that a row of a scaling table is what its number gives.
    let cards =
        |count: u32| cluster(&["cluster.workers.device=rtx-4090", &format!("cluster.workers.count={count}")]);
    for count in [1, 4, 8, 16] {
        assert_eq!(cards(count).workers_per_node(), 8);
        assert_eq!(cards(4).resized(count), cards(count));
    }
}
