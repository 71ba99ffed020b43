//! `stepcast sweep`: predictions for every combination of values, in order, into a file or to standard output.

use super::request::{Request, method_choice};
use super::{plot, signal, unexpected};
use crate::args::Sweep;
use crate::render::answers;
use crate::render::screen::Screen;
use crate::{Answer, End};
use indicatif::{ProgressBar, ProgressStyle};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_report::format::{count, duration, name};
use stepcast_report::plots::varied::{MOST_ACROSS, MOST_CELLS, Swept};
use stepcast_report::tables::FirstRows;
use stepcast_study::explore::sweep::{
    Agreement, Axis, Format, Output, SweepRow, Variants, estimate, on_threads, rows,
};

/// More points than this need a limit.
const MOST_POINTS: u128 = 10_000_000;

/// More rows than this need a file.
const MOST_PRINTED: u64 = 1_000_000;

/// What would take longer needs a limit.
const LONGEST: Duration = Duration::from_secs(600);

pub(super) fn run(flags: &Sweep, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let format = flags.output.as_deref().map(format).transpose()?;
    let axes = axes(&flags.vary)?;
    let mut drawn = flags.plot.as_deref().map(|path| drawable(path, &axes)).transpose()?;
    let request = Request::of(&flags.about)?;
    let variants = request.variants(axes, "--vary")?;
    let agreement = Agreement::of(&variants, method_choice(&flags.method)?);
    signal::listen(match flags.output {
        Some(_) => "Stopped; the rows so far are kept, and --resume continues there.",
        None => "Stopped.",
    });
    let points = on_threads(flags.threads, || limited(flags, &variants, &agreement))?;
    let bar = progress(points);
    let mut answer = on_threads(flags.threads, || match (&flags.output, format) {
        (Some(path), Some(format)) => {
            let output = Output::open(path, format, &variants, &agreement, (flags.resume, flags.force))
                .map_err(|error| {
                    Fault::new(error.reason, error.remedy).at(format!("-o {}", path.display()))
                })?;
            into_file(&variants, &agreement, points, output, &bar, &mut drawn, (as_json, screen))
        }
        _ => onto_screen(&variants, &agreement, points, &bar, &mut drawn, (as_json, screen)),
    })?;
    if let (Some(path), Some(drawn)) = (&flags.plot, drawn) {
        plot::write(path, &drawn.svg(&name(variants.first().name())))?;
        if !as_json {
            answer.text += &plot::note(path, screen);
        }
    }
    Ok(answer)
}

/// The data of a plot over these axes, if it can be drawn.
fn drawable(path: &Path, axes: &[Axis]) -> Result<Swept, Fault> {
    plot::check(path)?;
    Swept::new(axes).ok_or_else(|| {
        let reason = format!(
            "a plot shows one key with at most {} values or two with at most {} each",
            count(MOST_ACROSS),
            count(MOST_CELLS)
        );
        let remedy = "vary one or two keys, with fewer values such as 1..512:x2, or leave --plot out";
        Fault::new(reason, remedy).at(format!("--plot {}", path.display()))
    })
}

/// The axes that `--vary` names.
pub(super) fn axes(vary: &[String]) -> Result<Vec<Axis>, Fault> {
    let axis = |text: &String| {
        let wrong = |fault: stepcast_core::fault::Fault| {
            Fault::new(fault.reason, fault.remedy).at(format!("--vary {text}"))
        };
        Axis::parse(text).map_err(wrong)
    };
    vary.iter().map(axis).collect()
}

/// The format that a file name implies.
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

/// How many points there are to predict.
fn limited(flags: &Sweep, variants: &Variants<'_>, agreement: &Agreement) -> Result<u64, Fault> {
    let all = variants.grid().points();
    if let Some(limit) = flags.limit {
        return Ok(u64::try_from(all).map_or(limit, |all| all.min(limit)));
    }
    let long = estimate(variants, agreement, all, &signal::wanted).unwrap_or_default();
    if all > MOST_POINTS || long > LONGEST {
        let number = u64::try_from(all).map_or_else(|_| format!("{:.1e}", all as f64), count);
        let time = duration(Seconds::new(long.as_secs_f64()));
        let reason = format!("the sweep has {number} points, which would take about {time}");
        let affordable = LONGEST.as_secs_f64() / long.as_secs_f64() * all as f64;
        let most = (affordable as u128).clamp(1, MOST_POINTS).min(all);
        let remedy = format!("vary fewer values, or add --limit {most} for only the first of them");
        return Err(Fault::new(reason, remedy).at("--vary"));
    }
    if flags.output.is_none() && all > u128::from(MOST_PRINTED) {
        let reason = format!("{} rows are too many for the screen", count(all as u64));
        return Err(Fault::new(reason, "write them to a file: -o sweep.csv").at("--vary"));
    }
    Ok(all as u64)
}

fn into_file(
    variants: &Variants<'_>,
    agreement: &Agreement,
    points: u64,
    output: Output,
    bar: &ProgressBar,
    drawn: &mut Option<Swept>,
    (as_json, screen): (bool, &Screen),
) -> Result<Answer, Fault> {
    let begun = output.rows();
    let mut failed: Option<io::Error> = None;
    bar.set_position(begun);
    bar.reset_eta();
    let each = |row: SweepRow| (output.format.line(variants, &row), row);
    let mut writer = output.writer;
    let ended = rows(variants, agreement, begun..points.max(begun), &signal::wanted, each, |rows| {
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
        signal::wanted()
    });
    bar.finish_and_clear();
    if let Some(error) = failed {
        let remedy = "free disk space; the rows so far are kept, and --resume continues there";
        let place = format!("-o {}", output.path.display());
        return Err(Fault::new(format!("cannot write: {error}"), remedy).at(place));
    }
    let written = answers::Written {
        path: &output.path,
        begun,
        rows: writer.rows,
        points,
        methods: agreement.methods(),
    };
    let end = if ended.is_break() && writer.rows < points { End::Interrupted } else { End::Done };
    let text = if as_json { written.json().map_err(unexpected)? } else { written.render(screen) };
    Ok(Answer { text, end })
}

fn onto_screen(
    variants: &Variants<'_>,
    agreement: &Agreement,
    points: u64,
    bar: &ProgressBar,
    drawn: &mut Option<Swept>,
    (as_json, screen): (bool, &Screen),
) -> Result<Answer, Fault> {
    let mut lines = Vec::new();
    let mut failed = None;
    let mut shown = FirstRows::new(points);
    let each = |row: SweepRow| (as_json.then(|| Format::JsonLines.line(variants, &row)), row);
    let ended = rows(variants, agreement, 0..points, &signal::wanted, each, |rows| {
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
        signal::wanted()
    });
    bar.finish_and_clear();
    if let Some(error) = failed {
        return Err(unexpected(error));
    }
    let end = if ended.is_break() { End::Interrupted } else { End::Done };
    let text = if as_json {
        String::from_utf8(lines).map_err(unexpected)?
    } else {
        answers::sweep(&shown, variants, agreement, screen)
    };
    Ok(Answer { text, end })
}
