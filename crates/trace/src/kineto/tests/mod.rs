//! Imports of made-up traces.
