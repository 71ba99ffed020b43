//! `stepcast check`: a running job against its forecast.

use super::json;
use super::request::Request;
use crate::Answer;
use crate::args::Check;
use crate::render::answers;
use crate::render::screen::Screen;
use std::io::{self, Read};
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_study::check::read_steps;
use stepcast_trace::write_text;

/// Bytes of a log that are read.
const LONGEST_LOG: u64 = 64 << 20;

pub(super) fn run(flags: &Check, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let readings = read_steps(&flags.measured.display().to_string(), &text(&flags.measured)?)?;
    let request = Request::simulated(&flags.about, &flags.simulation)?;
    let prepared = request.prepare(&flags.method)?;
    let checked = request.check(&prepared, &readings, flags.steps_left)?;
    if let Some(path) = &flags.keep {
        let table = format!("step-time\n{} s\n", checked.measured.get());
        write_text(path, &table).map_err(|error| {
            Fault::new(error.reason, error.remedy).at(format!("--keep {}", path.display()))
        })?;
    }
    match as_json {
        true => json(&checked),
        false => Ok(answers::check(&prepared.scenario, &checked, screen).into()),
    }
}

fn text(path: &Path) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().take(LONGEST_LOG + 1).read_to_end(&mut bytes),
        _ => std::fs::File::open(path).and_then(|file| file.take(LONGEST_LOG + 1).read_to_end(&mut bytes)),
    };
    match read {
        Ok(_) if bytes.len() as u64 > LONGEST_LOG => {
            let reason = format!("it is larger than {} MiB", LONGEST_LOG >> 20);
            let remedy = "give its end: `tail -c 60M train.log | stepcast check --measured -`";
            Err(Fault::in_file(path.display().to_string(), reason, remedy))
        }
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            let reason = format!("cannot read the measured steps: {error}");
            Err(Fault::in_file(path.display().to_string(), reason, "check the path"))
        }
    }
}
