//! Published runs of several workers from 11 sources, each predicted from names and the throughput of one worker alone by
//! the method that a user gets: no figure of a cluster is fitted.
//!
//! The constants of what machines reach (catalog/priors.toml) were fitted to most of these runs, so this is how well one
//! set of constants describes all of them. research/priors says how errors grow when a source is left out.

mod data;
mod predictions;
mod scenario;

use crate::coverage::Coverage;
use crate::priors::Observation;
use crate::{BoundCheck, Errors, Evidence, Options, Progress, Report, Set, ValidationError};
use data::Run;
use predictions::{Bounds, Predicted, Predictions, Summary};
use rayon::prelude::*;
use std::sync::Arc;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::name;
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::methods;

/// Runs that are this much faster than linear are not fitted: their throughput alone is that of something else.
const BEYOND_LINEAR: f64 = 1.15;

const NAME: &str = "published-scaling";

const ABOUT: &str = "Throughput of several workers published by 11 sources (validation/published-scaling/sources.csv), \
                     predicted from the names of devices and networks and the throughput of one worker alone. The \
                     constants of catalog/priors.toml were fitted to these runs; nothing is fitted to a cluster.";

/// The set.
pub(super) struct PublishedScaling;

impl Set for PublishedScaling {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, progress: &Progress<'_>) -> Result<Report, ValidationError> {
        let bounds: Bounds = crate::bounds::of(NAME)?;
        let found = predictions::predict(&bounds, progress)?;
        let evidence = Evidence::Assumed {
            errors: Errors::of("predicted", found.runs.iter().map(Predicted::ratio)),
            coverage: Coverage { cases: found.runs.len(), inside: found.inside(), ..Coverage::default() },
            bound: bounds.to_string(),
        };
        let mut report = Report::new(NAME, found.holds(), ABOUT, evidence, &found)?;
        report.verdict = BoundCheck::verdict(&found.bounds);
        report.push(by_family(&found));
        report.push(table("Means over families", &found.places));
        report.push(BoundCheck::table(&found.bounds));
        Ok(report)
    }
}

/// All-reduce runs that the priors are fitted to and judged by, and runs with parameter servers.
pub(crate) fn observations() -> Result<(Vec<Observation>, Vec<Observation>), ValidationError> {
    let runs = data::runs()?;
    let observed: Vec<(bool, Observation)> = runs
        .par_iter()
        .map(|run| Ok((run.is_served(), observation(run)?)))
        .collect::<Result<_, ValidationError>>()?;
    let (served, reduced): (Vec<_>, Vec<_>) = observed.into_iter().partition(|(served, _)| *served);
    let only = |runs: Vec<(bool, Observation)>| runs.into_iter().map(|(_, run)| run).collect();
    Ok((only(reduced), only(served)))
}

fn observation(run: &Run) -> Result<Observation, ValidationError> {
    let scenario = scenario::scenario(run)?;
    let method = methods::choose(&scenario)?;
    let samples = method.predict(&scenario)?.samples as f64;
    let linear = run.single_throughput * f64::from(run.gpus / run.gpus_per_worker());
    let source = run.family.split([' ', ',']).next().unwrap_or_default().to_owned();
    Ok(Observation {
        family: run.family.clone(),
        source,
        is_fitted: run.is_served() || (run.is_trusted() && run.throughput < BEYOND_LINEAR * linear),
        measured: (samples / run.throughput).ln(),
        predict: Box::new(move |priors| {
            let moved = Scenario { priors: Arc::new(priors.clone()), ..scenario.clone() };
            Ok(method.predict(&moved)?.iteration.get().ln())
        }),
    })
}

fn by_family(found: &Predictions) -> Table {
    table("By family (*: network, GPUs or machines had to be assumed)", &found.families)
}

fn table(title: &str, rows: &[Summary]) -> Table {
    let mut table = Table::new(
        title,
        [
            Column::names("family"),
            Column::numbers("runs"),
            Column::numbers("mean error"),
            Column::numbers("bias"),
            Column::numbers("in 90 % interval"),
            Column::numbers("half-width"),
        ],
    );
    for row in rows {
        let mark = if row.assumed { " *" } else { "" };
        table.row([
            format!("{}{mark}", name(&row.name)),
            row.runs.to_string(),
            format!("{:.1} %", row.mean),
            format!("{:+.1} %", row.bias),
            format!("{:.0} %", 100.0 * row.coverage),
            format!("{:.2}", row.half_width),
        ]);
    }
    table
}
