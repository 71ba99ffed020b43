//! Studies on whole data sets.

mod gemm;
mod sprint;
