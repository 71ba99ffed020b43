//! `stepcast report`: a forecast as one self-contained HTML file.

use super::request::Request;
use super::{json, unexpected};
use crate::Answer;
use crate::args::Report;
use crate::render::screen::Screen;
use serde::Serialize;
use stepcast_core::fault::Fault;
use stepcast_report::page;
use stepcast_study::{Extent, Prepared};
use stepcast_trace::write_text;

/// The file that was written, for programs.
#[derive(Serialize)]
struct Written {
    written: String,
    bytes: usize,
}

pub(super) fn run(flags: &Report, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let place = || format!("-o {}", flags.output.display());
    if flags.output.extension().is_none_or(|extension| extension != "html") {
        let reason = "a report is an HTML file, and its name ends in .html";
        return Err(Fault::new(reason, "use a name such as report.html").at(place()));
    }
    let request = Request::simulated(&flags.about, &flags.simulation)?;
    let mut prepared = request.prepare(&flags.method)?;
    flags.calibrate.as_deref().map(|path| request.calibrate(&mut prepared, path)).transpose()?;
    let Prepared { scenario, method } = &prepared;
    let forecast = request.forecast(&prepared, &Extent::default())?;
    let inputs = toml::to_string(&forecast.scenario).map_err(unexpected)?;
    let html = page::document(scenario, *method, &forecast, inputs, &command(flags)).map_err(unexpected)?;
    write_text(&flags.output, &html).map_err(|error| {
        Fault::new(format!("cannot write the report: {}", error.reason), error.remedy).at(place())
    })?;
    let path = flags.output.display().to_string();
    if as_json {
        return json(&Written { written: path, bytes: html.len() });
    }
    Ok(screen.paragraph(0, &format!("Written to {}.", stepcast_report::format::name(&path))).into())
}

/// The command that was given, for a shell.
fn command(flags: &Report) -> String {
    let mut words = vec!["stepcast".to_owned(), "report".to_owned()];
    words.extend(flags.about.scenario.as_deref().map(quoted));
    if let (None, Some(model)) = (&flags.about.scenario, &flags.about.model) {
        words.extend(["--model".to_owned(), quoted(model)]);
    }
    for change in &flags.simulation.changes(&flags.about) {
        words.extend(["--set".to_owned(), quoted(change)]);
    }
    if flags.method != "auto" {
        words.extend(["--method".to_owned(), quoted(&flags.method)]);
    }
    words.extend(["-o".to_owned(), quoted(&flags.output.display().to_string())]);
    words.join(" ")
}

/// An argument, quoted for a shell where that is needed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_arguments() {
        assert_eq!(quoted("job.toml"), "job.toml");
        assert_eq!(
            quoted("cluster.network.bandwidth=\"1 Gbit/s\""),
            "'cluster.network.bandwidth=\"1 Gbit/s\"'"
        );
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
