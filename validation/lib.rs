//! The files of this folder that the program takes with it; tests read the others from the disk.

/// The errors of methods on measured runs, which intervals are made from.
pub const ERRORS: &str = include_str!("errors.csv");

macro_rules! files {
    ($($path:literal)*) => {
        /// Embedded files by their path in this folder. Sets are listed in the order of their `set.toml`.
        pub const FILES: &[(&str, &[u8])] = &[$(($path, include_bytes!($path))),*];
    };
}

files! {
    "coverage.toml"
    "zeng2023/set.toml"
    "zeng2023/machines.csv"
    "zeng2023/table1.csv"
    "zeng2023/tables2-7.csv"
    "zeng2023/workbook.csv"
    "papers/set.toml"
    "papers/runs.csv"
    "liu2022/set.toml"
    "liu2022/calibration.csv"
    "liu2022/fusion.json"
    "liu2022/models.csv"
    "liu2022/tables2-3.csv"
    "hkbu/set.toml"
    "hkbu/throughput.csv"
    "tf-k80/set.toml"
    "tf-k80/throughput.csv"
    "tf-saturation/set.toml"
    "tf-saturation/throughput.csv"
    "cakelab/set.toml"
    "cakelab/runs.csv"
    "tf-ps/set.toml"
    "ddp-gloo/set.toml"
    "published-scaling/set.toml"
    "published-scaling/runs.csv.gz"
    "steps/set.toml"
    "single-gpu/set.toml"
    "single-gpu/runs.csv.gz"
    "parallel-jobs/set.toml"
    "transformer-memory/set.toml"
    "transformer-memory/h200.csv"
    "transformer-memory/published.csv"
    "transformer-steps/set.toml"
    "transformer-steps/h200.csv.gz"
    "transformer-steps/offloaded.csv"
    "transformer-steps/scans.csv"
    "transformer-steps/published.csv.gz"
    "tuning/set.toml"
    "tuning/h200.csv.gz"
    "tuning/published.csv.gz"
    "llm-runs/set.toml"
    "llm-runs/runs.csv.gz"
    "oyama2016/set.toml"
    "oyama2016/eq8.csv"
    "oyama2016/model.json"
    "oyama2016/table10.csv"
    "li2020/set.toml"
    "li2020/traces.json"
}

/// The embedded file at `path`.
pub fn file(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
}
