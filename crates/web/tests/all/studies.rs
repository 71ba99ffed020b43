//! Studies as the page asks for them: what they show can be applied, and what is wrong is said where it is.

use crate::{
    ALL_REDUCE, EVENTS, JSON, OFFERS, QUICK_START, REPLACEMENT, SMALL, SPRINT, app, ask, asking, lines, post,
    problem,
};
use axum::Router;
use axum::http::StatusCode;
use serde_json::{Value, json};

async fn shown(app: &Router, name: &str, body: Value) -> Value {
    let (status, kind, bytes) = ask(app, asking(name, EVENTS, &body)).await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, EVENTS));
    let last = lines(&bytes).pop().unwrap();
    assert_eq!(last["event"], "answer", "{last}");
    assert!(!last["summary"].as_str().unwrap().is_empty());
    last
}

/// The forecast of a scenario after the edits of a use.
async fn used(app: &Router, scenario: &str, edits: &Value) -> Value {
    assert!(!edits.as_array().unwrap().is_empty());
    let described = post(app, "scenario", json!({ "scenario": scenario, "edit": edits })).await;
    assert!(described.get("problem").is_none(), "{}", described["problem"]);
    post(app, "predict", json!({ "scenario": described["scenario"], "workers": [1] })).await
}

#[track_caller]
fn near(found: &Value, wanted: &Value) {
    let (found, wanted) = (found.as_f64().unwrap(), wanted.as_f64().unwrap());
    assert!((found / wanted - 1.0).abs() < 1e-9, "{found} {wanted}");
}

#[tokio::test]
async fn a_row_of_a_sweep_is_what_it_predicts() {
    let app = app();
    let body = json!({ "scenario": QUICK_START, "vary": ["batch=8,16", "workers.0.count=1..3"] });
    let (_, kind, bytes) = ask(&app, asking("sweep", JSON, &body)).await;
    assert_eq!(kind, "application/jsonl");
    let rows = lines(&bytes);
    let answer = shown(&app, "sweep", body).await;
    assert_eq!((rows.len(), &answer["report"]["predicted"]), (6, &json!(6)));
    for (row, number) in rows.iter().zip(answer["tables"][0]["rows"].as_array().unwrap()) {
        let forecast = used(&app, QUICK_START, &answer["uses"][number.to_string()]["edits"]).await;
        near(&forecast["prediction"]["iteration_s"], &row["iteration_s"]);
    }
}

#[tokio::test]
async fn the_fastest_condition_of_a_map_can_be_used() {
    let app = app();
    let answer = shown(&app, "map", json!({ "scenario": SPRINT, "nodes": "1..4", "batches": "1,4,8" })).await;
    let number = &answer["tables"][0]["rows"][0];
    assert_eq!(*number, answer["report"]["ranking"][0]);
    let forecast = used(&app, SPRINT, &answer["uses"][number.to_string()]["edits"]).await;
    let cell = &answer["report"]["cells"][number.as_u64().unwrap() as usize];
    near(&forecast["training"]["epoch_s"], &cell["epoch_s"]);
}

#[tokio::test]
async fn every_fusion_rule_can_be_used() {
    let app = app();
    let answer = shown(&app, "fuse", json!({ "scenario": ALL_REDUCE })).await;
    let rows = answer["tables"][0]["rows"].as_array().unwrap();
    assert!(rows[0].is_null(), "the scenario's own rule is used already");
    let uses = answer["uses"].as_object().unwrap();
    assert!(
        rows[1..].iter().filter(|row| uses.contains_key(&row.to_string())).count() >= rows.len() - 2,
        "{rows:?}"
    );
    let best = answer["report"]["lines"].as_array().unwrap().len() - 1;
    let forecast = used(&app, ALL_REDUCE, &uses[&best.to_string()]["edits"]).await;
    assert_eq!(
        forecast["scenario"]["strategy"]["fusion"]["buckets"].as_array().unwrap().len(),
        answer["report"]["plan"].as_array().unwrap().len()
    );
}

#[tokio::test]
async fn replaced_layers_become_the_model() {
    let app = app();
    let answer = shown(&app, "replace", json!({ "scenario": REPLACEMENT })).await;
    let edits = &answer["uses"]["0"]["edits"];
    let forecast = used(&app, REPLACEMENT, edits).await;
    assert_eq!(forecast["scenario"]["model"], answer["report"]["replacement"]["scenario"]["model"]);
}

#[tokio::test]
async fn plans_can_be_used() {
    let app = app();
    let answer = shown(&app, "plan", json!({ "scenario": SMALL, "global_batch": 64 })).await;
    let best = used(&app, SMALL, &answer["uses"]["0"]["edits"]).await;
    near(&best["prediction"]["iteration_s"], &answer["report"]["best"]["step_s"]);
    let rows =
        answer["tables"].as_array().unwrap().iter().flat_map(|table| table["rows"].as_array().unwrap());
    // The front names the plan that the scenario has, if any, and that one needs no edits.
    let unused = rows.filter(|row| answer["uses"].get(row.to_string()).is_none()).count();
    assert!(unused <= 1, "{unused}");
    assert!(answer["text"].as_str().unwrap().starts_with("[strategy.plan]"));
    // A scenario without a plan gets only what differs from the defaults.
    let (open, _) = SMALL.split_once("[strategy.plan]").unwrap();
    let answer = shown(&app, "plan", json!({ "scenario": open, "global_batch": 64 })).await;
    let edits = answer["uses"]["0"]["edits"].as_array().unwrap();
    assert!((1..16).contains(&edits.len()), "{edits:?}");
}

#[tokio::test]
async fn a_layout_has_its_plots() {
    let answer = shown(&app(), "layout", json!({ "scenario": SMALL, "role": "node" })).await;
    let names: Vec<&str> =
        answer["plots"].as_array().unwrap().iter().map(|plot| plot["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ranks", "memory", "pipeline"]);
    assert!(answer["plots"][0]["svg"].as_str().unwrap().contains("by machine"));
    assert!(answer["report"]["groups"].as_array().unwrap().len() >= 2);
}

#[tokio::test]
async fn what_is_wrong_is_said_at_its_field() {
    let app = app();
    for (name, body, status, key) in [
        ("sweep", json!({ "scenario": QUICK_START, "vary": [] }), 422, "vary"),
        ("sweep", json!({ "scenario": QUICK_START, "vary": ["batch=1..1000000"] }), 422, "vary"),
        ("sweep", json!({ "scenario": QUICK_START, "vary": ["nonsense"] }), 422, "vary: nonsense"),
        ("map", json!({ "scenario": SPRINT, "nodes": "4..1" }), 422, "nodes"),
        ("map", json!({ "scenario": SPRINT, "nodes": "1..1000", "batches": "1..1000" }), 422, "nodes"),
        ("map", json!({ "scenario": SPRINT, "minibatch": "9" }), 422, "minibatch"),
        ("map", json!({ "scenario": QUICK_START.split("[data]").next() }), 422, "data"),
        ("fuse", json!({ "scenario": QUICK_START }), 422, "strategy.architecture"),
        ("replace", json!({ "scenario": REPLACEMENT, "from": "nowhere" }), 422, "from"),
        ("replace", json!({ "scenario": REPLACEMENT, "with": "layers = 3" }), 422, "with"),
        ("plan", json!({ "scenario": SMALL, "minimize": "money" }), 422, "minimize"),
        ("plan", json!({ "scenario": SMALL, "nodes": "many" }), 422, "nodes"),
        ("plan", json!({ "scenario": QUICK_START, "global_batch": 64 }), 422, "strategy.plan"),
        ("layout", json!({ "scenario": QUICK_START }), 422, "strategy.plan"),
        ("layout", json!({ "scenario": SMALL, "role": "none" }), 400, ""),
    ] {
        let (found, problem) = problem(&app, asking(name, JSON, &body)).await;
        assert_eq!(found, status, "{name}: {problem}");
        assert_eq!(problem["key"].as_str().unwrap_or_default(), key, "{name}: {problem}");
        assert!(!problem["remedy"].as_str().unwrap().contains("--"), "{name}: {problem}");
    }
}

/// An option of a decision is the forecast of what its edits make of the text.
#[tokio::test]
async fn an_option_is_what_its_edits_predict() {
    let app = app();
    let body = json!({ "scenario": OFFERS });
    let (_, _, bytes) = ask(&app, asking("decide", EVENTS, &body)).await;
    let last = lines(&bytes).pop().unwrap();
    let options = last["report"]["options"].as_array().unwrap();
    assert_eq!(options.len(), 3);
    for (place, option) in options.iter().enumerate() {
        let edits = &last["uses"][place.to_string()]["edits"];
        let forecast = used(&app, OFFERS, edits).await;
        near(&forecast["prediction"]["iteration_s"], &option["figures"]["step_s"]);
        near(&forecast["interval"]["iteration_s"][1], &option["figures"]["step_interval_s"][1]);
    }
    let recommended = last["report"]["recommended"].as_u64().unwrap() as usize;
    assert!(options[recommended]["figures"]["late"].as_f64().unwrap() < 0.05);
    // Without offers there is nothing to choose from.
    let (status, problem) = problem(&app, asking("decide", JSON, &json!({ "scenario": SMALL }))).await;
    assert_eq!((status, &problem["key"]), (422, &json!("plan.offers")));
}

/// Every stop of every slider is a scenario that some method predicts, and the current one changes nothing.
#[tokio::test]
async fn every_stop_is_valid() {
    let app = app();
    let machines = "[model]\nzoo = \"llama3-8b\"\n[cluster]\nmachine = \"dgx-h100\"\nmachines = 4\n";
    for scenario in [QUICK_START, SMALL, ALL_REDUCE, machines] {
        let sliders = post(&app, "stops", json!({ "scenario": scenario })).await;
        let before = post(&app, "scenario", json!({ "scenario": scenario })).await;
        let sliders = sliders.as_array().unwrap();
        assert!(sliders.len() >= 3, "{scenario}: {sliders:?}");
        for slider in sliders {
            let stops = slider["stops"].as_array().unwrap();
            for (place, stop) in stops.iter().enumerate() {
                let edit = json!({ "scenario": scenario, "edit": [stop["edit"]] });
                let after = post(&app, "scenario", edit).await;
                assert!(after.get("problem").is_none(), "{}", after["problem"]);
                let is_now = slider["now"].as_u64() == Some(place as u64);
                assert!(!is_now || after["resolved"] == before["resolved"], "{stop}");
            }
        }
    }
}
