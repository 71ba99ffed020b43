//! Times of matrix products C(m×n) = A(m×k)·B(k×n), from columns dtype, trans, m, n, k and a time.
//!
//! Two ways: [`GemmTable`] follows Oyama 2016, section 4.1 (times measured on a grid of sizes, interpolated between grid
//! points); [`fit`] finds the coefficients of [`GemmModel`], a model of a library's kernels. It infers the speed of the host
//! and the way of timing, and interpolates only the residuals.

mod host;
mod learn;
mod model;
mod smooth;

pub use host::other_state;
pub use model::fit;
pub use smooth::smooth;

use crate::measurements::{MeasurementFile, Split};
use crate::report::{FitErrorRow, FitErrors, FitReport, artefact};
use crate::{FitError, Quality};
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_analytic::oyama2016::{Estimate, on_grid};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::fitted::gemm::{Alignment, Coverage, GemmModel, Shape, Variant};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

/// Fewest products of one variant and family of kernels that determine their coefficients.
const FEWEST: usize = 50;

/// One measured product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredProduct {
    pub variant: Variant,
    pub shape: Shape,
    pub time: Seconds,
}

/// Why measured products cannot be fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GemmError {
    #[error("{variant} has {found} measured products; {needed} are needed to fit its coefficients")]
    TooFew { variant: Variant, found: usize, needed: usize },
    /// An impossible time.
    #[error("{variant} {shape} takes {time}")]
    BadTime { variant: Variant, shape: Shape, time: Seconds },
    #[error("{variant} {shape} is there twice")]
    Twice { variant: Variant, shape: Shape },
    /// The measurements do not determine the coefficients.
    #[error(transparent)]
    Linear(#[from] FitError),
    #[error("{variant} {shape} is missing: a table needs every combination of its sizes")]
    Hole { variant: Variant, shape: Shape },
}

/// Products by the kernels that they share, for kernels with enough products to fit their coefficients.
fn families(samples: &[MeasuredProduct]) -> BTreeMap<(Precision, Alignment), Vec<MeasuredProduct>> {
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

fn by_variant(samples: &[MeasuredProduct]) -> BTreeMap<Variant, Vec<MeasuredProduct>> {
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

pub fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Split<MeasuredProduct>, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let [dtype, trans] = [file.column("dtype")?, file.column("trans")?];
    let sizes = [file.column("m")?, file.column("n")?, file.column("k")?];
    let times = file.time_column()?;
    file.split(wanted, |row| {
        let precision = row.precision(dtype)?;
        let transposition = row.text(trans).parse();
        let transposition =
            transposition.map_err(|_| row.fault(trans, "is not a transposition", "use nn, nt, tn or tt"))?;
        let variant = Variant { precision, transposition };
        let [m, n, k] = [row.count(sizes[0])?, row.count(sizes[1])?, row.count(sizes[2])?];
        let shape = Shape { m, n, k };
        Ok((format!("{variant} {shape}"), MeasuredProduct { variant, shape, time: row.time(times)? }))
    })
}

/// Fits the products of `data`; `test`, if given, replaces its held-out rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    multiprocessors: Option<u32>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let products = read(data, wanted)?;
    let test = test.map(|test| read(test, wanted)).transpose()?;
    let Split { fit: products, held } = products.tested_with(test);
    let model = fit(&products, multiprocessors, wanted).map_err(|error| ended(data, &error))?;
    let table = GemmTable::new(&products).ok();
    let mut rows = Vec::new();
    let mut errors = BTreeMap::new();
    for variant in model.variants.keys().copied() {
        let of = |samples: &[MeasuredProduct], predict: &dyn Fn(&MeasuredProduct) -> Option<f64>| {
            let own = samples.iter().filter(|sample| sample.variant == variant);
            Quality::from_pairs(own.filter_map(|sample| Some((predict(sample)?, sample.time.get()))))
        };
        let modelled = |sample: &MeasuredProduct| Some(model.predict(variant, sample.shape)?.time.get());
        let Some(on_fit) = of(&products, &modelled) else { continue };
        let own = FitErrors { fit: on_fit, held: of(&held, &modelled) };
        rows.extend(FitErrorRow::rows(&variant.to_string(), &own));
        let tabled =
            |sample: &MeasuredProduct| Some(table.as_ref()?.predict(variant, sample.shape)?.time.get());
        if let Some(quality) = of(&held, &tabled) {
            rows.push(FitErrorRow { what: format!("{variant}, table"), set: "held", quality });
        }
        errors.insert(variant.to_string(), own);
    }
    let artefact = artefact(ArtefactKind::Gemm, data, products.len(), &date, &errors, &model)?;
    let notes = notes(&model, multiprocessors.is_some(), &held);
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}

fn notes(model: &GemmModel, given: bool, held: &[MeasuredProduct]) -> Vec<String> {
    let machine = model.machine;
    let how = if given { "as given" } else { "the number that fits best" };
    let mut notes = vec![format!("{} multiprocessors: {how}.", machine.multiprocessors)];
    if let Some(budget) = machine.budget {
        notes.push(format!("Taken as timed in queues of at most 20 calls and {}.", budget.human()));
    }
    let covered =
        |sample: &MeasuredProduct| model.predict(sample.variant, sample.shape).map(|time| time.coverage);
    let count = |coverage| held.iter().filter(|sample| covered(sample) == Some(coverage)).count();
    let outside = count(Coverage::OutsideSizes);
    if outside > 0 {
        notes.push(format!("{outside} held products have sizes outside the fitted range: extrapolated."));
    }
    let unaligned = count(Coverage::OtherAlignment);
    if unaligned > 0 {
        notes.push(format!(
            "{unaligned} held products have rows aligned like none that was fitted: their cost relative to \
             aligned rows is assumed (docs/methods/gemm.md)."
        ));
    }
    let unknown = held.iter().filter(|sample| covered(sample).is_none()).count();
    if unknown > 0 {
        notes.push(format!("{unknown} held products are of kinds that were not fitted: left out."));
    }
    notes
}

fn ended(data: &Path, error: &GemmError) -> Stopped {
    let remedy = match error {
        GemmError::Linear(FitError::Cancelled) => return Stopped::Cancelled,
        GemmError::TooFew { .. } => "measure more sizes: a grid of four sizes of m, n and k has 64 products",
        GemmError::BadTime { .. } => "use positive times, or leave the line out",
        GemmError::Twice { .. } => "keep one line, with the mean time",
        GemmError::Hole { .. } => "measure it",
        GemmError::Linear(_) => "measure sizes that differ more",
    };
    Fault::in_file(data.display().to_string(), error.to_string(), remedy).into()
}

#[derive(Debug, Clone, PartialEq)]
pub struct GemmTable {
    grids: BTreeMap<Variant, Grid>,
}

#[derive(Debug, Clone, PartialEq)]
struct Grid {
    /// Measured m, n and k, ascending.
    axes: [Vec<u32>; 3],
    /// k fastest, then n.
    times: Vec<f64>,
}

impl GemmTable {
    /// A table of measured products; every combination of their sizes must be there.
    pub fn new(samples: &[MeasuredProduct]) -> Result<Self, GemmError> {
        let mut grids = BTreeMap::new();
        for (variant, own) in by_variant(samples) {
            grids.insert(variant, Grid::new(variant, &own)?);
        }
        Ok(Self { grids })
    }

    /// The time of a product; outside of the grid, the nearest cell is extrapolated. None where the variant was not
    /// measured.
    pub fn predict(&self, variant: Variant, shape: Shape) -> Option<Estimate> {
        let Grid { axes: [m, n, k], times } = self.grids.get(&variant)?;
        Some(on_grid([m, n, k], |place| Seconds::new(times[place]), shape.sizes()))
    }
}

impl Grid {
    fn new(variant: Variant, samples: &[MeasuredProduct]) -> Result<Self, GemmError> {
        let mut times = BTreeMap::new();
        for sample in samples {
            if times.insert(sample.shape, sample.time.get()).is_some() {
                return Err(GemmError::Twice { variant, shape: sample.shape });
            }
        }
        let axis = |size: fn(&Shape) -> u32| {
            let mut sizes: Vec<u32> = times.keys().map(size).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        let axes = [axis(|shape| shape.m), axis(|shape| shape.n), axis(|shape| shape.k)];
        for &m in &axes[0] {
            for &n in &axes[1] {
                for &k in &axes[2] {
                    let shape = Shape { m, n, k };
                    if !times.contains_key(&shape) {
                        return Err(GemmError::Hole { variant, shape });
                    }
                }
            }
        }
        Ok(Self { axes, times: times.into_values().collect() })
    }
}
