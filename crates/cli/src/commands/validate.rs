//! `stepcast validate`: published figures are recomputed, measured runs are predicted, bounds are checked.

use crate::answer::{Answer, End, Output, check_plot, write_plot};
use crate::render::{Screen, table};
use crate::signal;
use crate::words::WORDING;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_report::table::Table;
use stepcast_validation::overview::{self, Overview};
use stepcast_validation::{
    Observer, Options, Progress, Report, Section, ValidationError, find, predicted_measured,
};

/// Folder of the measurements that are not in the binary, unless `--data` names another one.
const DATA: &str = "validation";

/// Flags of `validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Set of validation data [default: all sets in one table]
    set: Option<String>,

    /// Measured runs: a folder for tf-ps, a file for ddp-gloo, parallel-jobs and steps, the folder of all data for all
    /// sets [default: validation]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Also write the table of all sets as Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    markdown: Option<PathBuf>,

    /// Also write the residuals of all methods by regime, from which intervals are made
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    errors: Option<PathBuf>,

    /// Plot predictions against measurements to this file
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,

    /// For tf-ps: also predict each configuration with parameters chosen on the others
    #[arg(long, requires_all = ["set", "data"])]
    held_out: bool,

    /// For steps: fitted matrix products, for layers that consist of them
    #[arg(long, requires = "data", value_name = "GEMM.toml")]
    gemm: Option<PathBuf>,
}

impl Validate {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        check_plot(self.plot.as_deref())?;
        let Some(name) = self.set.as_deref() else { return self.all(output) };
        let set = find(name)?;
        let options =
            Options { data: self.data.as_deref(), held_out: self.held_out, gemm: self.gemm.as_deref() };
        let report = match with_progress(|observer| set.run(&options, observer)) {
            Err(ValidationError::Cancelled) => return Ok(signal::stopped(STOPPED)),
            outcome => outcome.map_err(failed)?,
        };
        let note = self.draw(report.plot(), &output.screen)?;
        let answer = output.answer(&report, |screen| render(&report, screen) + &note)?;
        Ok(Answer { end: end(report.holds), ..answer })
    }

    /// Every set whose data are available, in one table.
    fn all(&self, output: &Output) -> Result<Answer, Fault> {
        let folder = self.data.as_deref().unwrap_or(Path::new(DATA));
        let overview = match with_progress(|observer| overview::run(folder, observer)) {
            Err(ValidationError::Cancelled) => return Ok(signal::stopped(STOPPED)),
            outcome => outcome.map_err(failed)?,
        };
        if let Some(path) = &self.markdown {
            write(path, "--markdown", &overview.markdown())?;
        }
        if let Some(path) = &self.errors {
            write(path, "--errors", &overview.errors_csv().map_err(failed)?)?;
        }
        let drawing = (!overview.cases.is_empty()).then(|| predicted_measured(&overview.cases).svg());
        let note = self.draw(drawing, &output.screen)?;
        let answer = output.answer(&overview, |screen| render_overview(&overview, screen) + &note)?;
        Ok(Answer { end: end(overview.holds()), ..answer })
    }

    /// Draws the runs if `--plot` is given; returns a note about the file.
    fn draw(&self, drawing: Option<String>, screen: &Screen) -> Result<String, Fault> {
        let Some(path) = &self.plot else { return Ok(String::new()) };
        let svg = drawing.ok_or_else(|| {
            let reason = "this set has no measurements to plot";
            Fault::new(reason, "draw another set, or leave --plot out")
                .at(format!("--plot {}", path.display()))
        })?;
        write_plot(Some(path), screen, || svg)
    }
}

fn failed(error: ValidationError) -> Fault {
    match error {
        ValidationError::Fault(fault) if fault.key == KeyPath::root() => fault,
        error => Fault::new(format!("the validation could not run: {error}"), ""),
    }
}

fn end(holds: bool) -> End {
    if holds { End::Done } else { End::BoundMissed }
}

fn write(path: &Path, flag: &str, text: &str) -> Result<(), Fault> {
    signal::whole(|| stepcast_trace::write_text(path, text))
        .map_err(|fault| fault.at(format!("{flag} {}", path.display())))
}

/// Shows how many points of the longest set are done.
fn with_progress<T>(run: impl FnOnce(&Observer<'_>) -> T) -> T {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{pos} of {len} points {wide_bar} {eta} left") {
        bar.set_style(style);
    }
    signal::listen(STOPPED);
    let outcome = run(&|progress| {
        if let Progress::Points { done, of } = progress {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
        signal::check()
    });
    bar.finish_and_clear();
    outcome
}

/// Message if Ctrl-C comes before all points are done.
const STOPPED: &str = "Stopped before the validation was done; nothing was written.";

/// A report, its last line ended.
fn render(report: &Report, screen: &Screen) -> String {
    let title = screen.strong(&format!("{}: {}", report.set, report.verdict));
    let mut parts = vec![format!("{title}\n{}", screen.paragraph(0, &report.about))];
    for section in &report.sections {
        parts.push(match section {
            Section::Text { title, paragraphs } => {
                let paragraphs = paragraphs.iter().map(|text| screen.paragraph(2, text));
                heading(title, screen) + &paragraphs.collect::<String>()
            }
            Section::Table(table) => with_title_and_note(table, screen),
        });
    }
    parts.join("\n")
}

/// All sets in one table, its last line ended.
fn render_overview(overview: &Overview, screen: &Screen) -> String {
    let verdict = if overview.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("validation: {verdict}"));
    format!("{title}\n\n{}", with_title_and_note(&overview.table(), screen))
}

fn heading(title: &str, screen: &Screen) -> String {
    if title.is_empty() { String::new() } else { screen.title(screen.paragraph(0, title).trim_end()) + "\n" }
}

fn with_title_and_note(table: &Table, screen: &Screen) -> String {
    let mut text = heading(&table.title, screen);
    for line in table::render(table, screen).lines() {
        text += &verdict_painted(line, screen);
        text.push('\n');
    }
    let note = table.worded_note(WORDING);
    if !note.is_empty() {
        text.push('\n');
        text += &screen.paragraph(2, &note);
    }
    text
}

/// Verdicts stand at the end of a row.
fn verdict_painted(line: &str, screen: &Screen) -> String {
    let verdicts = [("  ok", screen.good("ok")), ("  MISSED", screen.bad("MISSED"))];
    let painted =
        verdicts.iter().find_map(|(word, painted)| Some(format!("{}  {painted}", line.strip_suffix(word)?)));
    painted.unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_report::table::Column;

    fn bounds(verdicts: [&str; 2]) -> Table {
        let mut table = Table::new("Bounds", [Column::numbers("found"), Column::names("")]);
        for verdict in verdicts {
            table.row(["5 %".to_owned(), verdict.to_owned()]);
        }
        table
    }

    #[test]
    fn a_missed_bound_is_seen() {
        let table = bounds(["ok", "MISSED"]);
        let plain = with_title_and_note(&table, &Screen { width: 100, colours: false, terminal: false });
        assert!(plain.contains("5 %  ok\n") && plain.ends_with("5 %  MISSED\n"), "{plain}");
        let coloured = with_title_and_note(&table, &Screen { width: 100, colours: true, terminal: true });
        assert!(coloured.contains("\u{1b}[33mMISSED\u{1b}[0m\n"), "{coloured:?}");
    }
}
