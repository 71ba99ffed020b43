//! The files of this folder, as text.

/// Short names of devices and networks, and the entries that they stand for.
pub const ALIASES: &str = include_str!("aliases.toml");
/// Devices.
pub const DEVICES: &str = include_str!("devices.toml");
/// Whole machines.
pub const MACHINES: &str = include_str!("machines.toml");
/// Networks.
pub const NETWORKS: &str = include_str!("networks.toml");
/// What machines reach where nothing was measured.
pub const PRIORS: &str = include_str!("priors.toml");
/// How often machines are interrupted.
pub const RELIABILITY: &str = include_str!("reliability.toml");

/// Devices with the text of their fitted steps.
pub const FITTED: [(&str, &str); 1] = [("h200-sxm", include_str!("fitted/h200-sxm.toml"))];
