//! Answers of commands, and their output: as JSON, as text for a screen, as an SVG file.

use crate::render::Screen;
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_report::format::name;
use stepcast_trace::write_text;

pub(crate) struct Answer {
    /// Text for standard output; its last line is ended.
    pub(crate) text: String,
    pub(crate) end: End,
}

/// How a command ended, if not in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    BoundMissed,
    /// By Ctrl-C, with the results until then.
    Interrupted,
}

impl End {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::BoundMissed => 1,
            // 128 plus the number of SIGINT, as shells do.
            Self::Interrupted => 130,
        }
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, end: End::Done }
    }
}

pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) screen: Screen,
}

impl Output {
    /// A value as JSON, or as the text that `render` makes.
    pub(crate) fn answer(
        &self,
        value: &impl Serialize,
        render: impl FnOnce(&Screen) -> String,
    ) -> Result<Answer, Fault> {
        match self.json {
            true => stepcast_report::json::pretty(value).map(Answer::from).map_err(unexpected),
            false => Ok(render(&self.screen).into()),
        }
    }
}

/// The fault of an internal error, which no input can cause.
pub(crate) fn unexpected(error: impl Display) -> Fault {
    Fault::new(error.to_string(), "")
}

pub(crate) fn is_drawing(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "svg")
}

/// Refuses a `--plot` whose name is not that of an SVG file, before anything is computed.
pub(crate) fn check_plot(path: Option<&Path>) -> Result<(), Fault> {
    match path.filter(|path| !is_drawing(path)) {
        None => Ok(()),
        Some(path) => {
            let reason = "a plot is an SVG file, and its name ends in .svg";
            Err(Fault::new(reason, "use a name such as plot.svg").at(format!("--plot {}", path.display())))
        }
    }
}

/// Writes the file of `--plot`, whole or not at all, and returns a note about it; nothing without the flag.
pub(crate) fn write_plot(
    path: Option<&Path>,
    screen: &Screen,
    draw: impl FnOnce() -> String,
) -> Result<String, Fault> {
    let Some(path) = path else { return Ok(String::new()) };
    write_text(path, &draw()).map_err(|error| {
        let reason = format!("cannot write the plot: {}", error.reason);
        Fault::new(reason, error.remedy).at(format!("--plot {}", path.display()))
    })?;
    let note = format!("Plot written to {}.", name(&path.display().to_string()));
    Ok(format!("\n{}", screen.paragraph(0, &note)))
}
