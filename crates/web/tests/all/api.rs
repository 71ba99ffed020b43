//! The server asked as clients ask it, and as they should not.

use crate::{ASYNC, EVENTS, JSON, QUICK_START, app, ask, asking, get, lines, post, problem, request};
use axum::body::Body;
use axum::http::{StatusCode, header};
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use stepcast_web::{Access, application};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

#[tokio::test]
async fn the_engine_tells_how_far_it_is() {
    let text = format!("{ASYNC}\n[methods.simulate]\nruns = 2\nsteps = 20\nwarm-up = 2\n");
    let body = json!({ "scenario": text, "workers": [1, 2] });
    let (status, kind, bytes) = ask(&app(), asking("predict", EVENTS, &body)).await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, EVENTS));
    let events = lines(&bytes);
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"begun"));
    assert_eq!(kinds.last(), Some(&"answer"));
    let parts: Vec<&Value> = events.iter().filter(|event| event["event"] == "part").collect();
    let scaling = |part: &Value| part["forecast"]["scaling"].as_array().unwrap().len();
    assert_eq!(parts.iter().map(|part| scaling(part)).collect::<Vec<_>>(), [0, 0, 2]);
    let with_interval: Vec<bool> =
        parts.iter().map(|part| part["forecast"]["interval"].is_object()).collect();
    assert_eq!(with_interval, [false, true, true]);
    assert_eq!(parts[1]["forecast"]["prediction"], events.last().unwrap()["forecast"]["prediction"]);
    assert!(kinds.iter().filter(|kind| **kind == "progress").count() >= 3, "{kinds:?}");
    let answer = events.last().unwrap();
    assert_eq!(answer["forecast"]["prediction"]["method"], "simulate");
    assert!(answer["html"].as_str().unwrap().contains("<svg"));
}

/// Work that nobody wants any more ends, and its place is free. If it did not, it would be given up after two minutes.
#[tokio::test]
async fn clients_that_leave_free_their_places() {
    let app = app();
    let places = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for (path, body) in [
        // A hundred engines one after the other.
        ("predict", json!({ "scenario": ASYNC, "workers": (1..=100).collect::<Vec<u32>>() })),
        ("compare", json!({ "scenario": ASYNC })),
        (
            "search",
            json!({ "scenario": QUICK_START, "minimize": "iteration", "vary": ["batch=1..4000", "workers.0.count=1..400"] }),
        ),
    ] {
        for _ in 0..2 * places {
            let asked = asking(path, EVENTS, &body);
            let mut lines = app.clone().oneshot(asked).await.unwrap().into_body();
            // The last ones do not even get their turn.
            let _ = timeout(Duration::from_millis(300), lines.frame()).await;
        }
        let next = post(&app, "timeline", json!({ "scenario": QUICK_START, "steps": 1 }));
        assert!(timeout(Duration::from_secs(100), next).await.is_ok(), "{path}: no place is free");
    }
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let stop = CancellationToken::new();
    let app = application(Access::Loopback, None, stop.clone()).unwrap();
    let workers: Vec<u32> = (1..=100).collect();
    let body = json!({ "scenario": ASYNC, "workers": workers });
    let response = app.oneshot(asking("predict", EVENTS, &body)).await.unwrap();
    stop.cancel();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.lines().last().unwrap().contains("urn:stepcast:stopped"), "{text}");
}

#[tokio::test]
async fn searches_find_what_the_command_finds() {
    let text = include_str!("../../../../examples/search.toml");
    let body =
        json!({ "scenario": text, "minimize": "cost", "vary": ["workers.0.count=0..4", "batch=32,64"] });
    let report = post(&app(), "search", body.clone()).await;
    assert_eq!(report["configurations"], 10);
    let (_, _, bytes) = ask(&app(), asking("search", EVENTS, &body)).await;
    let events = lines(&bytes);
    let last = events.last().unwrap();
    assert_eq!(last["report"], report);
    assert!(last["plots"][0]["svg"].as_str().unwrap().starts_with("<svg"));
    // Every row of the best can be used.
    let rows = last["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), report["best"].as_array().unwrap().len());
    assert!(rows.iter().all(|row| last["uses"][row.to_string()]["edits"].is_array()), "{rows:?}");
}

#[tokio::test]
async fn timelines_are_drawn_by_windows() {
    let app = app();
    // More than a hundred thousand events.
    let text = ASYNC.replace("count = 4", "count = 16");
    let body = json!({ "scenario": text, "steps": 16 });
    let whole = post(&app, "timeline", body).await;
    assert!(whole["events"].as_u64().unwrap() > 100_000, "{}", whole["events"]);
    let span = whole["span_s"].as_f64().unwrap();
    let body = json!({ "scenario": text, "steps": 16, "from_s": 0.5 * span, "to_s": 0.501 * span, "first_worker": 3, "workers": 2 });
    let window = post(&app, "timeline", body).await;
    let lanes = window["lanes"].as_array().unwrap();
    let groups = |name: &str| lanes.iter().any(|lane| lane["group"] == name);
    assert!(groups("worker 3") && groups("worker 4") && !groups("worker 5"));
    // Of all events of a worker, those too short to be seen are counted together, and none is lost.
    let bars = |window: &Value| -> Vec<Value> {
        let lanes = window["lanes"].as_array().unwrap().iter();
        lanes.flat_map(|lane| lane["bars"].as_array().unwrap().clone()).collect()
    };
    let all = bars(&whole);
    let counted: u64 = all.iter().map(|bar| bar[4].as_u64().unwrap()).sum();
    assert_eq!(counted, whole["events"].as_u64().unwrap() * 4 / 16, "four of sixteen workers");
    assert!(all.len() < 40_000 && counted as usize > 2 * all.len(), "{} of {counted}", all.len());
    assert!(bars(&window).iter().all(|bar| bar[0].as_f64() <= bar[1].as_f64()));
    let trace = asking("timeline", "application/vnd.perfetto", &json!({ "scenario": ASYNC, "steps": 1 }));
    let (status, kind, bytes) = ask(&app, trace).await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, "application/vnd.perfetto"));
    assert!(bytes.len() > 1000);
    let (status, problem) =
        problem(&app, asking("timeline", JSON, &json!({ "scenario": ASYNC, "steps": 100_000 }))).await;
    assert_eq!((status, &problem["key"]), (422, &json!("steps")));
}

#[tokio::test]
async fn uploads_become_scenarios() {
    let app = app();
    let trace = include_bytes!("../../../../fuzz/seeds/kineto/alone.json");
    let upload = |bytes: &[u8], query: &str| {
        request("POST", &format!("/api/v1/uploads?{query}")).body(Body::from(bytes.to_vec())).unwrap()
    };
    let (status, _, bytes) = ask(&app, upload(trace, "name=..%2F..%2Fetc%2Falone.json&batch=32")).await;
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["overview"]["name"], "alone");
    let file = answer["file"].as_str().unwrap();
    assert!(file.starts_with("alone-") && file.ends_with(".json"), "{file}");
    let predicted =
        post(&app, "predict", json!({ "scenario": answer["scenario"], "set": ["methods.simulate.steps=20", "methods.simulate.warm-up=2"], "workers": [1] })).await;
    assert_eq!(predicted["scenario"]["model"]["profile"], file);
    let (status, _, profile) = ask(&app, get(&format!("/api/v1/uploads/{file}"))).await;
    assert_eq!(status, StatusCode::OK);
    assert!(stepcast_trace::parse_profile(&profile, "test").is_ok());
    for bad in [&b""[..], b"\0\0\0", b"{", b"not a trace at all"] {
        assert_eq!(problem(&app, upload(bad, "name=x")).await.0, 422);
    }
    let (status, _) = problem(&app, upload(&vec![b' '; (64 << 20) + 1], "name=large")).await;
    assert_eq!(status, 413);
}

#[tokio::test]
async fn scenarios_cannot_read_files() {
    let app = app();
    for model in [
        "profile = \"/etc/passwd\"",
        "profile = \"../../examples/one-worker.json\"",
        "onnx = \"/etc/hostname\"",
    ] {
        let body = json!({ "scenario": format!("[model]\n{model}\n") });
        let (status, problem) = problem(&app, asking("predict", JSON, &body)).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("among the uploads"), "{problem}");
        assert!(problem["key"].as_str().unwrap().starts_with("model."), "{problem}");
    }
    let fitted = "[model]\nzoo = \"alexnet\"\n[[cluster.workers]]\ndevice = { base = \"tesla-t4\", fitted = \"/etc/passwd\" }\n";
    let (status, _) = problem(&app, asking("predict", JSON, &json!({ "scenario": fitted }))).await;
    assert_eq!(status, 422);
    for path in
        ["/api/v1/uploads/..%2F..%2FCargo.toml", "/..%2FCargo.toml", "/%2e%2e/Cargo.toml", "/assets/main.js"]
    {
        assert_eq!(problem(&app, get(path)).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn problems_say_where_and_what_to_do() {
    let app = app();
    let scenario = "[model]\nzoo = \"vgg61\"\n";
    let (status, wrong) = problem(&app, asking("predict", JSON, &json!({ "scenario": scenario }))).await;
    assert_eq!(status, 422);
    assert_eq!((&wrong["key"], &wrong["line"]), (&json!("model.zoo"), &json!(2)));
    assert!(wrong["remedy"].as_str().unwrap().contains("vgg16"));
    let described = post(&app, "scenario", json!({ "scenario": scenario })).await;
    assert_eq!(described["problem"], wrong);
    let (status, refused) =
        problem(&app, asking("predict", JSON, &json!({ "scenario": QUICK_START, "method": "liu2022" })))
            .await;
    assert_eq!((status, &refused["key"]), (422, &json!("strategy.architecture")));
    let (status, unknown) =
        problem(&app, asking("predict", JSON, &json!({ "scenario": QUICK_START, "method": "zeng" }))).await;
    assert_eq!((status, &unknown["key"]), (422, &json!("method")));
}

#[tokio::test]
async fn bodies_that_make_no_sense_are_refused() {
    let app = app();
    let raw = |kind: &str, body: Vec<u8>| {
        request("POST", "/api/v1/predict").header(header::CONTENT_TYPE, kind).body(Body::from(body)).unwrap()
    };
    for (body, status) in [
        (b"".to_vec(), 400),
        (b"{".to_vec(), 400),
        (b"[]".to_vec(), 400),
        (b"{\"scenario\": 1}".to_vec(), 400),
        (b"\xff\xfe".to_vec(), 400),
        (vec![b'['; 1 << 19], 400),
        (vec![b' '; (1 << 20) + 1], 413),
        (format!("{{\"scenario\": \"{}\"}}", "[".repeat(1 << 19)).into_bytes(), 422),
        (json!({ "scenario": QUICK_START, "workers": [0] }).to_string().into_bytes(), 422),
        (json!({ "scenario": QUICK_START, "workers": vec![1; 1000] }).to_string().into_bytes(), 422),
        (json!({ "scenario": QUICK_START, "set": ["nonsense"] }).to_string().into_bytes(), 422),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(problem(&app, raw(JSON, body)).await.0, status, "{shown}");
    }
    assert_eq!(problem(&app, raw("text/plain", b"{}".to_vec())).await.0, 415);
    assert_eq!(problem(&app, get("/api/v1/predict")).await.0, 405);
    assert_eq!(problem(&app, get("/api/v2/predict")).await.0, 404);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let app = app();
    for (name, value) in
        [("host", "evil.example"), ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")]
    {
        let mut foreign = get("/api/v1/methods");
        foreign.headers_mut().insert(name, value.parse().unwrap());
        assert_eq!(problem(&app, foreign).await.0, 403, "{name}: {value}");
    }
    let mut own = get("/api/v1/methods");
    own.headers_mut().insert("origin", "http://localhost:7400".parse().unwrap());
    assert_eq!(ask(&app, own).await.0, StatusCode::OK);
}

#[tokio::test]
async fn pages_may_run_nothing_but_their_own_scripts() {
    let response = app().oneshot(get("/")).await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let page = response.into_body().collect().await.unwrap().to_bytes();
    let page = String::from_utf8_lossy(&page);
    assert!(
        !page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"),
        "nothing inline"
    );
    assert_eq!(page.matches("<script").count(), page.matches("src=\"main.js\"").count());
    assert!(!page.contains("//"), "nothing from elsewhere");
}

#[tokio::test]
async fn the_first_visit_is_small() {
    let app = app();
    let mut seen =
        vec!["/".to_owned(), "/style.css".to_owned(), "/icon.svg".to_owned(), "/main.js".to_owned()];
    seen.extend(["examples", "models", "devices", "networks"].map(|list| format!("/api/v1/{list}")));
    let mut place = 0;
    let mut total = 0;
    while let Some(path) = seen.get(place).cloned() {
        let (status, _, plain) = ask(&app, get(&path)).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        let zipped =
            request("GET", &path).header(header::ACCEPT_ENCODING, "gzip").body(Body::empty()).unwrap();
        let (_, _, packed) = ask(&app, zipped).await;
        total += packed.len();
        for import in String::from_utf8_lossy(&plain).split("from \"./").skip(1) {
            let module = format!("/{}", import.split('"').next().unwrap());
            if path.ends_with(".js") && !seen.contains(&module) {
                seen.push(module);
            }
        }
        place += 1;
    }
    assert!(seen.len() > 12, "{seen:?}");
    let body = json!({ "scenario": QUICK_START });
    for (name, accept) in [("scenario", JSON), ("predict", EVENTS)] {
        let (_, _, bytes) = ask(&app, asking(name, accept, &body)).await;
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(&bytes).unwrap();
        // Events are not packed on their way. The last is the whole answer; a busy server sends parts of it before.
        let whole = bytes.trim_ascii().rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len);
        total += if accept == EVENTS { whole } else { packed.finish().unwrap().len() };
    }
    assert!(total < 150_000, "{total}");
}
