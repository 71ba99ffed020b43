//! Tests of the public interface, linked as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "helpers of tests, and values that must be equal"
)]

mod compute;
mod documentation;
mod fitted;
mod layers;
mod machine;
mod model;
mod prior;
mod scenario;
mod values;

use stepcast_core::fault::Fault;
use stepcast_core::files::Files;

/// What a file has of a value.
fn in_a_file(value: &impl serde::Serialize) -> String {
    toml::Table::try_from(value).unwrap().to_string()
}

/// Cases of a test, one on each line, in columns that bars divide; `#` begins a comment.
fn test_cases<const N: usize>(text: &str) -> Vec<[&str; N]> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(" | ").collect::<Vec<_>>().try_into().expect(line)).collect()
}

/// A source of files that returns one text for every path.
struct OneText<'a>(&'a str);

impl Files for OneText<'_> {
    fn text(&self, _: &str) -> Result<String, Fault> {
        Ok(self.0.to_owned())
    }
}
