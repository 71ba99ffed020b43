//! Schedules of more micro-batches than can be simulated one by one.
//!
//! Between its first and its last micro-batches a schedule repeats itself, shifted by a constant (a max-plus linear system that
//! has reached its period; Baccelli 1992, theorem 3.109). Two lengths that differ by whole periods therefore determine all
//! longer ones.

use super::Sizes;

/// Operations of all stages that are simulated one by one: about a millisecond, and a forecast simulates hundreds.
const MOST_OPERATIONS: u64 = 1 << 16;

/// Operation limit for deep pipelines, whose schedule becomes periodic late.
const MOST_OF_MANY_STAGES: u64 = 128 * MOST_OPERATIONS;

/// Forward, backward and gradients of weights.
const KINDS: u64 = 3;

/// Rounds through all stages after which a schedule repeats itself, and as many again to see by how much it shifts.
const ROUNDS: u64 = 4;

/// Micro-batches that are simulated one by one.
fn most(stages: u64, chunks: u64) -> u64 {
    let each = KINDS.saturating_mul(stages).saturating_mul(chunks).max(1);
    (MOST_OPERATIONS / each).max(ROUNDS.saturating_mul(stages))
}

/// Whether a schedule has too many operations to simulate.
pub fn is_too_large(stages: u64, chunks: u64, micro_batches: u64) -> bool {
    let simulated = micro_batches.min(most(stages, chunks));
    let operations = simulated.saturating_mul(KINDS).saturating_mul(stages).saturating_mul(chunks);
    operations > MOST_OF_MANY_STAGES
}

/// Whether a schedule has more micro-batches than are simulated one by one.
pub fn is_long(sizes: &Sizes) -> bool {
    u64::from(sizes.micro_batches) > most(u64::from(sizes.stages), u64::from(sizes.chunks))
}

/// The ends of all stages of a schedule, where `ends` simulates one of a given number of micro-batches.
pub fn ends_of_any<E>(sizes: &Sizes, ends: impl FnMut(u32) -> Result<Vec<f64>, E>) -> Result<Vec<f64>, E> {
    let most = most(u64::from(sizes.stages), u64::from(sizes.chunks));
    ends_by(sizes, u32::try_from(most).unwrap_or(u32::MAX), ends)
}

fn ends_by<E>(
    sizes: &Sizes,
    most: u32,
    mut ends: impl FnMut(u32) -> Result<Vec<f64>, E>,
) -> Result<Vec<f64>, E> {
    let (m, p) = (sizes.micro_batches, sizes.stages.max(1));
    if m <= most {
        return ends(m);
    }
    // Groups of micro-batches stay whole if both differ from m by multiples of p.
    let long = most - (most + p - m % p) % p;
    let short = long - long / 2 / p * p;
    let (longer, shorter) = (ends(long)?, ends(short)?);
    let more = f64::from(m - long) / f64::from(long - short).max(1.0);
    Ok(longer.iter().zip(&shorter).map(|(longer, shorter)| longer + more * (longer - shorter)).collect())
}
