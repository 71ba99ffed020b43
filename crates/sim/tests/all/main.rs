//! The engine and what makes programs for it, against closed forms, published figures and cases computed by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

mod allreduce;
mod fold;
mod oracles;
mod replay;
