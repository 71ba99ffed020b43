//! The commands from outside, one module for each subject: a single program links faster than many.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stand outside of them, and say what they skipped"
)]

mod architecture;
mod behaviour;
mod broken;
mod check;
mod examples;
mod fitted_device;
mod imports;
mod mutations;
mod profiles;
mod serving;
mod sweep;

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Simulations that are long enough to be one.
const QUICK: [&str; 6] = [
    "--set",
    "methods.simulate.runs=2",
    "--set",
    "methods.simulate.steps=20",
    "--set",
    "methods.simulate.warm-up=2",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(name: &str) -> String {
    root().join("examples").join(name).to_str().unwrap().to_owned()
}

fn process(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepcast"));
    command.args(arguments);
    command
}

/// What a process prints that reads `input`.
fn fed(command: &mut Command, input: impl AsRef<[u8]>) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.as_ref());
    std::thread::scope(|scope| {
        // A process that does not read to the end closes the pipe.
        scope.spawn(move || stdin.write_all(input).is_ok());
        child.wait_with_output().unwrap()
    })
}

/// The answer of a process, which says nothing else.
fn done(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// The answer of a process as JSON.
fn json_of(arguments: &[&str], input: impl AsRef<[u8]>) -> Value {
    serde_json::from_str(&done(fed(process(arguments).arg("--json"), input))).unwrap()
}

/// The answer of a command in this process, which says nothing else.
fn answer(arguments: &[&str]) -> String {
    let printed = stepcast_cli::run(arguments);
    assert_eq!((printed.code, &*printed.stderr), (0, ""), "{arguments:?}");
    printed.stdout
}

/// The answer of a command in this process, as JSON.
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).unwrap()
}

/// The one error of a command in this process.
fn refused(arguments: &[&str]) -> String {
    let printed = stepcast_cli::run(arguments);
    one_error(Some(i32::from(printed.code)), &printed.stdout, &printed.stderr);
    printed.stderr
}

fn refused_by(output: Output) -> String {
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    one_error(output.status.code(), &stdout, &stderr);
    stderr
}

fn one_error(code: Option<i32>, stdout: &str, stderr: &str) {
    assert_eq!((code, stdout), (Some(2), ""), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error")).count(), 1, "{stderr}");
    assert!(stderr.len() < 4000, "a message of {} bytes", stderr.len());
}
