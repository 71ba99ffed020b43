//! `stepcast sweep`: predictions for every combination of values, in order, into a file or to standard output.

use crate::answer::{Answer, End, Output, check_plot, unexpected, write_plot};
use crate::render::answers;
use crate::request::{ScenarioFlags, method_choice};
use crate::signal;
use clap::{Args, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_report::format::{count, duration, name, several};
use stepcast_report::plots::varied::{MOST_ACROSS, MOST_CELLS, Swept, SweptFigure};
use stepcast_report::sentences;
use stepcast_report::tables::FirstRows;
use stepcast_study::explore::sweep::{
    self, Agreement, Axis, Format, SweepRow, Variants, estimate, on_threads, rows,
};

/// Most points without `--limit`.
const MOST_POINTS: u128 = 10_000_000;

/// Most rows without a file.
const MOST_PRINTED: u64 = 1_000_000;

/// Longest sweep without `--limit`.
const LONGEST: Duration = Duration::from_secs(600);

/// Flags of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    about: ScenarioFlags,

    /// A key and its values; may be repeated, the last changes fastest
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    vary: Vec<String>,

    /// Method of prediction; auto takes the first that applies, at every point
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,

    /// File for all rows: .csv or .jsonl [default: a table on the screen]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Continue where the file of the same sweep ends
    #[arg(long, requires = "output", conflicts_with = "force")]
    resume: bool,

    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,

    /// Plot to this file: a line over one key, a heat map over two
    #[arg(long, value_name = "OUT.svg", conflicts_with = "resume")]
    plot: Option<PathBuf>,

    /// Figure to plot; `kernels` draws one line per kernel and takes one key
    #[arg(long, value_name = "NAME", default_value = "throughput", requires = "plot", value_parser = SweptFigure::NAMES)]
    figure: String,

    /// Only the first N points
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Sweep {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let format = self.output.as_deref().map(format).transpose()?;
        let axes = axes(&self.vary)?;
        let drawn = self.plot.as_deref().map(|path| drawable(path, &axes, &self.figure)).transpose()?;
        let request = self.about.request()?;
        let variants = request.variants(axes, "--vary")?;
        let agreement = Agreement::of(&variants, method_choice(&self.method)?);
        signal::listen(match self.output {
            Some(_) => "Stopped; the rows so far are kept, and --resume continues there.",
            None => "Stopped.",
        });
        let points = on_threads(self.threads, || self.limited(&variants, &agreement))?;
        let mut run = SweepRun {
            variants: &variants,
            agreement: &agreement,
            points,
            bar: progress(points),
            drawn,
            output,
        };
        let mut answer = on_threads(self.threads, || match (&self.output, format) {
            (Some(path), Some(format)) => {
                let open =
                    sweep::Output::open(path, format, &variants, &agreement, (self.resume, self.force));
                run.write_file(open.map_err(|fault| fault.at(format!("-o {}", path.display())))?)
            }
            _ => run.onto_screen(),
        })?;
        if let Some(drawn) = run.drawn {
            let draw = || drawn.svg(&name(variants.first().name()));
            let note = write_plot(self.plot.as_deref(), &output.screen, draw)?;
            answer.text += if output.json { "" } else { &note };
        }
        Ok(answer)
    }

    fn limited(&self, variants: &Variants<'_>, agreement: &Agreement) -> Result<u64, Fault> {
        let all = variants.grid().points();
        if let Some(limit) = self.limit {
            return Ok(u64::try_from(all).map_or(limit, |all| all.min(limit)));
        }
        let long = estimate(variants, agreement, all, &signal::check).unwrap_or_default();
        if all > MOST_POINTS || long > LONGEST {
            let number = u64::try_from(all).map_or_else(|_| format!("{:.1e}", all as f64), count);
            let time = duration(Seconds::new(long.as_secs_f64()));
            let reason = format!("the sweep has {number} points, which would take about {time}");
            let affordable = LONGEST.as_secs_f64() / long.as_secs_f64() * all as f64;
            let most = (affordable as u128).clamp(1, MOST_POINTS).min(all);
            let remedy = format!("vary fewer values, or add --limit {most} for only the first of them");
            return Err(Fault::new(reason, remedy).at("--vary"));
        }
        if self.output.is_none() && all > u128::from(MOST_PRINTED) {
            let reason = format!("{} rows are too many for the screen", count(all as u64));
            return Err(Fault::new(reason, "write them to a file: -o sweep.csv").at("--vary"));
        }
        Ok(all as u64)
    }
}

struct SweepRun<'a> {
    variants: &'a Variants<'a>,
    agreement: &'a Agreement,
    points: u64,
    bar: ProgressBar,
    drawn: Option<Swept>,
    output: &'a Output,
}

impl SweepRun<'_> {
    fn write_file(&mut self, file: sweep::Output) -> Result<Answer, Fault> {
        let Self { variants, agreement, points, ref bar, ref mut drawn, output } = *self;
        let begun = file.rows();
        let mut failed: Option<io::Error> = None;
        bar.set_position(begun);
        bar.reset_eta();
        let each = |row: SweepRow| (file.format.line(variants, &row), row);
        let mut writer = file.writer;
        let ended = rows(variants, agreement, begun..points.max(begun), &signal::check, each, |rows| {
            if let Some(drawn) = drawn {
                rows.iter().for_each(|(_, row)| drawn.see(row));
            }
            let lines: io::Result<Vec<Vec<u8>>> = rows.into_iter().map(|(line, _)| line).collect();
            let appended =
                lines.and_then(|lines| signal::whole(|| writer.append(&lines.concat(), lines.len() as u64)));
            if let Err(error) = appended {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            bar.set_position(writer.rows);
            signal::check()
        });
        bar.finish_and_clear();
        if let Some(error) = failed {
            let remedy = "free disk space; the rows so far are kept, and --resume continues there";
            let place = format!("-o {}", file.path.display());
            return Err(Fault::new(format!("cannot write: {error}"), remedy).at(place));
        }
        let (path, rows, methods) = (file.path.display().to_string(), writer.rows, agreement.methods());
        let written = json!({
            "written": path, "resumed_at": begun, "rows": rows, "points": points, "methods": methods,
        });
        let answer = output.answer(&written, |screen| {
            let shown = several(rows, "row");
            let text = match (rows >= points, rows == begun && begun > 0) {
                (true, true) => format!("{path} was complete already: {shown}."),
                (true, false) => format!("{path} has {shown}, one for every point."),
                (false, _) => format!(
                    "Interrupted: {path} has {} of {}. The same command with --resume continues there.",
                    count(rows),
                    several(points, "row"),
                ),
            };
            let mixed = sentences::mixed(methods).map_or(String::new(), |mixed| format!(" {mixed}"));
            screen.paragraph(0, &(text + &mixed))
        })?;
        Ok(Answer {
            end: if ended.is_break() && rows < points { End::Interrupted } else { End::Done },
            ..answer
        })
    }

    fn onto_screen(&mut self) -> Result<Answer, Fault> {
        let Self { variants, agreement, points, ref bar, ref mut drawn, output } = *self;
        let mut lines = Vec::new();
        let mut failed = None;
        let mut shown = FirstRows::new(points);
        let each = |row: SweepRow| (output.json.then(|| Format::JsonLines.line(variants, &row)), row);
        let ended = rows(variants, agreement, 0..points, &signal::check, each, |rows| {
            bar.inc(rows.len() as u64);
            for (line, row) in rows {
                if let Some(drawn) = drawn {
                    drawn.see(&row);
                }
                match line {
                    Some(Ok(line)) => lines.extend_from_slice(&line),
                    Some(Err(error)) => failed = Some(error),
                    None => shown.see(row),
                }
            }
            signal::check()
        });
        bar.finish_and_clear();
        if let Some(error) = failed {
            return Err(unexpected(error));
        }
        let text = if output.json {
            String::from_utf8(lines).map_err(unexpected)?
        } else {
            answers::sweep(&shown, variants, agreement, &output.screen)
        };
        Ok(Answer { text, end: if ended.is_break() { End::Interrupted } else { End::Done } })
    }
}

/// The data of a plot over these axes, if it can be drawn.
fn drawable(path: &Path, axes: &[Axis], figure: &str) -> Result<Swept, Fault> {
    check_plot(Some(path))?;
    Swept::new(axes, SweptFigure::named(figure).unwrap_or_default()).ok_or_else(|| {
        let reason = format!(
            "a plot shows one key with at most {} values or two with at most {} each",
            count(MOST_ACROSS),
            count(MOST_CELLS)
        );
        let remedy = "vary one or two keys, with fewer values such as 1..512:x2, or leave --plot out";
        Fault::new(reason, remedy).at(format!("--plot {}", path.display()))
    })
}

pub(super) fn axes(vary: &[String]) -> Result<Vec<Axis>, Fault> {
    let axis = |text: &String| Axis::parse(text).map_err(|fault| fault.at(format!("--vary {text}")));
    vary.iter().map(axis).collect()
}

fn format(path: &Path) -> Result<Format, Fault> {
    Format::of(path).ok_or_else(|| {
        let remedy = "use a name such as sweep.csv or sweep.jsonl";
        Fault::new("rows are written as .csv or .jsonl", remedy).at(format!("-o {}", path.display()))
    })
}

/// A bar on standard error, if that is a terminal.
pub(super) fn progress(points: u64) -> ProgressBar {
    let bar = ProgressBar::new(points);
    if let Ok(style) = ProgressStyle::with_template("  {bar:40} {human_pos} of {human_len}, {eta} left") {
        bar.set_style(style);
    }
    bar
}
