//! Zeng 2023.
