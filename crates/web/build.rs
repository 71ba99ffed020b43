//! Says which folder is part of the program.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

fn main() {
    println!("cargo::rerun-if-changed=assets");
}
