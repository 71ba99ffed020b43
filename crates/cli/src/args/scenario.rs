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

/// How long a forecast simulates.
#[derive(Debug, Args)]
pub(crate) struct SimulationFlags {
    /// Half-width of the 90 % interval at which a simulation ends, as a share: 0.01 is 1 % [default: 0.01]
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<String>,

    /// Events after which a simulation ends anyway: ten million take about a second of a core [default: 10000000]
    #[arg(long, value_name = "EVENTS")]
    pub(crate) budget: Option<String>,
}

impl SimulationFlags {
    /// All changes to a scenario, as `--set` writes them.
    pub(crate) fn changes(&self, about: &ScenarioFlags) -> Vec<String> {
        let named = |key: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("methods.simulate.{key}={value}"))
        };
        let own = [named("precision", &self.precision), named("budget", &self.budget)];
        about.overrides.iter().cloned().chain(own.into_iter().flatten()).collect()
    }
}
