//! Intervals of chosen points: a sweep predicts many, and an interval costs as much as dozens of predictions.

use super::variants::Variants;
use crate::predict::{MethodChoice, interval};
use stepcast_core::quantity::SamplesPerSec;

/// The 90 % interval of the throughput at each of these points, given by their positions on the axes; none where there is
/// no prediction, where no measured runs tell its error, and for simulations, which would be run dozens of times.
pub fn intervals<'a>(
    variants: &Variants<'_>,
    choice: MethodChoice,
    points: impl IntoIterator<Item = &'a [u64]>,
) -> Vec<Option<[SamplesPerSec; 2]>> {
    let mut walker = variants.walker();
    let mut interval = |digits: &[u64]| {
        let found = walker.look(digits, |scenario| {
            let method = choice.method(scenario).ok().filter(|method| method.is_quick())?;
            let prediction = method.predict(scenario).ok()?;
            interval::of(scenario, method, &prediction).ok()?
        });
        found.ok().flatten().map(|interval| interval.throughput_samples_per_s)
    };
    points.into_iter().map(&mut interval).collect()
}
