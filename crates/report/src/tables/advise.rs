//! What to measure before taking an offer.

use crate::format::{duration, money, percent};
use crate::table::Table;
use stepcast_study::advise::{ExperimentKind, ExperimentReport, MeasurementAdvice};

fn named(experiment: &ExperimentReport) -> String {
    let what = match experiment.kind {
        ExperimentKind::Gpu => "the kit",
        ExperimentKind::Collectives => "collectives",
        ExperimentKind::TwoMachines | ExperimentKind::Eighth => "steps",
    };
    format!("{what} on {}", experiment.machines)
}

pub fn verdict(advice: &MeasurementAdvice) -> String {
    let currency = &advice.currency;
    let amount = |value: f64| format!("{} {currency}", money(value));
    let first = advice.candidates.first().map_or("", |candidate| &candidate.machines);
    match advice.best() {
        Some(best) => format!(
            "Measure first: {} for {} ({}). Without it, {first} is the best choice, and a wrong choice costs {} on average; with \
             it, {} less.",
            named(best),
            duration(best.time),
            amount(best.price),
            amount(advice.regret),
            amount(best.value),
        ),
        None => format!(
            "Nothing is worth measuring: take {first}. A wrong choice costs {} on average, and no experiment saves more than \
             its price.",
            amount(advice.regret)
        ),
    }
}

pub fn candidates(advice: &MeasurementAdvice) -> Table {
    let is_timed = advice.candidates.iter().any(|candidate| candidate.in_time.is_some());
    let mut columns = vec!["offer", "#expected cost", "#±", "#time", "#cheapest"];
    columns.extend(is_timed.then_some("#in time"));
    let mut table = Table::new("Offers", columns);
    for candidate in &advice.candidates {
        let mut cells = vec![
            candidate.machines.clone(),
            format!("{} {}", money(candidate.cost), advice.currency),
            percent(candidate.half_width.exp() - 1.0),
            duration(candidate.time),
            percent(candidate.cheapest),
        ];
        cells.extend(candidate.in_time.map(percent));
        table.row(cells);
    }
    table.note = "cheapest: probability of being the cheapest.".to_owned();
    table
}

pub fn experiments(advice: &MeasurementAdvice) -> Table {
    let mut table = Table::new("Experiments", ["experiment", "#time", "#price", "#saves", "#gain"]);
    for experiment in &advice.experiments {
        table.row([
            named(experiment),
            duration(experiment.time),
            money(experiment.price),
            money(experiment.value),
            money(experiment.gain()),
        ]);
    }
    table.note = format!("In {}. saves: mean reduction of the cost of the choice.", advice.currency);
    table
}

/// How an experiment decides, a sentence for each offer that may be taken after it.
pub fn choices(advice: &MeasurementAdvice, experiment: &ExperimentReport) -> Vec<String> {
    let first = advice.candidates.first().map_or("", |candidate| &candidate.machines);
    let sentence = |choice: &stepcast_study::advise::ChoiceReport| {
        let moves = match choice.factor {
            factor if factor >= 1.0 => {
                format!("lengthens the forecast of {first} by about {}", percent(factor - 1.0))
            }
            factor => format!("shortens the forecast of {first} by about {}", percent(1.0 - factor)),
        };
        let saving = match choice.machines == first {
            true => "as without it".to_owned(),
            false => format!("which then saves {} {}", money(choice.saving), advice.currency),
        };
        format!("If it {moves} (chance {}): take {}, {saving}.", percent(choice.chance), choice.machines)
    };
    experiment.choices.iter().map(sentence).collect()
}
