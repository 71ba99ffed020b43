//! Methods side by side, as text.

use super::forecast::{question, section};
use super::table;
use super::{Screen, grouped, limit, percent};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::compare::{Answer, Comparison, Effects, Figures, Refusal};

/// The comparison, its last line ended.
pub(crate) fn render(scenario: &Scenario, comparison: &Comparison, screen: &Screen) -> String {
    let mut sections = vec![question(scenario, screen)];
    let predicted: Vec<(&str, &Figures)> = comparison
        .rows
        .iter()
        .filter_map(|row| match &row.answer {
            Answer::Predicted(figures) => Some((row.method, figures)),
            Answer::Refused(_) => None,
        })
        .collect();
    let refused: Vec<(&str, &Refusal)> = comparison
        .rows
        .iter()
        .filter_map(|row| match &row.answer {
            Answer::Predicted(_) => None,
            Answer::Refused(why) => Some((row.method, why)),
        })
        .collect();
    if !predicted.is_empty() {
        sections.push(answers(&predicted, comparison.chosen, screen));
        let told: Vec<(&str, &Effects)> = predicted
            .iter()
            .filter_map(|(method, figures)| Some((*method, figures.effects.as_ref()?)))
            .collect();
        if !told.is_empty() {
            let table = effects(&told, screen);
            let sentences = comparison.differences.iter().map(|sentence| screen.paragraph(2, sentence));
            sections.push(section("What a step is made of", table + &sentences.collect::<String>(), screen));
        }
    }
    if !refused.is_empty() {
        sections.push(section("Methods that do not apply", refusals(&refused, screen), screen));
    }
    sections.join("\n")
}

fn answers(rows: &[(&str, &Figures)], chosen: Option<&str>, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("method"),
            Column::numbers("step time"),
            Column::numbers("throughput"),
            Column::numbers("scaling factor"),
            Column::names("bottleneck"),
            Column::names(""),
        ],
    );
    for (method, figures) in rows {
        table.row([
            (*method).to_owned(),
            figures.iteration.human(),
            grouped(figures.throughput.human()),
            percent(figures.scaling_factor),
            limit(figures.bottleneck).to_owned(),
            if chosen == Some(method) { "◂ auto".to_owned() } else { String::new() },
        ]);
    }
    table::render(&table, screen)
}

fn effects(rows: &[(&str, &Effects)], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("method"),
            Column::numbers("computing"),
            Column::numbers("not overlapped"),
            Column::numbers("contention"),
            Column::numbers("start-up"),
        ],
    );
    // What is nothing but rounding is nothing.
    let time = |time: Seconds, step: Seconds| match (time / step).abs() < 1e-9 {
        true => "0".to_owned(),
        false => time.human().replace('-', "−"),
    };
    for (method, effects) in rows {
        let times = effects.named().map(|(_, time)| time);
        let step = times.iter().copied().sum();
        let [computing, not_overlapped, contention, startup] = times.map(|part| time(part, step));
        table.row([(*method).to_owned(), computing, not_overlapped, contention, startup]);
    }
    table::render(&table, screen)
}

fn refusals(rows: &[(&str, &Refusal)], screen: &Screen) -> String {
    let mut table =
        Table::new("", [Column::names("method"), Column::words("why"), Column::words("what to change")]);
    for (method, why) in rows {
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect();
        table.row([(*method).to_owned(), plain(&why.reason), plain(&why.remedy)]);
    }
    table::render(&table, screen)
}
