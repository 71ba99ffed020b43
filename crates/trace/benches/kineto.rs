//! Reading a trace of PyTorch's profiler of some 200 MB: bytes a second, and the largest heap (`max alloc`).

#![allow(clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/made/mod.rs"]
mod made;

use divan::AllocProfiler;
use divan::counter::BytesCount;
use std::path::PathBuf;
use stepcast_trace::{Options, import};

#[global_allocator]
static ALLOCATOR: AllocProfiler<std::alloc::System> = AllocProfiler::system();

const SIZE: usize = 200_000_000;

fn main() {
    divan::main();
}

/// A trace of at least [`SIZE`] bytes: steps of 160 layers.
fn large(folder: &std::path::Path) -> (PathBuf, u64) {
    let job = made::Job { layers: 160, exchange: Some((20, 300.0)), ..made::Job::default() };
    let ten = made::Job { steps: 10, ..job.clone() }.trace().len();
    let path = folder.join("large.json");
    std::fs::write(&path, made::Job { steps: (SIZE / ten * 10) as u64 + 10, ..job }.trace()).unwrap();
    let size = path.metadata().unwrap().len();
    (path, size)
}

#[divan::bench(sample_count = 3)]
fn read_200_mb(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let (path, size) = large(folder.path());
    let paths = [path];
    bencher.counter(BytesCount::new(size)).bench_local(|| import(&paths, &Options::default()).unwrap());
}
