//! Measured products, and the groups in which they are fitted.

use std::collections::BTreeMap;
use stepcast_core::fitted::gemm::{Alignment, Shape, Variant};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

/// Fewest products of one variant and family of kernels that tell their coefficients.
pub(super) const FEWEST: usize = 50;

/// One measured product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredProduct {
    /// The kind of kernel.
    pub variant: Variant,
    /// The sizes.
    pub shape: Shape,
    /// The measured time.
    pub time: Seconds,
}

/// Products by the kernels that they share, for kernels with enough products to fit their coefficients.
pub(super) fn families(
    samples: &[MeasuredProduct],
) -> BTreeMap<(Precision, Alignment), Vec<MeasuredProduct>> {
    let key = |sample: &MeasuredProduct| (sample.variant, Alignment::family(sample.variant, sample.shape));
    let mut families: BTreeMap<_, Vec<MeasuredProduct>> = BTreeMap::new();
    let counts = grouped(samples, key);
    for sample in samples {
        let (variant, alignment) = key(sample);
        if counts[&(variant, alignment)].len() >= FEWEST {
            families.entry((variant.precision, alignment)).or_default().push(*sample);
        }
    }
    families
}

pub(super) fn by_variant(samples: &[MeasuredProduct]) -> BTreeMap<Variant, Vec<MeasuredProduct>> {
    grouped(samples, |sample| sample.variant)
}

fn grouped<K: Ord>(
    samples: &[MeasuredProduct],
    key: impl Fn(&MeasuredProduct) -> K,
) -> BTreeMap<K, Vec<MeasuredProduct>> {
    let mut groups = BTreeMap::new();
    for sample in samples {
        groups.entry(key(sample)).or_insert_with(Vec::new).push(*sample);
    }
    groups
}
