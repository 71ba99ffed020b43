//! The sources of a prediction's uncertainty.

use crate::format::{percent, significant};
use crate::table::Table;
use crate::table::{Hint, Wording};
use stepcast_study::predict::calibrate::Calibration;
use stepcast_study::predict::interval::{AssumedFigure, Interval, Level};

/// Least share of the model error for which an assumption is listed here; the full list has the rest.
const NOTICED: f64 = 0.02;

/// Most assumptions beside the other sources.
const SHOWN: usize = 4;

/// Effect of each source on the throughput, in both directions.
pub(super) fn sources(interval: &Interval) -> Table {
    let mut table = Table::new("Uncertainty", ["source", "#throughput", "~"]);
    let both = |slower: f64, faster: f64| {
        format!("−{} +{}", percent(1.0 - (-slower).exp()), percent(faster.exp() - 1.0))
    };
    if let Some(sampling) = interval.sampling {
        table.row(["sampling".to_owned(), both(sampling, sampling), "spread of simulated runs".to_owned()]);
    }
    for effect in &interval.by_input {
        table.row(["inputs".to_owned(), both(effect.slower, effect.faster), effect.key.clone()]);
    }
    let noticed = interval.by_assumption.iter().filter(|assumption| assumption.share >= NOTICED);
    for assumption in noticed.take(SHOWN) {
        let share = format!("{}: {} of the uncertainty", assumption.name, percent(assumption.share));
        table.row(["assumed".to_owned(), both(assumption.width, assumption.width), share]);
    }
    if let Some(most) = interval.by_assumption.first() {
        table.hints = vec![Hint::NarrowInterval(most.remedy.clone()), Hint::Assumptions];
    }
    let basis = &interval.basis;
    let families = match basis.level {
        Level::Published => "clusters and devices",
        _ => "networks or set-ups",
    };
    let measured = match basis.cases {
        0 => format!("{}: no measured run of this kind; data sheets and papers", basis.what),
        cases => {
            format!(
                "{}: {cases} measured runs of {} {families} ({})",
                basis.what,
                basis.groups,
                basis.sets.join(", ")
            )
        }
    };
    table.row(["model error".to_owned(), both(interval.model, interval.model), measured]);
    table
}

/// Every figure that is assumed, with its source, and how to replace it.
pub fn assumptions(interval: &Interval, words: Wording) -> Table {
    let mut table =
        Table::new("Assumed figures", ["assumed", "#share", "~figures, sources and how to replace them"]);
    let figure = |figure: &AssumedFigure| {
        format!("{} {} {} ({})", figure.name, significant(figure.value), figure.unit, figure.source)
    };
    for assumption in &interval.by_assumption {
        let mut about: Vec<String> = assumption.figures.iter().map(figure).collect();
        about.push(format!("to replace it: {}", assumption.remedy.worded(words.remedy)));
        table.row([assumption.name.clone(), percent(assumption.share), about.join("; ")]);
    }
    table.note =
        "Shares are of the variance of the model error. docs/priors.md explains the figures.".to_owned();
    table
}

/// Assumed figures that measured runs have corrected.
pub fn corrections(calibration: &Calibration) -> Table {
    let mut table =
        Table::new("Corrected by measured runs", ["assumed", "#corrected by", "#known to", "#before"]);
    let spread = |sd: f64| format!("±{}", percent(sd.exp_m1()));
    for correction in &calibration.corrections {
        table.row([
            correction.name.clone(),
            format!("×{}", significant(correction.factor)),
            spread(correction.spread),
            spread(correction.spread_before),
        ]);
    }
    table
}
