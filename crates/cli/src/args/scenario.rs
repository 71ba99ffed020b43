//! Flags that choose a scenario.

use clap::Args;

/// A scenario, and changes to it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFlags {
    /// Scenario (TOML), profile (.json, .json.gz), or - for a scenario from standard input [default: the
    /// built-in quick start]
    pub(crate) scenario: Option<String>,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
}
