//! The API from outside: what it answers, and whether its description says so.

mod api;
mod asking;
mod described;
