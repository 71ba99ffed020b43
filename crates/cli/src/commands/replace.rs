//! `stepcast replace`: layers whose communication cannot be hidden, and the effect of replacing them.

use crate::answer::{Answer, Output, check_plot, write_plot};
use crate::render::answers;
use crate::render::error::in_scenario;
use crate::request::ScenarioFlags;
use crate::signal::busy;
use clap::Args;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::method::never_cancelled;
use stepcast_core::scenario::Document;
use stepcast_report::format::name;
use stepcast_report::plots::lines::Lines;
use stepcast_study::replace::{Refusal, Substitution, replace};

/// Bytes of a file of layers, at most.
const LONGEST: u64 = 16 << 20;

/// Flags of `replace`.
#[derive(Debug, Args)]
pub(crate) struct Replace {
    #[command(flatten)]
    about: ScenarioFlags,

    /// First layer to replace [default: the first fully connected layer]
    #[arg(long, value_name = "LAYER")]
    from: Option<String>,

    /// New layers (TOML) [default: 1×1 convolutions and global average pooling]
    #[arg(long, value_name = "FILE.toml")]
    with: Option<PathBuf>,

    /// Plot the scaling factor over workers, before and after, to this file
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
}

impl Replace {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        check_plot(self.plot.as_deref())?;
        let request = self.about.request_with(self.about.edits()?)?;
        let scenario = request.scenario()?;
        let layers = self.with.as_deref().map(document).transpose()?;
        let in_layers = |fault| in_scenario(fault, |_| None);
        let with = layers.as_ref().map(Document::layers).transpose().map_err(in_layers)?;
        let substitution = Substitution {
            from: self.from.clone(),
            with,
            // A single number is the cluster's; the table then has the usual numbers.
            workers: self
                .about
                .workers
                .as_ref()
                .map(|list| list.numbers.clone())
                .filter(|list| list.len() > 1),
        };
        let report = busy("replacing layers", || replace(&scenario, substitution, &never_cancelled));
        let report = report.map_err(|refusal| match (refusal, &layers) {
            (Refusal::Scenario(why), _) => request.refused(why),
            (Refusal::Layers(fault), Some(layers)) => in_layers(layers.located(fault, &[])),
            (Refusal::Cut(fault) | Refusal::Layers(fault), _) => match &self.from {
                Some(layer) => fault.at(format!("--from {layer}")),
                None => fault.at(self.about.place()),
            },
        })?;
        let note = write_plot(self.plot.as_deref(), &output.screen, || {
            Lines::from_replacement(&report, &name(scenario.name())).svg()
        })?;
        output.answer(&report, |screen| answers::replacement(&scenario, &report, screen) + &note)
    }
}

fn document(path: &Path) -> Result<Document, Fault> {
    let name = path.display().to_string();
    let remedy = "check the path; the file must have a list `layers = [{ op = \"conv2d\", … }]`";
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    let reason = match read {
        Ok(_) if text.len() as u64 <= LONGEST => return Ok(Document::new(name, text)),
        Ok(_) => format!("the layers take more than {} MiB", LONGEST >> 20),
        Err(error) => format!("cannot read the layers: {error}"),
    };
    Err(Fault::new(reason, remedy).at(name))
}
