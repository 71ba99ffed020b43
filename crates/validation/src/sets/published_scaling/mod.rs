//! Published runs of several workers from 11 sources, each predicted from names and the throughput of one worker alone by
//! the method that a user gets: no figure of a cluster is fitted.
//!
//! The constants of what machines reach (catalog/priors.toml) were fitted to most of these runs, so this is how well one
//! set of constants describes all of them. research/priors says how errors grow when a source is left out.

mod data;
mod predictions;
mod scenario;

use crate::{BoundCheck, ErrorBounds, Evidence, Measured, Options, Progress, Report, Set, ValidationError};
use predictions::{Bounds, Predictions, Summary};
use stepcast_report::format::name;
use stepcast_report::table::{Column, Table};

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
        let evidence = Evidence::Measured(Measured {
            cases: found.runs.iter().map(|run| run.case.clone()).collect(),
            other_cases: Vec::new(),
            bounds: ErrorBounds { mean: bounds.mean, worst: bounds.worst },
            bounded_by_group: true,
        });
        let mut report = Report::new(NAME, found.holds(), ABOUT, evidence, &found)?;
        report.verdict = BoundCheck::verdict(&found.bounds);
        report.push(by_family(&found));
        report.push(table("Means over families", &found.places));
        report.push(BoundCheck::table(&found.bounds));
        Ok(report)
    }
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
