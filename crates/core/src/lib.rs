//! What Stepcast talks about: quantities, models, devices, clusters, strategies, scenarios and
//! predictions. No input or output, no clock, no threads, no logging: text in, values out.

pub mod quantity;
