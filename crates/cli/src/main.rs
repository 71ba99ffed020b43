//! The command line of Stepcast: reads the flags, runs one command, writes one answer or one error.
//!
//! A command returns its whole answer as text and never prints by itself, so that a closed pipe and a failed
//! write are handled in one place. Exit codes: 0 done, 1 a validation bound was missed, 2 bad input, 130 interrupted.

mod answer;
mod commands;
mod numbers;
mod render;
mod request;
mod signal;

use answer::{Answer, Output};
use clap::Parser;
use render::Screen;
use std::io::{self, Write};
use std::process::ExitCode;
use stepcast_core::fault::Fault;

const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let cli = match commands::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are printed here too. A closed pipe is no error.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT).into();
        }
    };
    let output = Output { json: cli.json, screen: Screen::of_stdout() };
    match cli.command.run(&output).and_then(|answer| write(&answer).map(|()| answer.end)) {
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
