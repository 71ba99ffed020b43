//! A histogram of staleness: a bar for every value.

use crate::draw::{Axis, Frame, Head, Spacing, Unit, WIDTH, height, nothing, significant};
use stepcast_core::prediction::Prediction;

const HEIGHT: f64 = 260.0;
/// Share of its category that a bar takes, and the widest bar.
const BAR: (f64, f64) = (0.8, 48.0);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Staleness {
    pub title: String,
    /// Shares, from a staleness of 0 on.
    pub shares: Vec<f64>,
    /// Whether the last share includes all larger values.
    pub open_ended: bool,
    /// The mean, where it is known.
    pub mean: Option<f64>,
}

/// Entries of the histogram of a prediction; the last includes all larger values.
const COUNTED: usize = 64;

impl Staleness {
    pub fn from_prediction(prediction: &Prediction, name: &str) -> Option<Self> {
        let simulation = prediction.simulation.as_ref()?;
        Some(Self {
            title: format!("Staleness of {name}"),
            shares: simulation.staleness_histogram.clone(),
            open_ended: simulation.staleness_histogram.len() >= COUNTED,
            mean: Some(simulation.mean_staleness),
        })
    }

    pub fn svg(&self) -> String {
        self.svg_of(WIDTH)
    }

    pub fn svg_of(&self, drawing: f64) -> String {
        let good = |share: &f64| (0.0..=1.0).contains(share);
        let highest = self.shares.iter().copied().filter(good).fold(0.0, f64::max);
        if highest <= 0.0 {
            return nothing(&self.title, "There is nothing to show: no update was counted.");
        }
        let mean = self.mean.filter(|mean| mean.is_finite());
        let note = mean.map_or(String::new(), |mean| format!("{} on average", significant(mean, 3)));
        let head = Head { title: self.title.clone(), note, legend: Vec::new() };
        let last = self.shares.len() - 1;
        let name = |place: usize| match self.open_ended && place == last && place > 0 {
            true => format!("{place}+"),
            false => place.to_string(),
        };
        let title = "updates of others between a worker's pull and its own update";
        let across = Axis::places(title, (0..self.shares.len()).map(name));
        let upwards = Axis::of("share of updates", (0.0, highest), Spacing::Linear, &Unit::Share, 5);
        let frame = Frame::new(across, upwards, drawing, head.height(drawing) + 8.0, height(drawing, HEIGHT));
        let description = format!(
            "A histogram of staleness from 0 to {last}; the most frequent has {}.",
            Unit::Share.write(highest)
        );
        let mut svg = frame.begin(&head, drawing, &description, |_| ());
        for (place, &share) in self.shares.iter().enumerate().filter(|(_, share)| good(share)) {
            let ((middle, wide), y) = (frame.bar(place, self.shares.len(), BAR), frame.y(share));
            svg.titled(&format!("{}: {}", name(place), Unit::Share.write(share)), |svg| {
                svg.rect([middle - wide / 2.0, y, wide, frame.floor() - y], "s0 fill", "");
            });
        }
        svg.finish()
    }
}
