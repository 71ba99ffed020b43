//! A hash that identifies a sweep.

use super::agreement::Agreement;
use super::variants::Variants;

/// The fingerprint of a sweep: a hash of the scenario, its profile, the axes, the method's name and the program's
/// version.
pub fn fingerprint(variants: &Variants<'_>, agreement: &Agreement) -> Result<String, serde_json::Error> {
    let first = variants.first();
    // FNV-1a, of 64 bits.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut part = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
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
    Ok(format!("{:016x}", hash))
}
