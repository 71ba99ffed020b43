//! Scenarios, settings, fitted artefacts, files of sweeps and bodies of requests.

use super::path;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use std::sync::OnceLock;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::MethodChoice;
use stepcast_study::explore::sweep::{Agreement, Axis, Format, Output};
use stepcast_web::{Access, application};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const QUICK_START: &str = include_str!("../../examples/quickstart.toml");

fn complete(fault: &Fault) {
    let message = fault.to_string();
    assert!(!fault.reason.is_empty() && message.len() < 10_000, "{} bytes: {fault:?}", message.len());
}

/// Resolves a scenario; what it resolves to can be written and is the same after being read.
pub(crate) fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Document::new("scenario.toml", text).scenario(&[]) {
        Ok(scenario) => {
            let text = toml::to_string(&scenario.to_file()).expect("a scenario can be written");
            let again =
                Document::new("again.toml", text).scenario(&[]).expect("what was written can be read");
            assert!(
                again.to_file() == scenario.to_file(),
                "a scenario is the same after being written and read"
            );
        }
        Err(fault) => complete(&fault),
    }
}

/// Reads a launch file of a framework, with its model and machines given and without.
pub(crate) fn launch(data: &[u8]) {
    let given = ["model.zoo=llama3-8b", "cluster.machine=dgx-h100", "cluster.machines=2"];
    for count in [1, 3] {
        let changes = given.iter().rev().take(count).map(|text| Edit::parse(text).expect("an override"));
        let request = stepcast_study::Request::from_reader("launch", data, changes.collect());
        if let Err(fault) = request.and_then(|request| request.method(MethodChoice::Auto)) {
            complete(&fault);
        }
    }
}

/// Sets what each line says in the quick start.
pub(crate) fn set(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let changes: Result<Vec<Edit>, Fault> = text.lines().take(8).map(Edit::parse).collect();
    let resolved =
        changes.and_then(|changes| Document::new("quickstart.toml", QUICK_START).scenario(&changes));
    if let Err(fault) = resolved {
        complete(&fault);
    }
    if let Err(fault) = Axis::parse(text) {
        complete(&fault);
    }
}

/// Reads a fitted artefact.
pub(crate) fn artefact(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(reason) = Artefact::from_toml(text) {
        assert!(!reason.is_empty());
    }
}

/// Resumes a sweep of twenty points whose rows are these.
pub(crate) fn resume(data: &[u8]) {
    let [kind, rows @ ..] = data else { return };
    let (format, ending) = if kind % 2 == 0 { (Format::Csv, ".csv") } else { (Format::JsonLines, ".jsonl") };
    let request = stepcast_study::Request::quick_start(Vec::new());
    let axis = Axis::parse("strategy.batch=1..20").expect("an axis");
    let Ok(variants) = request.variants(vec![axis]) else { return };
    let agreement = Agreement::of(&variants, MethodChoice::Auto);
    let header = format.header(&variants).expect("a header");
    let path = path(ending);
    if std::fs::write(&path, [&header[..], rows].concat()).is_err() {
        return;
    }
    let open = || Output::open(&path, format, &variants, &agreement, (true, false));
    match open() {
        Ok(output) => {
            let kept = output.rows();
            assert!(kept <= 20, "{kept} rows");
            drop(output);
            let again = open().expect("what was kept is the sweep's");
            assert_eq!(again.rows(), kept, "nothing more is cut off");
        }
        Err(fault) => complete(&fault),
    }
}

/// Sends a body to the endpoint that edits and checks scenarios: it is answered, and not by a failure of the server.
pub(crate) fn api(data: &[u8]) {
    static SERVER: OnceLock<(Runtime, Router)> = OnceLock::new();
    let (runtime, application) = SERVER.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        (runtime, application(Access::Loopback, None, CancellationToken::new()).expect("an application"))
    });
    let request = Request::post("/api/v1/scenario")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Body::from(data.to_vec()))
        .expect("a request");
    let response = runtime.block_on(application.clone().oneshot(request)).expect("an answer");
    assert!(!response.status().is_server_error(), "{}", response.status());
}
