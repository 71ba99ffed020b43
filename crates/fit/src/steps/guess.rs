//! Coefficients before any measurement. A few pseudo-measurements hold the fit near them, so that a coefficient that
//! the data leave open stays plausible.
//!
//! The values are guesses chosen by hand on the H200 steps in `validation/steps`.

use super::prepared::Key;
use stepcast_core::fitted::steps::{Class, Feature, Phase};
use stepcast_core::precision::Precision;

/// Multiples of the features of a class, in their order.
pub(super) fn guess(key: Key, precision: Precision, products: bool) -> Vec<f64> {
    let features = key.class.features(precision, key.phase, products);
    features.iter().map(|feature| one(key.class, *feature, precision, key.phase)).collect()
}

fn one(class: Class, feature: Feature, precision: Precision, phase: Phase) -> f64 {
    let wide = precision == Precision::Fp32;
    let backward = phase == Phase::Backward;
    match (class, feature) {
        // Three channels fill no tensor unit.
        (Class::Stem, Feature::Compute) => {
            if wide {
                3.0
            } else {
                20.0
            }
        }
        (Class::Attention, Feature::Compute) => 2.5,
        (Class::Linear, Feature::Compute) => {
            if wide {
                1.2
            } else {
                1.5
            }
        }
        (_, Feature::Compute) => 1.5,
        (_, Feature::Product) => 1.0,
        (_, Feature::Reduction) => 0.1,
        (_, Feature::Wave) => 1.5,
        (Class::Linear, Feature::Weights) => 1.0,
        // Filters transformed for Winograd or Fourier are many times as large, and written and read.
        (_, Feature::Weights) => 50.0,
        (_, Feature::Channel) => {
            if backward {
                1.0
            } else {
                0.5
            }
        }
        (Class::Depthwise, Feature::Memory) => {
            if backward {
                10.0
            } else {
                3.0
            }
        }
        (Class::BatchNorm, Feature::Memory) => {
            if backward {
                1.5
            } else {
                1.0
            }
        }
        (Class::LayerNorm, Feature::Memory) => {
            if backward {
                4.0
            } else {
                1.5
            }
        }
        (Class::Pool, Feature::Memory) => {
            if backward {
                8.0
            } else {
                2.0
            }
        }
        (Class::Linear | Class::Attention, Feature::Memory) => 1.0,
        (_, Feature::Memory) if backward => 4.0,
        (_, Feature::Memory) => {
            if wide {
                2.0
            } else {
                3.0
            }
        }
    }
}
