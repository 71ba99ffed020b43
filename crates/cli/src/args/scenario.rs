//! The scenario that a command is asked about.

use clap::Args;

/// A scenario, and what is changed in it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFlags {
    /// Scenario (TOML), profile (.json, .json.gz), or - for a scenario from standard input; the
    /// built-in quick start if left out
    pub(crate) scenario: Option<String>,

    /// Set a value of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
}
