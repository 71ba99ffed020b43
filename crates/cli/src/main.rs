//! The command line of Stepcast: reads the flags, runs one command, writes one answer or one error.
//!
//! A command returns its whole answer as text and never prints by itself, so that a closed pipe and a failed
//! write are handled in one place. Exit codes: 0 done, 1 a validation bound was missed, 2 bad input.

mod args;
mod commands;
mod render;

use clap::Parser;
use render::Screen;
use render::error::Complaint;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command has to say.
struct Answer {
    /// For standard output, its last line ended.
    text: String,
    /// Whether every bound was kept; always true outside validation.
    holds: bool,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, holds: true }
    }
}

const BOUND_MISSED: u8 = 1;
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. A reader that has gone away is no reason to complain.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT).into();
        }
    };
    let screen = Screen::of_stdout();
    match commands::run(&cli, &screen).and_then(|answer| write(&answer).map(|()| answer.holds)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => BOUND_MISSED.into(),
        Err(error) => {
            let text = render::error::render(&error, &Screen::of_stderr());
            let _ = io::stderr().lock().write_all(text.as_bytes());
            BAD_INPUT.into()
        }
    }
}

/// Writes the answer; a reader that stops reading (`| head`) has all that it wants.
fn write(answer: &Answer) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(answer.text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let remedy = "make room, or write somewhere else";
            Err(Complaint::new(format!("cannot write the answer: {error}"), remedy).into())
        }
        _ => Ok(()),
    }
}
