//! The program `stepcast`; all of it is in the library beside this file, which tests call without a process.

fn main() -> std::process::ExitCode {
    stepcast_cli::main(std::env::args_os()).into()
}
