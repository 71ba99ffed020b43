//! The plot of a search: time against cost.

use crate::plots::pareto::{Choice, Pareto};
use stepcast_study::explore::search::{Entry, SearchReport};

/// The best configurations, the front, and the first of the best as the chosen one; empty without prices.
pub fn pareto(report: &SearchReport, name: &str) -> Pareto {
    let others =
        report.best.iter().filter(|entry| !report.front.iter().any(|other| other.index == entry.index));
    Pareto {
        title: format!("Time and cost of training {name}"),
        currency: report.currency.clone(),
        candidates: others.filter_map(choice).collect(),
        front: report.front.iter().filter_map(choice).collect(),
        chosen: report.best.first().and_then(choice),
    }
}

/// One configuration, if its time and cost are known.
pub fn choice(entry: &Entry) -> Option<Choice> {
    let values = entry.values.iter().map(|(key, value)| format!("{} {value}", brief(key)));
    Some(Choice {
        name: values.collect::<Vec<_>>().join(", "),
        index: Some(entry.index),
        time: entry.figures.training?,
        cost: entry.figures.cost?,
    })
}

/// A key without its section.
fn brief(key: &str) -> &str {
    key.split_once('.').map_or(key, |(_, rest)| rest)
}
