//! A search as text: the best, the front, what was excluded, and why the runner-up lost.

use super::forecast::section;
use super::sweep::titles;
use super::table;
use super::{Screen, count, duration, grouped, limit, money, name, percent, several};
use stepcast_core::quantity::Seconds;
use stepcast_report::table::{Column, Table};
use stepcast_study::explore::search::{Entry, Excluded, How, Objective, Report};
use stepcast_study::explore::sweep::Variants;

/// Rows of the front that are shown.
const FRONT: usize = 12;

/// The whole answer, its last line ended.
pub(crate) fn render(variants: &Variants<'_>, report: &Report, screen: &Screen) -> String {
    let mut sections = vec![screen.paragraph(0, &summary(report))];
    sections.push(section(&title(report), entries(variants, report, &report.best, screen), screen));
    let words: Vec<String> =
        report.runner_up.iter().chain(&report.without_constraints).map(|text| plain(text)).collect();
    if !words.is_empty() {
        let paragraphs: String = words.iter().map(|text| screen.paragraph(2, text)).collect();
        sections.push(section("Why not another", paragraphs, screen));
    }
    if report.front.len() > 1 {
        sections.push(section("Time against cost", front(variants, report, screen), screen));
    }
    if !report.constraints.is_empty() {
        sections.push(section("Constraints", constraints(&report.constraints, screen), screen));
    }
    sections.join("\n")
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn title(report: &Report) -> String {
    let what = match report.objective {
        Objective::Iteration => "Shortest step",
        Objective::Epoch => "Shortest epoch",
        Objective::Time => "Shortest training",
        Objective::Cost => "Cheapest training",
        Objective::CostTime => "Least cost times time",
    };
    match report.gap {
        Some(gap) if gap <= 0.0 => what.to_owned(),
        _ => format!("{what} that was found"),
    }
}

fn summary(report: &Report) -> String {
    let how = match report.how {
        How::Exhaustive => "one by one",
        How::Bound => "by branch and bound",
        How::Heuristic => "by local search",
    };
    let gap = match report.gap {
        Some(gap) if gap <= 0.0 => "nothing better exists among them".to_owned(),
        Some(gap) => format!("the optimum is at most {} below the best shown", percent(gap)),
        None => "how far the optimum is from the best shown is not known".to_owned(),
    };
    let refused = match (report.refused, &report.refusal) {
        (0, _) | (_, None) => String::new(),
        (refused, Some(why)) => format!(" {} refused, the first because {}.", count(refused), plain(why)),
    };
    format!(
        "Searched {} {how}: {} predicted, {} keep to all constraints. It ended because {}; {gap}.{refused}",
        several(report.configurations, "configuration"),
        count(report.evaluated),
        count(report.admitted),
        report.stopped,
    )
}

/// "batch 32, servers.count 2".
fn configuration(variants: &Variants<'_>, entry: &Entry) -> String {
    let titles = titles(variants.axes());
    let words = entry.values.iter().zip(titles).map(|((_, value), title)| format!("{title} {}", name(value)));
    words.collect::<Vec<_>>().join(", ")
}

fn entries(variants: &Variants<'_>, report: &Report, rows: &[Entry], screen: &Screen) -> String {
    let trains = rows.iter().any(|row| row.figures.training.is_some());
    let costs = rows.iter().any(|row| row.figures.cost.is_some());
    let money_title = format!("cost/{}", name(&report.currency));
    let mut columns = vec![Column::numbers(""), Column::words("configuration")];
    if trains {
        columns.push(Column::numbers("training"));
    }
    if costs {
        columns.push(Column::numbers(&money_title));
    }
    columns.extend([
        Column::numbers("step time"),
        Column::numbers("throughput"),
        Column::names("bottleneck"),
    ]);
    let mut table = Table::new("", columns);
    for (place, entry) in rows.iter().enumerate() {
        let figures = &entry.figures;
        let mut cells = vec![(place + 1).to_string(), configuration(variants, entry)];
        if trains {
            cells.push(figures.training.map_or(String::new(), duration));
        }
        if costs {
            cells.push(figures.cost.map_or(String::new(), money));
        }
        cells.extend([
            figures.iteration.human(),
            grouped(figures.throughput.human()),
            limit(figures.bottleneck).to_owned(),
        ]);
        table.row(cells);
    }
    table::render(&table, screen)
}

/// The front, thinned out evenly where it is long.
fn front(variants: &Variants<'_>, report: &Report, screen: &Screen) -> String {
    let all = &report.front;
    let shown: Vec<&Entry> = match all.len() {
        0..=FRONT => all.iter().collect(),
        long => (0..FRONT).map(|place| &all[place * (long - 1) / (FRONT - 1)]).collect(),
    };
    let mut table = Table::new(
        "",
        [Column::numbers("training"), Column::numbers("cost"), Column::words("configuration")],
    );
    for entry in &shown {
        let time = entry.figures.training.unwrap_or(Seconds::ZERO);
        let cost = entry.figures.cost.unwrap_or(0.0);
        table.row([duration(time), money(cost), configuration(variants, entry)]);
    }
    let mut text = table::render(&table, screen);
    let of = if report.how == How::Exhaustive { "" } else { " among those predicted" };
    let note = if all.len() > shown.len() {
        format!("{} of {}; `--json` has them all. ", shown.len(), count(all.len() as u64))
    } else {
        String::new()
    };
    text.push_str(&screen.paragraph(2, &format!("{note}Nothing{of} is both faster and cheaper.")));
    text
}

fn constraints(rows: &[Excluded], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("constraint"),
            Column::numbers("excludes"),
            Column::numbers("alone"),
            Column::words(""),
        ],
    );
    for row in rows {
        let nearest = row.nearest.clone().unwrap_or_default();
        table.row([plain(&row.constraint), count(row.excluded), count(row.alone), nearest]);
    }
    table::render(&table, screen)
}
