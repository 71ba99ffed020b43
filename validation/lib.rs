//! The files of this folder that the program takes with it; tests read the others from the disk.

#![allow(missing_docs, reason = "constants are named after their files")]

/// What `stepcast validate` holds every set to.
pub const BOUNDS: &str = include_str!("bounds.toml");
/// The errors of methods on measured runs, which intervals are made from.
pub const ERRORS: &str = include_str!("errors.csv");

/// The files of `cakelab/`.
pub mod cakelab {
    pub const RUNS: &str = include_str!("cakelab/runs.csv");
}

/// The files of `hkbu/`.
pub mod hkbu {
    pub const THROUGHPUT: &str = include_str!("hkbu/throughput.csv");
}

/// The files of `li2020/`.
pub mod li2020 {
    pub const TRACES: &str = include_str!("li2020/traces.json");
}

/// The files of `liu2022/`.
pub mod liu2022 {
    pub const FUSION: &str = include_str!("liu2022/fusion.json");
    pub const MODELS: &str = include_str!("liu2022/models.csv");
    pub const CALIBRATION: &str = include_str!("liu2022/calibration.csv");
    pub const TABLES: &str = include_str!("liu2022/tables2-3.csv");
}

/// The files of `oyama2016/`.
pub mod oyama2016 {
    pub const MODEL: &str = include_str!("oyama2016/model.json");
    pub const EQ_8: &str = include_str!("oyama2016/eq8.csv");
    pub const TABLE_10: &str = include_str!("oyama2016/table10.csv");
}

/// The files of `published-scaling/`.
pub mod published_scaling {
    pub const RUNS: &[u8] = include_bytes!("published-scaling/runs.csv.gz");
}

/// The files of `single-gpu/`.
pub mod single_gpu {
    /// Written by research/priors/ship_single_gpu.py; every run names repository, file and commit.
    pub const RUNS: &[u8] = include_bytes!("single-gpu/runs.csv.gz");
}

/// The files of `tf-k80/`.
pub mod tf_k80 {
    pub const THROUGHPUT: &str = include_str!("tf-k80/throughput.csv");
}

/// The files of `tf-saturation/`.
pub mod tf_saturation {
    pub const THROUGHPUT: &str = include_str!("tf-saturation/throughput.csv");
}

/// The files of `transformer-memory/`.
pub mod transformer_memory {
    pub const H200: &str = include_str!("transformer-memory/h200.csv");
    pub const PUBLISHED: &str = include_str!("transformer-memory/published.csv");
}

/// The files of `transformer-steps/`.
pub mod transformer_steps {
    pub const H200: &[u8] = include_bytes!("transformer-steps/h200.csv.gz");
    pub const OFFLOADED: &str = include_str!("transformer-steps/offloaded.csv");
    pub const PUBLISHED: &[u8] = include_bytes!("transformer-steps/published.csv.gz");
}

/// The files of `zeng2023/`.
pub mod zeng2023 {
    pub const TABLE1: &str = include_str!("zeng2023/table1.csv");
    pub const TABLES2_7: &str = include_str!("zeng2023/tables2-7.csv");
    pub const WORKBOOK: &str = include_str!("zeng2023/workbook.csv");
}
