//! Says which folder is part of the program.

#![allow(clippy::print_stdout, reason = "it is how cargo is told")]

fn main() {
    println!("cargo::rerun-if-changed=assets");
}
