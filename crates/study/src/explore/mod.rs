//! Many scenarios: every combination of some keys (`sweep`), the best of them (`search`), nodes × batches (`map`), ways
//! to split a transformer (`plan`), machines to choose from (`decide`).

pub mod decide;
pub mod map;
pub mod numbers;
pub mod plan;
pub mod search;
pub mod sweep;
