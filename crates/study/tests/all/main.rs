//! Studies on whole data sets.

#![allow(clippy::unwrap_used, clippy::panic)]

mod horovod;
mod monotone;
mod published;
mod relations;
mod servers;
mod siblings;
mod side_by_side;
mod sprint;
mod steady;
