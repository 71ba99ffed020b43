//! Small graphs by hand: what operators cost, what patterns become, and what is said of files that cannot be used.

mod fixture;
mod operators;
mod patterns;
mod sturdy;
