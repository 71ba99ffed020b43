//! The equations of the model against values that were worked out independently of the code.

use super::data::{Barrier, Configuration, Golden, Interpolation, StructureExample};
use crate::{BoundCheck, ExactCheck, ValidationError};
use std::collections::BTreeMap;
use stepcast_analytic::oyama2016::{GPU_PARTS, Steady, Structure, Threads, UPDATE_PARTS, barrier, trilinear};
use stepcast_core::prediction::PartKind;
use stepcast_core::quantity::Seconds;

fn threads(golden: &Golden, configuration: &Configuration) -> Threads {
    let &Configuration { nodes, gpus, batch, parameters, .. } = configuration;
    golden.coefficients.threads(nodes, gpus, batch, parameters)
}

/// The steady state of every configuration: both iterations with their sixteen parts, minibatch and epoch.
pub(super) fn check_configurations(golden: &Golden, tolerance: f64) -> ExactCheck {
    let mut check = ExactCheck::new("steady states with all sixteen parts (eqs. 7-10)", tolerance);
    for configuration in &golden.configurations {
        let threads = threads(golden, configuration);
        check.cases += 1;
        match threads.steady() {
            Some(steady) => {
                let epoch = steady.epoch(golden.samples, &threads);
                compare(&mut check, configuration, &steady, epoch);
            }
            None => check.figure(f64::NAN, configuration.gpu),
        }
    }
    check
}

fn compare(check: &mut ExactCheck, expected: &Configuration, steady: &Steady, epoch: Seconds) {
    check.figure(steady.gpu.get(), expected.gpu);
    check.figure(steady.update.get(), expected.update);
    check.figure(steady.times.barrier.get(), expected.barrier);
    check.figure(steady.minibatch, expected.minibatch);
    check.figure(epoch.get(), expected.epoch);
    check.figure(steady.states as f64, f64::from(expected.states));
    compare_parts(check, &GPU_PARTS, &steady.times.gpu, &expected.gpu_thread);
    compare_parts(check, &UPDATE_PARTS, &steady.times.update, &expected.update_thread);
}

fn compare_parts(
    check: &mut ExactCheck,
    parts: &[(PartKind, &str)],
    times: &[Seconds],
    expected: &BTreeMap<String, f64>,
) {
    for ((_, name), time) in parts.iter().zip(times) {
        check.figure(time.get(), expected.get(*name).copied().unwrap_or(f64::NAN));
    }
}

/// Values of eq. 8 below this are zero but for rounding.
const ROUNDING: f64 = 1e-14;

/// Eq. 8: buffers that the slowest node sums beyond the mean.
pub(super) fn check_barrier(barriers: &[Barrier], tolerance: f64) -> ExactCheck {
    let mut check = ExactCheck::new("barrier (eq. 8)", tolerance);
    for row in barriers {
        let exact = if row.closed_form.abs() < ROUNDING { 0.0 } else { row.closed_form };
        check.cases += 1;
        check.figure(barrier::buffers_waited_for(row.gpus, row.p, row.nodes), exact);
    }
    check
}

/// Shapes, parameters and matrix products of a network (eqs. 2 and 3, Table 2).
pub(super) fn check_products(
    example: &StructureExample,
    tolerance: f64,
) -> Result<ExactCheck, ValidationError> {
    let damaged = |error: String| ValidationError::Data(format!("oyama2016/model.json: {error}"));
    let mut check = ExactCheck::new("shapes and matrix products (eqs. 2-3, Table 2)", tolerance);
    let [input_maps, maps @ ..] = example.maps.as_slice() else {
        return Err(damaged("a network without layers".to_owned()));
    };
    let convolutions: Vec<(u64, u64)> = maps.iter().copied().zip(example.pooling.iter().copied()).collect();
    let connected = maps.get(convolutions.len()..).unwrap_or_default();
    let input = (*input_maps, example.input_side);
    let structure = Structure::new(input, example.filter, &convolutions, connected)
        .map_err(|error| damaged(error.to_string()))?;
    check.cases += 1;
    check.figure(structure.parameters() as f64, example.parameters);
    let sides: Vec<f64> = structure.layers().iter().map(|layer| layer.side as f64).collect();
    check.figures(&sides, example.sides.get(1..).unwrap_or_default());
    let unpooled: Vec<f64> = structure.layers().iter().map(|layer| layer.unpooled as f64).collect();
    check.figures(&unpooled, &example.unpooled);
    let products = structure.products(example.batch);
    check.figure(products.len() as f64, example.products.len() as f64);
    for product in products {
        let name = format!("{}({})", product.kernel.name(), product.layer);
        check.figures(&product.size, example.products.get(&name).map_or(&[], |size| size.as_slice()));
    }
    Ok(check)
}

/// The time of a matrix product between eight measured ones (eq. 6).
pub(super) fn check_interpolation(cases: &[Interpolation], tolerance: f64) -> ExactCheck {
    let mut check = ExactCheck::new("interpolated matrix products (eq. 6)", tolerance);
    for case in cases {
        let found = trilinear(case.lo, case.hi, case.corners.map(Seconds::new), case.query);
        check.cases += 1;
        check.figure(found.get(), case.predicted);
    }
    check
}

/// The paper's search: configurations with a minibatch near the target, the shortest epoch first.
pub(super) fn check_search(golden: &Golden) -> BoundCheck {
    let search = &golden.search;
    let mut found: Vec<(u32, u32, Seconds)> = Vec::new();
    for configuration in &golden.configurations {
        let threads = threads(golden, configuration);
        let Some(steady) = threads.steady() else { continue };
        if (steady.minibatch - search.target).abs() <= search.tolerance * search.target {
            let epoch = steady.epoch(golden.samples, &threads);
            found.push((configuration.nodes, configuration.batch, epoch));
        }
    }
    found.sort_by(|a, b| a.2.get().total_cmp(&b.2.get()));
    let found: Vec<(u32, u32)> = found.into_iter().map(|(nodes, batch, _)| (nodes, batch)).collect();
    let words = |ranked: &[(u32, u32)]| {
        let each: Vec<String> = ranked.iter().map(|(nodes, batch)| format!("{nodes}×{batch}")).collect();
        each.join(", ")
    };
    BoundCheck {
        what: "search, nodes × batch in order".to_owned(),
        bound: words(&search.ranked),
        found: words(&found),
        holds: found == search.ranked,
    }
}
