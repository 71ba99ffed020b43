//! Li 2020: the event engine against traces that were worked out exactly (Algorithm 3.1), the sharing of links to two
//! servers, and the two coarser models that the paper compares with.
//!
//! The paper's own profiles are not published; measured runs of the same kind are in the set `tf-ps`.

mod baselines;
mod data;
mod program;
mod sharing;
mod tables;
mod traces;

use crate::{Evidence, ExactCheck, Options, Progress, Report, Set, ValidationError};
use program::Links;
use serde::Serialize;
use traces::TraceThroughput;

const NAME: &str = "li2020";

const ABOUT: &str = "Li et al. 2020, doi 10.1145/3358960.3379141: traces of asynchronous training worked out in exact \
                     fractions, simulated step by step. Nothing here is measured; tf-ps holds measured runs.";

/// The set.
pub(super) struct Li2020;

impl Set for Li2020 {
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

/// All traces, simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Reproduction {
    /// Figures against their exact values.
    checks: Vec<ExactCheck>,
    /// The throughput of every trace by the engine and by the coarser models.
    traces: Vec<TraceThroughput>,
}

impl Reproduction {
    /// Whether every bound is kept.
    fn holds(&self) -> bool {
        self.checks.iter().all(ExactCheck::holds)
    }
}

fn reproduce() -> Result<Reproduction, ValidationError> {
    let bounds: data::Bounds = crate::bounds::of(NAME)?;
    let golden = data::golden()?;
    let traces = bounds.deviation.traces;
    let checks = vec![
        traces::check(&golden.traces, Links::Pools, traces)?,
        traces::check(&golden.traces, Links::Ports, traces)?,
        sharing::check(&golden.sharing, bounds.deviation.sharing),
        baselines::check(&golden.baselines, bounds.deviation.baselines),
    ];
    let traces = golden.traces.iter().map(TraceThroughput::of).collect::<Result<_, _>>()?;
    Ok(Reproduction { checks, traces })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_kept() {
        let reproduction = reproduce().unwrap();
        assert!(reproduction.holds(), "{reproduction:#?}");
        let cases: Vec<usize> = reproduction.checks.iter().map(|check| check.cases).collect();
        assert_eq!(cases, [20, 20, 9, 7]);
        for trace in &reproduction.traces {
            assert!((trace.simulate / trace.exact - 1.0).abs() < 1e-12, "{trace:?}");
        }
    }
}
