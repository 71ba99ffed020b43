//! Contracts for the two parties: what is expected, and how it is tested.

use crate::format::{percent, rough, several};
use crate::table::Table;
use std::fmt::Write;
use stepcast_study::contract::{Acceptance, Contract, Expected, Outcome};

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

/// The page for both parties, as Markdown, with the scenario as TOML and how the test is asked for.
pub fn page(contract: &Contract, title: &str, scenario: &str, command: &str) -> String {
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

pub fn verdict(acceptance: &Acceptance) -> String {
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
