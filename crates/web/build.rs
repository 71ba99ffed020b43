//! Says which folders are part of the program.

#![allow(clippy::print_stdout, reason = "it is how cargo is told")]

fn main() {
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=../../examples");
}
