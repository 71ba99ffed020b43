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
mod words;

use answer::{Answer, Output};
use clap::Parser;
use commands::Cli;
use render::Screen;
use std::ffi::OsString;
use std::io::{self, Write};
use stepcast_core::fault::Fault;
use stepcast_core::scenario::Scenario;
use stepcast_study::Forecast;

const BAD_INPUT: u8 = 2;

/// Runs the command of a program's arguments, prints its answer or its error, and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are printed here too. A closed pipe is no error.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT);
        }
    };
    let output = Output { json: cli.json, screen: Screen::stdout() };
    match cli.command.run(&output).and_then(|answer| write(&answer).map(|()| answer.end)) {
        Ok(end) => end.code(),
        Err(fault) => {
            let text = render::error::render(&fault, &Screen::stderr());
            let _ = io::stderr().lock().write_all(text.as_bytes());
            BAD_INPUT
        }
    }
}

/// Output of a command, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

/// Runs a command in this process, as if no terminal were attached. What is printed before the answer is there (the
/// address of a server, the note that Ctrl-C ended a command) still goes to the real streams.
pub fn run(arguments: &[&str]) -> Printed {
    let printed = |stdout, stderr, code| Printed { stdout, stderr, code };
    let cli = match Cli::try_parse_from(["stepcast"].iter().chain(arguments)) {
        Ok(cli) => cli,
        Err(error) => {
            let (text, code) = (error.to_string(), u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT));
            return if error.use_stderr() {
                printed(String::new(), text, code)
            } else {
                printed(text, String::new(), code)
            };
        }
    };
    match cli.command.run(&Output { json: cli.json, screen: Screen::FILE }) {
        Ok(answer) => printed(answer.text, String::new(), answer.end.code()),
        Err(fault) => printed(String::new(), render::error::render(&fault, &Screen::FILE), BAD_INPUT),
    }
}

/// A forecast as `stepcast predict` prints it.
pub fn forecast_text(scenario: &Scenario, forecast: &Forecast) -> String {
    render::answers::brief(scenario, forecast, "", false, &Screen::FILE)
}

/// Writes the answer; a pipe that is closed early (`| head`) is no error.
fn write(answer: &Answer) -> Result<(), Fault> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(answer.text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let remedy = "free disk space, or write elsewhere";
            Err(Fault::new(format!("cannot write the answer: {error}"), remedy))
        }
        _ => Ok(()),
    }
}
