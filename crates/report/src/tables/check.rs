//! A running job against its forecast; contracts for the two parties: expected figures, and the test.

use crate::format::{duration, money, percent, percent_with_decimal, plain, rough, several};
use crate::table::Table;
use crate::table::Wording;
use std::fmt::Write;
use stepcast_study::check::ranks::{SlowCause, SlowKind};
use stepcast_study::check::{Check, RunningForecast, Slowness, StepDistribution, Verdict};
use stepcast_study::contract::{Acceptance, Contract, Expected, Outcome};

/// Causes with a smaller share are left to JSON.
const NOTICED: f64 = 0.01;

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
    let StepDistribution { spread, tails: [most, tail, _], drift, .. } = &check.distribution;
    if check.steps > 1 {
        let drift = drift.map_or(String::new(), |drift| match drift > 0.0 {
            true => format!("; the last third is {} longer than the first", percent(drift)),
            false => format!("; the last third is {} shorter than the first", percent(-drift)),
        });
        let tails = format!("95 % up to {}, 99 % up to {}{drift}", most.human(), tail.human());
        table.row(["spread".to_owned(), format!("{:.1} %", 100.0 * spread), tails]);
    }
    if let Some(rest) = &check.rest {
        let steps = format!("{} as measured", several(rest.steps, "step"));
        table.row(["rest of the run".to_owned(), duration(rest.time), steps]);
    }
    table
}

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

pub fn slow_verdict(slow: &Slowness) -> String {
    match slow.causes.first() {
        None => format!("No rank, link or pause stands out among {} ranks.", slow.ranks),
        Some(SlowCause { kind, name, gain, .. }) => {
            let name = match kind {
                SlowKind::Link => format!("the link of {name}"),
                SlowKind::Pauses => format!("pauses ({name})"),
                SlowKind::DataLoading => format!("loading of data on {name}"),
                SlowKind::Host => format!("the host of {name}"),
                SlowKind::Rank | SlowKind::Machine | SlowKind::Stage | SlowKind::Documents => name.clone(),
            };
            format!("Slow: {name}. Steps would be {} shorter without it.", percent_with_decimal(*gain))
        }
    }
}

pub fn slowness(slow: &Slowness) -> Table {
    let mut table = Table::new("Who is slow", ["cause", "#slower", "#costs a step", "#gain", "~what to do"]);
    for SlowCause { kind, name, factor, cost, gain } in &slow.causes {
        let remedy = match kind {
            SlowKind::Rank => "check its clock and temperature; replace the GPU",
            SlowKind::Machine => "check power, cooling and other jobs; replace the machine",
            SlowKind::Stage => "give it fewer layers",
            SlowKind::Link => "check cable, port and route",
            SlowKind::Documents => "pack documents to equal work",
            SlowKind::DataLoading => "more loading processes, or data nearby",
            SlowKind::Host => "check its processors and what else runs on them",
            SlowKind::Pauses => "collect garbage on all ranks at once; write checkpoints asynchronously",
        };
        let cells = [
            name.clone(),
            format!("×{factor:.2}"),
            cost.human(),
            percent_with_decimal(*gain),
            remedy.to_owned(),
        ];
        table.row(cells);
    }
    table
}

pub fn running(running: &RunningForecast, currency: &str) -> Table {
    let mut table = Table::of_figures("The run");
    let mut row = |name: &str, value: String, more: String| table.row([name.to_owned(), value, more]);
    let share = running.done as f64 / running.steps.max(1) as f64;
    row("done", percent(share), format!("{} of {}", running.done, several(running.steps, "step")));
    let lost = format!(
        "{} ({} repeated); {} ({} stopped)",
        several(running.restarts, "restart"),
        several(running.lost_steps, "step"),
        several(running.pauses, "pause"),
        duration(running.paused)
    );
    row("goodput", percent_with_decimal(running.goodput), lost);
    let [least, most] = running.rest_interval.map(duration);
    row(
        "rest",
        duration(running.rest),
        format!("90 % interval {least}–{most}, after {}", duration(running.elapsed)),
    );
    if let Some(cost) = running.cost {
        row("cost", format!("{} {currency}", money(cost)), "of the whole run".to_owned());
    }
    if let Some(chance) = running.in_time {
        row("deadline", percent(chance), "chance to meet it".to_owned());
    }
    table
}

pub fn expected(contract: &Contract) -> Table {
    let mut table = Table::new("Expected", ["figure", "#value", "#90 % interval", "~"]);
    for Expected { name, value, interval, unit } in &contract.expected {
        let [low, high] = interval.map(rough);
        table.row([(*name).to_owned(), rough(*value), format!("{low}–{high}"), (*unit).to_owned()]);
    }
    table
}

pub fn rules(contract: &Contract) -> Vec<String> {
    let terms = &contract.terms;
    let [kept, broken] = contract.usual_steps;
    vec![
        format!("The cluster keeps the contract if a step takes at most {}.", terms.agreed_step.human()),
        format!(
            "Steps are measured one after the other, without those of the warm-up, and judged ten at a time. Means of ten \
             steps are taken to differ by {}.",
            percent(terms.spread)
        ),
        format!(
            "The test ends as soon as it is decided, after {} at the latest: usually after {kept} if the step is the agreed \
             one, after {broken} if it is {} longer.",
            several(contract.most_steps, "step"),
            percent(terms.tolerance)
        ),
        format!(
            "A cluster that keeps the contract fails in at most {} of all tests; one that is {} slower passes in at most {}.",
            percent(terms.false_alarm),
            percent(terms.tolerance),
            percent(terms.miss)
        ),
    ]
}

/// The page for both parties, as Markdown, with the scenario as TOML and the command of the test.
pub fn contract_page(contract: &Contract, title: &str, scenario: &str, command: &str) -> String {
    let mut page = format!(
        "# Acceptance test: {title}\n\n## Expected\n\n| figure | value | 90 % interval | unit |\n|---|---|---|---|\n"
    );
    // Writing to a text cannot fail.
    for row in &expected(contract).rows {
        let _ = writeln!(page, "| {} |", row.cells.join(" | "));
    }
    page += "\n## The test\n\n";
    for rule in rules(contract) {
        let _ = writeln!(page, "- {rule}");
    }
    let _ = write!(
        page,
        "\nRun the scenario below, keep its log, and ask\n\n    {command}\n\n\
         ## The scenario (job.toml)\n\n```toml\n{scenario}```\n\n## Agreed\n\n| | name, date |\n|---|---|\n| supplier | |\n| buyer | |\n"
    );
    page
}

pub fn acceptance(acceptance: &Acceptance) -> String {
    let Acceptance { outcome, steps, most_steps, mean, agreed } = acceptance;
    let (steps, most) = (several(*steps, "step"), several(*most_steps, "step"));
    let means = format!("a mean of {}, agreed {}", mean.human(), agreed.human());
    match outcome {
        Outcome::Kept => format!("The contract is kept: decided after {steps} with {means}."),
        Outcome::Broken => format!("The cluster is below specification: decided after {steps} with {means}."),
        Outcome::Open => {
            format!(
                "The contract is not decided after {steps} with {means}; it is after {most} at the latest."
            )
        }
    }
}
