//! The best configurations of a search, its front, and its constraints.

use super::sweep::titles;
use super::thinned;
use crate::format::{
    bare_interval_of_rates, count, duration, grouped, limit, money, name, percent, plain, several,
};
use crate::sentences;
use crate::table::Hint;
use crate::table::Table;
use stepcast_core::quantity::Seconds;
use stepcast_study::explore::search::{Entry, Objective, SearchReport, SearchStrategy};

const FRONT: usize = 12;

fn title(report: &SearchReport) -> String {
    let what = match report.objective {
        Objective::Iteration => "Shortest step",
        Objective::Epoch => "Shortest epoch",
        Objective::Time => "Shortest training",
        Objective::Cost => "Cheapest training",
        Objective::CostTime => "Least cost × time",
    };
    match report.gap {
        Some(gap) if gap <= 0.0 => what.to_owned(),
        _ => format!("{what} that was found"),
    }
}

/// Search strategy, and knowledge about the optimum.
pub fn summary(report: &SearchReport) -> String {
    let how = match report.how {
        SearchStrategy::Exhaustive => "one by one",
        SearchStrategy::Bound => "by branch and bound",
        SearchStrategy::Heuristic => "by local search",
    };
    let gap = match report.gap {
        Some(gap) if gap <= 0.0 => "No better one exists among them.".to_owned(),
        Some(gap) => format!("The optimum is at most {} below the best shown.", percent(gap)),
        None => "How far the optimum is from the best shown is not known.".to_owned(),
    };
    let refused = match (report.refused, &report.refusal) {
        (0, _) | (_, None) => String::new(),
        (refused, Some(why)) => {
            format!(" {} could not be predicted, the first because {}.", count(refused), plain(why))
        }
    };
    let mixed = sentences::mixed(&report.methods).map_or(String::new(), |mixed| format!(" {mixed}"));
    format!(
        "Searched {} {how}: {} were predicted, {} satisfy all constraints. The search ended because {}. {gap}{refused}{mixed}",
        several(report.configurations, "configuration"),
        count(report.evaluated),
        count(report.admitted),
        report.stopped,
    )
}

/// "3 × Tesla T4, batch 32, servers.count 2".
pub fn configuration(entry: &Entry) -> String {
    let chosen = |key: &str| {
        let of_workers = key.starts_with("cluster.workers.") && !entry.devices.is_empty();
        of_workers && (key.ends_with(".count") || key.ends_with(".device"))
    };
    let (workers, others): (Vec<_>, Vec<_>) = entry.values.iter().partition(|(key, _)| chosen(key));
    let each = |(device, number): &(String, u64)| {
        format!("{} × {}", count(*number), name(device.strip_prefix("NVIDIA ").unwrap_or(device)))
    };
    let devices = entry.devices.iter().map(each).collect::<Vec<_>>().join(" and ");
    let titles = titles(&others.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>());
    let others = others.iter().zip(titles).map(|((_, value), title)| format!("{title} {}", name(value)));
    let devices = (!workers.is_empty()).then_some(devices);
    devices.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

pub fn best(report: &SearchReport) -> Table {
    let rows = &report.best;
    let trains = rows.iter().any(|row| row.figures.training.is_some());
    let costs = rows.iter().any(|row| row.figures.cost.is_some());
    let cost = format!("#cost/{}", name(&report.currency));
    let mut columns = vec!["#", "~configuration"];
    columns.extend(trains.then_some("#training"));
    columns.extend(costs.then_some(cost.as_str()));
    columns.extend(["#step time", "#throughput"]);
    let bounded = rows.iter().any(|row| row.figures.interval.is_some());
    columns.extend(bounded.then_some("#90 % interval"));
    let all_fit = rows.iter().all(|row| row.figures.fits);
    columns.extend((!all_fit).then_some("memory"));
    columns.push("bottleneck");
    let mut table = Table::new(title(report), columns);
    for (place, entry) in rows.iter().enumerate() {
        let figures = &entry.figures;
        let mut cells = vec![(place + 1).to_string(), configuration(entry)];
        if trains {
            cells.push(figures.training.map_or(String::new(), duration));
        }
        if costs {
            cells.push(figures.cost.map_or(String::new(), money));
        }
        cells.extend([figures.iteration.human(), grouped(figures.throughput.human())]);
        if bounded {
            cells.push(figures.interval.map_or(String::new(), bare_interval_of_rates));
        }
        if !all_fit {
            cells.push(if figures.fits { "fits" } else { "too little" }.to_owned());
        }
        cells.push(limit(figures.bottleneck).to_owned());
        table.row(cells);
    }
    if !all_fit {
        table.note = "Not all of them fit into memory.".to_owned();
    }
    table
}

/// The rows of [`front`]: all configurations, thinned out evenly where there are many.
pub fn front_rows(report: &SearchReport) -> Vec<&Entry> {
    thinned(&report.front, FRONT)
}

/// The configurations of which none is both faster and cheaper.
pub fn front(report: &SearchReport) -> Table {
    let all = &report.front;
    let shown = front_rows(report);
    let mut table = Table::new("Time against cost", ["#training", "#cost", "~configuration"]);
    for entry in &shown {
        let time = entry.figures.training.unwrap_or(Seconds::ZERO);
        let cost = entry.figures.cost.unwrap_or(0.0);
        table.row([duration(time), money(cost), configuration(entry)]);
    }
    let among = if report.how == SearchStrategy::Exhaustive { "" } else { " predicted" };
    table.note = format!("No other{among} configuration is both faster and cheaper.");
    if all.len() > shown.len() {
        table.note += &format!(" {} of {} are shown.", shown.len(), count(all.len() as u64));
        table.hints = vec![Hint::RowsInJson];
    }
    table
}

pub fn constraints(report: &SearchReport) -> Table {
    let mut table = Table::new("Constraints", ["constraint", "#excludes", "#alone", "~"]);
    for row in &report.constraints {
        let nearest = row.nearest.clone().unwrap_or_default();
        table.row([plain(&row.constraint), count(row.excluded), count(row.alone), nearest]);
    }
    table
}
