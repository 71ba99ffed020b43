//! The plot of a search: time against cost.

use crate::plots::pareto::{Choice, Pareto};
use crate::tables::search::configuration;
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
    Some(Choice {
        name: configuration(entry),
        index: Some(entry.index),
        time: entry.figures.training?,
        cost: entry.figures.cost?,
    })
}
