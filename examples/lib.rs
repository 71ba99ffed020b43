//! The scenarios of this folder, as text.

macro_rules! scenarios {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!($name, ".toml")))),*]
    };
}

/// The scenario that is predicted if none is named.
pub const QUICK_START: &str = include_str!("quickstart.toml");

/// The profile that `profile.toml` names: its file and its text.
pub const ONE_WORKER: (&str, &str) = ("one-worker.json", include_str!("one-worker.json"));

/// All scenarios by name, the first to show first.
pub const SCENARIOS: &[(&str, &str)] = scenarios! {
    "quickstart"
    "acceptance"
    "all-reduce"
    "all-reduce-cpu"
    "async"
    "custom-device"
    "custom-model"
    "deepseek-v3"
    "diloco-two-sites"
    "dlrm"
    "gpt-oss-nvl72"
    "gpt3-175b"
    "job"
    "layer-replacement"
    "llama-405b-tpu"
    "llama3-8b-fsdp"
    "local-sgd"
    "long-context"
    "lora"
    "mixtral-experts"
    "plan-175b"
    "plan-mixed"
    "plan-mixed-pipelines"
    "plan-offers"
    "plan-zones"
    "profile"
    "search"
    "several-servers"
    "sprint"
    "stale-synchronous"
    "transformer"
    "transformer-pipeline"
    "zeng2023-table7"
};

#[cfg(test)]
mod tests {
    #[test]
    fn every_scenario_of_the_folder_is_listed() {
        let mut files: Vec<String> = std::fs::read_dir(env!("CARGO_MANIFEST_DIR"))
            .unwrap()
            .filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
            .filter(|name| name != "Cargo")
            .collect();
        let mut listed: Vec<&str> = super::SCENARIOS.iter().map(|(name, _)| *name).collect();
        files.sort();
        listed.sort_unstable();
        assert_eq!(listed, files);
    }
}
