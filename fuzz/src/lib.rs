//! What must hold for every input, whatever is in it: it is answered, by something that can be used or by one error that
//! says what to do.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use std::sync::OnceLock;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::model::ModelFile;
use stepcast_core::pass::Recorded;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::MethodChoice;
use stepcast_study::explore::sweep::{self, Agreement, Axis, Output};
use stepcast_trace::{Content, Format, Options};
use stepcast_web::{Access, application};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Something that reads input from elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `seeds/`.
    pub name: &'static str,
    run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "any", run: import },
    Target { name: "api", run: api },
    Target { name: "artefact", run: artefact },
    Target { name: "chakra", run: |data| import_as(Format::Chakra, data) },
    Target { name: "horovod", run: |data| import_as(Format::Horovod, data) },
    Target { name: "kineto", run: |data| import_as(Format::Kineto, data) },
    Target { name: "launch", run: launch },
    Target { name: "layers", run: |data| import_as(Format::Layers, data) },
    Target { name: "onnx", run: |data| import_as(Format::Onnx, data) },
    Target { name: "profile", run: profile },
    Target { name: "resume", run: resume },
    Target { name: "run_metadata", run: |data| import_as(Format::RunMetadata, data) },
    Target { name: "scenario", run: scenario },
    Target { name: "set", run: set },
    Target { name: "tensorflow_timeline", run: |data| import_as(Format::TensorFlowTimeline, data) },
    Target { name: "timeline", run: |data| import_as(Format::Timeline, data) },
];

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.iter().copied().find(|target| target.name == name)
    }

    /// Gives it an input.
    pub fn run(&self, data: &[u8]) {
        (self.run)(data);
    }
}

/// A file of this process, in memory where there is such a folder.
fn path(ending: &str) -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("stepcast-fuzz-{}{ending}", std::process::id()))
}

const QUICK_START: &str = include_str!("../../examples/quickstart.toml");

fn complete(fault: &Fault) {
    let message = fault.to_string();
    assert!(!fault.reason.is_empty() && message.len() < 10_000, "{} bytes: {fault:?}", message.len());
}

/// Resolves a scenario; what it resolves to can be written and is the same after being read.
fn scenario(data: &[u8]) {
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
fn launch(data: &[u8]) {
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
fn set(data: &[u8]) {
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
fn artefact(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(reason) = Artefact::from_toml(text) {
        assert!(!reason.is_empty());
    }
}

/// Resumes a sweep of twenty points whose rows are these.
fn resume(data: &[u8]) {
    let [kind, rows @ ..] = data else { return };
    let (format, ending) =
        if kind % 2 == 0 { (sweep::Format::Csv, ".csv") } else { (sweep::Format::JsonLines, ".jsonl") };
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
fn api(data: &[u8]) {
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

/// Imports a file that is of this format, as far as its beginning tells.
fn import_as(format: Format, data: &[u8]) {
    if Format::recognise(data) == Some(format) {
        import(data);
    }
}

/// Imports a file, compressed or an archive or plain.
fn import(data: &[u8]) {
    let path = path("");
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let options = Options { batch: Some(32), ..Options::default() };
    match stepcast_trace::import(&[path], &options) {
        Ok(imported) => {
            assert!(imported.notes.iter().all(|note| !note.is_empty()));
            match imported.content {
                Content::Profile(profile) => hold(&profile),
                Content::Model(model) => {
                    ModelFile::from_model(&model).build().expect("a model can be written and read again");
                }
            }
        }
        Err(error) => placed(&error),
    }
}

/// Reads a profile.
fn profile(data: &[u8]) {
    match stepcast_trace::parse_profile(data, "profile.json") {
        Ok(profile) => hold(&profile),
        Err(error) => placed(&error),
    }
}

/// A profile can be used, and is the same after being written and read.
fn hold(profile: &Profile) {
    profile.check().expect("a profile that was imported can be used");
    if let Ok(recorded) = Recorded::new(profile) {
        let passes = recorded.steps(1.0).take(3);
        assert!(passes.into_iter().all(|pass| pass.computing().get() >= 0.0));
    }
    let mut text = Vec::new();
    stepcast_trace::print_profile(profile, &mut text).expect("memory takes all");
    let again = stepcast_trace::parse_profile(&text, "again").expect("what was written can be read");
    assert!(again == *profile, "a profile is the same after being written and read");
}

/// An import ends with one error that has a place and a remedy.
fn placed(error: &Fault) {
    assert!(!error.origin().is_empty() && !error.reason.is_empty() && !error.remedy.is_empty(), "{error:?}");
}
