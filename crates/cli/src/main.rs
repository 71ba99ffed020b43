//! The command line of Stepcast: reads the flags, runs one command, writes one answer or one error.
//!
//! A command returns its whole answer as text and never prints by itself, so that a closed pipe and a failed
//! write are handled in one place. Exit codes: 0 done, 1 a validation bound was missed, 2 bad input, 130 interrupted.

mod args;
mod commands;
mod render;
mod words;

use clap::Parser;
use render::screen::Screen;
use std::io::{self, Write};
use std::process::ExitCode;
use stepcast_core::fault::Fault;

/// The answer of a command.
struct Answer {
    /// For standard output, its last line ended.
    text: String,
    /// How the command ended.
    end: End,
}

/// How a command ended, if not in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With a whole answer.
    Done,
    /// A validation bound was missed.
    BoundMissed,
    /// By Ctrl-C, with the results until then.
    Interrupted,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        match end {
            End::Done => Self::SUCCESS,
            End::BoundMissed => 1.into(),
            // 128 plus the number of SIGINT, as shells do.
            End::Interrupted => 130.into(),
        }
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, end: End::Done }
    }
}

const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are printed here too. A closed pipe is no error.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT).into();
        }
    };
    let screen = Screen::of_stdout();
    match commands::run(&cli, &screen).and_then(|answer| write(&answer).map(|()| answer.end)) {
        Ok(end) => end.into(),
        Err(error) => {
            let text = render::error::render(&error, &Screen::of_stderr());
            let _ = io::stderr().lock().write_all(text.as_bytes());
            BAD_INPUT.into()
        }
    }
}

/// Writes the answer; a pipe that is closed early (`| head`) is no error.
fn write(answer: &Answer) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(answer.text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let remedy = "free disk space, or write elsewhere";
            Err(Fault::new(format!("cannot write the answer: {error}"), remedy).into())
        }
        _ => Ok(()),
    }
}
