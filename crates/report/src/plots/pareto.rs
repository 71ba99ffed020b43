//! Time against cost: the configurations that were tried, and their Pareto front.

use crate::draw::{
    Axis, EDGE, Frame, Head, Mark, Shape, Spacing, Unit, WIDTH, drawable, extent, nothing, width,
};
use crate::format::several;
use crate::tables::search::configuration;
use stepcast_core::quantity::Seconds;
use stepcast_study::explore::plan::{Entry as PlanEntry, PlanReport};
use stepcast_study::explore::search::{Entry, SearchReport};

const HEIGHT: f64 = 320.0;
/// Figures that differ by a larger factor have a logarithmic axis.
const WIDE: f64 = 30.0;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pareto {
    pub title: String,
    pub currency: String,
    /// Configurations that were tried, without those of the front.
    pub candidates: Vec<Choice>,
    /// Configurations of which none is both faster and cheaper, the fastest first.
    pub front: Vec<Choice>,
    pub chosen: Option<Choice>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub name: String,
    /// Its number among all configurations, for pages that let it be chosen.
    pub index: Option<u64>,
    pub time: Seconds,
    pub cost: f64,
}

impl Choice {
    /// One configuration, if its time and cost are known.
    pub fn from_entry(entry: &Entry) -> Option<Self> {
        Some(Self {
            name: configuration(entry),
            index: Some(entry.index),
            time: entry.figures.training?,
            cost: entry.figures.cost?,
        })
    }
}

impl Pareto {
    /// The plans of `rows`, numbered from 1, and the best of all as 0; empty without tokens and prices.
    pub fn from_plans(report: &PlanReport, rows: &[&PlanEntry]) -> Self {
        let choice = |(number, entry): (u64, &PlanEntry)| {
            let name = format!("{}: {}", entry.machines, entry.words);
            Some(Choice { name, index: Some(number), time: entry.training?, cost: entry.cost? })
        };
        Self {
            title: format!("Time and cost of training {}", report.model),
            currency: report.currency.clone(),
            candidates: Vec::new(),
            front: (1..).zip(rows.iter().copied()).filter_map(choice).collect(),
            chosen: choice((0, &report.best)),
        }
    }

    /// The best configurations, the front, and the first of the best as the chosen one; empty without prices.
    pub fn from_search(report: &SearchReport, name: &str) -> Self {
        let is_in_front = |entry: &&Entry| report.front.iter().any(|other| other.index == entry.index);
        Self {
            title: format!("Time and cost of training {name}"),
            currency: report.currency.clone(),
            candidates: report
                .best
                .iter()
                .filter(|entry| !is_in_front(entry))
                .filter_map(Choice::from_entry)
                .collect(),
            front: report.front.iter().filter_map(Choice::from_entry).collect(),
            chosen: report.best.first().and_then(Choice::from_entry),
        }
    }

    pub fn svg(&self) -> String {
        let keep =
            |choices: &[Choice]| -> Vec<Choice> { choices.iter().filter(|c| good(c)).cloned().collect() };
        let (candidates, front) = (keep(&self.candidates), keep(&self.front));
        let chosen = self.chosen.as_ref().filter(|choice| good(choice));
        let all = || candidates.iter().chain(&front).chain(chosen);
        let times = extent(all().map(|choice| choice.time.get()));
        let costs = extent(all().map(|choice| choice.cost));
        let (Some(times), Some(costs)) = (times, costs) else {
            return nothing(
                &self.title,
                "There is nothing to show: no configuration has both a time and a cost.",
            );
        };
        let head = self.head(candidates.len(), front.len(), chosen);
        let money = Unit::Money(self.currency.clone());
        let across = axis("time of training", times, &Unit::Time);
        let upwards = axis("cost of training", costs, &money);
        let frame = Frame::new(across, upwards, WIDTH, head.height(WIDTH) + 26.0, HEIGHT);
        let description = self.description(&front, &money);
        let mut svg = frame.begin(&head, WIDTH, &description, |_| ());
        let place = |choice: &Choice| (frame.x(choice.time.get()), frame.y(choice.cost));
        svg.polyline(&staircase(&front.iter().map(place).collect::<Vec<_>>()), "s0 stroke");
        for (choices, shape, series) in [(&candidates, Shape::Ring, 5), (&front, Shape::Circle, 0)] {
            for choice in choices {
                svg.numbered(choice.index, &tooltip(choice, &money), |svg| {
                    svg.marker(place(choice), shape, series);
                });
            }
        }
        if let Some(choice) = chosen {
            let (x, y) = place(choice);
            svg.numbered(choice.index, &tooltip(choice, &money), |svg| {
                svg.marker((x, y), Shape::Diamond, 1);
                svg.rect([x - 7.5, y - 7.5, 15.0, 15.0], "s1 stroke", "");
            });
            // Above the area, the label overlaps nothing.
            let half = (width(&choice.name, "small") / 2.0).min(WIDTH / 2.0 - EDGE);
            let middle = x.clamp(EDGE + half, WIDTH - EDGE - half);
            svg.line([x, frame.top - 10.0, x, y - 7.5], "s1 stroke thin dotted");
            svg.words_within(middle, frame.top - 14.0, "small middle", &choice.name, WIDTH - 2.0 * EDGE);
        }
        svg.finish()
    }

    fn head(&self, candidates: usize, front: usize, chosen: Option<&Choice>) -> Head {
        let mut legend = Vec::new();
        if front > 0 {
            legend.push((Mark::Point(Shape::Circle, 0), "none is both faster and cheaper".to_owned()));
        }
        if candidates > 0 {
            legend.push((Mark::Point(Shape::Ring, 5), "others".to_owned()));
        }
        if chosen.is_some() {
            legend.push((Mark::Point(Shape::Diamond, 1), "chosen".to_owned()));
        }
        Head { title: self.title.clone(), note: String::new(), legend }
    }

    fn description(&self, front: &[Choice], money: &Unit) -> String {
        let figures = |choice: &Choice| {
            format!("{} for {}", Unit::Time.write(choice.time.get()), money.write(choice.cost))
        };
        let ends = front.first().zip(front.last()).map_or(String::new(), |(fastest, cheapest)| {
            format!(" The fastest takes {}, the cheapest {}.", figures(fastest), figures(cheapest))
        });
        let front = several(front.len() as u64, "configuration");
        format!("Time against cost of training; on the front: {front}.{ends}")
    }
}

fn good(choice: &Choice) -> bool {
    [choice.time.get(), choice.cost].iter().all(|&value| drawable(value) && value >= 0.0)
}

fn tooltip(choice: &Choice, money: &Unit) -> String {
    format!("{}: {}, {}", choice.name, Unit::Time.write(choice.time.get()), money.write(choice.cost))
}

fn axis(title: &str, (low, high): (f64, f64), unit: &Unit) -> Axis {
    if low > 0.0 && high / low > WIDE {
        return Axis::of(title, (low, high), Spacing::Logarithmic, unit, 6);
    }
    let from = if low > high / 2.0 { low } else { 0.0 };
    Axis::of(title, (from, high), Spacing::Linear, unit, 7)
}

/// Steps between the points: first horizontal, then vertical.
fn staircase(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for &(x, y) in points {
        if let Some(&(_, before)) = steps.last() {
            steps.push((x, before));
        }
        steps.push((x, y));
    }
    steps
}
