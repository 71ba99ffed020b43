//! Oyama 2016 (SPRINT): the model's equations against values that were worked out independently of the code, the
//! consistency and the ranking of Table 10, and the closed form against SPRINT's threads simulated as events.
//!
//! The paper publishes neither its coefficients nor the channels of its networks, so its measured times cannot be
//! predicted: no case of this set is a measured run.

mod data;
mod model;
mod simulated;
mod table10;
mod tables;

use crate::{BoundCheck, Evidence, ExactCheck, Options, Progress, Report, Set, ValidationError};
use serde::Serialize;
use simulated::SimulatedThreads;
use table10::PrintedCondition;

const NAME: &str = "oyama2016";

const ABOUT: &str = "Oyama et al. 2016 (SPRINT, in Japanese): configurations worked out independently of the code, the \
                     printed Table 10, and the closed form against simulated threads. The paper's coefficients are not \
                     published, so none of its times is predicted here.";

/// The set.
pub(super) struct Oyama2016;

impl Set for Oyama2016 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let reproduction = reproduce()?;
        let evidence = Evidence::exact(&reproduction.checks);
        let mut report = Report::new(NAME, reproduction.holds(), ABOUT, evidence, &reproduction)?;
        report.sections = tables::sections(&reproduction);
        Ok(report)
    }
}

/// All figures, recomputed.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Reproduction {
    /// Figures against their exact values.
    checks: Vec<ExactCheck>,
    /// Table 10 as printed.
    table10: Vec<PrintedCondition>,
    /// The closed form and the simulated threads.
    simulated: Vec<SimulatedThreads>,
    /// The bounds beyond exact values, checked.
    bounds: Vec<BoundCheck>,
}

impl Reproduction {
    /// Whether every bound is kept.
    fn holds(&self) -> bool {
        self.checks.iter().all(ExactCheck::holds) && self.bounds.iter().all(|bound| bound.holds)
    }
}

fn reproduce() -> Result<Reproduction, ValidationError> {
    let bounds: data::Bounds = crate::bounds::of(NAME)?;
    let golden = data::golden()?;
    let table10 = data::table10()?;
    let checks = vec![
        model::check_configurations(&golden, bounds.deviation.configurations),
        model::check_barrier(&data::barriers()?, bounds.deviation.barrier),
        model::check_products(&golden.structure_example, bounds.deviation.products)?,
        model::check_interpolation(&golden.sgemm_trilinear, bounds.deviation.interpolation),
        table10::check(&table10, bounds.deviation.table10),
    ];
    let simulated = simulated::run(&golden.coefficients)?;
    let bounds = vec![
        model::check_search(&golden),
        table10::check_order(&table10, bounds.order.pairs),
        simulated::check(&simulated, bounds.simulated.gpu),
    ];
    Ok(Reproduction { checks, table10, simulated, bounds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_kept() {
        let reproduction = reproduce().unwrap();
        assert!(reproduction.holds(), "{reproduction:#?}");
        let cases: Vec<usize> = reproduction.checks.iter().map(|check| check.cases).collect();
        assert_eq!(cases, [20, 90, 1, 5, 6]);
        assert_eq!((reproduction.table10.len(), reproduction.simulated.len()), (6, 9));
    }
}
