//! `stepcast import`: imports recordings as a profile or a model, or prints an overview of their contents.

use crate::answer::{Answer, Output};
use crate::numbers::{memory, size};
use crate::render::answers;
use clap::{Args, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_fit::streams;
use stepcast_trace::{Options, Progress, is_profile, is_scenario, usual_name};

/// Least size of files for which a progress bar is useful.
const LARGE: u64 = 20_000_000;

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Recordings: a file, a folder or an archive (.tar, .tar.gz, .tar.xz); several for several ranks of one job.
    /// The format is detected from the content
    #[arg(required = true, value_name = "FILE")]
    traces: Vec<PathBuf>,

    /// For TensorFlow: recording with the partition graphs [default: the first step that has them]
    #[arg(long, value_name = "FILE")]
    graphs: Option<PathBuf>,

    /// Samples of one step, if the recording does not contain it
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    batch: Option<u32>,

    /// For ONNX: size of a dimension that the model leaves open, such as the length of sequences; may be repeated
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    sizes: Vec<(String, u64)>,

    /// Name of what was trained [default: the name of the folder or file]
    #[arg(long)]
    name: Option<String>,

    /// File to write: a profile (.json, .json.gz), or for a model a scenario (.toml)
    #[arg(short, long, value_name = "PROFILE.json", required_unless_present = "summary")]
    output: Option<PathBuf>,

    /// Most memory to use, such as "2 GiB" [default: 512 MiB, or eight times the size of the files]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    max_memory: Option<u64>,

    /// Only show the contents; write nothing
    #[arg(long, conflicts_with = "output")]
    summary: bool,
}

impl Import {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        if let Some(output) = &self.output {
            check_name(output)?;
        }
        let bar = Bar::new(&self.traces);
        let options = Options {
            batch: self.batch,
            graphs: self.graphs.as_deref(),
            sizes: &self.sizes.iter().cloned().collect(),
            watch: &|progress| {
                bar.show(progress);
                ControlFlow::Continue(())
            },
            max_memory: self.max_memory,
        };
        let mut imported = stepcast_trace::import(&self.traces, &options)?;
        bar.bar.finish_and_clear();
        streams::measure_link(&mut imported);
        let name = self.name.clone().or_else(|| self.traces.first().and_then(|trace| usual_name(trace)));
        if let Some(name) = name {
            imported.content.rename(name);
        }
        if let Some(output) = &self.output {
            let place = format!("-o {}", output.display());
            imported.content.write(output).map_err(|fault| fault.at(place))?;
        }
        let written = self.output.as_ref().map(|path| path.display().to_string());
        let overview = streams::overview(&imported, written);
        output.answer(&overview, |screen| answers::import(&overview, screen))
    }
}

/// Refuses an output name without a known format, before a large file is read.
fn check_name(output: &Path) -> Result<(), Fault> {
    if is_profile(output) || is_scenario(output) {
        return Ok(());
    }
    let reason = "the name of a profile ends in .json or .json.gz, that of a scenario with a model in .toml";
    Err(Fault::new(reason, "use a name such as profile.json").at(format!("-o {}", output.display())))
}

/// Progress of an import, on standard error if that is a terminal.
struct Bar {
    bar: ProgressBar,
    /// Bytes of all files.
    size: u64,
    /// Bytes of files that have been read, and the last news of the one being read.
    done: Cell<u64>,
    last: Cell<u64>,
}

impl Bar {
    fn new(files: &[PathBuf]) -> Self {
        let size: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum();
        let bar = if size < LARGE { ProgressBar::hidden() } else { ProgressBar::new(size) };
        if let Ok(style) = ProgressStyle::with_template("  {bar:40} {bytes} of {total_bytes}, {eta} left") {
            bar.set_style(style);
        }
        Self { bar, size, done: Cell::new(0), last: Cell::new(0) }
    }

    fn show(&self, progress: Progress) {
        if progress.read < self.last.get() {
            self.done.set(self.done.get() + self.last.get());
        }
        self.last.set(progress.read);
        let position = self.done.get() + progress.read;
        if position > self.size {
            // Large recordings are read twice.
            self.bar.set_length(2 * self.size);
        }
        self.bar.set_position(position);
    }
}
