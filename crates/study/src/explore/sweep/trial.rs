//! How long a sweep will take, before it begins.

use super::agreement::Agreement;
use super::variants::Variants;
use crate::cost;
use std::time::{Duration, Instant};
use stepcast_core::method::CancelCheck;

/// Points that are tried, for as long as this.
const TRIED: (u64, Duration) = (64, Duration::from_millis(500));

/// How long so many points take on the threads of this pool, about; none if that is short for certain. Points all over the
/// grid are tried for it, as long as they are wanted.
pub fn estimate(
    variants: &Variants<'_>,
    agreement: &Agreement,
    points: u128,
    wanted: &CancelCheck<'_>,
) -> Option<Duration> {
    let asked = agreement.choice();
    let each = asked.method(variants.first()).map_or(0, |method| cost::prediction(variants.first(), method));
    let resolved = variants.resolutions().min(points) as f64 * cost::resolution(variants.first()) as f64;
    if points as f64 * each as f64 + resolved <= cost::UNASKED as f64 {
        return None;
    }
    let numbered = u64::try_from(points).unwrap_or(u64::MAX);
    let (mut walker, mut digits) = (variants.walker(), Vec::new());
    let (since, mut tried) = (Instant::now(), 0_u64);
    while tried < TRIED.0.min(numbered) && (tried == 0 || since.elapsed() < TRIED.1) && wanted().is_continue()
    {
        // The bits of a counter, reversed, come evenly from all over the grid.
        let share = tried.reverse_bits() as f64 / 2.0_f64.powi(64);
        variants.grid().digits((share * numbered as f64) as u64, &mut digits);
        let _ = walker.figures(&digits, asked, wanted);
        tried += 1;
    }
    let threads = rayon::current_num_threads().max(1);
    let long = since.elapsed().as_secs_f64() / tried.max(1) as f64 * points as f64 / threads as f64;
    Some(Duration::try_from_secs_f64(long).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::sweep::Axis;
    use crate::predict::MethodChoice;
    use stepcast_core::files::NoFiles;
    use stepcast_core::method::never_cancelled;
    use stepcast_core::scenario::Document;

    #[test]
    fn long_sweeps_are_tried_before_they_begin() {
        let document = Document::new("test", "model.zoo = \"alexnet\"\n");
        let long = |axis: &str| {
            let axes = vec![Axis::parse(axis).unwrap()];
            let variants = Variants::new(&document, &NoFiles, &[], axes).unwrap();
            let agreement = Agreement::of(&variants, MethodChoice::Auto);
            estimate(&variants, &agreement, variants.grid().points() * 1_000_000, &never_cancelled)
        };
        assert_eq!(long("batch=1"), None);
        assert!(long("batch=1..1000000").unwrap() > Duration::from_secs(3600));
    }
}
