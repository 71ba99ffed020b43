//! A hash that identifies a sweep.

use super::agreement::Agreement;
use super::variants::Variants;
use fnv::FnvHasher;
use std::hash::Hasher;

/// The fingerprint of a sweep: a hash of the scenario, its profile, the axes, the method's name and the program's
/// version.
pub fn fingerprint(variants: &Variants<'_>, agreement: &Agreement) -> Result<String, serde_json::Error> {
    let first = variants.first();
    let mut hasher = FnvHasher::default();
    let mut part = |text: &str| {
        hasher.write(text.as_bytes());
        hasher.write_u8(0);
    };
    part(env!("CARGO_PKG_VERSION"));
    part(agreement.name());
    part(&serde_json::to_string(&first.to_file())?);
    if let Some(profile) = first.profile() {
        part(&serde_json::to_string(profile)?);
    }
    for axis in variants.axes() {
        part(&axis.key);
        part(&format!("{:?}", axis.values));
    }
    Ok(format!("{:016x}", hasher.finish()))
}
