//! A running job against its forecast.

use crate::format::{duration, percent, plain, several};
use crate::table::Table;
use crate::words::Wording;
use stepcast_study::check::{Check, Verdict};

/// Causes with a smaller share are left to JSON.
const NOTICED: f64 = 0.01;

/// The verdict in one sentence.
pub fn verdict(check: &Check) -> String {
    let ratio = match check.ratio {
        ratio if ratio >= 1.0 => format!("{} longer than forecast", percent(ratio - 1.0)),
        ratio => format!("{} shorter than forecast", percent(1.0 - ratio)),
    };
    let place = match (check.verdict, check.interval.is_some()) {
        (_, false) => "the forecast has no interval",
        (Verdict::AsForecast, true) => "inside its 90 % interval",
        (Verdict::Slower | Verdict::Faster, true) => "outside its 90 % interval",
    };
    format!("Steps are {ratio}, {place}.")
}

/// Measured, forecast and corrected steps.
pub fn steps(check: &Check) -> Table {
    let mut table = Table::new("", ["step", "#time", "~"]);
    let left_out = match check.left_out {
        0 => String::new(),
        steps => format!(", after {steps} of warm-up"),
    };
    let measured = match check.steps as u64 {
        1 => format!("one step{left_out}"),
        steps => format!("median of {}{left_out}", several(steps, "step")),
    };
    let interval =
        check.interval.map(|[low, high]| format!("90 % interval {}–{}", low.human(), high.human()));
    table.row(["measured".to_owned(), check.measured.human(), measured]);
    table.row(["forecast".to_owned(), check.forecast.human(), interval.unwrap_or_default()]);
    let corrected = "assumed figures corrected by what was measured".to_owned();
    table.row(["corrected".to_owned(), check.corrected.human(), corrected]);
    if let Some(rest) = &check.rest {
        let steps = format!("{} as measured", several(rest.steps, "step"));
        table.row(["rest of the run".to_owned(), duration(rest.time), steps]);
    }
    table
}

/// What may be off, and by how much.
pub fn suspects(check: &Check, words: Wording) -> Table {
    let mut table = Table::new("What may be off", ["assumed", "#likely", "#alone", "~how to know"]);
    for suspect in check.suspects.iter().filter(|suspect| suspect.share >= NOTICED) {
        let factor = suspect.factor.map_or_else(|| "–".to_owned(), |factor| format!("×{factor:.2}"));
        table.row([
            suspect.name.clone(),
            percent(suspect.share),
            factor,
            plain(&suspect.remedy.worded(words.remedy)),
        ]);
    }
    table
}
