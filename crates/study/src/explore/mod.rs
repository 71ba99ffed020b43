//! Many scenarios: every combination of some keys (`sweep`), the best of them (`search`), nodes × batches (`map`).

pub mod map;
pub mod search;
pub mod sweep;
