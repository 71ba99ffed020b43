//! Measured matrix products: columns dtype, trans, m, n, k and a time.

use super::fault::unprintable;
use super::measured::{MeasurementFile, MeasurementRow};
use super::report::{FitErrorRow, FitReport, source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::gemm::{Coverage, GemmModel, Shape, Transposition, Variant};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::precision::Precision;
use stepcast_fit::artefact::FitErrors;
use stepcast_fit::gemm::{GemmError, GemmTable, MeasuredProduct, fit as fit_products, to_toml};
use stepcast_fit::{FitError, Quality};

const PRECISIONS: [(&str, Precision); 9] = [
    ("f32", Precision::Fp32),
    ("fp32", Precision::Fp32),
    ("float32", Precision::Fp32),
    ("tf32", Precision::Tf32),
    ("f16", Precision::Fp16),
    ("fp16", Precision::Fp16),
    ("float16", Precision::Fp16),
    ("bf16", Precision::Bf16),
    ("bfloat16", Precision::Bf16),
];

/// Products to fit, and products to test with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Products {
    /// Fitted.
    pub fit: Vec<MeasuredProduct>,
    /// Only tested.
    pub held: Vec<MeasuredProduct>,
}

/// Reads measured products.
pub fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Products, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let [dtype, trans] = [file.column("dtype")?, file.column("trans")?];
    let sizes = [file.column("m")?, file.column("n")?, file.column("k")?];
    let (times, set) = (file.time_column()?, file.optional_column("set"));
    let mut products = Products::default();
    let mut seen = BTreeSet::new();
    for row in file.rows(wanted) {
        let row = row?;
        let variant =
            Variant { precision: precision(row, dtype)?, transposition: transposition(row, trans)? };
        let [m, n, k] = [row.count(sizes[0])?, row.count(sizes[1])?, row.count(sizes[2])?];
        let shape = Shape { m, n, k };
        let held = row.is_held(set)?;
        if !seen.insert((held, variant, shape)) {
            return Err(row.duplicate(&format!("{variant} {shape}")).into());
        }
        let sample = MeasuredProduct { variant, shape, time: row.time(times)? };
        if held { products.held.push(sample) } else { products.fit.push(sample) }
    }
    Ok(products)
}

pub(super) fn precision(row: MeasurementRow<'_>, column: usize) -> Result<Precision, Fault> {
    let known = PRECISIONS.iter().find(|(name, _)| *name == row.text(column));
    known
        .map(|(_, precision)| *precision)
        .or_else(|| serde_json::from_value(row.text(column).into()).ok())
        .ok_or_else(|| row.fault(column, "is not a number format", "use f32, tf32, f16 or bf16"))
}

fn transposition(row: MeasurementRow<'_>, column: usize) -> Result<Transposition, Fault> {
    row.text(column).parse().map_err(|_| row.fault(column, "is not a transposition", "use nn, nt, tn or tt"))
}

/// Fits the products of `data`; those of `test`, if given, are tested with instead of its held rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    multiprocessors: Option<u32>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let Products { fit, mut held } = read(data, wanted)?;
    if let Some(test) = test {
        let other = read(test, wanted)?;
        held = [other.fit, other.held].concat();
    }
    let model = fit_products(&fit, multiprocessors, wanted).map_err(|error| ended(data, &error))?;
    let table = GemmTable::new(&fit).ok();
    let mut rows = Vec::new();
    let mut errors = BTreeMap::new();
    for variant in model.variants.keys().copied() {
        let of = |samples: &[MeasuredProduct], predict: &dyn Fn(&MeasuredProduct) -> Option<f64>| {
            let own = samples.iter().filter(|sample| sample.variant == variant);
            Quality::from_pairs(own.filter_map(|sample| Some((predict(sample)?, sample.time.get()))))
        };
        let modelled = |sample: &MeasuredProduct| Some(model.predict(variant, sample.shape)?.time.get());
        let Some(on_fit) = of(&fit, &modelled) else { continue };
        let own = FitErrors { fit: on_fit, held: of(&held, &modelled) };
        rows.extend(FitErrorRow::rows(&variant.to_string(), &own));
        let tabled = |sample: &MeasuredProduct| Some(table.as_ref()?.predict(variant, sample.shape)?.0.get());
        if let Some(quality) = of(&held, &tabled) {
            rows.push(FitErrorRow { what: format!("{variant}, table"), set: "held", quality });
        }
        errors.insert(variant, own);
    }
    let artefact =
        to_toml(&model, &errors, source(data, fit.len()), date).map_err(|error| unprintable(data, &error))?;
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
