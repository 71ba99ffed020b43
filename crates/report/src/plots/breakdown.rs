//! The parts of a step for several numbers of workers, as stacked bars.

use crate::draw::{
    Axis, BELOW, Frame, Head, Mark, Spacing, Svg, Unit, WIDTH, define_patterns, drawable, height, nothing,
    pattern_fill, series_of,
};
use crate::format::several;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Seconds;

const HEIGHT: f64 = 300.0;
/// Share of its category that a bar takes, and the widest bar.
const BAR: (f64, f64) = (0.72, 56.0);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Breakdown {
    pub title: String,
    pub method: String,
    /// In the order in which they are drawn.
    pub columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub workers: u64,
    /// Names and times, from the bottom up.
    pub parts: Vec<(String, Seconds)>,
}

impl Breakdown {
    /// The parts of a step, by predictions for several numbers of workers.
    pub fn from_predictions(predictions: &[Prediction], name: &str) -> Self {
        let column = |prediction: &Prediction| Column {
            workers: prediction.workers,
            parts: prediction.breakdown.iter().map(|part| (part.kind.to_string(), part.time)).collect(),
        };
        Self {
            title: format!("A step of {name}"),
            method: predictions.first().map_or("", |prediction| prediction.method).to_owned(),
            columns: predictions.iter().map(column).collect(),
        }
    }

    pub fn svg(&self) -> String {
        self.svg_of(WIDTH)
    }

    pub fn svg_of(&self, drawing: f64) -> String {
        let good = |time: &Seconds| drawable(time.get()) && time.get() >= 0.0;
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.columns.iter().flat_map(|column| &column.parts).filter(|(_, time)| good(time)) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let total = |column: &Column| -> f64 {
            column.parts.iter().map(|(_, time)| time).filter(|time| good(time)).map(|time| time.get()).sum()
        };
        let highest = self.columns.iter().map(total).fold(0.0, f64::max);
        if names.is_empty() || !drawable(highest) || highest <= 0.0 {
            return nothing(&self.title, "There is nothing to show: no step takes any time.");
        }
        let colours = series_of(&names);
        let legend =
            names.iter().zip(&colours).map(|(name, series)| (Mark::Bar(*series), (*name).to_owned()));
        let head = Head {
            title: self.title.clone(),
            note: format!("Time of a step by what it is spent on; by {}", self.method),
            legend: legend.collect(),
        };
        let across = Axis::places("workers", self.columns.iter().map(|column| column.workers.to_string()));
        let upwards = Axis::of("time of a step", (0.0, highest), Spacing::Linear, &Unit::Time, 6);
        let frame = Frame::new(across, upwards, drawing, head.height(drawing) + 8.0, height(drawing, HEIGHT));
        let mut svg = Svg::new(drawing, frame.floor() + BELOW, &self.title, &self.description(&names));
        define_patterns(&mut svg, 1 + colours.iter().max().copied().unwrap_or(0));
        head.draw(&mut svg, drawing);
        frame.draw(&mut svg);
        let place = frame.width / self.columns.len() as f64;
        let wide = (place * BAR.0).min(BAR.1);
        for (index, column) in self.columns.iter().enumerate() {
            let x = frame.left + (index as f64 + 0.5) * place - wide / 2.0;
            let mut below = 0.0;
            for (name, time) in column.parts.iter().filter(|(_, time)| good(time)) {
                let (lower, upper) = (frame.y(below), frame.y(below + time.get()));
                below += time.get();
                let series = names.iter().position(|known| known == name).map_or(0, |place| colours[place]);
                let words = format!(
                    "{}, {name}: {}",
                    several(column.workers, "worker"),
                    Unit::Time.write(time.get())
                );
                svg.titled(&words, |svg| {
                    svg.rect([x, upper, wide, lower - upper], "", &pattern_fill(series));
                });
            }
        }
        svg.finish()
    }

    fn description(&self, names: &[&str]) -> String {
        format!(
            "Stacked bars for {} numbers of workers, predicted by {}. From the bottom up: {}.",
            self.columns.len(),
            self.method,
            names.join(", ")
        )
    }
}
