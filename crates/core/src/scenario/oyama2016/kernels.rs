//! Times of kernels and matrix products: given in the scenario, or fitted.

use super::{KernelTime, KernelTimes, KernelsSection, Line, LineSection, Products, SgemmSection, SgemmTable};
use crate::fault::{Fault, KeyPath};
use crate::files::Files;
use crate::fitted::artefact::{self, Artefact, Kind};
use crate::fitted::gemm::{GemmModel, Transposition, Variant};
use crate::fitted::kernel::LinearKernel;
use crate::keys::positive;
use crate::precision::Precision;
use crate::quantity::Seconds;
use crate::scenario::resolve::below;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Largest number of sizes per dimension in a table of matrix products: 64³ times take 2 MiB per variant.
const MAX_SIZES: usize = 64;

/// The kernels that a file of fitted kernels contains.
const KERNELS: [&str; 7] =
    ["im2col", "col2im", "activation", "activation-gradient", "pool", "pool-gradient", "softmax"];

/// Checks every value.
pub(super) fn resolve(
    section: KernelsSection,
    precision: Precision,
    files: &dyn Files,
) -> Result<KernelTimes, Fault> {
    let Some(products) = section.sgemm else {
        let reason = "kernels without matrix products: most of a gradient is made of them";
        let remedy =
            "add [methods.oyama2016.kernels.sgemm] with `fitted`, or with `sizes`, `nn`, `tn` and `nt`";
        return Err(Fault::new(reason, remedy));
    };
    let fitted = section.fitted.as_deref().map(|path| fitted_kernels(path, files)).transpose();
    let fitted = fitted.map_err(below("fitted"))?.unwrap_or_default();
    let own = |key: &'static str, given: Option<LineSection>| -> Result<KernelTime, Fault> {
        let given = given.map(|line| line.fill(None, files)).transpose().map_err(below(key))?;
        let given = given.map(|line| KernelTime { line, fitted_to: None });
        let measured = fitted.get(key).map(|kernel| KernelTime {
            line: Line { each: kernel.per_element, fixed: kernel.start },
            fitted_to: Some([kernel.least, kernel.most]),
        });
        Ok(given.or(measured).unwrap_or_default())
    };
    Ok(KernelTimes {
        fitted: section.fitted,
        im2col: own("im2col", section.im2col)?,
        col2im: own("col2im", section.col2im)?,
        activation: own("activation", section.activation)?,
        activation_gradient: own("activation-gradient", section.activation_gradient)?,
        pool: own("pool", section.pool)?,
        pool_gradient: own("pool-gradient", section.pool_gradient)?,
        softmax: own("softmax", section.softmax)?,
        products: self::products(products, precision, files).map_err(below("sgemm"))?,
    })
}

fn fitted_kernels(path: &str, files: &dyn Files) -> Result<BTreeMap<String, LinearKernel>, Fault> {
    let kernels = match artefact::load(path, files)? {
        Artefact::Kernels(kernels) => kernels,
        other => return Err(artefact::unwanted(path, other.kind(), &[Kind::Kernels])),
    };
    if let Some(missing) = KERNELS.iter().find(|name| !kernels.contains_key(**name)) {
        let reason = format!("{path} has no kernel \"{missing}\"");
        let remedy = format!("measure {}", KERNELS.join(", "));
        return Err(Fault::new(reason, remedy));
    }
    Ok(kernels)
}

fn products(mut section: SgemmSection, precision: Precision, files: &dyn Files) -> Result<Products, Fault> {
    let Some(path) = section.fitted.take() else { return sgemm(section).map(Products::Table) };
    let at = |fault: Fault| fault.below(KeyPath::of("fitted"));
    if section != SgemmSection::default() {
        let reason = "fitted products and measured ones say the same twice";
        return Err(at(Fault::new(reason, "keep `fitted`, or `sizes` and the times")));
    }
    let model: Arc<GemmModel> = match artefact::load(&path, files).map_err(at)? {
        Artefact::Gemm(model) => Arc::from(model),
        other => return Err(at(artefact::unwanted(&path, other.kind(), &[Kind::Gemm]))),
    };
    for transposition in [Transposition::Nn, Transposition::Tn, Transposition::Nt] {
        let variant = Variant { precision, transposition };
        if !model.variants.contains_key(&variant) {
            let reason = format!("{path} has no products {variant}");
            let remedy = "measure them, or use another `precision`";
            return Err(at(Fault::new(reason, remedy)));
        }
    }
    Ok(Products::Fitted { path, model, precision })
}

fn sgemm(section: SgemmSection) -> Result<SgemmTable, Fault> {
    let sizes = section.sizes.unwrap_or_default();
    let ascending = sizes.windows(2).all(|pair| pair[0] < pair[1]);
    if !(2..=MAX_SIZES).contains(&sizes.len()) || sizes[0] == 0 || !ascending {
        let reason = format!("needs 2 to {MAX_SIZES} positive sizes, each larger than the one before");
        return Err(Fault::in_key("sizes", reason, "use sizes such as [1, 2, 3, 4, 6, 8, 11, 16]"));
    }
    let wanted = sizes.len().pow(3);
    let times = |key: &'static str, given: Option<Vec<Seconds>>| {
        let times = given.unwrap_or_default();
        if times.len() != wanted {
            let reason =
                format!("has {} times, and {} sizes make {wanted} products", times.len(), sizes.len());
            let remedy = "give the time of every (m, n, k), k changing fastest";
            return Err(Fault::in_key(key, reason, remedy));
        }
        for (index, time) in times.iter().enumerate() {
            positive("time", time.get(), "a time such as \"12 us\"")
                .map_err(|fault| Fault { key: KeyPath::of(key).index(index), ..fault })?;
        }
        Ok(times)
    };
    let (nn, tn, nt) = (times("nn", section.nn)?, times("tn", section.tn)?, times("nt", section.nt)?);
    Ok(SgemmTable { sizes, nn, tn, nt })
}
