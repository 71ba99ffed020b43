//! What must hold for every input, whatever is in it: it is answered, by something that can be used or by one error that
//! says what to do.

mod imports;
mod requests;

use stepcast_trace::Format;

/// Something that reads input from elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `seeds/`.
    pub name: &'static str,
    run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "any", run: imports::any },
    Target { name: "api", run: requests::api },
    Target { name: "artefact", run: requests::artefact },
    Target { name: "chakra", run: |data| imports::of(Format::Chakra, data) },
    Target { name: "horovod", run: |data| imports::of(Format::Horovod, data) },
    Target { name: "kineto", run: |data| imports::of(Format::Kineto, data) },
    Target { name: "launch", run: requests::launch },
    Target { name: "layers", run: |data| imports::of(Format::Layers, data) },
    Target { name: "onnx", run: |data| imports::of(Format::Onnx, data) },
    Target { name: "profile", run: imports::profile },
    Target { name: "resume", run: requests::resume },
    Target { name: "run_metadata", run: |data| imports::of(Format::RunMetadata, data) },
    Target { name: "scenario", run: requests::scenario },
    Target { name: "set", run: requests::set },
    Target { name: "tensorflow_timeline", run: |data| imports::of(Format::TensorFlowTimeline, data) },
    Target { name: "timeline", run: |data| imports::of(Format::Timeline, data) },
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
