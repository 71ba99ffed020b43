//! `stepcast replace`: layers whose communication cannot be hidden, and the effect of replacing them.

use super::busy::busy;
use super::json;
use super::request::Request;
use crate::Answer;
use crate::args::Replace;
use crate::render::answers;
use crate::render::error::in_scenario;
use crate::render::screen::Screen;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::method::never_cancelled;
use stepcast_core::scenario::Document;
use stepcast_study::replace::{Refusal, Substitution, replace};
use stepcast_study::request::QUICK_START_NAME;

/// Bytes of a file of layers, at most.
const LONGEST: u64 = 16 << 20;

pub(super) fn run(flags: &Replace, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let request = Request::of(&flags.about)?;
    let scenario = request.scenario()?;
    let layers = flags.with.as_deref().map(document).transpose()?;
    let with = layers.as_ref().map(Document::layers).transpose();
    let with = with.map_err(|error| in_scenario(error, &[]))?;
    let substitution = Substitution { from: flags.from.clone(), with };
    let report = busy("replacing layers", || replace(&scenario, substitution, &never_cancelled));
    let report = report.map_err(|refusal| match (refusal, &layers) {
        (Refusal::Scenario(why), _) => request.refused(why),
        (Refusal::Layers(fault), Some(layers)) => in_scenario(layers.located(fault, &[]), &[]),
        (Refusal::Cut(fault) | Refusal::Layers(fault), _) => {
            let complaint = fault;
            match &flags.from {
                Some(layer) => complaint.at(format!("--from {layer}")),
                None => complaint.at(flags.about.scenario.as_deref().unwrap_or(QUICK_START_NAME)),
            }
        }
    })?;
    if as_json {
        return json(&report);
    }
    Ok(answers::replacement(&scenario, &report, screen).into())
}

/// The file with new layers.
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
