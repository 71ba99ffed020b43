//! Coefficients of the classes of layers: robust, weighted, non-negative least squares on the layers' own times.

use super::prepared::{Interval, Key, PreparedStep};
use crate::{FitError, nnls_while};
use std::collections::BTreeMap;
use stepcast_core::fitted::steps::{Class, Feature, Phase};
use stepcast_core::method::CancelCheck;
use stepcast_core::precision::Precision;

/// Rounds of reweighting by errors. This and the constants below are assumptions.
const ROUNDS: usize = 15;
/// Rounds in which each class is fitted to the part of an interval that the others do not explain.
const SWEEPS: usize = 8;
/// Relative errors beyond this count by their size, not by their square.
const ROBUST: f64 = 0.2;
/// Pseudo-measurements that hold a coefficient at its guess.
const PULL: f64 = 2.0;
/// Least share of an interval that a layer must have to be fitted to it.
const TELLING: f64 = 0.25;

#[derive(Debug, Clone)]
pub(super) struct ClassCoefficients {
    pub(super) values: Vec<f64>,
    /// Clean intervals from which they were fitted.
    pub(super) clean: usize,
}

/// Fitted coefficients, and guesses where nothing was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct CoefficientTable {
    fitted: BTreeMap<Key, ClassCoefficients>,
    /// Whether matrix products have a separate fit.
    products: bool,
}

struct LayerSample {
    features: Vec<f64>,
    /// The time that the features have to explain.
    target: f64,
    time: f64,
    /// The interval's share of the whole phase.
    share: f64,
    clean: bool,
    precision: Precision,
}

impl CoefficientTable {
    pub(super) fn get(&self, class: Class, precision: Precision, phase: Phase) -> ClassCoefficients {
        let key = Key::new(class, precision, phase);
        let own = self.fitted.get(&key).cloned();
        own.unwrap_or_else(|| ClassCoefficients { values: guess(key, precision, self.products), clean: 0 })
    }

    /// Whether matrix products have a separate fit.
    pub(super) fn products(&self) -> bool {
        self.products
    }

    pub(super) fn time(&self, row: &PreparedStep<'_>, place: usize, phase: Phase) -> f64 {
        let work = &row.work(phase)[place];
        if !work.fitted {
            return work.counted;
        }
        let ClassCoefficients { values, .. } = self.get(work.key.class, row.step.precision, phase);
        work.counted + values.iter().zip(&work.features).map(|(value, feature)| value * feature).sum::<f64>()
    }

    pub(super) fn fit(
        rows: &[&PreparedStep<'_>],
        products: bool,
        wanted: &CancelCheck<'_>,
    ) -> Result<Self, FitError> {
        let mut table = Self { products, ..Self::default() };
        table.update(rows, Phase::Forward, wanted)?;
        for _ in 0..SWEEPS {
            table.update(rows, Phase::Backward, wanted)?;
        }
        Ok(table)
    }

    fn update(
        &mut self,
        rows: &[&PreparedStep<'_>],
        phase: Phase,
        wanted: &CancelCheck<'_>,
    ) -> Result<(), FitError> {
        let mut samples: BTreeMap<Key, Vec<LayerSample>> = BTreeMap::new();
        for row in rows {
            if wanted().is_break() {
                return Err(FitError::Cancelled);
            }
            for interval in row.intervals.iter().filter(|interval| interval.phase == phase) {
                self.samples(row, interval, &mut samples);
            }
        }
        for (key, samples) in samples {
            self.fitted.insert(key, robust(key, &samples, self.products, wanted)?);
        }
        Ok(())
    }

    fn samples(
        &self,
        row: &PreparedStep<'_>,
        interval: &Interval,
        samples: &mut BTreeMap<Key, Vec<LayerSample>>,
    ) {
        let Interval { phase, time, clean, .. } = *interval;
        let times: Vec<f64> = interval.ops.clone().map(|place| self.time(row, place, phase)).collect();
        let all: f64 = times.iter().sum();
        for (place, own) in interval.ops.clone().zip(times) {
            let work = &row.work(phase)[place];
            if !work.fitted || own < TELLING * all {
                continue;
            }
            samples.entry(work.key).or_default().push(LayerSample {
                features: work.features.clone(),
                target: (time - (all - own) - work.counted).max(0.0),
                time,
                share: time / row.phase(phase),
                clean,
                precision: row.step.precision,
            });
        }
    }
}

fn robust(
    key: Key,
    samples: &[LayerSample],
    products: bool,
    wanted: &CancelCheck<'_>,
) -> Result<ClassCoefficients, FitError> {
    let precision = samples.first().map_or(Precision::Fp32, |sample| sample.precision);
    let guess = guess(key, precision, products);
    let mean = samples.iter().map(|sample| sample.share.sqrt()).sum::<f64>() / samples.len() as f64;
    let mut values = guess.clone();
    for _ in 0..ROUNDS {
        let (mut rows, mut target) = (Vec::new(), Vec::new());
        for sample in samples {
            let explained: f64 = sample.features.iter().zip(&values).map(|(x, value)| x * value).sum();
            let error = (explained - sample.target) / sample.time;
            if sample.clean || error > 0.0 {
                let weight = sample.share.sqrt() / mean / error.abs().max(ROBUST).sqrt() / sample.time;
                rows.push(sample.features.iter().map(|x| x * weight).collect());
                target.push(sample.target * weight);
            }
        }
        for (place, guess) in guess.iter().enumerate() {
            let mut pull = vec![0.0; values.len()];
            pull[place] = PULL.sqrt() / guess;
            rows.push(pull);
            target.push(PULL.sqrt());
        }
        values = nnls_while(&rows, &target, wanted)?.coefficients;
    }
    Ok(ClassCoefficients { values, clean: samples.iter().filter(|sample| sample.clean).count() })
}

/// Coefficients of the features of a class before any measurement, in their order: guesses chosen by hand on the H200
/// steps in `validation/steps`. A few pseudo-measurements hold the fit near them, so that an undetermined
/// coefficient stays plausible.
fn guess(key: Key, precision: Precision, products: bool) -> Vec<f64> {
    let features = key.class.features(precision, key.phase, products);
    features.iter().map(|feature| one(key.class, *feature, precision, key.phase)).collect()
}

fn one(class: Class, feature: Feature, precision: Precision, phase: Phase) -> f64 {
    let by_width = |wide: f64, half: f64| if precision == Precision::Fp32 { wide } else { half };
    let by_phase = |forward: f64, backward: f64| if phase == Phase::Backward { backward } else { forward };
    match (class, feature) {
        // Three channels fill no tensor unit.
        (Class::Stem, Feature::Compute) => by_width(3.0, 20.0),
        (Class::Attention, Feature::Compute) => 2.5,
        (Class::Linear, Feature::Compute) => by_width(1.2, 1.5),
        (_, Feature::Compute) => 1.5,
        (_, Feature::Product) => 1.0,
        (_, Feature::Reduction) => 0.1,
        (_, Feature::Wave) => 1.5,
        (Class::Linear, Feature::Weights) => 1.0,
        // Filters transformed for Winograd or Fourier are many times as large, and written and read.
        (_, Feature::Weights) => 50.0,
        (_, Feature::Channel) => by_phase(0.5, 1.0),
        (Class::Depthwise, Feature::Memory) => by_phase(3.0, 10.0),
        (Class::BatchNorm, Feature::Memory) => by_phase(1.0, 1.5),
        (Class::LayerNorm, Feature::Memory) => by_phase(1.5, 4.0),
        (Class::Pool, Feature::Memory) => by_phase(2.0, 8.0),
        (Class::Linear | Class::Attention, Feature::Memory) => 1.0,
        (_, Feature::Memory) => by_phase(by_width(2.0, 3.0), 4.0),
    }
}
